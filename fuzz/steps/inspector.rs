//! Any course of frames, answers, time, members, peers and plans against the inspector: no panic, no endless timer,
//! limits kept, and no verdict that its own state contradicts.
//!
//! The input is a list of steps: one byte for what, one for how much, then, for a frame, that many bytes.
//! Shared by the fuzz target and the replay of the corpus in `crates/proto/tests/corpus_inspector.rs`.

use linkbraid_proto::{Time, arp_plus::PeerKey, inspector::*, limits};
use linkbraid_wire::{
    HostId, MacAddr, Probe, ProbeFrame, ProbeKind, View, emit_probe, is_arp, is_plain_answer, is_probe,
    parse_probe,
};
use std::{
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

#[path = "../../crates/proto/tests/network/answer.rs"]
mod answer;

/// Timer steps at one moment before something is wrong.
const STEPS_MAX: usize = 2000;

/// Probes that wait for an answer; older ones are lost.
const WAITING_MAX: usize = 64;

struct Course {
    inspector: Inspector,
    now: Time,
    number: u32,
    waiting: Vec<(u8, ProbeFrame)>,
    asked: Vec<(u8, Vec<u8>)>,
}

fn member(slot: u8, bits: u8) -> MemberReport {
    MemberReport {
        slot,
        mac: MacAddr([2, 0, 0, 0, 1, slot]),
        admin_up: bits & 64 == 0,
        carrier: bits >> (slot % 4) & 1 == 0,
        speed_mbit: Some(u32::from(bits)),
        full_duplex: Some(bits & 128 == 0),
    }
}

fn peer(host: u8, bits: u8) -> PeerReport {
    let member = |index: u8| PeerMemberReport {
        index,
        mac: MacAddr([2, 0, 0, 0, host, index ^ (bits >> 7)]),
        up: bits >> index & 1 == 0,
        heard: (0..4).filter(|slot| bits >> ((slot + index) % 8) & 1 == 1).collect(),
    };
    let members = (0..1 + bits % 4).map(member).collect();
    let key = PeerKey::Host(HostId([host; 16]));
    PeerReport {
        key,
        epoch: Some(u64::from(bits >> 6)),
        probes: bits & 32 == 0,
        long_probes: bits & 16 == 0,
        members,
    }
}

impl Course {
    fn handle(&mut self, input: Input<'_>) {
        self.inspector.handle(self.now, input);
        while let Some(action) = self.inspector.poll_action() {
            let Action::Send { slot, frame } = action else { continue };
            if is_probe(&frame) {
                self.waiting.push((slot, parse_probe(&frame).expect("a machine sends good frames")));
            } else {
                self.asked.push((slot, frame));
            }
        }
        let extra = self.waiting.len().saturating_sub(WAITING_MAX);
        self.waiting.drain(..extra);
        let extra = self.asked.len().saturating_sub(WAITING_MAX);
        self.asked.drain(..extra);
    }

    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut steps = 0;
        while let Some(at) = self.inspector.poll_timeout().filter(|at| *at <= end) {
            steps = if at > self.now { 0 } else { steps + 1 };
            assert!(steps < STEPS_MAX, "a deadline that never passes");
            self.now = self.now.max(at);
            self.handle(Input::Timeout);
        }
        self.now = end;
    }

    /// A plain host answers one of the probes that wait, on the member that asked or on another one.
    fn answer_plain(&mut self, which: u8, slot: u8) {
        if self.asked.is_empty() {
            return;
        }
        let (from, asked) = &self.asked[usize::from(which) % self.asked.len()];
        let slot = if slot == 15 { *from } else { slot };
        let ip = match is_arp(asked) {
            true => <[u8; 4]>::try_from(&asked[38..42]).map(IpAddr::from),
            false => <[u8; 16]>::try_from(&asked[62..78]).map(IpAddr::from),
        };
        let answer = answer::answer(asked, ip.expect("an address")).expect("a machine sends good probes");
        assert!(is_plain_answer(&answer));
        self.handle(Input::Frame { slot, bytes: &answer });
    }

    /// A peer answers one of the probes that wait, truthfully or not.
    fn answer(&mut self, which: u8, how: u8) {
        if self.waiting.is_empty() {
            return;
        }
        let (slot, asked) = self.waiting[usize::from(which) % self.waiting.len()].clone();
        self.number = self.number.wrapping_add(u32::from(how & 16 == 0));
        let probe = Probe {
            kind: if how & 1 == 0 { ProbeKind::Reply } else { ProbeKind::Probe },
            host: HostId([asked.dst.0[4]; 16]),
            epoch: u64::from(how >> 6),
            nonce: u64::from(self.number) + 1,
            echo: asked.probe.nonce ^ u64::from(how & 2),
            number: self.number,
            view: View::from_number(how >> 2 & 3).expect("two bits"),
            interval_us: 1 << (how >> 3),
            ..Probe::default()
        };
        if let Ok(frame) = emit_probe(asked.src, asked.dst, &probe) {
            self.handle(Input::Frame { slot, bytes: &frame });
        }
    }
}

/// Panics where a rule is broken.
pub fn run(bytes: &[u8]) {
    let config = Config::new(HostId([5; 16]), 1);
    let inspector = Inspector::new(config, 7);
    let mut course = Course { inspector, now: Time::ZERO, number: 0, waiting: Vec::new(), asked: Vec::new() };
    course.handle(Input::Members((0..2).map(|slot| member(slot, 0)).collect()));
    course.handle(Input::Peers(vec![peer(9, 0b0001_0001)]));
    let mut rest = bytes;
    while let [what, amount, tail @ ..] = rest {
        rest = tail;
        match what % 8 {
            0 => course.handle(Input::Members((0..what >> 4).map(|slot| member(slot, *amount)).collect())),
            1 if what & 8 != 0 => {
                let host = |host| PlainReport {
                    mac: MacAddr([2, 0, 0, 0, 200, host]),
                    ip: match host % 3 {
                        2 => {
                            Ipv6Addr::from([0xfe80, 0, 0, 0, 0, 0, u16::from(what >> 7), host.into()]).into()
                        }
                        _ => IpAddr::from([198, 18, what >> 7, host]),
                    },
                };
                course.handle(Input::Plain((0..8).filter(|bit| amount >> bit & 1 == 1).map(host).collect()));
            }
            1 => course.handle(Input::Peers((0..what >> 5).map(|host| peer(host + 3, *amount)).collect())),
            2 if what & 8 != 0 => course.answer_plain(*amount, what >> 4),
            2 => {
                let lane = |bit: u8| LaneUse {
                    lane: LaneId { peer: PeerKey::Host(HostId([9; 16])), slot: bit % 4, index: bit / 4 },
                    usage: [Usage::Busy, Usage::Light, Usage::Idle, Usage::Light][usize::from(what >> 4 & 3)],
                };
                course.handle(Input::Plan((0..8).filter(|bit| amount >> bit & 1 == 1).map(lane).collect()));
            }
            3 => course.pass(Duration::from_millis(u64::from(*amount) * 4)),
            4 => {
                let (frame, tail) = rest.split_at(rest.len().min(usize::from(*amount)));
                rest = tail;
                course.handle(Input::Frame { slot: what >> 4, bytes: frame });
            }
            5 => {
                let interval = Duration::from_millis(u64::from(*amount));
                course.handle(Input::Timing(Timing { interval, multiplier: what >> 3, ..Timing::default() }));
            }
            _ => course.answer(*amount, *what),
        }
    }
    check(&course.inspector.snapshot(course.now), &course.inspector);
}

fn check(snapshot: &Snapshot, inspector: &Inspector) {
    assert!(snapshot.lanes.len() <= limits::PROBED_LANES_MAX);
    for lane in &snapshot.lanes {
        let LaneId { peer, slot, index } = lane.lane;
        assert_eq!(lane.verdict, inspector.lane_alive(&peer, slot, index));
        let member = inspector.member_alive(slot);
        assert!(member == Verdict::Alive || lane.state == LaneState::Cut, "cut with its member");
        assert!(lane.state != LaneState::Up || lane.last_proof.is_some(), "up by proof only");
        assert!(lane.detection.is_none() || lane.interval.is_some(), "judged only while probed");
        assert!(lane.interval.is_none_or(|interval| interval >= limits::PROBE_INTERVAL_MIN));
    }
    snapshot.members.iter().for_each(|member| soundness(snapshot, inspector, member.report.slot));
    let live = snapshot.members.iter().any(|member| member.state == MemberState::Up);
    let waits = snapshot.members.iter().any(|member| member.state == MemberState::Delayed);
    assert!(live || !waits, "nobody waits while nobody is up");
    assert!(!snapshot.lanes.is_empty() || snapshot.probes_wanted == 0);
}

/// What is said of a member against what its lanes say.
fn soundness(snapshot: &Snapshot, inspector: &Inspector, slot: u8) {
    let up = |lane: &&LaneSnapshot| lane.state == LaneState::Up && !lane.doubted;
    let in_doubt = |lane: &&LaneSnapshot| lane.state == LaneState::Up && lane.doubted;
    let against = |lane: &&LaneSnapshot| {
        let others = snapshot.lanes.iter().filter(|other| other.lane.peer == lane.lane.peer);
        let lost = matches!(lane.state, LaneState::Down | LaneState::Init) && lane.verdict == Verdict::Failed;
        // A plain host's lane speaks against its member only if it was up before.
        let judges = !matches!(lane.lane.peer, PeerKey::Plain(_)) || lane.admitted;
        (in_doubt(lane) || lost && judges) && others.into_iter().any(|other| up(&other))
    };
    let here = || snapshot.lanes.iter().filter(|lane| lane.lane.slot == slot);
    let expected = if here().any(|lane| up(&lane)) {
        Verdict::Alive
    } else if here().any(|lane| against(&lane)) {
        Verdict::Failed
    } else if here().any(|lane| lane.state == LaneState::Suspect || in_doubt(&lane)) {
        Verdict::Suspect
    } else {
        Verdict::Unknown
    };
    assert_eq!(inspector.member_sound(slot), expected, "member {slot}");
}
