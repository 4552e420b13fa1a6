//! Any course of messages, time, traffic and settings against the session of a fabric: no panic, no endless timer, no message of
//! its own that cannot be read, and no verdict that its own state contradicts.
//!
//! The input is a list of steps: one byte for what, one for how much, then, for a message, that many bytes.
//! Shared by the fuzz target and `crates/proto/tests/any_session.rs`.

use linkbraid_proto::{Time, session::*};
use linkbraid_wire::fabric::{
    Control, ControlKind, FastPath, IN_USE_FEATURE, Offer, RefuseReason, STREAMS_MAX, Tag, emit_control,
    parse_control,
};
use std::{collections::BTreeMap, time::Duration};

/// Timer steps at one moment before something is wrong.
const STEPS_MAX: usize = 100;

/// Where frames are taken past the daemon.
const PORT: u16 = 4789;

/// This node, in a fabric of four.
const HERE: (u16, u64) = (1, 1000);

struct Course {
    session: Session,
    now: Time,
    /// The last message to each peer.
    last: BTreeMap<u16, Control>,
    /// What was told of each link.
    links: BTreeMap<u16, Verdict>,
    ups: usize,
}

impl Course {
    fn drain(&mut self) {
        while let Some(action) = self.session.poll_action() {
            match action {
                Action::Send { node, bytes } => {
                    let (header, control) = parse_control(&bytes).expect("a session sends good messages");
                    assert_eq!((header.sender, header.sender_epoch, header.receiver), (HERE.0, HERE.1, node));
                    self.last.insert(node, control);
                }
                Action::Link { node, old, new } => {
                    let before = self.links.insert(node, new);
                    assert_eq!(before.unwrap_or(Verdict::Down(Down::Unheard)), old, "no change is left out");
                    assert_ne!(old, new);
                    self.ups += usize::from(new.is_up());
                }
                Action::RoundTrip { node, .. } => {
                    let state = self.links.get(&node);
                    assert!(state.is_some_and(Verdict::is_up), "only who is up is asked: {state:?}");
                }
                Action::Event(_) => {}
            }
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.session.handle(self.now, input);
        self.drain();
    }

    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut steps = 0;
        while let Some(at) = self.session.poll_timeout().filter(|at| *at <= end) {
            steps = if at > self.now { 0 } else { steps + 1 };
            assert!(steps < STEPS_MAX, "a deadline that never passes");
            self.now = self.now.max(at);
            self.handle(Input::Timeout);
        }
        self.now = end;
    }

    /// A peer answers what it was told last, truthfully or not.
    fn answer(&mut self, what: u8, how: u8) {
        let node = [0, 2, 3, 7][usize::from(what >> 3 & 3)];
        let asked = self.last.get(&node).copied();
        let kind = ControlKind::ALL[usize::from(how & 7) % ControlKind::ALL.len()];
        let control = Control {
            kind,
            reason: (kind == ControlKind::Refuse)
                .then_some(RefuseReason::ALL[usize::from(what >> 5) % RefuseReason::ALL.len()]),
            offer: Offer {
                nodes: if how & 8 == 0 { 4 } else { 5 },
                mtu: if how & 16 == 0 { 1500 } else { 9000 },
                interval_us: 1 << (what >> 3),
                multiplier: 1 + (what >> 6),
                queues: if what & 3 == 3 { 2 } else { 1 },
                features: if how & 4 == 0 { how.into() } else { u16::from(how) | IN_USE_FEATURE },
            },
            cookie: u64::from(what) + 1,
            number: u32::from(what >> 5),
            echo: asked.map_or(1, |asked| asked.cookie) + u64::from(how >> 5 & 1),
            fast_path: (how & 16 != 0 && how & 8 == 0).then(|| FastPath {
                port: u16::from(what) + 1,
                tag: Tag::of_random(u64::from(how)),
                heard: how & 1 == 0,
            }),
        };
        let epoch = 7 + u64::from(how >> 6);
        if let Ok(bytes) = emit_control((node, epoch), HERE, &control) {
            self.handle(Input::Message { node, bytes: &bytes });
        }
    }

    fn check(&self) {
        let snapshot = self.session.snapshot(self.now);
        for peer in &snapshot.peers {
            let told = self.links.get(&peer.node).copied();
            assert_eq!(told.unwrap_or(Verdict::Down(Down::Unheard)), peer.verdict);
            let gate = self.session.gate(peer.node);
            assert_eq!(gate.is_some(), peer.verdict.is_up());
            assert_eq!(peer.offer.is_some(), peer.verdict.is_up());
            assert!(peer.rival.is_none() || peer.verdict.is_up());
            let takes = snapshot.settings.fast_path.is_some() && peer.verdict.is_up();
            assert_eq!(
                self.session.tag(peer.node).is_some(),
                takes,
                "a tag while the link is up, and no longer"
            );
            assert!(peer.verdict.is_up() || self.session.fast_path(peer.node).is_none());
            assert!(takes || !self.session.hears(peer.node));
            if let Some(gate) = gate {
                let back = Gate {
                    local: gate.peer,
                    local_epoch: gate.peer_epoch,
                    peer: gate.local,
                    peer_epoch: gate.local_epoch,
                };
                assert_eq!(gate.admit(&back.header(STREAMS_MAX - 1, 0, 26)), Ok(()));
            }
        }
        let up = snapshot.peers.iter().any(|peer| peer.verdict.is_up());
        assert_eq!(self.session.any_up(), up);
    }
}

/// Panics where a rule is broken. How often a link came up.
pub fn run(bytes: &[u8]) -> usize {
    let settings = Settings { fast_path: Some(PORT), ..Settings::new(4, 1500) };
    let config = Config { node: HERE.0, epoch: HERE.1, settings };
    let session = Session::new(config, 7, Secret::new([7; 16])).expect("good settings");
    let mut course =
        Course { session, now: Time::ZERO, last: BTreeMap::new(), links: BTreeMap::new(), ups: 0 };
    course.handle(Input::Start);
    let mut rest = bytes;
    while let [what, amount, tail @ ..] = rest {
        rest = tail;
        let node = u16::from(what >> 3);
        match what & 7 {
            0 => course.pass(Duration::from_millis(u64::from(*amount) * 4)),
            1 if amount & 4 != 0 => {
                course.session.set_heard(course.now, node & 3, amount & 8 != 0);
                course.drain();
            }
            1 if amount & 16 != 0 => course.handle(Input::Used { node }),
            1 => course.handle(Input::Traffic { node, epoch: 7 + u64::from(amount & 3) }),
            2 if what & 128 != 0 => course.handle(Input::Gone { node: u16::from(amount & 3) }),
            2 if *what == 2 && *amount == 255 => course.handle(Input::Stop),
            2 => {
                let mtu = if amount & 1 == 0 { 1500 } else { 9000 };
                let fast_path = (amount & 2 == 0).then_some(PORT);
                // Of so few peers there are many enough for longer intervals only where the usual one is short.
                let interval = Duration::from_millis(if amount & 4 == 0 { 100 } else { 10 });
                let usual = Settings::new(u16::from(amount >> 4), mtu);
                let timing = Timing { interval, ..usual.timing };
                let settings = Settings { fast_path, timing, ..usual };
                let _ = course.session.set(course.now, settings);
                course.drain();
            }
            3 => {
                let (message, tail) = rest.split_at(rest.len().min(usize::from(*amount)));
                rest = tail;
                course.handle(Input::Message { node, bytes: message });
            }
            _ => course.answer(*what, *amount),
        }
        course.check();
    }
    course.ups
}
