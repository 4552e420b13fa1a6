//! Loading, attaching, dying, being adopted, going away.

use crate::frames::ethernet;
use crate::rig::{PLAIN, Rig, index, ip, new_namespace, own, pins, plan};
use linkbraid_dataplane::{Bond, DataPath, Hook, HookChoice, Lane, Member, PeerMac, Plan, Verdict, Way};
use std::{fs, process::Command, sync::OnceLock};

fn text(program: &str, line: &str) -> String {
    let done = Command::new(program).args(line.split_whitespace()).output().expect("iproute2 is installed");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Without tcx (before 6.6) only clsact can be tested.
fn hooks() -> &'static [Hook] {
    static HOOKS: OnceLock<Vec<Hook>> = OnceLock::new();
    HOOKS.get_or_init(|| {
        new_namespace();
        let pins = pins();
        let mut path = DataPath::load(&pins, HookChoice::Only(Hook::Tcx)).unwrap();
        let has_tcx = path.attach_port(1).is_ok();
        path.unload().unwrap();
        if has_tcx { vec![Hook::Tcx, Hook::Clsact] } else { vec![Hook::Clsact] }
    })
}

fn interfaces() {
    new_namespace();
    ip("link add bond type bridge");
    ip("link add member0 type veth peer name far0");
    for name in ["bond", "member0", "far0"] {
        ip(&format!("link set {name} up"));
    }
}

fn attached(choice: HookChoice, pins: &std::path::Path) -> DataPath {
    let mut path = DataPath::load(pins, choice).unwrap();
    path.attach_port(index("bond")).unwrap();
    path.attach_member(index("member0")).unwrap();
    path
}

fn write_tables(path: &DataPath) {
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
        let pins = pins();
        let before = (text("tc", "qdisc show"), filters());
        address_the_bond();
        let path = attached(HookChoice::Only(hook), &pins);
        write_tables(&path);
        let sent = far_frames();
        send_one();
        assert!(far_frames() > sent, "{hook}: the data path works");
        assert_eq!(path.hook(), Some(hook));
        assert!(pins.exists());
        path.unload().unwrap();
        let sent = far_frames();
        send_one();
        assert_eq!(far_frames(), sent, "{hook}: a bridge without ports sends nothing by itself");
        assert_eq!((text("tc", "qdisc show"), filters()), before, "{hook}");
        assert!(!pins.exists(), "{hook}: pins are left");
    }
}

#[test]
fn a_clsact_that_was_there_stays() {
    interfaces();
    let pins = pins();
    let done = Command::new("tc").args("qdisc add dev member0 clsact".split(' ')).status().unwrap();
    assert!(done.success());
    attached(HookChoice::Only(Hook::Clsact), &pins).unload().unwrap();
    assert_eq!(text("tc", "qdisc show dev member0").matches("clsact").count(), 1);
    assert_eq!(text("tc", "filter show dev member0 ingress"), "");
}

#[test]
fn a_clsact_that_others_use_meanwhile_stays() {
    for side in ["ingress", "egress"] {
        interfaces();
        let pins = pins();
        let path = attached(HookChoice::Only(Hook::Clsact), &pins);
        let filter =
            format!("filter add dev member0 {side} pref 7 protocol all u32 match u32 0 0 flowid 1:1");
        assert!(Command::new("tc").args(filter.split(' ')).status().unwrap().success());
        path.unload().unwrap();
        assert!(text("tc", &format!("filter show dev member0 {side}")).contains("pref 7"), "{side}");
        assert_eq!(text("tc", "qdisc show dev bond").matches("clsact").count(), 0, "nobody uses that one");
        assert!(!pins.exists(), "{side}: pins are left");
    }
}

#[test]
fn the_data_path_outlives_its_daemon_and_is_adopted() {
    for &hook in hooks() {
        interfaces();
        let pins = pins();
        let first = attached(HookChoice::Only(hook), &pins);
        write_tables(&first);
        let frame = ethernet(PLAIN, own(0), 0x0800, &[0; 60]);
        assert_eq!(first.trial(Way::Out, &frame, index("bond")).unwrap().verdict, Verdict::Redirect);
        drop(first);
        // No daemon: a frame that the bond sends still leaves by the member, and is still counted.
        address_the_bond();
        let before = far_frames();
        send_one();
        assert!(far_frames() > before, "{hook}: the frame did not leave");

        let second = attached(HookChoice::Only(hook), &pins);
        assert_eq!(second.hook(), Some(hook));
        let plain =
            second.reasons().unwrap().into_iter().find(|(reason, _)| reason.name == "tx_plain").unwrap();
        assert!(plain.1.frames >= 2, "{hook}: the counters went on: {:?}", plain.1);
        let trial = second.trial(Way::Out, &frame, index("bond")).unwrap();
        assert_eq!(trial.verdict, Verdict::Redirect, "{hook}: the tables are still there");
        second.unload().unwrap();
        assert!(!pins.exists());
    }
}

#[test]
fn a_member_that_is_gone_is_no_obstacle() {
    for &hook in hooks() {
        interfaces();
        let pins = pins();
        let mut path = attached(HookChoice::Only(hook), &pins);
        let gone = index("member0");
        ip("link del member0");
        path.detach_member(gone).unwrap();
        path.detach_member(gone).unwrap();
        path.unload().unwrap();
        assert!(!pins.exists(), "{hook}");
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
    let row = PeerMac { plan: 4097, primary: own(0), broadcast_slot: 0 };
    let error = rig.path.set_peer_mac(own(1), &row).unwrap_err();
    assert_eq!(error.to_string(), "plan: 4097 is outside the allowed range 0 to 4096");
    let member = Member { ifindex: 1, mac: own(0), live: true, elected: 0 };
    assert!(rig.path.set_member(16, Some(&member)).is_err());
    let error = rig.path.set_failed_slots(1 << 16).unwrap_err();
    assert_eq!(error.to_string(), "failed slots: 65536 is outside the allowed range 0 to 65535");
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    // Not in a BPF file system, so nothing can be pinned there.
    let pins = std::env::temp_dir().join(format!("linkbraid-no-bpf-{}", std::process::id()));
    assert!(DataPath::load(&pins, HookChoice::Auto).is_err());
    assert!(!pins.exists(), "{} is left", pins.display());
}
