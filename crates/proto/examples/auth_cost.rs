//! What keys cost: the time to sign a message and to judge it, for a PROBE and for a BROADCAST of full length.
//!
//! `cargo run --release -p linkbraid-proto --example auth_cost`

use linkbraid_proto::{Time, auth::*};
use linkbraid_wire::{
    AUTH_TLV_LEN, Extension, GUESTS_MAX, Guest, HostId, Kind, MacAddr, Member, Message, Probe, ProbeKind,
    emit_frame, emit_probe,
};
use std::{sync::Arc, time::Instant};
use zeroize::Zeroizing;

/// Times are the medians of so many batches.
const BATCHES: usize = 1001;
/// Messages of a batch.
const MESSAGES: u32 = 100;

/// Of the usual MTU, with its Ethernet header.
const FRAME_MAX: usize = 1514;

const MACS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 1, 0]), MacAddr([2, 0, 0, 0, 2, 0])];

fn host(number: u8) -> Auth {
    let key = Key::new(1, Zeroizing::new([7; SECRET_LEN]));
    let ring = Arc::new(Ring::new(vec![key], 1).expect("a ring"));
    let mut auth = Auth::new(HostId([number; 16]), 1, u64::from(number));
    auth.set(Settings { mode: Mode::Require, ring });
    auth
}

/// One of 16 members and so many guests; none if that is too long for a frame.
fn broadcast(guests: u8) -> Option<Vec<u8>> {
    let macs = (0..16).map(|slot| MacAddr([2, 0, 0, 0, 1, slot])).collect();
    let members = (0..16).map(|index| Member { index, up: true, weight_mbit: 1000, class: 0 }).collect();
    let extension = Extension {
        host: HostId([1; 16]),
        epoch: 1,
        sequence: 1,
        members,
        guests: (0..guests).map(guest).collect(),
        digest: Some(0),
        ..Extension::default()
    };
    let message = Message {
        kind: Kind::Broadcast,
        address: Some([198, 18, 0, 1].into()),
        hardware: macs,
        extension: Some(extension),
    };
    emit_frame(MacAddr::BROADCAST, MACS[0], &message)
        .ok()
        .filter(|frame| frame.len() + AUTH_TLV_LEN <= FRAME_MAX)
}

fn guest(number: u8) -> Guest {
    let mac = MacAddr([2, 0, 0, 0, 3, number]);
    Guest { vlan: 0, mac, addresses: vec![[198, 18, 1, number].into()] }
}

fn main() {
    let probe = Probe {
        kind: ProbeKind::Probe,
        nonce: 1,
        number: 1,
        host: HostId([1; 16]),
        epoch: 1,
        ..Probe::default()
    };
    let probe = emit_probe(MACS[1], MACS[0], &probe).expect("a good message");
    let longest = (0..=GUESTS_MAX as u8).rev().find_map(broadcast).expect("without guests it fits");
    for (name, frame) in [("PROBE", probe), ("BROADCAST", longest)] {
        let (mut one, mut other) = (host(1), host(2));
        let port = |at: usize| Port { slot: 0, mac: MACS[at], own: std::slice::from_ref(&MACS[at]) };
        let now = Time::from_millis(1);
        // A question and an answer prove the index.
        let first = one.sign(now, frame.clone()).expect("it has a key");
        other.admit(now, port(1), &first);
        while let Some(Action::Send { frame, .. }) = other.poll_action() {
            one.admit(now, port(0), &frame);
        }
        while let Some(Action::Send { frame, .. }) = one.poll_action() {
            other.admit(now, port(1), &frame);
        }
        let (mut signing, mut judging) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for _ in 0..BATCHES {
            let copies = vec![frame.clone(); MESSAGES as usize];
            let begun = Instant::now();
            let signed: Vec<Vec<u8>> = copies.into_iter().filter_map(|copy| one.sign(now, copy)).collect();
            signing.push(begun.elapsed() / MESSAGES);
            let begun = Instant::now();
            let accepted = signed.iter().filter(|frame| other.admit(now, port(1), frame)).count();
            judging.push(begun.elapsed() / MESSAGES);
            assert_eq!(accepted, MESSAGES as usize, "all are believed");
            bytes = signed[0].len();
        }
        let [signing, judging] = [signing, judging].map(|mut times| {
            times.sort();
            times[BATCHES / 2]
        });
        println!("{name}, {bytes} bytes: signed in {signing:?}, judged in {judging:?}");
    }
}
