//! Drivers that reset their links for a new MTU: a cable that is pulled as soon as its NIC has it.

use super::commands::{of_link, wait_mtu, wait_ok};
use linkbraid_lab::{Fault, Topology};
use linkbraid_netns_tests::{BOND, Net, sh, until};
use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

const NICS: [&str; 3] = ["eth0", "eth1", "eth2"];
/// How long a NIC has no carrier then.
const SILENT: Duration = Duration::from_millis(600);

/// The NICs of host a that have that MTU.
fn with_mtu(net: &Net, mtu: u32) -> BTreeSet<usize> {
    let has = |at: &usize| of_link(net.host("a"), NICS[*at], "mtu") == mtu.to_string();
    (0..NICS.len()).filter(has).collect()
}

/// Until a further NIC has that MTU; which one.
fn next_reset(net: &Net, mtu: u32, before: &BTreeSet<usize>) -> usize {
    let next = || with_mtu(net, mtu).difference(before).copied().collect::<Vec<_>>();
    let reset = until("a NIC with another MTU", next, |next| !next.is_empty());
    assert_eq!(reset.len(), 1, "two at once");
    reset[0]
}

/// A NIC that was reset is not taken for one that carries traffic before three PROBEs were answered, a quarter of 50 ms apart: a test that
/// has not silenced it so long after it was last seen with its former MTU, on a busy machine, may find the next one reset.
const BACK: Duration = Duration::from_millis(30);

/// `bond set --mtu`; each NIC is silent after it got it, and none gets it meanwhile. How many of them that was seen of.
fn changes(net: &Net, mtu: u32) -> usize {
    let (a, b) = (net.host("a"), net.host("b"));
    thread::scope(|scope| {
        let set = scope.spawn(|| net.ok("a", &format!("bond set {BOND} --mtu {mtu}")));
        let (mut done, mut seen) = (BTreeSet::new(), 0);
        while done.len() < NICS.len() {
            let mut looked = Instant::now();
            let next = || {
                let now = Instant::now();
                let next: Vec<usize> = with_mtu(net, mtu).difference(&done).copied().collect();
                looked = if next.is_empty() { now } else { looked };
                next
            };
            let reset = until("a NIC with another MTU", next, |next| !next.is_empty());
            done.extend(reset.iter().copied());
            let [at] = reset[..] else {
                assert!(looked.elapsed() > BACK, "two at once");
                continue;
            };
            let link = a.link(at).expect("a link");
            link.fail(Fault::Carrier).expect("fails");
            let silenced = looked.elapsed();
            let reason = |nic: &str| {
                net.show("a").members.into_iter().find(|member| &*member.interface == nic).expect(nic).reason
            };
            until("no carrier", || reason(NICS[at]), |reason| reason == "no carrier");
            // One that was chosen before that was known gets its MTU yet.
            let chosen = NICS.iter().any(|nic| reason(nic) == "its MTU is being changed");
            if chosen || with_mtu(net, mtu) != done {
                assert!(silenced > BACK, "'{}' carries nothing yet", NICS[at]);
                link.mend().expect("mends");
                continue;
            }
            seen += 1;
            let over = Instant::now() + SILENT;
            while Instant::now() < over {
                let text = sh(a, &format!("ping -q -c 10 -i 0.01 -W 2 {}", b.ipv4()));
                assert!(text.contains(" 0% packet loss"), "{text}");
                assert_eq!(with_mtu(net, mtu), done, "'{}' carries nothing yet", NICS[at]);
            }
            link.mend().expect("mends");
        }
        set.join().expect("is set");
        seen
    })
}

#[test]
fn members_get_another_mtu_one_after_the_other_and_are_not_held_down_for_it() {
    let net = Net::bonded(Topology::symmetric(2, NICS.len(), None));
    net.wait_tables(&["a", "b"]);
    wait_ok(&net, "a");
    let lost = || ["a", "b"].map(|name| net.counter(name, "probe_lane_lost"));
    let before = lost();
    let mut seen = 0;
    for mtu in [1400, 1300, 1400, 1300] {
        let begun = Instant::now();
        seen += changes(&net, mtu);
        println!("MTU {mtu}: {:?}", begun.elapsed());
    }
    assert!(seen > 2 * NICS.len(), "seen of {seen} only");
    // The fourth failure of a link would have it held down for four seconds.
    let since = Instant::now();
    wait_ok(&net, "a");
    assert!(since.elapsed() < Duration::from_secs(3), "whole {:?} after the last one", since.elapsed());
    // A NIC that was silenced late is soon mended: more changes in a short time than a host takes from another.
    let refused = net.counter("b", "limit_changes");
    assert!(
        lost() == before || refused > 0,
        "nobody takes a lane for lost: {:?} instead of {before:?}",
        lost()
    );
    assert_eq!(net.show("a").mtu, 1300);
}

#[test]
fn a_member_that_does_not_come_back_has_all_of_them_put_back() {
    let net = Net::bonded(Topology::symmetric(2, NICS.len(), None));
    net.wait_tables(&["a", "b"]);
    wait_ok(&net, "a");
    let a = net.host("a");
    let said = thread::scope(|scope| {
        let set = scope.spawn(|| net.say("a", &format!("bond set {BOND} --mtu 1400")));
        let first = next_reset(&net, 1400, &BTreeSet::new());
        let second = next_reset(&net, 1400, &BTreeSet::from([first]));
        let link = a.link(second).expect("a link");
        link.fail(Fault::Carrier).expect("fails");
        let said = set.join().expect("says");
        let what = format!("{}: cannot set MTU 1400: it carries no traffic 10 s later", NICS[second]);
        said.refused(1, &what);
        link.mend().expect("mends");
        what
    });
    println!("{said}");
    wait_mtu(a, &[BOND, "eth0", "eth1", "eth2"], 1500);
    wait_ok(&net, "a");
    assert_eq!(net.show("a").mtu, 1500);
}

#[test]
fn an_mtu_that_a_driver_does_not_take_resets_no_link() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    net.wait_tables(&["a", "b"]);
    let a = net.host("a");
    sh(a, "ip tuntap add tap0 mode tap");
    net.ok("a", &format!("member add {BOND} tap0 --force"));
    let said = net.say("a", &format!("bond set {BOND} --mtu 65530"));
    let hint = said.refused(1, "tap0: cannot set MTU 65530: its driver takes 65521 at most");
    assert_eq!(hint, format!("linkbraid bond set {BOND} --mtu 65521"));
    let changed = net.show("a").events.into_iter().filter(|event| event.reason == "mtu").count();
    assert_eq!(changed, 0, "no member was withdrawn");
    wait_mtu(a, &[BOND, "eth0", "eth1", "tap0"], 1500);
}
