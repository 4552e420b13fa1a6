//! Members that are unplugged and plugged in again: the bond has them back by itself.

use linkbraid_api::LaneRecord;
use linkbraid_lab::{Topology, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON};
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// How long until a member carries traffic again that is plugged in, on a machine that has time for it; printed.
const WANTED: Duration = Duration::from_secs(1);
/// How long that may take here. A member that nobody answers through would be admitted after 5 s, so one that is in use by
/// then was proven.
const AT_MOST: Duration = Duration::from_secs(4);
/// How long it is watched that a member does not come back.
const STAYS_OUT: Duration = Duration::from_secs(2);

#[track_caller]
fn unplug(net: &Net, nic: &str) {
    net.host("a").sh(&format!("ip link del {nic}")).expect("deletes");
    wait_until(
        SOON,
        "the bond without it",
        || net.show("a"),
        |bond| bond.members.iter().all(|member| member.interface != nic),
    )
    .unwrap_or_else(|e| panic!("{e}"));
}

/// Makes a NIC again at the switch port where it was; when that was done.
#[track_caller]
fn plug(net: &Net, link: usize, mac: &str) -> Instant {
    let host = net.host("a");
    // As the lab called it, which has gone with the NIC.
    let (port, far) = (format!("a-eth{link}"), net.lab().switch(0).expect("a switch").name());
    host.sh(&format!("ip link add eth{link} address {mac} type veth peer name {port} netns {far}"))
        .expect("adds");
    host.sh(&format!("ip -n {far} link set {port} master br0 up")).expect("sets");
    Instant::now()
}

/// Waits until a NIC of `a` carries traffic to the peer; how long that took from `since` on.
#[track_caller]
fn wait_in_use(net: &Net, nic: &str, since: Instant) -> Duration {
    let used = |lane: &LaneRecord| lane.member == nic && lane.share_ppm > 0 && lane.peer_mac.is_some();
    let lanes = || net.lanes("a").iter().any(used);
    wait_until(SOON, &format!("{nic} in use"), lanes, |used| *used)
        .unwrap_or_else(|e| panic!("{e}\n{}", net.log("a")));
    since.elapsed()
}

/// Frames go out and come in over a NIC of `a`.
#[track_caller]
fn carries(net: &Net, nic: &str) {
    let counts = || {
        net.host("a").sh(&format!("ping -c 20 -i 0.002 -q {}", net.host("b").ipv4())).expect("reaches");
        let bond = net.show("a");
        let member = bond.members.iter().find(|member| member.interface == nic);
        member.map(|member| (member.tx_frames, member.rx_frames)).unwrap_or_default()
    };
    let before = counts();
    wait_until(SOON, &format!("traffic over {nic}"), counts, |now| now.0 > before.0 && now.1 > before.1)
        .unwrap_or_else(|e| panic!("{e}"));
}

#[track_caller]
fn took(what: &str, took: Duration) {
    println!("{what}: in use after {} ms (wanted: {} ms)", took.as_millis(), WANTED.as_millis());
    assert!(took < AT_MOST, "{what}: {took:?}");
}

#[track_caller]
fn stays_out(net: &Net, nic: &str) {
    let until = Instant::now() + STAYS_OUT;
    while Instant::now() < until {
        assert!(!net.members("a", BOND).contains(&nic.to_owned()), "{}", net.log("a"));
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_member_of_the_file_is_back_as_soon_as_it_is_there() {
    let net = Net::up(Topology::symmetric(2, 3, None));
    let file = net.file(&format!("[bond.{BOND}]\nmember = ['eth0', 'eth1', 'eth2']\n"));
    let config = ["--config", file.as_str()];
    net.start("a", &config);
    wait_until(SOON, "the bond", || net.say("a", &format!("show {BOND}")).code, |code| *code == 0)
        .unwrap_or_else(|e| panic!("{e}"));
    net.start("b", &[]);
    net.bond("b");
    net.wait_tables(&["a", "b"]);
    let mac = net.host("a").mac(1);

    unplug(&net, "eth1");
    let bond = net.show("a");
    assert_eq!(
        (bond.absent, bond.reason),
        (vec!["eth1".to_owned()], "'eth1': its interface is not there".into())
    );
    let apply = format!("apply {file}");
    assert_eq!(net.ok("a", &apply), "nothing to do\n", "it is wanted, and has its place");
    took("the same NIC", wait_in_use(&net, "eth1", plug(&net, 1, &mac)));
    carries(&net, "eth1");
    net.wait_tables(&["a", "b"]);
    assert!(net.show("a").absent.is_empty());

    // What cannot be a member has its name.
    unplug(&net, "eth1");
    net.host("a").sh("ip link add eth1 type bridge").expect("adds");
    let refused = "'eth1': it is there, and does not join: ";
    wait_until(SOON, "the refusal", || net.show("a").reason, |reason| reason.starts_with(refused))
        .unwrap_or_else(|e| panic!("{e}\n{}", net.log("a")));
    assert_eq!(net.show("a").absent, ["eth1"]);
    unplug(&net, "eth1");
    wait_until(SOON, "nothing refused", || net.show("a"), |bond| bond.findings.is_empty())
        .unwrap_or_else(|e| panic!("{e}"));
    took("another NIC", wait_in_use(&net, "eth1", plug(&net, 1, "02:00:00:00:77:01")));
    carries(&net, "eth1");
    net.wait_tables(&["a", "b"]);

    // The one that gave the bond its MAC.
    unplug(&net, "eth0");
    took("the first NIC", wait_in_use(&net, "eth0", plug(&net, 0, &net.host("a").mac(0))));
    carries(&net, "eth0");
    assert_eq!(net.ok("a", &apply), "nothing to do\n");

    // Whoever unplugs it while no daemon looks, and plugs it in again then or later.
    unplug(&net, "eth2");
    net.kill("a");
    let mac = net.host("a").mac(2);
    plug(&net, 2, &mac);
    let started = Instant::now();
    net.start("a", &config);
    let back = wait_in_use(&net, "eth2", started);
    println!("a NIC that came while no daemon ran: in use {} ms after the daemon's start", back.as_millis());

    // What a user removes stays removed: one that is there, and one that is not.
    net.ok("a", &format!("member del {BOND} eth2"));
    net.host("a").sh("ip link del eth2").expect("deletes");
    plug(&net, 2, &mac);
    stays_out(&net, "eth2");
    unplug(&net, "eth1");
    net.ok("a", &format!("member del {BOND} eth1"));
    assert!(net.show("a").absent.is_empty());
    plug(&net, 1, &net.host("a").mac(1));
    stays_out(&net, "eth1");
    assert_ne!(net.say("a", &format!("member del {BOND} eth1")).code, 0, "there is none");
    // The file wants them still.
    assert_eq!(
        net.ok("a", &apply),
        format!("linkbraid member add {BOND} eth1\nlinkbraid member add {BOND} eth2\n")
    );
}

#[test]
fn a_member_added_by_hand_is_back_with_its_weight_and_its_class() {
    let net = Net::bonded(Topology::symmetric(2, 3, None));
    net.ok("a", &format!("class add {BOND} voice --match dscp=ef"));
    net.ok("a", &format!("class set {BOND} voice --member eth2"));
    net.ok("a", &format!("member set {BOND} eth2 --weight 7000"));
    unplug(&net, "eth2");
    // Another weight while it is away.
    net.ok("a", &format!("member set {BOND} eth2 --weight 9000"));
    let mac = net.host("a").mac(2);
    took("a NIC of a class", wait_in_use(&net, "eth2", plug(&net, 2, &mac)));
    let shown =
        || net.show("a").members.into_iter().find(|member| member.interface == "eth2").expect("there");
    assert_eq!((shown().weight_mbit, shown().class.as_deref()), (9000, Some("voice")));
    unplug(&net, "eth2");
    net.ok("a", &format!("class set {BOND} voice --no-members"));
    wait_in_use(&net, "eth2", plug(&net, 2, &mac));
    assert_eq!(shown().class, None);
    // It comes back to a bond that had lost all of them, too.
    for nic in ["eth0", "eth1", "eth2"] {
        unplug(&net, nic);
    }
    assert_eq!(net.show("a").absent, ["eth0", "eth1", "eth2"]);
    for link in 0..3 {
        plug(&net, link, &net.host("a").mac(link));
    }
    let since = Instant::now();
    (0..3).for_each(|link| took("one of all", wait_in_use(&net, &format!("eth{link}"), since)));
    net.wait_tables(&["a", "b"]);
    net.ok("a", &format!("bond del {BOND}"));
}
