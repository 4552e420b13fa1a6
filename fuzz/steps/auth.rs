//! Any course of frames between hosts that share keys and somebody who has none: he repeats, changes, cuts and sends elsewhere
//! what he has heard. No panic; limits kept; what goes on was signed just so by a holder of the key, and goes on once.
//!
//! The input is a list of steps: what, which, how much, a byte each. An input that begins with 0xff is a key file instead.
//! Shared by the fuzz target and the replay of the corpus in `crates/proto/tests/corpus_auth.rs`.

use linkbraid_api::KeyFile;
use linkbraid_proto::{Time, auth::*};
use linkbraid_wire::{HostId, Kind, MacAddr, Message, emit_frame};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use zeroize::Zeroizing;

const HOSTS: usize = 3;
/// Most frames that are remembered to be sent again.
const FRAMES_MAX: usize = 64;

struct Node {
    auth: Auth,
    number: u8,
    epoch: u64,
    /// What went on to the other machines, by its bytes: since this node started.
    taken: BTreeSet<Vec<u8>>,
}

fn ring(ids: &[u32]) -> Arc<Ring> {
    let keys = ids.iter().map(|id| Key::new(*id, Zeroizing::new([*id as u8; SECRET_LEN]))).collect();
    Arc::new(Ring::new(keys, ids[0]).expect("a ring"))
}

/// The rings that a host may have; the last one is another key than that of the others.
fn rings() -> [Arc<Ring>; 4] {
    [ring(&[1]), ring(&[1, 2]), ring(&[2, 1]), ring(&[3])]
}

fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

impl Node {
    fn new(number: u8, epoch: u64, seed: u8) -> Self {
        let seed = u64::from(number) << 32 | epoch << 8 | u64::from(seed);
        let mut auth = Auth::new(HostId([number; 16]), epoch, seed);
        auth.set(Settings { mode: Mode::Require, ring: rings()[0].clone() });
        Self { auth, number, epoch, taken: BTreeSet::new() }
    }

    fn says(&mut self, now: Time, sequence: u32) -> Option<Vec<u8>> {
        let extension = linkbraid_wire::Extension {
            host: HostId([self.number; 16]),
            epoch: self.epoch,
            sequence,
            members: vec![linkbraid_wire::Member { index: 0, up: true, weight_mbit: 1, class: 0 }],
            ..linkbraid_wire::Extension::default()
        };
        let hardware = vec![mac(self.number)];
        let message = Message { kind: Kind::Change, address: None, hardware, extension: Some(extension) };
        let frame = emit_frame(MacAddr::BROADCAST, mac(self.number), &message).expect("a good message");
        self.auth.sign(now, frame)
    }
}

/// All hosts, and all that was on the wire.
struct Wire {
    nodes: Vec<Node>,
    now: Time,
    frames: Vec<Vec<u8>>,
    /// Exactly what holders of a key have signed.
    signed: BTreeSet<Vec<u8>>,
}

impl Wire {
    fn put(&mut self, frame: Vec<u8>) {
        self.signed.insert(frame.clone());
        if self.frames.len() < FRAMES_MAX {
            self.frames.push(frame);
        } else {
            let at = self.signed.len() % FRAMES_MAX;
            self.frames[at] = frame;
        }
    }

    fn deliver(&mut self, to: usize, frame: &[u8]) {
        let node = &mut self.nodes[to];
        let own = mac(node.number);
        let goes_on = node.auth.admit(self.now, Port { slot: 0, mac: own, own: &[own] }, frame);
        if goes_on && node.auth.mode() == Mode::Require {
            assert!(self.signed.contains(frame), "nobody with a key has sent that");
            assert!(node.taken.insert(frame.to_vec()), "it has come before");
        }
        assert!(node.auth.unkeyed(self.now).count() <= linkbraid_proto::limits::AUTH_REFUSED_MAX);
        let mut sent = Vec::new();
        while let Some(action) = node.auth.poll_action() {
            if let Action::Send { frame, .. } = action {
                sent.push(frame);
            }
        }
        sent.into_iter().for_each(|frame| self.put(frame));
    }
}

/// Panics where a rule is broken.
pub fn run(bytes: &[u8]) {
    if let Some((0xff, text)) = bytes.split_first() {
        return key_file(&String::from_utf8_lossy(text));
    }
    let nodes = (1..=HOSTS as u8).map(|number| Node::new(number, 1, 0)).collect();
    let mut wire = Wire { nodes, now: Time::from_millis(1), frames: Vec::new(), signed: BTreeSet::new() };
    for step in bytes.chunks_exact(3) {
        let (what, which, amount) = (step[0], usize::from(step[1]), step[2]);
        let host = which % HOSTS;
        match what % 8 {
            0 => {
                let said = wire.nodes[host].says(wire.now, u32::from(amount));
                said.into_iter().for_each(|frame| wire.put(frame));
            }
            1 | 2 => {
                let Some(frame) = wire.frames.get(usize::from(amount) % FRAMES_MAX).cloned() else {
                    continue;
                };
                wire.deliver(host, &frame);
            }
            3 => {
                let Some(mut frame) = wire.frames.get(which / HOSTS % FRAMES_MAX).cloned() else { continue };
                let at = usize::from(amount) % frame.len();
                frame[at] ^= 1 << (what >> 3 & 7);
                wire.deliver(host, &frame);
            }
            4 => {
                let Some(mut frame) = wire.frames.get(which / HOSTS % FRAMES_MAX).cloned() else { continue };
                frame.truncate(usize::from(amount));
                wire.deliver(host, &frame);
            }
            5 => wire.now = wire.now + Duration::from_millis(u64::from(amount) * 10),
            6 => {
                let epoch = wire.nodes[host].epoch + 1;
                wire.nodes[host] = Node::new(host as u8 + 1, epoch, amount);
            }
            _ => {
                let mode =
                    [Mode::Require, Mode::Require, Mode::Permit, Mode::Off][usize::from(amount >> 2 & 3)];
                let ring = rings()[usize::from(amount & 3)].clone();
                wire.nodes[host].auth.set(Settings { mode, ring });
            }
        }
    }
}

/// What is read as a key file is the same when it is written and read again.
fn key_file(text: &str) {
    if let Ok(file) = KeyFile::read(text) {
        let again = KeyFile::read(&file.text()).expect("what is written can be read");
        assert!(*again.text() == *file.text());
    }
}
