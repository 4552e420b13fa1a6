//! Changes that are undone unless they are confirmed in time.

use linkbraid_lab::wait_until;
use linkbraid_netns_tests::{BOND, Net, SOON, machine, sh, until};
use std::time::{Duration, Instant};

const ADD: &str = "bond add bond0 --member eth0,eth1 --address 198.19.7.1/24";

/// Waits until no change waits to be confirmed any more.
#[track_caller]
fn wait_over(net: &Net) {
    let said = || net.say("a", "show").err;
    wait_until(SOON, "the end of the change", said, String::is_empty)
        .unwrap_or_else(|error| panic!("{error}\n{}", net.log("a")));
}

fn interval(net: &Net) -> u32 {
    net.show("a").settings.inspector.probe_interval.0
}

#[test]
fn a_change_is_undone_unless_it_is_confirmed_in_time() {
    let net = Net::alone();
    let bare = machine::settled(&net, "a");
    net.start("a", &[]);
    assert_eq!(
        net.say("a", "confirm").refused(1, "confirm: nothing to confirm: no change waits for it"),
        "linkbraid show"
    );
    net.ok("a", ADD);
    let before = machine::settled(&net, "a");
    // In time, and by a user's wish.
    let begun = Instant::now();
    let said = net.say("a", "bond set bond0 --probe-interval 20ms --address 198.19.7.2/24 --confirm 3s");
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
    assert!(said.err.contains("undone in 3 s; to keep it: linkbraid confirm"), "{said:?}");
    assert_eq!(interval(&net), 20);
    let told = net.say("a", "show").err;
    assert!(
        told.contains("linkbraid bond set bond0 --probe-interval 20ms --address 198.19.7.2/24: undone in "),
        "{told}"
    );
    // Nothing else changes meanwhile; what only tells does.
    let hint = net.say("a", "member del bond0 eth1").refused(
        1,
        "daemon: cannot change anything: another change is to be confirmed or undone first: \
         linkbraid bond set bond0 --probe-interval 20ms --address 198.19.7.2/24",
    );
    assert_eq!(hint, "linkbraid confirm");
    net.ok("a", &format!("apply {} --diff", net.file("")));
    wait_over(&net);
    assert!(begun.elapsed() >= Duration::from_secs(3), "undone too early");
    machine::as_it_was(&net, "a", &before);
    assert_eq!(interval(&net), 50);
    net.ok("a", "bond set bond0 --probe-interval 20ms --confirm 3600s");
    net.ok("a", "confirm --undo");
    assert_eq!((interval(&net), net.say("a", "show").err.as_str()), (50, ""));
    // Confirmed, it stays.
    net.ok("a", "bond set bond0 --probe-interval 20ms --confirm 3600s");
    net.ok("a", "confirm");
    net.kill("a");
    net.start("a", &[]);
    assert_eq!((interval(&net), net.say("a", "show").err.as_str()), (20, ""));
    net.ok("a", "bond set bond0 --probe-interval 50ms");
    // A bond that was removed comes back, with its members and addresses, and with what others gave it.
    for line in [
        "ip address add 198.19.7.5/24 dev bond0",
        "ip address add 2001:db8:7::5/64 dev bond0 nodad",
        "ip route add default via 198.19.7.9 dev bond0 metric 7",
        "ip -6 route add default via 2001:db8:7::9 dev bond0",
        "ip link add guest0 type veth peer name guest1",
        "ip link set guest0 master bond0 up",
    ] {
        sh(net.host("a"), line);
    }
    let has = || {
        let look = |line: &str| sh(net.host("a"), line);
        let ports = look("ip -br link show master bond0 type veth").contains("guest0@");
        let routes = look("ip route show default") + &look("ip -6 route show default");
        (ports, look("ip -br address show bond0"), routes)
    };
    let had = has();
    assert!(had.0 && had.1.contains("198.19.7.5/24") && had.2.contains("via 2001:db8:7::9"), "{had:?}");
    for killed in [false, true] {
        net.ok("a", "bond del bond0 --confirm 3600s");
        assert_eq!(net.say("a", "show bond0").code, 1);
        if killed {
            net.kill("a");
            net.start("a", &[]);
        }
        net.ok("a", "confirm --undo");
        let bond = net.show("a");
        assert!(bond.addresses.contains(&"198.19.7.1/24".to_owned()), "{bond:?}");
        assert_eq!(net.members("a", BOND), ["eth0", "eth1"]);
        until("what others gave it", has, |has| *has == had);
    }
    sh(net.host("a"), "ip link del guest0");
    // A change that is refused leaves nothing to confirm.
    assert_eq!(net.say("a", "bond add bond1 --member eth0 --confirm 60s").code, 1);
    assert_eq!(net.say("a", "confirm").code, 1);
    net.ok("a", "bond del bond0");
    net.stop("a");
    machine::as_it_was(&net, "a", &bare);
}

#[test]
fn the_next_daemon_undoes_what_a_killed_one_cannot() {
    let net = Net::alone();
    let bare = machine::settled(&net, "a");
    net.start("a", &[]);
    net.ok("a", &format!("{ADD} --confirm 3s"));
    net.kill("a");
    net.start("a", &[]);
    wait_over(&net);
    machine::as_it_was(&net, "a", &bare);
    // A file, which the next daemon is given, too: it does not make again what it undoes.
    let file = net.file("[bond.bond0]\nmember = ['eth0', 'eth1']\n[bond.bond1]\nmember = ['eth2']\n");
    net.ok("a", "bond add bond0 --member eth0");
    let before = machine::settled(&net, "a");
    net.ok("a", &format!("apply {file} --confirm 3600s"));
    assert_eq!(net.members("a", "bond1"), ["eth2"]);
    net.kill("a");
    net.start("a", &["--config", &file]);
    assert!(
        net.say("a", "show").err.contains(&format!("linkbraid apply {file}: undone in ")),
        "{}",
        net.log("a")
    );
    net.ok("a", "confirm --undo");
    machine::as_it_was(&net, "a", &before);
    net.ok("a", "bond del bond0");
    net.stop("a");
    machine::as_it_was(&net, "a", &bare);
}

#[test]
fn whoever_would_cut_himself_off_hears_of_it_before() {
    let net = Net::alone();
    net.start("a", &[]);
    net.host("a").sh("ip address add 198.19.7.1/24 dev eth0").expect("adds");
    let typed = |line: &str, server: &str| {
        let mut command = net.host("a").linkbraid_command(linkbraid_lab::daemon::binary().expect("is built"));
        command.args(line.split(' ')).env("SSH_CONNECTION", format!("198.19.7.9 50022 {server} 22"));
        linkbraid_netns_tests::Said::by(&mut command)
    };
    let warning = "your SSH session from 198.19.7.9 goes by 'eth0', which this changes: it may end";
    let said = typed("bond add bond0 --member eth0,eth1 --confirm 3600s", "198.19.7.1");
    assert!(
        said.code == 0 && said.err.lines().next().is_some_and(|line| line.ends_with(warning)),
        "{said:?}"
    );
    let said = typed("confirm --undo", "198.19.7.1");
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let file = net.file("[bond.bond0]\nmember = ['eth0', 'eth1']\n");
    let said = typed(&format!("apply {file}"), "198.19.7.1");
    let first = said.err.lines().next().unwrap_or_default();
    assert!(said.code == 0 && first.contains(&format!("{warning}; with '--confirm 60s'")), "{said:?}");
    let said = typed("bond set bond0 --policy flow", "198.19.7.1");
    assert_eq!((said.code, said.err.as_str()), (0, ""), "a change that cuts nobody off");
    net.stop("a");
}
