//! What a daemon hears that has no program on an interface.

mod common;

use std::time::{Duration, Instant};

use common::{cable, in_namespace, script};
use linkbraid_link::{ArpPlusListener, ArpPlusSender, MacAddr};

const OURS: [u8; 6] = [2, 0, 0, 0, 0, 1];
const THEIRS: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [OURS, THEIRS].concat();
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// An ARP reply of theirs for 198.18.0.9 to that address.
fn arp_reply(to: [u8; 4]) -> Vec<u8> {
    let head = [0, 1, 8, 0, 6, 4, 0, 2];
    frame(0x0806, &[&head[..], &THEIRS, &[198, 18, 0, 9], &OURS, &to].concat())
}

/// A neighbour advertisement of theirs to that address, without a good sum.
fn advertisement(to: [u8; 16]) -> Vec<u8> {
    let from = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    let body = [&[136, 0, 0, 0, 0x40, 0, 0, 0][..], &from].concat();
    let head = [0x60, 0, 0, 0, 0, 24, 58, 255];
    frame(0x86dd, &[&head[..], &from, &to, &body].concat())
}

fn next(listener: &mut ArpPlusListener) -> (u32, Vec<u8>) {
    let begun = Instant::now();
    loop {
        if let Some(heard) = listener.next_frame() {
            return heard;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing is heard");
        std::thread::yield_now();
    }
}

#[test]
fn frames_for_a_daemon_are_heard_and_no_others() {
    in_namespace(|net| async move {
        let here = cable(&net, "eth0", "sw0").await;
        let there = net.link("sw0").await.unwrap().index;
        let mut listener = ArpPlusListener::new().unwrap();
        let mut sender = ArpPlusSender::new().unwrap();
        let arp_plus = frame(0x88b5, &[7; 100]);
        let answer = arp_reply([0; 4]);
        let probe = linkbraid_wire::probe_address(MacAddr(OURS)).octets();
        // All but three are of no use. Of the long one the head is heard, for it may be a PROBE of full length.
        let long = frame(0x88b5, &[7; 3000]);
        script("ip link set sw0 mtu 4000\n ip link set eth0 mtu 4000");
        for sent in [
            &arp_reply([198, 18, 0, 1]),
            &frame(0x0800, &[0x45; 60]),
            &frame(0x86dd, &[0x60; 60]),
            &advertisement([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            &advertisement(probe),
            &long,
            &arp_plus,
            &answer,
        ] {
            sender.send(there, sent).unwrap();
        }
        let (at, head) = next(&mut listener);
        assert!(at == here && head.len() < long.len() && long.starts_with(&head), "{} bytes", head.len());
        assert_eq!(next(&mut listener), (here, arp_plus));
        assert_eq!(next(&mut listener), (here, answer));
        // What leaves is not heard.
        sender.send(here, &frame(0x88b5, &[1; 50])).unwrap();
        assert_eq!(next(&mut listener).0, there);
        assert_eq!(listener.next_frame(), None);
    });
}
