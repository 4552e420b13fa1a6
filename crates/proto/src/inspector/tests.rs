//! One inspector and a peer played by hand. Many inspectors together are in `tests/sim_inspector.rs`.

use super::*;
use linkbraid_wire::{
    MacAddr, Probe, ProbeFrame, ProbeKind, Refusal, View, emit_probe, is_probe, parse_probe,
};
use std::time::Duration;

mod bounds;
mod doubt;
mod evidence;
mod exact;
mod idle;
mod late;
mod length;
mod plain;
mod woke;
mod words;

const OWN: HostId = HostId([1; 16]);
const PEER: HostId = HostId([2; 16]);
const KEY: PeerKey = PeerKey::Host(PEER);
/// Frames that are longer are padded.
const LONG: usize = 200;
/// Timeouts at one time: more of them, and the machine does not do what is due.
const IDLE_MAX: u32 = 10_000;

fn mac(host: u8, slot: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, host, slot])
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn report(slot: u8) -> MemberReport {
    MemberReport {
        slot,
        mac: mac(1, slot),
        admin_up: true,
        carrier: true,
        speed_mbit: Some(1000),
        full_duplex: Some(true),
    }
}

fn peer(members: u8) -> PeerReport {
    let member = |index| PeerMemberReport { index, mac: mac(2, index), up: true, heard: vec![index] };
    let members = (0..members).map(member).collect();
    PeerReport { key: KEY, epoch: Some(5), probes: true, long_probes: true, members }
}

/// An inspector, a clock, and a peer that answers where it is told to.
struct Bench {
    now: Time,
    inspector: Inspector,
    /// Pairs that the peer answers on.
    answers: Vec<(u8, u8)>,
    number: u32,
    events: Vec<Event>,
    sent: Vec<(u8, ProbeFrame)>,
    /// Probes of plain hosts, with the time.
    asked: Vec<(Time, u8, Vec<u8>)>,
    changed: Vec<Changed>,
    /// When PROBEs left whose answers were told.
    proven: Vec<Time>,
    /// Pairs on which no long frame arrives.
    short: Vec<(u8, u8)>,
    /// PROBEs of full length: when, and the pair; and how many bytes the last one had.
    long: Vec<(Time, (u8, u8))>,
    full: usize,
}

impl Bench {
    /// Members and a peer with as many, met but not answered yet.
    fn new(members: u8) -> Bench {
        Bench::of(OWN, members)
    }

    /// The same of a host with that id; the lower one leads.
    fn of(own: HostId, members: u8) -> Bench {
        let mut bench = Bench {
            now: Time::from_millis(1000),
            inspector: Inspector::new(Config::new(own, 1), 7),
            answers: Vec::new(),
            number: 0,
            events: Vec::new(),
            sent: Vec::new(),
            asked: Vec::new(),
            changed: Vec::new(),
            proven: Vec::new(),
            short: Vec::new(),
            long: Vec::new(),
            full: 0,
        };
        bench.handle(Input::Members((0..members).map(report).collect()));
        bench.handle(Input::Peers(vec![peer(members)]));
        bench
    }

    /// The same with all lanes i-i proven.
    fn proven(members: u8) -> Bench {
        Bench::proven_of(OWN, members)
    }

    fn proven_of(own: HostId, members: u8) -> Bench {
        let mut bench = Bench::of(own, members);
        bench.answers = (0..members).map(|slot| (slot, slot)).collect();
        bench.pass(millis(1000));
        (0..members).for_each(|slot| assert_eq!(bench.verdict(slot, slot), Verdict::Alive));
        bench
    }

    fn handle(&mut self, input: Input<'_>) {
        self.inspector.handle(self.now, input);
        while let Some(action) = self.inspector.poll_action() {
            match action {
                Action::Verdicts(changed) => self.changed.push(changed),
                Action::Event(event) => self.events.push(event),
                Action::Proven { asked, .. } => self.proven.push(asked),
                Action::Send { slot, frame } if !is_probe(&frame) => self.asked.push((self.now, slot, frame)),
                Action::Send { slot, frame } => {
                    let parsed = parse_probe(&frame).expect("a good frame");
                    if frame.len() > LONG {
                        self.long.push((self.now, (slot, parsed.dst.0[5])));
                        self.full = frame.len();
                    }
                    self.sent.push((slot, parsed));
                }
            }
        }
    }

    /// Time goes on; the peer answers at once.
    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut idle = 0;
        while let Some(at) = self.inspector.poll_timeout().filter(|at| *at <= end) {
            assert!(at >= self.now, "no deadline lies in the past");
            idle = if at == self.now { idle + 1 } else { 0 };
            assert!(idle < IDLE_MAX, "what is due is done");
            self.now = at;
            let seen = self.sent.len();
            self.handle(Input::Timeout);
            for (slot, frame) in self.sent.split_off(seen) {
                let (index, nonce) = (frame.dst.0[5], frame.probe.nonce);
                self.sent.push((slot, frame.clone()));
                let is_lost = self.short.contains(&(slot, index)) && self.long.contains(&(at, (slot, index)));
                if frame.probe.kind == ProbeKind::Probe && self.answers.contains(&(slot, index)) && !is_lost {
                    let reply = self.reply(nonce);
                    self.hear(slot, index, &reply);
                }
            }
        }
        self.now = end;
    }

    /// Time goes on by so much at a time until that is so.
    fn until(&mut self, mut step: impl FnMut(&mut Bench), holds: impl Fn(&Bench) -> bool) {
        let end = self.now + Duration::from_secs(20);
        while !holds(self) {
            assert!(self.now < end, "not after 20 s");
            step(self);
        }
    }

    /// What the peer says next, in answer to a nonce.
    fn reply(&mut self, echo: u64) -> Probe {
        self.number += 1;
        let number = self.number;
        let nonce = u64::from(number) << 32;
        let (kind, view) = (ProbeKind::Reply, View::Up);
        Probe { kind, host: PEER, epoch: 5, nonce, echo, number, view, ..Probe::default() }
    }

    fn hear(&mut self, slot: u8, index: u8, probe: &Probe) {
        let frame = emit_probe(mac(1, slot), mac(2, index), probe).expect("a good probe");
        self.handle(Input::Frame { slot, bytes: &frame });
    }

    fn verdict(&self, slot: u8, index: u8) -> Verdict {
        self.inspector.lane_alive(&KEY, slot, index)
    }

    fn count(&self, counter: Counter) -> u64 {
        self.inspector.counters().get(counter)
    }

    fn lane(&self, slot: u8, index: u8) -> LaneSnapshot {
        let lanes = self.inspector.snapshot(self.now).lanes;
        lanes.into_iter().find(|lane| (lane.lane.slot, lane.lane.index) == (slot, index)).expect("a lane")
    }

    /// The latest nonce that left over a lane.
    fn nonce(&self, slot: u8, index: u8) -> u64 {
        let over = |(from, frame): &&(u8, ProbeFrame)| (*from, frame.dst) == (slot, mac(2, index));
        self.sent.iter().rfind(over).expect("a probe").1.probe.nonce
    }
}

//= docs/arp-plus.md#11.4 type=test
#[test]
fn a_nonce_tells_nothing_of_the_next_one() {
    let mut bench = Bench::new(2);
    bench.pass(millis(2000));
    let nonces: Vec<u64> = bench.sent.iter().map(|(_, frame)| frame.probe.nonce).collect();
    assert!(nonces.len() > 10, "{nonces:?}");
    for (at, nonce) in nonces.iter().enumerate() {
        let foretold = crate::random::foretold(*nonce);
        assert!(nonces[at + 1..].iter().all(|next| !foretold.contains(next)), "{nonces:?}");
    }
}
