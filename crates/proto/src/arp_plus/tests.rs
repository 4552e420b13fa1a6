//! Whole-machine tests on a fake clock; what many hosts do together is in `tests/sim_arp_plus.rs`.

use super::*;
use linkbraid_wire::{Frame, Kind, Message, emit_frame, parse_frame};
use std::{collections::BTreeMap, time::Duration};

mod bounds;
mod classes;
mod conflicts;
mod crowd;
mod guests;
mod segments;
mod seldom;
mod soft_state;
mod starting;
mod strangers;

/// Timeouts at one time: more of them, and the machine does not do what is due.
const IDLE_MAX: u32 = 10_000;

fn ip(last: u8) -> IpAddr {
    IpAddr::from([198, 18, 0, last])
}

fn mac(host: u8, member: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, host, member])
}

fn member(host: u8, slot: u8) -> OwnMember {
    OwnMember {
        slot,
        mac: mac(host, slot),
        up: true,
        sound: true,
        joining: false,
        weight_mbit: 100,
        class: 0,
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One host with a clock that its test moves.
struct Host {
    arp: ArpPlus,
    now: Time,
    number: u8,
    /// Whoever speaks has answered a PROBE, too.
    proves: bool,
    /// When each MAC was heard last.
    heard: BTreeMap<MacAddr, Time>,
}

impl Host {
    /// Host `number` with address 198.18.0.`number`, started, its first actions drained.
    fn running(number: u8, members: u8) -> Host {
        let mut host = Host::stopped(number, 1, members);
        host.handle(Input::Start);
        host
    }

    /// The same, and it takes published-only hosts for peers.
    fn with_published_only(number: u8, members: u8) -> Host {
        let mut host = Host::running(number, members);
        host.handle(Input::PublishedOnly(true));
        host
    }

    fn stopped(number: u8, epoch: u64, members: u8) -> Host {
        let arp = ArpPlus::new(Config::new(HostId([number; 16]), epoch), u64::from(number));
        let mut host = Host { arp, now: Time::from_millis(1), number, proves: false, heard: BTreeMap::new() };
        host.handle(Input::Members((0..members).map(|slot| member(number, slot)).collect()));
        host.handle(Input::Addresses(vec![ip(number)]));
        host
    }

    fn handle(&mut self, input: Input<'_>) -> Vec<Action> {
        self.arp.handle(self.now, input);
        std::iter::from_fn(|| self.arp.poll_action()).collect()
    }

    /// As the data path finds it out (docs/arp-plus.md, 7.13).
    fn heard_before(&mut self, bytes: &[u8]) -> bool {
        let Ok(Frame { src, .. }) = parse_frame(bytes) else { return false };
        let before = self.heard.insert(src, self.now);
        let age = before.map(|before| self.now.since(before));
        age.is_some_and(|age| age >= millis(67) && age <= millis(2500))
    }

    fn hear(&mut self, slot: u8, bytes: &[u8]) -> Vec<Action> {
        let heard_again = self.heard_before(bytes);
        let mut actions = self.handle(Input::Frame { slot, bytes, heard_again });
        if self.proves
            && let Ok(Frame { src, parsed, .. }) = parse_frame(bytes)
            && let Some(extension) = parsed.message.extension
        {
            let peer = PeerKey::Host(extension.host);
            actions.extend(self.handle(Input::Proven { peer, mac: src, asked: self.now }));
        }
        actions
    }

    /// Lets time pass, timeout by timeout; every action on the way.
    fn pass(&mut self, duration: Duration) -> Vec<Action> {
        let end = self.now + duration;
        let mut actions = Vec::new();
        let mut idle = 0;
        while let Some(at) = self.arp.poll_timeout().filter(|at| *at <= end) {
            assert!(at >= self.now, "no deadline lies in the past");
            idle = if at == self.now { idle + 1 } else { 0 };
            assert!(idle < IDLE_MAX, "what is due is done");
            self.now = at;
            actions.extend(self.handle(Input::Timeout));
        }
        self.now = end;
        actions
    }

    /// So much later, when it happens to look at its table, and is not late.
    fn look_after(&mut self, duration: Duration) -> Vec<Action> {
        self.now = self.now + duration;
        self.arp.agenda.sweep_at = Some(self.now);
        self.handle(Input::Timeout)
    }

    fn count(&self, counter: Counter) -> u64 {
        self.arp.counters().get(counter)
    }

    /// A message that this host would send from its first member.
    fn says(&self, kind: Kind) -> Vec<u8> {
        emit_frame(MacAddr::BROADCAST, mac(self.number, 0), &self.arp.own.message(kind))
            .expect("a good message")
    }
}

fn sent(actions: &[Action]) -> Vec<(u8, Frame)> {
    let frame = |action: &Action| match action {
        Action::Send { slot, frame } => Some((*slot, parse_frame(frame).expect("a good frame"))),
        _ => None,
    };
    actions.iter().filter_map(frame).collect()
}

fn kinds(actions: &[Action]) -> Vec<Kind> {
    sent(actions).iter().map(|(_, frame)| frame.parsed.message.kind).collect()
}

fn reasons(actions: &[Action]) -> Vec<Reason> {
    let reason = |action: &Action| match action {
        Action::Event(Event::Peer { reason, .. }) => Some(*reason),
        _ => None,
    };
    actions.iter().filter_map(reason).collect()
}

fn conflicts(actions: &[Action]) -> Vec<Conflict> {
    let conflict = |action: &Action| match action {
        Action::Event(Event::Conflict(conflict)) => Some(conflict.clone()),
        _ => None,
    };
    actions.iter().filter_map(conflict).collect()
}

/// A message of a host that speaks only the published part.
fn published(kind: Kind, last: u8, hardware: &[MacAddr]) -> Vec<u8> {
    let message = Message { kind, address: Some(ip(last)), hardware: hardware.to_vec(), extension: None };
    emit_frame(MacAddr::BROADCAST, hardware[0], &message).expect("a good message")
}
