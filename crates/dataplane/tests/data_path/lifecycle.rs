//! Loading, attaching, dying, being adopted, going away.

use crate::frames::ethernet;
use crate::lent::{maps_left, programs};
use crate::rig::{PLAIN, Rig, index, ip, new_namespace, own, plan};
use linkbraid_dataplane::{
    Bond, DataPath, Hook, HookChoice, Lane, Member, PeerMac, PeerMacKind, Plan, Verdict, Way, take_off,
    take_off_strays,
};
use std::{
    collections::BTreeSet,
    fs,
    process::Command,
    sync::OnceLock,
    time::{Duration, Instant},
};

fn text(program: &str, line: &str) -> String {
    let done = Command::new(program).args(line.split_whitespace()).output().expect("iproute2 is installed");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Without tcx (before 6.6) only clsact can be tested.
pub fn hooks() -> &'static [Hook] {
    static HOOKS: OnceLock<Vec<Hook>> = OnceLock::new();
    HOOKS.get_or_init(|| {
        new_namespace();
        let mut path = DataPath::load(HookChoice::Only(Hook::Tcx)).unwrap();
        let has_tcx = path.attach_port(1).is_ok();
        path.unload().unwrap();
        if has_tcx { vec![Hook::Tcx, Hook::Clsact] } else { vec![Hook::Clsact] }
    })
}

/// Maps that a later daemon takes over; the others are the programs' own.
const KEPT: usize = 34;
/// Programs of a data path, and how many of them are on the interfaces here.
const LOADED: usize = 4;
pub const ATTACHED: usize = 3;

/// A bond and a member, which are up, in a network namespace of their own.
pub fn interfaces() {
    new_namespace();
    ip("link add bond type bridge");
    ip("link add member0 type veth peer name far0");
    for name in ["bond", "member0", "far0"] {
        ip(&format!("link set {name} up"));
    }
}

/// As the first daemon does.
pub fn attached(hook: Hook) -> DataPath {
    attach(DataPath::load(HookChoice::Only(hook)).unwrap())
}

/// As the next daemon does.
pub fn adopted(hook: Hook) -> DataPath {
    let bond = index("bond");
    attach(DataPath::adopt(bond, &[bond, index("member0")], HookChoice::Only(hook)).unwrap())
}

fn attach(mut path: DataPath) -> DataPath {
    path.attach_port(index("bond")).unwrap();
    path.attach_member(index("member0")).unwrap();
    path
}

/// All that a bond of one member is given.
pub fn write_tables(path: &DataPath) {
    let bond = Bond {
        ifindex: index("bond"),
        mac: own(0),
        damping: None,
        elected: vec![0],
        failed_slots: 0,
        epoch: 1,
    };
    path.set_bond(&bond).unwrap();
    let member = Member { ifindex: index("member0"), mac: own(0), live: true, elected: 0 };
    path.set_member(0, Some(&member)).unwrap();
    path.set_plan(0, &plan(&[(0, 1)], |_| None)).unwrap();
}

/// Filters on both interfaces.
fn filters() -> Vec<String> {
    [("bond", "egress"), ("member0", "ingress")]
        .iter()
        .map(|(dev, side)| text("tc", &format!("filter show dev {dev} {side}")))
        .collect()
}

/// Frames that reached the far end of member0.
fn far_frames() -> u64 {
    let all = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = all.lines().find(|line| line.trim_start().starts_with("far0:")).unwrap();
    line.split_whitespace().nth(2).unwrap().parse().unwrap()
}

/// Gives the bond an address and a neighbour behind it; the frame to that neighbour.
fn send_one() {
    let socket = std::net::UdpSocket::bind("198.18.9.1:0").unwrap();
    socket.send_to(b"still here", "198.18.9.2:9").unwrap();
}

fn address_the_bond() {
    ip("address add 198.18.9.1/24 dev bond");
    ip("link set bond address 02:00:00:00:01:00");
    ip("neighbour add 198.18.9.2 lladdr 02:00:00:00:03:01 dev bond nud permanent");
}

#[test]
fn unload_leaves_nothing() {
    for &hook in hooks() {
        interfaces();
        let before = (text("tc", "qdisc show"), filters());
        address_the_bond();
        let path = attached(hook);
        write_tables(&path);
        let sent = far_frames();
        send_one();
        assert!(far_frames() > sent, "{hook}: the data path works");
        assert_eq!(path.hook(), Some(hook));
        let ids = path.map_ids().unwrap();
        path.unload().unwrap();
        let sent = far_frames();
        send_one();
        assert_eq!(far_frames(), sent, "{hook}: a bridge without ports sends nothing by itself");
        assert_eq!((text("tc", "qdisc show"), filters()), before, "{hook}");
        is_gone(&ids);
    }
}

#[test]
fn a_clsact_that_was_there_stays() {
    interfaces();
    let done = Command::new("tc").args("qdisc add dev member0 clsact".split(' ')).status().unwrap();
    assert!(done.success());
    attached(Hook::Clsact).unload().unwrap();
    assert_eq!(text("tc", "qdisc show dev member0").matches("clsact").count(), 1);
    assert_eq!(text("tc", "filter show dev member0 ingress"), "");
}

#[test]
fn a_clsact_that_others_use_meanwhile_stays() {
    for side in ["ingress", "egress"] {
        interfaces();
        let path = attached(Hook::Clsact);
        let filter =
            format!("filter add dev member0 {side} pref 7 protocol all u32 match u32 0 0 flowid 1:1");
        assert!(Command::new("tc").args(filter.split(' ')).status().unwrap().success());
        path.unload().unwrap();
        assert!(text("tc", &format!("filter show dev member0 {side}")).contains("pref 7"), "{side}");
        assert_eq!(text("tc", "qdisc show dev bond").matches("clsact").count(), 0, "nobody uses that one");
    }
}

#[test]
fn the_data_path_outlives_its_daemon_and_is_adopted() {
    for &hook in hooks() {
        interfaces();
        let first = attached(hook);
        write_tables(&first);
        let frame = ethernet(PLAIN, own(0), 0x0800, &[0; 60]);
        assert_eq!(first.trial(Way::Out, &frame, index("bond")).unwrap().verdict, Verdict::Redirect);
        let ids = first.map_ids().unwrap();
        drop(first);
        // No daemon: a frame that the bond sends still leaves by the member, and is still counted.
        address_the_bond();
        let before = far_frames();
        send_one();
        assert!(far_frames() > before, "{hook}: the frame did not leave");

        let second = adopted(hook);
        assert_eq!(second.map_ids().unwrap().intersection(&ids).count(), KEPT, "{hook}");
        assert_eq!(second.hook(), Some(hook));
        let plain =
            second.reasons().unwrap().into_iter().find(|(reason, _)| reason.name == "tx_plain").unwrap();
        assert!(plain.1.frames >= 2, "{hook}: the counters went on: {:?}", plain.1);
        let trial = second.trial(Way::Out, &frame, index("bond")).unwrap();
        assert_eq!(trial.verdict, Verdict::Redirect, "{hook}: the tables are still there");
        second.unload().unwrap();
        is_gone(&ids);
    }
}

/// All programs in their places.
fn whole(path: DataPath, [bond, port, member]: [u32; 3]) -> DataPath {
    let mut path = path;
    path.attach_bond(bond).unwrap();
    path.attach_port(port).unwrap();
    path.attach_member(member).unwrap();
    path
}

fn program_ids(path: &DataPath) -> BTreeSet<u32> {
    programs(&path.map_ids().unwrap()).into_iter().map(|program| program.id).collect()
}

#[test]
fn programs_of_the_same_build_are_not_loaded_again() {
    for &hook in hooks() {
        interfaces();
        ip("link add port0 type veth peer name end0");
        let all = [index("bond"), index("port0"), index("member0")];
        let adopt = || DataPath::adopt(all[0], &all, HookChoice::Only(hook)).unwrap();
        let first = whole(DataPath::load(HookChoice::Only(hook)).unwrap(), all);
        write_tables(&first);
        let (maps, loaded) = (first.map_ids().unwrap(), program_ids(&first));
        assert_eq!(loaded.len(), LOADED);
        drop(first);
        let mut second = whole(adopt(), all);
        assert_eq!((second.map_ids().unwrap(), program_ids(&second)), (maps.clone(), loaded), "{hook}");
        assert_eq!(second.hook(), Some(hook));
        let frame = ethernet(PLAIN, own(0), 0x0800, &[0; 60]);
        assert_eq!(second.trial(Way::Out, &frame, all[1]).unwrap().verdict, Verdict::Redirect);
        // Where one is missing, all are loaded, with the same maps.
        second.detach_member(all[2]).unwrap();
        drop(second);
        let third = whole(adopt(), all);
        assert_ne!(third.map_ids().unwrap(), maps, "{hook}");
        assert_eq!(third.map_ids().unwrap().intersection(&maps).count(), KEPT, "{hook}");
        third.unload().unwrap();
        is_gone(&maps);
    }
}

#[test]
fn a_member_that_is_gone_is_no_obstacle() {
    for &hook in hooks() {
        interfaces();
        let mut path = attached(hook);
        let gone = index("member0");
        ip("link del member0");
        path.detach_member(gone).unwrap();
        path.detach_member(gone).unwrap();
        path.unload().unwrap();
    }
}

#[test]
fn values_out_of_range_are_refused_with_their_limits() {
    let rig = Rig::new(1);
    let lane = Lane { slot: 0, peer_mac: None, weight: 1, rate: None, class: 0 };
    let error = rig.path.set_plan(0, &Plan { lanes: vec![lane; 17], ..Plan::default() }).unwrap_err();
    assert_eq!(error.to_string(), "lanes: 17 is outside the allowed range 0 to 16");
    let error = rig.path.set_plan(4113, &Plan::default()).unwrap_err();
    assert_eq!(error.to_string(), "plan: 4113 is outside the allowed range 0 to 4112");
    let row = PeerMac { plan: 4097, primary: own(0), broadcast_slot: 0, kind: PeerMacKind::default() };
    let error = rig.path.set_peer_mac(own(1), &row).unwrap_err();
    assert_eq!(error.to_string(), "plan: 4097 is outside the allowed range 0 to 4096");
    let member = Member { ifindex: 1, mac: own(0), live: true, elected: 0 };
    assert!(rig.path.set_member(16, Some(&member)).is_err());
    let error = rig.path.set_failed_slots(1 << 16).unwrap_err();
    assert_eq!(error.to_string(), "failed slots: 65536 is outside the allowed range 0 to 65535");
}

/// No program or map of these numbers is left.
#[track_caller]
pub fn is_gone(ids: &BTreeSet<u32>) {
    let begun = Instant::now();
    while !programs(ids).is_empty() || maps_left(ids) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "programs or maps are left");
        std::thread::yield_now();
    }
}

#[test]
fn one_program_that_is_left_keeps_all_maps() {
    for &hook in hooks() {
        for gone in ["bond", "member0"] {
            interfaces();
            let first = attached(hook);
            write_tables(&first);
            let ids = first.map_ids().unwrap();
            drop(first);
            let (bond, member) = (index("bond"), index("member0"));
            ip(&format!("link del {gone}"));
            let second = DataPath::adopt(bond, &[bond, member], HookChoice::Only(hook)).unwrap();
            assert_eq!(second.map_ids().unwrap().intersection(&ids).count(), KEPT, "{hook}: {gone}");
            assert_eq!(second.members().unwrap().len(), 1);
        }
    }
}

#[test]
fn only_the_programs_of_the_bond_are_taken_over_or_taken_off() {
    for &hook in hooks() {
        interfaces();
        let first = attached(hook);
        write_tables(&first);
        let ids = first.map_ids().unwrap();
        let (bond, member) = (index("bond"), index("member0"));
        drop(first);
        let other = DataPath::adopt(member, &[bond, member], HookChoice::Only(hook)).unwrap();
        assert!(other.map_ids().unwrap().is_disjoint(&ids), "{hook}");
        take_off(member, &[bond, member]).unwrap();
        take_off_strays(&[bond, member]).unwrap();
        assert_eq!(programs(&ids).len(), ATTACHED, "{hook}");
        take_off(bond, &[bond, member]).unwrap();
        is_gone(&ids);
    }
}

#[test]
fn programs_of_a_bond_that_somebody_deleted_are_taken_off() {
    for &hook in hooks() {
        interfaces();
        let path = attached(hook);
        write_tables(&path);
        let ids = path.map_ids().unwrap();
        drop(path);
        let all = [index("bond"), index("member0")];
        ip("link del bond");
        take_off_strays(&all).unwrap();
        is_gone(&ids);
    }
}

#[test]
fn another_hook_takes_the_place_of_the_first() {
    if let [first, second] = *hooks() {
        for (from, to) in [(first, second), (second, first)] {
            interfaces();
            let bare = (text("tc", "qdisc show"), filters());
            let path = attached(from);
            write_tables(&path);
            let ids = path.map_ids().unwrap();
            drop(path);
            let path = adopted(to);
            assert_eq!(path.hook(), Some(to));
            // Those of the first daemon are gone.
            let begun = Instant::now();
            while programs(&ids).len() > LOADED {
                assert!(begun.elapsed() < Duration::from_secs(20), "{from} to {to}: both are on");
                std::thread::yield_now();
            }
            path.unload().unwrap();
            assert_eq!((text("tc", "qdisc show"), filters()), bare, "{from} to {to}");
        }
    }
}
