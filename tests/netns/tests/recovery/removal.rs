//! `member del`: of a daemon that dies at it, and of a member that others look at meanwhile.

use super::{member_names, sh, state_file, until, wait_proven, with_free_links};
use linkbraid_lab::{Topology, wait_until};
use linkbraid_netns_tests::flow::Flow;
use linkbraid_netns_tests::packet::{self, Tap};
use linkbraid_netns_tests::{BOND, Net, Over, SOON, machine};
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// A local experiment (IEEE 802, the second one), which means nothing to anybody here.
const OTHER: u16 = 0x88b6;
/// A group for documentation (RFC 6676, section 2).
const GROUP: Ipv4Addr = Ipv4Addr::new(233, 252, 0, 1);

/// Makes the file say what it says between the first and the last step of `member del` of `nic`.
#[track_caller]
fn leaving_on_file(net: &Net, nic: &str) {
    let file = state_file(net);
    let text = fs::read_to_string(&file).expect("is there");
    let mut state: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
    let members = state["members"].as_array_mut().expect("a list");
    let member = members.iter_mut().find(|member| member["before"]["link"]["name"] == nic);
    member.expect("on file")["leaving"] = true.into();
    fs::write(&file, state.to_string()).expect("writes");
}

#[test]
fn a_removal_of_the_last_member_that_was_begun_is_ended() {
    let net = with_free_links(2, "eth0", &[]);
    let (a, b) = (net.host("a"), net.host("b"));
    net.kill("a");
    // As far as the daemon gets that dies after it moved the address back.
    leaving_on_file(&net, "eth0");
    sh(a, "ip link set eth0 nomaster");
    sh(a, &format!("ip address del 198.18.0.1/24 dev {BOND}"));
    sh(a, "ip address add 198.18.0.1/24 dev eth0");
    net.start("a", &[]);
    assert!(net.show("a").members.is_empty());
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    b.wait_ping(a.ipv4(), SOON).expect("reaches");
    assert!(!sh(a, "tc filter show dev eth0 ingress").contains("lb_"));
    // And only once.
    net.kill("a");
    sh(a, "ip link set eth0 mtu 1400");
    net.start("a", &[]);
    assert!(net.show("a").members.is_empty());
    assert!(sh(a, "ip link show eth0").contains("mtu 1400"));
}

#[test]
fn a_removal_that_was_begun_is_ended_and_others_keep_the_address() {
    let net = Net::up(Topology::symmetric(2, 3, None));
    let (a, b) = (net.host("a"), net.host("b"));
    let bare = machine::settled(&net, "a");
    net.bond_all();
    net.kill("a");
    leaving_on_file(&net, "eth0");
    sh(a, "ip link set eth0 nomaster");
    sh(a, "ip link set eth0 down");
    net.start("a", &[]);
    assert_eq!(member_names(&net), ["eth1", "eth2"]);
    net.wait_tables(&["a", "b"]);
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    let moved = net.show("a").moved;
    assert!(moved.iter().all(|moved| moved.member == "eth1"), "{moved:?}");
    assert!(sh(a, "ip -br link show eth0").contains("UP"));
    net.ok("a", &format!("member add {BOND} eth0"));
    net.ok("a", &format!("bond del {BOND}"));
    // All but the addresses, which the first member that was left has inherited.
    sh(a, "ip address flush dev eth1 scope global");
    for address in &a.spec().addresses {
        sh(a, &format!("ip address add {address} dev eth0"));
    }
    machine::as_it_was(&net, "a", &bare);
}

#[test]
fn a_removal_is_on_file_before_anything_is_done() {
    let net = with_free_links(3, "eth0,eth1,eth2", &[]);
    let flow = Flow::start(&net, "b", "a");
    flow.wait_received(100);
    let (tap, over) = (Tap::open(net.host("b"), "eth0", OTHER), AtomicBool::new(false));
    let mut frame = packet::mac(&net.host("a").mac(2)).to_vec();
    frame.extend(packet::mac(&net.host("b").mac(0)));
    frame.extend(OTHER.to_be_bytes());
    frame.resize(60, 0);
    std::thread::scope(|scope| {
        let _over = Over(&over);
        // Frames go on coming in over it, which it waits for.
        scope.spawn(|| {
            while !over.load(SeqCst) {
                let _ = tap.send(&frame);
                std::thread::park_timeout(Duration::from_millis(2));
            }
        });
        scope.spawn(|| net.say("a", &format!("member del {BOND} eth2")));
        let text = || fs::read_to_string(state_file(&net)).unwrap_or_default();
        let begun = wait_until(SOON, "a removal", text, |text| text.contains("\"leaving\": true"));
        over.store(true, SeqCst);
        begun.unwrap_or_else(|e| panic!("{e}"));
        net.kill("a");
    });
    net.start("a", &[]);
    assert_eq!(member_names(&net), ["eth0", "eth1"]);
    flow.loses_nothing_more();
}

/// A sender of numbered datagrams to a group, at a steady pace, for as long as `work` takes, which sees how many there were; how
/// many of them came more than once.
fn doubled_meanwhile(net: &Net, from: &str, to: &str, work: impl FnOnce(&AtomicU64)) -> (usize, u64) {
    let (from, to) = (net.host(from), net.host(to));
    sh(from, &format!("ip route replace 233.252.0.0/24 dev {BOND}"));
    let receiver = to.run(|| -> std::io::Result<UdpSocket> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let own: Ipv4Addr = to.ipv4().parse().map_err(std::io::Error::other)?;
        socket.join_multicast_v4(&GROUP, &own)?;
        socket.set_read_timeout(Some(Duration::from_millis(300)))?;
        Ok(socket)
    });
    let receiver = receiver.expect("enters").expect("binds");
    let port = receiver.local_addr().expect("has one").port();
    let sender = from.run(|| UdpSocket::bind((from.ipv4(), 0))).expect("enters").expect("binds");
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _over = Over(&stop);
        let sent = scope.spawn(|| {
            let mut number = 0_u64;
            while !stop.load(SeqCst) {
                sender.send_to(&number.to_be_bytes(), (GROUP, port)).expect("sends");
                number += 1;
                count.store(number, SeqCst);
                // The pace; nothing is waited for.
                std::thread::park_timeout(Duration::from_micros(100));
            }
            number
        });
        let seen = scope.spawn(|| {
            let mut times: Vec<u32> = Vec::new();
            let mut bytes = [0; 8];
            // A read that times out while nothing is sent any more is the end.
            loop {
                match receiver.recv(&mut bytes) {
                    Ok(_) => {
                        let number = u64::from_be_bytes(bytes) as usize;
                        times.resize(times.len().max(number + 1), 0);
                        times[number] += 1;
                    }
                    Err(_) if stop.load(SeqCst) => return times.iter().filter(|times| **times > 1).count(),
                    Err(_) => {}
                }
            }
        });
        work(&count);
        stop.store(true, SeqCst);
        (seen.join().expect("ends"), sent.join().expect("ends"))
    })
}

#[test]
fn a_member_that_takes_in_the_broadcasts_leaves_without_doubling_any() {
    let net = Net::bonded(Topology::symmetric(2, 4, None));
    wait_proven(&net, "a", 16);
    let elected = || net.show("a").members.into_iter().find(|member| member.elected);
    let (doubled, sent) = doubled_meanwhile(&net, "b", "a", |sent| {
        for removed in 0..3 {
            let nic = until("an elected member", elected, Option::is_some).expect("one").interface;
            net.ok("a", &format!("member del {BOND} {nic}"));
            // Before the first one, between them, and after the last one.
            let sent = || sent.load(SeqCst);
            until("more datagrams", sent, |sent| *sent > 200 * (removed + 1));
        }
    });
    assert!(sent > 500, "{sent}");
    assert_eq!(doubled, 0, "of {sent}");
}
