//! Control messages of a `udp:` fabric on the wire, for whoever records and forges them.

use super::Nodes;
use linkbraid_lab::wait_until;
use linkbraid_netns_tests::SOON;
use linkbraid_netns_tests::packet::{Tap, mac};

pub const IPV4: u16 = 0x0800;
/// Where things stand in a frame that carries a whole control message: behind the headers of Ethernet, IPv4, UDP and of the piece.
const UDP_SUM: usize = 14 + 20 + 6;
const HEADER: usize = 14 + 20 + 8 + 16;
pub const SENDER_EPOCH: usize = HEADER + 8;
pub const RECEIVER_EPOCH: usize = HEADER + 16;
pub const CONTROL: usize = HEADER + 32;
pub const COOKIE: usize = CONTROL + 16;
/// Kinds of messages, and of control messages (docs/fabric.md, sections 2 and 3).
const IS_CONTROL: u8 = 2;
pub const HELLO: u8 = 1;
const ALIVE: u8 = 3;
pub const BYE: u8 = 4;

/// So many messages of b to a, or more, that say that it lives. The sum of UDP is left out, so that they can be changed.
#[track_caller]
pub fn alives(nodes: &Nodes, count: usize) -> Vec<Vec<u8>> {
    let tap = Tap::open(nodes.net.host("a"), "eth0", IPV4);
    let from_b = mac(&nodes.net.host("b").mac(0));
    let mut heard: Vec<Vec<u8>> = Vec::new();
    let hear = || {
        heard.extend(tap.take().into_iter().filter(|frame| {
            frame.len() > CONTROL + 32
                && frame[6..12] == from_b
                && (frame[HEADER + 1], frame[CONTROL]) == (IS_CONTROL, ALIVE)
        }));
        heard.len()
    };
    wait_until(SOON, "messages of b", hear, |heard| *heard >= count).unwrap_or_else(|e| panic!("{e}"));
    heard.iter_mut().for_each(|frame| frame[UDP_SUM..UDP_SUM + 2].fill(0));
    heard
}
