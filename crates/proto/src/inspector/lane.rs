//! The machine of one lane, and what is kept of it.
//!
//! ```text
//!            Mend                 Proof                   Admit
//!   +-----+ ------> +------+ -------------> +------+ -------------------> +----+ <---------------+
//!   | Cut |         | Down |                | Init |                      | Up |   Proof, Admit  |
//!   +-----+         +------+ <------------- +------+                      +----+                 |
//!      ^                ^      Fail, Doubt                  Fail           |  |   Doubt   +---------+
//!      |                +--------------------------------------------------+  +---------> | Suspect |
//!      |                +---------------------------------------------------------------- +---------+
//!      |                                                    Fail
//!      +--- Cut, from every state: the member at one end is down
//! ```
//!
//! As in BFD (RFC 5880) a lane is Down, Init or Up and lost after a number of intervals without proof. Unlike there, proof
//! is a nonce that came back, so each single proof shows both directions, and whoever loses one direction says so to the
//! other. Fail and Doubt differ in what else is known: lost while another lane of the peer was proven since, or not.

use super::{LaneReason, Timing, damper::Damper, length::Length, rate::Demand, rate::Pace};
use crate::{Time, limits};
use linkbraid_wire::{MacAddr, View};
use serde::{Deserialize, Serialize};
use std::{collections::VecDeque, time::Duration};

#[cfg(test)]
mod tests;

/// Where a lane stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneState {
    /// The member at one end is down.
    Cut,
    /// Not proven.
    Down,
    /// Probes are answered, not enough yet.
    Init,
    /// Proven.
    Up,
    /// Proven once, not any more; kept because no lane of the peer is any better.
    Suspect,
}

impl LaneState {
    /// All five.
    pub const ALL: [LaneState; 5] =
        [LaneState::Cut, LaneState::Down, LaneState::Init, LaneState::Up, LaneState::Suspect];

    /// Whether it is to carry traffic.
    pub const fn is_live(self) -> bool {
        matches!(self, LaneState::Up | LaneState::Suspect)
    }
}

/// A signal to a lane's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaneSignal {
    /// The member at one end is down.
    Cut,
    /// The members at both ends are up.
    Mend,
    /// A nonce came back.
    Proof,
    /// A nonce came back, enough of them by now, and the lane is not held down.
    Admit,
    /// Lost, while another lane of the peer was proven since.
    Fail,
    /// Lost, and so may be the peer or all of its lanes.
    Doubt,
}

impl LaneSignal {
    /// All six.
    pub const ALL: [LaneSignal; 6] = [
        LaneSignal::Cut,
        LaneSignal::Mend,
        LaneSignal::Proof,
        LaneSignal::Admit,
        LaneSignal::Fail,
        LaneSignal::Doubt,
    ];
}

/// The machine: one row for each pair.
pub const fn step_lane(state: LaneState, signal: LaneSignal) -> LaneState {
    use LaneSignal as I;
    use LaneState::{Cut, Down, Init, Suspect, Up};
    match (state, signal) {
        //= docs/arp-plus.md#11.1
        (Cut | Down | Init | Up | Suspect, I::Cut) => Cut,

        (Cut, I::Mend) => Down,
        (Cut, I::Proof | I::Admit | I::Fail | I::Doubt) => Cut,

        (Down, I::Proof) => Init,
        (Down, I::Admit) => Up,
        (Down, I::Mend | I::Fail | I::Doubt) => Down,

        (Init, I::Mend | I::Proof) => Init,
        (Init, I::Admit) => Up,
        (Init, I::Fail | I::Doubt) => Down,

        (Up, I::Mend | I::Proof | I::Admit) => Up,
        (Up, I::Fail) => Down,
        //= docs/arp-plus.md#11.6
        (Up, I::Doubt) => Suspect,

        (Suspect, I::Mend | I::Doubt) => Suspect,
        (Suspect, I::Proof | I::Admit) => Up,
        (Suspect, I::Fail) => Down,
    }
}

/// How a plan uses a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Usage {
    /// In no plan.
    Unused,
    /// In a plan that carries nothing just now.
    Idle,
    /// In a plan of a class, or in one that carried something lately: the next frame may take this lane.
    Light,
    /// It carries data.
    Busy,
}

/// One lane.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    /// Of the peer's member.
    pub mac: MacAddr,
    /// To a plain host.
    pub plain: bool,
    pub state: LaneState,
    pub reason: LaneReason,
    pub since: Time,
    /// Met together with its peer, and not judged yet: what is heard decides.
    pub fresh: bool,
    /// Whether it was ever up.
    pub known: bool,
    /// Proven, but not since a lane that shares a member with it was lost: not to be used until it is.
    pub doubted: bool,
    pub heard: bool,
    pub usage: Usage,
    /// Probes left of the test of an unproven lane.
    pub tries: u8,
    /// Proofs in a row, while `Init`.
    pub answered: u8,
    pub first_answer: Time,
    /// The detection time runs from here: the last proof, or later.
    pub judged_from: Time,
    pub interval: Duration,
    /// A `Suspect` without detection time waits for any lane of its peer to be proven.
    pub armed: bool,
    /// This host's own lateness was allowed for since the last proof.
    pub excused: bool,
    pub last_proof: Option<Time>,
    /// When the first PROBE since the last proof was sent.
    pub waiting: Option<Time>,
    pub last_sent: Option<Time>,
    /// The next PROBE is to find out whether something failed.
    pub urgent: bool,
    /// It was asked because traffic stalls, and has not answered since.
    pub stalled: bool,
    pub next_probe: Option<Time>,
    pub wake: Option<Time>,
    /// Sent and not come back, oldest first.
    pub nonces: VecDeque<(u64, Time)>,
    /// Of those that came back, the latest.
    pub redeemed: u64,
    pub peer_nonce: u64,
    /// Epoch and number of the latest frame of the peer that was proof.
    pub peer_seen: Option<(u64, u32)>,
    pub peer_view: View,
    /// What the peer can bear.
    pub peer_interval: Duration,
    pub rtt: Option<Duration>,
    /// The longest that answers took lately: a full link's queue.
    pub slowest: Duration,
    pub sent: u64,
    pub proofs: u64,
    pub damper: Damper,
    pub held_until: Time,
    pub demand: Demand,
    pub length: Length,
}

impl Lane {
    pub fn new(now: Time, mac: MacAddr, fresh: bool, timing: &Timing) -> Lane {
        Lane {
            mac,
            plain: false,
            state: LaneState::Cut,
            reason: LaneReason::Met,
            since: now,
            fresh,
            known: false,
            doubted: false,
            heard: false,
            usage: Usage::Unused,
            tries: 0,
            answered: 0,
            first_answer: now,
            judged_from: now,
            interval: timing.interval,
            armed: true,
            excused: false,
            last_proof: None,
            waiting: None,
            last_sent: None,
            urgent: false,
            stalled: false,
            next_probe: None,
            wake: None,
            nonces: VecDeque::new(),
            redeemed: 0,
            peer_nonce: 0,
            peer_seen: None,
            peer_view: View::Unjudged,
            peer_interval: Duration::ZERO,
            rtt: None,
            slowest: Duration::ZERO,
            sent: 0,
            proofs: 0,
            damper: Damper::default(),
            held_until: now,
            demand: Demand::default(),
            length: Length::default(),
        }
    }

    /// How it is to be probed; `answers`: whether the peer ever answered a probe.
    pub fn pace(&self, now: Time, answers: bool, timing: &Timing) -> Pace {
        //= docs/arp-plus.md#11.8
        let pace = match self.state {
            LaneState::Cut => Pace::Silent,
            LaneState::Down if self.tries > 0 || self.fresh => Pace::Test(timing.interval),
            LaneState::Down if self.known || (self.heard && answers) => {
                let young = now.since(self.since) < timing.retry_for;
                Pace::Other(if young { timing.retry } else { timing.retry_late })
            }
            LaneState::Down if self.heard => Pace::Other(timing.discovery),
            LaneState::Down => Pace::Silent,
            LaneState::Init if self.answered < timing.admit => Pace::Test(timing.interval),
            LaneState::Init => Pace::Other(timing.retry),
            LaneState::Up if self.doubted => Pace::Test(timing.interval),
            LaneState::Up | LaneState::Suspect => match (self.usage, self.state) {
                (Usage::Busy, _) => Pace::InUse(timing.interval),
                (Usage::Light, _) => Pace::Light(timing.interval, timing.idle),
                (Usage::Idle, _) => Pace::InUse(timing.idle),
                (Usage::Unused, LaneState::Suspect) => Pace::Other(timing.retry),
                (Usage::Unused, _) => Pace::Other(timing.discovery),
            },
        };
        pace.for_peer(timing.interval, self.peer_interval)
    }

    /// The same, for peers and plain hosts alike. What peers would be heard on, plain hosts are tried on now and then, and
    /// never more often than with that spacing, but for tests.
    pub fn pace_towards(&self, now: Time, answers: bool, spacing: Option<Duration>, timing: &Timing) -> Pace {
        let pace = self.pace(now, answers, timing);
        let Some(spacing) = spacing else { return pace };
        //= docs/arp-plus.md#12.4
        match pace {
            Pace::Silent if self.state == LaneState::Down => {
                let young = now.since(self.since) < timing.retry_for;
                Pace::Other(if young { timing.discovery } else { limits::PLAIN_INTERVAL_LATE })
            }
            Pace::Silent | Pace::Test(_) => pace,
            //= docs/arp-plus.md#12.6
            Pace::InUse(base) | Pace::Light(base, _) => Pace::InUse(base.max(spacing)),
            Pace::Other(base) => Pace::Other(base.max(spacing)),
        }
    }

    /// The same of a peer that nothing is sent to, where there are more of those than are probed.
    pub fn pace_in_crowd(&self, pace: Pace, near: bool, timing: &Timing) -> Pace {
        //= docs/arp-plus.md#11.21
        match pace {
            Pace::Other(base) if self.state == LaneState::Up => Pace::Other(base * limits::IDLE_SLOWER),
            Pace::Other(base) | Pace::InUse(base) if !near => {
                Pace::Other(base.max(timing.discovery) * limits::IDLE_SLOWER)
            }
            _ => pace,
        }
    }

    /// What its detection time is made of: its interval; for a plain host, whose probes are rare, that of a lane in use.
    pub fn step(&self, timing: &Timing) -> Duration {
        if self.plain { timing.interval } else { self.interval }
    }

    /// How long it may be without proof; to a plain host, from the first probe that is not answered on.
    pub fn detection(&self, timing: &Timing) -> Duration {
        self.patience(self.step(timing), timing.multiplier)
    }

    /// The same while another lane answers: probes of a plain host that are not answered come close together.
    pub fn soonest(&self, timing: &Timing) -> Duration {
        self.patience(self.step(timing), timing.multiplier - u8::from(self.plain))
    }

    /// So many times that interval, and what answers take.
    pub fn patience(&self, interval: Duration, multiplier: u8) -> Duration {
        //= docs/arp-plus.md#11.20
        interval * u32::from(multiplier) + self.slowest
    }

    /// An answer took so long. Without one, what was is forgotten by as much.
    pub fn took(&mut self, away: Duration) {
        let before = self.slowest - self.slowest / limits::ANSWER_DECAY;
        self.slowest = away.max(before).min(limits::ANSWER_MAX);
    }

    /// The least time between an unanswered PROBE and its repetition.
    pub fn repeats_after(&self) -> Duration {
        //= docs/arp-plus.md#11.20
        (self.interval / limits::PROBE_REPEAT_DIVISOR).max(self.slowest / limits::ANSWER_REPEATS)
    }

    /// When it is lost unless proven; none where nothing is to be lost.
    pub fn deadline(&self, timing: &Timing) -> Option<Time> {
        let runs = match self.state {
            LaneState::Init | LaneState::Up => true,
            LaneState::Suspect => self.armed,
            LaneState::Cut | LaneState::Down => false,
        };
        //= docs/arp-plus.md#12.6
        let runs = runs && (!self.plain || self.waiting.is_some());
        runs.then(|| self.judged_from + self.soonest(timing))
    }

    /// Whether it was not asked often enough to be given up, though time is over.
    pub fn was_asked_too_little(&self, timing: &Timing) -> bool {
        let more = if self.stalled { 0 } else { limits::PLAIN_ASKED_MORE };
        self.plain && self.nonces.len() < usize::from(timing.multiplier + more).min(limits::NONCES_MAX)
    }

    /// Whether it is proven, and nothing speaks against it.
    pub fn is_trusted(&self) -> bool {
        self.state == LaneState::Up && !self.doubted
    }

    /// Whether it is tested, and not merely watched.
    pub const fn is_tested(&self) -> bool {
        match self.state {
            LaneState::Cut | LaneState::Suspect => false,
            LaneState::Down => self.tries > 0 || self.fresh,
            LaneState::Init => true,
            LaneState::Up => self.doubted,
        }
    }

    /// Whether an unanswered PROBE is repeated in a hurry.
    pub fn hurries(&self, now: Time, timing: &Timing) -> bool {
        self.deadline(timing).is_some_and(|deadline| now < deadline)
    }

    /// What the peer is sent.
    pub const fn view(&self) -> View {
        match self.state {
            LaneState::Up => View::Up,
            LaneState::Init | LaneState::Suspect => View::Init,
            LaneState::Down | LaneState::Cut if self.known => View::Lost,
            LaneState::Down | LaneState::Cut => View::Unjudged,
        }
    }

    /// A nonce leaves.
    pub fn remember(&mut self, now: Time, nonce: u64) {
        if self.nonces.len() >= limits::NONCES_MAX {
            self.nonces.pop_front();
        }
        self.nonces.push_back((nonce, now));
    }

    /// A nonce has come back: how long it was away, if it waits. It and all older ones count no more.
    pub fn redeem(&mut self, now: Time, nonce: u64) -> Option<Duration> {
        //= docs/arp-plus.md#11.4
        let place = self.nonces.iter().position(|(sent, _)| *sent == nonce)?;
        let (_, sent_at) = self.nonces.drain(..=place).next_back()?;
        self.redeemed = nonce;
        Some(now.since(sent_at))
    }

    /// Whether only who hears what leaves over this lane can know that nonce: it waits, or is the latest that came back.
    pub fn is_ours(&self, nonce: u64) -> bool {
        nonce != 0 && (nonce == self.redeemed || self.nonces.iter().any(|(sent, _)| *sent == nonce))
    }

    /// An answer without a nonce has come. It counts if anything was sent not longer ago than `within`, and then for
    /// all that was: how long the only one was away, or nothing of several.
    pub fn redeem_all(&mut self, now: Time, within: Duration) -> Option<Option<Duration>> {
        //= docs/arp-plus.md#12.3
        let mut sent = std::mem::take(&mut self.nonces);
        sent.retain(|(_, sent_at)| now.since(*sent_at) <= within);
        let (_, last) = sent.back()?;
        Some((sent.len() == 1).then(|| now.since(*last)))
    }

    /// Whether a frame of the known epoch with that number is later than every one that was proof.
    pub const fn is_new(&self, epoch: u64, number: u32) -> bool {
        //= docs/arp-plus.md#11.5
        match self.peer_seen {
            Some((seen, last)) if epoch == seen => number != last && number.wrapping_sub(last) < 1 << 31,
            _ => true,
        }
    }
}
