//! `ip` in place of `linkbraid`: what it changes about a bond or a member is followed, put back or shown.

use linkbraid_api::Health;
use linkbraid_lab::{Host, Topology};
use linkbraid_netns_tests::{BOND, Net, SOON, check_hint, sh, traffic, until};
use std::thread;

/// What `ip link` says of an interface after a word, such as `mtu`.
#[track_caller]
pub fn of_link(host: Host<'_>, nic: &str, word: &str) -> String {
    let text = sh(host, &format!("ip -o link show {nic}"));
    let said = text.split_whitespace().skip_while(|one| *one != word).nth(1);
    said.unwrap_or_else(|| panic!("no '{word}': {text}")).to_owned()
}

#[track_caller]
pub fn wait_mtu(host: Host<'_>, nics: &[&str], wanted: u32) {
    for nic in nics {
        let mtu = || of_link(host, nic, "mtu");
        until(&format!("MTU {wanted} of {nic}"), mtu, |mtu| *mtu == wanted.to_string());
    }
}

/// The first line of `show`.
#[track_caller]
fn first_line(net: &Net, name: &str) -> String {
    net.ok(name, "show").lines().next().unwrap_or_default().to_owned()
}

/// Waits until the first line of `show` says that all is well.
#[track_caller]
pub fn wait_ok(net: &Net, name: &str) {
    until("an 'ok'", || first_line(net, name), |line| line.starts_with("bond0: ok, "));
}

/// Waits until an event with this reason is among the last ones; its text.
#[track_caller]
pub fn wait_event(net: &Net, name: &str, reason: &str) -> String {
    let texts = || net.show(name).events.into_iter().filter(|event| event.reason == reason).map(|e| e.text);
    let mut texts = until(reason, || texts().collect::<Vec<_>>(), |texts| !texts.is_empty());
    texts.pop().unwrap_or_default()
}

/// Packets of so many bytes all reach the other host whole, over all lanes.
#[track_caller]
fn pings_whole(from: Host<'_>, to: Host<'_>, bytes: u32) {
    let text = sh(from, &format!("ping -q -c 40 -i 0.01 -W 2 -M do -s {} {}", bytes - 28, to.ipv4()));
    assert!(text.contains(" 0% packet loss"), "{text}");
}

/// The hint of `show`; the first one, if there are several.
#[track_caller]
fn hint(net: &Net, name: &str) -> String {
    let text = net.ok(name, "show");
    let hint = text.lines().find_map(|line| line.trim_start().strip_prefix("hint: "));
    hint.unwrap_or_else(|| panic!("no hint: {text}")).to_owned()
}

const NICS: [&str; 5] = [BOND, "eth0", "eth1", "eth2", "eth3"];

/// Two hosts with four links each, whose switch takes frames of 4000 bytes, and whose NICs take 1500.
fn jumbo() -> Net {
    let mut topology = Topology::symmetric(2, 4, None);
    topology.hosts.iter_mut().flat_map(|host| &mut host.links).for_each(|link| link.mtu = 4000);
    let net = Net::up(topology);
    for host in net.lab().hosts() {
        NICS[1..].iter().for_each(|nic| drop(sh(host, &format!("ip link set {nic} mtu 1500"))));
    }
    net.bond_all();
    net
}

#[test]
fn an_mtu_that_the_bond_is_given_is_followed_by_its_members() {
    let net = jumbo();
    let (a, b) = (net.host("a"), net.host("b"));
    for host in [a, b] {
        sh(host, "ip link set bond0 mtu 4000");
        wait_mtu(host, &NICS, 4000);
        wait_ok(&net, host.name());
    }
    assert_eq!(net.show("a").mtu, 4000);
    wait_event(&net, "a", "mtu");
    pings_whole(a, b, 4000);
    // A smaller one, while no daemon runs.
    net.kill("a");
    sh(a, "ip link set bond0 mtu 2000");
    net.start("a", &[]);
    wait_mtu(a, &NICS, 2000);
    // The command does the same, and what it does is not taken for somebody else's doing.
    net.ok("a", &format!("bond set {BOND} --mtu 3000"));
    net.ok("b", &format!("bond set {BOND} --mtu 3000"));
    wait_mtu(a, &NICS, 3000);
    net.wait_tables(&["a", "b"]);
    pings_whole(a, b, 3000);
    assert!(net.show("a").events.iter().all(|event| !event.reason.starts_with("mtu_")));
    // Both at once: the last one counts, and all have the same.
    for (by_hand, asked) in [(2000, 2500), (3500, 1500), (4000, 3000)] {
        thread::scope(|scope| {
            scope.spawn(|| sh(a, &format!("ip link set bond0 mtu {by_hand}")));
            net.ok("a", &format!("bond set {BOND} --mtu {asked}"));
        });
        let all = || NICS.map(|nic| of_link(a, nic, "mtu"));
        let all = until("one MTU", all, |all| all.iter().all(|mtu| mtu == &all[0]));
        until("its MTU", || net.show("a").mtu.to_string(), |mtu| mtu == &all[0]);
    }
    net.ok("a", &format!("bond del {BOND}"));
    wait_mtu(a, &NICS[1..], 1500);
}

#[test]
fn what_a_file_says_counts_when_it_is_applied() {
    let net = Net::alone();
    let (a, members) = (net.host("a"), "[bond.bond0]\nmember = ['eth0', 'eth1', 'eth2', 'eth3']\n");
    net.start("a", &[]);
    net.apply(members);
    sh(a, "ip link set bond0 mtu 2000");
    wait_mtu(a, &NICS, 2000);
    // A file without an MTU leaves it.
    assert!(net.apply(members).concat().contains("nothing to do"));
    let file = net.file(&format!("{members}mtu = 1500\n"));
    assert!(net.ok("a", &format!("apply {file}")).contains("bond set bond0 --mtu 1500"));
    wait_mtu(a, &NICS, 1500);
    // The daemon applies it when it starts, after what was done meanwhile.
    net.kill("a");
    sh(a, "ip link set bond0 mtu 2000");
    net.start("a", &["--config", &file]);
    wait_mtu(a, &NICS, 1500);
    until("its MTU", || net.show("a").mtu, |mtu| *mtu == 1500);
}

#[test]
fn an_mtu_that_the_bond_cannot_have_is_put_back() {
    let net = Net::up(Topology::symmetric(2, 3, None));
    let a = net.host("a");
    // Refuses more than the interface below it has.
    sh(a, "ip link set eth2 up");
    sh(a, "ip link add link eth2 name mv0 type macvlan");
    for (name, last) in [("a", "mv0"), ("b", "eth2")] {
        net.start(name, &[]);
        net.ok(name, &format!("bond add {BOND} --member eth0,eth1,{last}"));
    }
    net.wait_tables(&["a", "b"]);
    wait_ok(&net, "a");
    for bad in [4000, 1000] {
        sh(a, &format!("ip link set bond0 mtu {bad}"));
        wait_mtu(a, &[BOND, "eth0", "eth1", "mv0"], 1500);
        let text = || wait_event(&net, "a", "mtu_put_back");
        until("what was wrong", text, |text| text.contains(&format!("MTU {bad}")));
        wait_ok(&net, "a");
    }
    pings_whole(a, net.host("b"), 1500);
    // The same of a member: it is not used while it cannot have the MTU, and is used when it can.
    sh(a, "ip link set eth2 mtu 1400");
    let line = until("a reason", || first_line(&net, "a"), |line| line.contains("'mv0': MTU 1400"));
    assert!(line.starts_with("bond0: degraded, 2 of 3 members carry traffic"), "{line}");
    net.wait_tables(&["a", "b"]);
    pings_whole(a, net.host("b"), 1500);
    pings_whole(net.host("b"), a, 1500);
    sh(a, "ip link set eth2 mtu 1500");
    wait_mtu(a, &["mv0"], 1500);
    wait_ok(&net, "a");
    // What the hint says works, too, also after a restart.
    net.kill("a");
    sh(a, "ip link set eth2 mtu 1400");
    net.start("a", &[]);
    until("a reason", || first_line(&net, "a"), |line| line.contains("'mv0': MTU 1400"));
    check_hint(a, &hint(&net, "a"));
    wait_mtu(a, &[BOND, "eth0", "eth1", "mv0"], 1400);
    wait_ok(&net, "a");
}

#[test]
fn the_mtu_of_a_member_is_put_back() {
    let net = Net::bonded(Topology::symmetric(2, 4, None));
    let (a, b) = (net.host("a"), net.host("b"));
    for given in [1400, 2000] {
        sh(a, &format!("ip link set eth1 mtu {given}"));
        wait_mtu(a, &["eth1"], 1500);
        wait_event(&net, "a", "mtu_put_back");
        wait_ok(&net, "a");
        pings_whole(a, b, 1478);
        pings_whole(b, a, 1478);
    }
    net.kill("a");
    sh(a, "ip link set eth1 mtu 1400");
    net.start("a", &[]);
    wait_mtu(a, &["eth1"], 1500);
    net.wait_tables(&["a", "b"]);
    wait_ok(&net, "a");
    pings_whole(a, b, 1478);
}

#[test]
fn the_mac_of_the_bond_is_put_back() {
    let net = Net::up(Topology::symmetric(2, 4, Some(20)));
    let (a, b) = (net.host("a"), net.host("b"));
    let single = traffic::measure(a, b);
    net.bond_all();
    let mac = || of_link(a, BOND, "link/ether");
    let before = mac();
    sh(a, "ip link set bond0 address 02:00:5e:10:00:01");
    until("its MAC", mac, |mac| *mac == before);
    wait_event(&net, "a", "mac_put_back");
    net.kill("a");
    sh(a, "ip link set bond0 address 02:00:5e:10:00:02");
    net.start("a", &[]);
    until("its MAC", mac, |mac| *mac == before);
    net.wait_tables(&["a", "b"]);
    wait_ok(&net, "a");
    traffic::reaches(a, b, &traffic::tcp(), |outcome| outcome.mbit() > 3.0 * single);
}

#[test]
fn a_member_that_is_given_another_mac_is_followed() {
    let net = Net::bonded(Topology::symmetric(2, 3, None));
    let (a, b) = (net.host("a"), net.host("b"));
    // The first one gives the bond its MAC.
    for nic in ["eth1", "eth0"] {
        let mac = format!("02:00:5e:10:00:1{}", &nic[3..]);
        sh(a, &format!("ip link set {nic} address {mac}"));
        let macs = || net.show("a").members.into_iter().map(|member| member.mac).collect::<Vec<_>>();
        until("its MAC", macs, |macs| macs.contains(&mac));
        net.wait_tables(&["a", "b"]);
        wait_ok(&net, "a");
        pings_whole(a, b, 1500);
        pings_whole(b, a, 1500);
    }
    assert_eq!(of_link(a, BOND, "link/ether"), "02:00:5e:10:00:10");
}

#[test]
fn a_bond_that_is_set_down_is_not_well() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let (a, b) = (net.host("a"), net.host("b"));
    for restart in [false, true] {
        sh(a, "ip link set bond0 down");
        if restart {
            net.kill("a");
            net.start("a", &[]);
        }
        let line = until("its health", || first_line(&net, "a"), |line| line.contains(": down, "));
        assert!(
            line.contains("0 of 2 members carry traffic") && line.ends_with(" it carries no traffic"),
            "{line}"
        );
        check_hint(a, &hint(&net, "a"));
        wait_ok(&net, "a");
        a.wait_ping(b.ipv4(), SOON).expect("reaches");
        b.wait_ping(a.ipv4(), SOON).expect("reaches");
    }
}

#[test]
fn a_member_in_another_bridge_is_used_again_when_it_is_back() {
    let net = Net::bonded(Topology::symmetric(2, 3, None));
    let (a, b) = (net.host("a"), net.host("b"));
    sh(a, "ip link add br9 type bridge");
    sh(a, "ip link set eth1 master br9");
    let line = until("a reason", || first_line(&net, "a"), |line| line.contains("'eth1': taken out"));
    assert!(line.starts_with("bond0: degraded, 2 of 3 members carry traffic"), "{line}");
    // It is none of the bond's business.
    sh(a, "ip link set eth1 mtu 1400");
    net.wait_tables(&["a", "b"]);
    pings_whole(a, b, 1500);
    pings_whole(b, a, 1500);
    // It is in nothing else any more, so it comes back.
    sh(a, "ip link del br9");
    wait_mtu(a, &["eth1"], 1500);
    wait_ok(&net, "a");
    net.wait_tables(&["a", "b"]);
    pings_whole(a, b, 1500);
    pings_whole(b, a, 1500);
}

#[test]
fn what_bypasses_the_bond_is_shown() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let a = net.host("a");
    for (line, wrong) in [
        ("ip addr add 198.18.9.9/24 dev eth1", "'eth1': it has 198.18.9.9/24 of its own"),
        ("ip route add default dev eth1", "'eth1': a default route leads through it"),
        ("ip route add default via 198.18.0.2 dev eth1 onlink", "'eth1': a default route leads through it"),
    ] {
        for restart in [false, true] {
            sh(a, line);
            if restart {
                net.kill("a");
                net.start("a", &[]);
            }
            let line = until("what is wrong", || first_line(&net, "a"), |line| line.contains(wrong));
            assert!(line.starts_with("bond0: degraded, 2 of 2 members carry traffic"), "{line}");
            assert_eq!(net.show("a").health, Health::Degraded);
            check_hint(a, &hint(&net, "a"));
            wait_ok(&net, "a");
        }
    }
    // One of the bond is as it should be.
    sh(a, "ip route add default via 198.18.0.2 dev bond0");
    sh(a, "ip addr add 198.18.9.9/24 dev bond0");
    wait_ok(&net, "a");
}
