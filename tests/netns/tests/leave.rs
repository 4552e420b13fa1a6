//! A host that is switched off tells its peers before: they do not send to it until its silence says so.

use linkbraid_api::PeerState;
use linkbraid_lab::{Host, Topology};
use linkbraid_netns_tests::{BOND, Net, sh, until};
use std::time::{Duration, Instant};

/// How long a peer may send to a host that has left; printed.
const WANTED: Duration = Duration::from_millis(100);
/// How long that may take here. Without a message it would be 10 s.
const AT_MOST: Duration = Duration::from_secs(3);

/// Three hosts that bond, `a` among them.
fn three() -> Net {
    let net = Net::bonded(Topology::symmetric(3, 2, None));
    net.wait_tables(&["a", "b", "c"]);
    net
}

/// Waits until `a` has so many peers that are heard and have proven who they are; how long that took.
#[track_caller]
fn wait_peers(net: &Net, peers: usize) -> Duration {
    let since = Instant::now();
    let known = || net.peers("a").iter().filter(|peer| peer.state == PeerState::Alive && peer.proven).count();
    until(&format!("{peers} peers"), known, |known| *known == peers);
    since.elapsed()
}

/// What ping says of packets that `from` sends `to` while something is done.
fn pings_meanwhile(from: Host<'_>, to: Host<'_>, act: impl FnOnce()) -> String {
    let pings = format!("ping -i 0.01 -c 100 -q {}", to.ipv4());
    std::thread::scope(|scope| {
        let said = scope.spawn(|| from.sh(&pings).unwrap_or_else(|error| error.to_string()));
        act();
        said.join().expect("ends")
    })
}

#[test]
fn peers_forget_a_host_that_leaves_at_once_and_others_keep_their_traffic() {
    let net = three();
    wait_peers(&net, 2);
    let mut took = Duration::MAX;
    let said = pings_meanwhile(net.host("a"), net.host("c"), || {
        net.ok("b", "leave");
        took = wait_peers(&net, 1);
    });
    println!("forgotten after {} ms (wanted: {} ms)", took.as_millis(), WANTED.as_millis());
    assert!(took < AT_MOST, "{took:?}\n{}", net.log("a"));
    assert!(said.contains(" 0% packet loss"), "to the host that stays: {said}");
    let show = net.ok("b", "show");
    assert!(show.lines().next().is_some_and(|line| line.contains("left its peers")), "{show}");
    // What is still sent arrives, as between plain hosts.
    sh(net.host("a"), &format!("ping -c 3 -i 0.1 -W 2 {}", net.host("b").ipv4()));
    net.ok("b", &format!("leave {BOND} --undo"));
    wait_peers(&net, 2);
    until("all is well", || net.ok("b", "show"), |show| show.starts_with(&format!("{BOND}: ok")));
}

#[test]
fn a_daemon_that_ends_leaves_nobody_and_a_bond_that_is_set_down_does() {
    let net = three();
    wait_peers(&net, 2);
    net.stop("b");
    net.start("b", &[]);
    until("a new epoch", || net.log("a"), |log| log.contains("it has restarted"));
    wait_peers(&net, 2);
    let left = |log: &str| log.contains("it announced that it leaves");
    assert!(!left(&net.log("a")), "{}", net.log("a"));

    sh(net.host("b"), &format!("ip link set {BOND} down"));
    let took = wait_peers(&net, 1);
    assert!(took < AT_MOST, "{took:?}\n{}", net.log("a"));
    until("a reason", || net.log("a"), |log| left(log));
    // It joins when it is set up, not before.
    net.ok("b", "leave --undo");
    sh(net.host("b"), &format!("ip link set {BOND} up"));
    wait_peers(&net, 2);
    net.wait_tables(&["a", "b", "c"]);
}

#[test]
fn a_bond_that_is_not_there_cannot_leave() {
    let net = Net::up(Topology::symmetric(1, 1, None));
    net.start("a", &[]);
    net.say("a", "leave bond7").refused(1, "bond7: no such bond: there are no bonds");
}
