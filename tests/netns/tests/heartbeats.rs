//! A little traffic between two hosts whose members fail silently, one after the other.

use linkbraid_lab::{Topology, Way, wait_until};
use linkbraid_netns_tests::{BOND, Net, Over, SOON};
use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

const PORT: u16 = 7100;
const MEMBERS: usize = 4;
/// 2.5 heartbeats a second: each lane of the four has one in 1.6 s.
const PERIOD: Duration = Duration::from_millis(400);
/// Heartbeats before the first failure: every lane has carried one, both ways.
const BEFORE: u32 = 12;
/// And after each, at least: both ends have found it by then, or never do.
const AFTER: u32 = 5;

/// Heartbeats of one client, and which of them were answered.
struct Heart<'a> {
    socket: UdpSocket,
    server: SocketAddr,
    next: Instant,
    sent: u32,
    answered: &'a mut BTreeSet<u32>,
}

impl Heart<'_> {
    /// Takes answers until then.
    fn listen(&mut self, until: Instant) {
        let mut bytes = [0; 4];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.socket.set_read_timeout(Some(left)).expect("sets");
            if let Ok(4) = self.socket.recv(&mut bytes) {
                self.answered.insert(u32::from_be_bytes(bytes));
            }
        }
    }

    /// So many heartbeats, each in its time.
    fn beat(&mut self, count: u32) {
        for _ in 0..count {
            self.listen(self.next);
            self.next = Instant::now() + PERIOD;
            self.socket.send_to(&self.sent.to_be_bytes(), self.server).expect("sends");
            self.sent += 1;
        }
    }
}

fn echo(socket: &UdpSocket, over: &AtomicBool) {
    let mut bytes = [0; 4];
    while !over.load(Ordering::Relaxed) {
        if let Ok((4, from)) = socket.recv_from(&mut bytes) {
            socket.send_to(&bytes, from).expect("answers");
        }
    }
}

#[test]
fn no_two_heartbeats_in_a_row_are_lost_while_members_fail_silently() {
    let net = Net::bonded(Topology::symmetric(2, MEMBERS, Some(100)));
    for name in ["a", "b"] {
        let up = || net.lanes(name).iter().filter(|lane| lane.state == "up").count();
        wait_until(SOON, &format!("all lanes of {name}"), up, |up| *up == MEMBERS * MEMBERS)
            .unwrap_or_else(|e| panic!("{e}"));
    }
    let (a, b) = (net.host("a"), net.host("b"));
    let server: SocketAddr = format!("{}:{PORT}", b.ipv4()).parse().expect("an address");
    let listening = b.run(|| UdpSocket::bind(server)).expect("enters").expect("binds");
    listening.set_read_timeout(Some(PERIOD)).expect("sets");
    let socket = a.run(|| UdpSocket::bind((a.ipv4(), 0))).expect("enters").expect("binds");
    let (over, mut answered) = (AtomicBool::new(false), BTreeSet::new());
    let sent = scope(|scope| {
        let _over = Over(&over);
        scope.spawn(|| echo(&listening, &over));
        let mut heart = Heart { socket, server, next: Instant::now(), sent: 0, answered: &mut answered };
        heart.beat(BEFORE);
        for link in 1..MEMBERS {
            // At another place between two heartbeats each time.
            heart.listen(heart.next - PERIOD * link as u32 / MEMBERS as u32);
            a.link(link).expect("a link").cut(Way::Both).expect("cuts");
            heart.beat(AFTER);
        }
        heart.listen(heart.next);
        heart.sent
    });
    let lost: Vec<u32> = (0..sent).filter(|number| !answered.contains(number)).collect();
    assert!(lost.windows(2).all(|pair| pair[1] > pair[0] + 1), "of {sent} heartbeats lost: {lost:?}");
    let used = net.lanes("a").into_iter().filter(|lane| lane.share_ppm > 0 && lane.peer_mac.is_some());
    let used: BTreeSet<String> = used.map(|lane| lane.member).collect();
    assert_eq!(used, BTreeSet::from(["eth0".to_owned()]), "{BOND} sends by what is left");
}
