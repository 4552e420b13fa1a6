//! All that can be seen of an inspector, as one plain value.

use super::{
    Counter, Inspector, LaneId, LaneReason, LaneState, MemberReason, MemberReport, MemberState, Timing,
    Usage, Verdict, lane::Lane, rate,
};
use crate::{Time, limits};
use linkbraid_wire::{MacAddr, Refusal, View};
use std::time::Duration;

/// An own member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSnapshot {
    /// What is known of it.
    pub report: MemberReport,
    /// Where it stands.
    pub state: MemberState,
    /// Why.
    pub reason: MemberReason,
    /// Since when.
    pub since: Time,
    /// While it waits: until when.
    pub until: Option<Time>,
    /// Failures that are not forgotten yet: the next wait grows with them.
    pub failures: u32,
    /// What its lanes say of it, over all peers.
    pub sound: Verdict,
}

/// A lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneSnapshot {
    /// Which.
    pub lane: LaneId,
    /// The MAC of the peer's member.
    pub mac: MacAddr,
    /// Where it stands.
    pub state: LaneState,
    /// What that means for plans.
    pub verdict: Verdict,
    /// Why.
    pub reason: LaneReason,
    /// Since when.
    pub since: Time,
    /// How plans use it.
    pub usage: Usage,
    /// What the peer holds of it.
    pub peer_view: View,
    /// When a nonce came back last.
    pub last_proof: Option<Time>,
    /// From the last PROBE to its PROBE-REPLY.
    pub rtt: Option<Duration>,
    /// How often it is probed now; none where it is not.
    pub interval: Option<Duration>,
    /// It is lost after this long without proof.
    pub detection: Option<Duration>,
    /// Whether it was ever proven.
    pub admitted: bool,
    /// Whether a lane that shares a member with it was lost since its last proof: it is not used before the next one.
    pub doubted: bool,
    /// Not admitted before.
    pub held_until: Time,
    /// Failures that are not forgotten yet.
    pub failures: u32,
    /// PROBEs and PROBE-REPLYs sent over it.
    pub sent: u64,
    /// Nonces that came back.
    pub proofs: u64,
}

/// The inspector at one moment; what `show`, metrics and tests read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The moment.
    pub at: Time,
    /// The settings in force.
    pub timing: Timing,
    /// The own members, by slot.
    pub members: Vec<MemberSnapshot>,
    /// The lanes of peers that are probed, by peer, slot and index.
    pub lanes: Vec<LaneSnapshot>,
    /// PROBEs a second that all lanes want.
    pub probes_wanted: u64,
    /// PROBEs a second that they get at most.
    pub probes_limit: u64,
    /// Intervals of lanes in plans are multiplied by this many thousandths to meet the limit; 1000 is not at all.
    pub stretch_in_use: u64,
    /// The same for other lanes.
    pub stretch_other: u64,
    /// Every counter.
    pub counters: Vec<(Counter, u64)>,
    /// How often frames were refused, and why.
    pub refused: Vec<(Refusal, u64)>,
}

/// What failed again and again, and waits until it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// How long it still waits.
    pub left: Duration,
    /// Failures that are not forgotten yet.
    pub failures: u32,
}

impl Inspector {
    /// Why a member that could carry traffic does not: it is held down, or all of its lanes that are answered are.
    pub fn held(&self, slot: u8, now: Time) -> Option<Held> {
        let timing = &self.timing;
        let member = self.members.get(&slot)?;
        if let Some(until) = member.until {
            let failures = member.damper.failures(now, timing);
            return (failures > 1).then_some(Held { left: now.until(until), failures });
        }
        let lanes = || {
            let peers = self.peers.values();
            peers.flat_map(|peer| &peer.lanes).filter(|((own, _), _)| *own == slot).map(|(_, lane)| &**lane)
        };
        if lanes().any(|lane| lane.state.is_live()) {
            return None;
        }
        let waits = |lane: &&Lane| lane.state == LaneState::Init && lane.answered >= timing.admit;
        let held = lanes().filter(waits).filter(|lane| lane.held_until > now);
        let first = held.min_by_key(|lane| lane.held_until)?;
        Some(Held { left: now.until(first.held_until), failures: first.damper.failures(now, timing) })
    }

    /// All that can be seen, at `now`.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        let counters = self.counters();
        Snapshot {
            at: now,
            timing: self.timing,
            members: self.member_snapshots(now),
            lanes: self.lane_snapshots(now),
            probes_wanted: self.load.wanted(),
            probes_limit: limits::PROBE_RATE,
            stretch_in_use: self.load.stretch_in_use(),
            stretch_other: self.load.stretch_other(),
            counters: counters.iter().collect(),
            refused: Refusal::ALL.iter().map(|refusal| (*refusal, counters.refused(*refusal))).collect(),
        }
    }

    fn member_snapshots(&self, now: Time) -> Vec<MemberSnapshot> {
        let members = self.members.iter().map(|(slot, member)| MemberSnapshot {
            report: member.report,
            state: member.state,
            reason: member.reason,
            since: member.since,
            until: member.until,
            failures: member.damper.failures(now, &self.timing),
            sound: self.member_sound(*slot),
        });
        members.collect()
    }

    fn lane_snapshots(&self, now: Time) -> Vec<LaneSnapshot> {
        let mut lanes = Vec::with_capacity(self.lanes);
        for (key, peer) in &self.peers {
            for ((slot, index), lane) in &peer.lanes {
                let id = LaneId { peer: *key, slot: *slot, index: *index };
                let pace = lane.pace_towards(now, peer.answers, self.spacing(id), &self.timing);
                let probed = pace != rate::Pace::Silent;
                let judged = lane.deadline(&self.timing).is_some();
                lanes.push(LaneSnapshot {
                    lane: id,
                    mac: lane.mac,
                    state: lane.state,
                    verdict: self.lane_alive(key, *slot, *index),
                    reason: lane.reason,
                    since: lane.since,
                    usage: lane.usage,
                    peer_view: lane.peer_view,
                    last_proof: lane.last_proof,
                    rtt: lane.rtt,
                    interval: probed.then_some(lane.interval),
                    detection: judged.then(|| lane.detection(&self.timing)),
                    admitted: lane.known,
                    doubted: lane.doubted,
                    held_until: lane.held_until,
                    failures: lane.damper.failures(now, &self.timing),
                    sent: lane.sent,
                    proofs: lane.proofs,
                });
            }
        }
        lanes
    }
}
