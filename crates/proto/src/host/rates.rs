//! How fast lanes really are: what a plan's traffic is spread by where that differs from the weights.
//!
//! In: what each lane was sent, and how fast it delivered while something waited on it ([`LaneCount`]). Out: a rate for each lane.
//! Links do not always report what they carry: virtual ones report nothing or far too much, switches police ports, Wi-Fi and
//! powerline change from second to second. Weights are then a first guess.
//!
//! - A lane on which something waited delivers at its rate, so that is measured.
//! - A lane on which nothing waited while other lanes of the plan were busy, and which carried what it was believed to carry,
//!   can carry more: it is given more, round by round, until something waits on it, or until all lanes carry less than before.
//! - A lane that other traffic fills is seen by what TCP loses there (`overfull`).
//! - While nothing waits anywhere nothing else is learned: a lane that is merely idle is not slow. Nor while far more flows share the
//!   lanes than fit.
//! - Rates in the proportion of the weights change nothing, so that traffic over links that report the truth is spread as if nothing
//!   were measured.

use crate::{Time, plan::Lane};
use carry_over::Past;
use lane::LaneRate;
use linkbraid_wire::MacAddr;
use overfull::Losses;
use std::{collections::HashMap, time::Duration};
use stripe::{Stripe, Use};

mod carry_over;
mod lane;
mod overfull;
mod stripe;

pub use stripe::StripeBasis;

/// What lanes were given is taken back if nothing waits, and all carry such a part of what they did before, in percent. A
/// lane whose least time was taken behind a queue does not show that something waits on it. Where still less is sent, it is the
/// sender that sends less.
const LESS_PERCENT: std::ops::Range<u64> = 25..100;
/// No lane's share is less than one n-th of the fastest one's: a lane that gets nothing cannot be measured.
const SHARE_PART_MIN: u64 = 256;
/// Counters are taken together for so long, so that single stripes do not matter.
const ROUND: Duration = Duration::from_millis(200);
/// A round that took so long had a pause in which nobody looked at the plan, because nothing was sent: nothing is learned from it.
const ROUND_MAX: Duration = Duration::from_secs(1);
/// A plan is busy if something waited on one of its lanes for this part of a round, in percent.
const BUSY_PERCENT: u64 = 30;
/// Lanes that seem to carry less than this part of the TCP that they are sent, in percent, have far more flows than fit, if something
/// waits on most of a plan's lanes: most segments are lost and sent again, and only first copies show what a lane carries. It would be
/// measured to carry what it is given.
const SEEN_PERCENT: u64 = 50;
/// Its lanes on which something waited for at least one n-th of the time of the busiest one are measured.
const BUSY_PART: u32 = 4;
/// Rates that differ by less from the proportion of the weights are those of the weights, in parts of a thousand; and as long
/// as rates are in use.
const SAME_PERMILLE: u64 = 80;
const SAME_AGAIN_PERMILLE: u64 = 40;
/// After so many busy rounds what was measured goes back towards the proportion of the weights, by so many parts of a hundred at
/// most. A lane that this is too much or too little for is measured again at once. Where something behind the lanes is what
/// traffic waits for, each is measured to carry what it is given, whatever that is, and only this brings shares back.
const BACK_ROUNDS: u32 = 32;
const BACK_PERCENT: u64 = 2;
/// Rates that change by less are not worth a change of the plan, in parts of a thousand.
const WORTH_PERMILLE: u64 = 10;
/// And while something waits on all lanes, none of which has more to give.
const WORTH_PERMILLE_BUSY: u64 = 40;
/// After so long with traffic and nothing that waits, rates are forgotten: who then gets too much is measured again.
const FORGET: Duration = Duration::from_secs(60);
/// The highest rate, in kbit/s: 4 Tbit/s.
const RATE_KBIT_MAX: u64 = 4_000_000_000;

/// What a lane counted under the plan in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaneCount {
    /// Bytes sent.
    pub bytes: u64,
    /// Bytes of TCP that were delivered while something waited on the lane; wraps.
    pub busy_bytes: u32,
    /// For how long something did, us; wraps.
    pub busy_us: u32,
    /// Bytes of TCP that were sent, those that had been sent before, too; wraps.
    pub tcp_bytes: u32,
    /// Of these, what was sent again, by whatever lane; wraps.
    pub lost_bytes: u32,
}

/// What is known of the rates of a plan's lanes, in kbit/s, in their order.
#[derive(Debug, Clone, Default)]
pub struct LaneRates {
    /// What each was measured to carry; none: nothing has waited for it.
    pub measured: Vec<Option<u32>>,
    /// What they are spread by; empty: by their weights.
    pub in_use: Vec<u32>,
}

/// A member at an end of lanes to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum End {
    /// The own one in that slot.
    Own(u8),
    /// The peer's of that MAC.
    Peer(MacAddr),
}

impl End {
    /// Whether it is one of our own.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Own(_))
    }
}

/// The members at both ends of a lane.
fn both_ends(slot: u8, peer_mac: Option<MacAddr>) -> impl Iterator<Item = End> {
    std::iter::once(End::Own(slot)).chain(peer_mac.map(End::Peer))
}

/// What all lanes of a plan that end at a member carried in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndCount {
    /// The member.
    pub end: End,
    /// How many lanes these are.
    pub lanes: usize,
    /// In kbit/s.
    pub kbit: u64,
    /// Something waited on one of them.
    pub waited: bool,
}

/// What a round of a plan was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Round {
    /// Something waited, and members carried that.
    Busy(Vec<EndCount>),
    /// Nothing has waited for so long that what was measured is forgotten.
    Forgotten,
}

#[derive(Debug)]
struct PlanRates {
    began: Time,
    lanes: Vec<LaneRate>,
    /// Nothing was counted of these lanes yet.
    is_new: bool,
    past: Past,
    losses: Losses,
    /// In which something waited; and whether something did on all lanes in the last one.
    busy_rounds: u32,
    all_busy: bool,
    /// What all lanes carried when one was given more, in kbit/s.
    carried_before: u64,
    /// With traffic and nothing that waits.
    quiet: Duration,
    /// What the lanes are spread by; none: by the weights.
    in_use: Option<Vec<u32>>,
    usage: Use,
    /// The last round, until somebody takes it.
    round: Option<Round>,
}

/// The rates of all plans.
#[derive(Debug, Default)]
pub(super) struct Rates {
    plans: HashMap<u32, PlanRates>,
    stripe: Stripe,
}

impl Rates {
    /// Takes the counters of a plan with these lanes; `fixed`: members whose weight is their rate. Whether its rates are
    /// other ones now.
    pub fn take(
        &mut self,
        now: Time,
        number: u32,
        lanes: &[Lane],
        fixed: impl Fn(u8) -> bool,
        counts: &[LaneCount],
    ) -> bool {
        // Lanes to plain hosts lead to near and far ones, whose rates are not the lanes'.
        let to_peer = lanes.iter().all(|lane| lane.peer_mac.is_some());
        if lanes.len() < 2 || lanes.len() != counts.len() || !to_peer {
            return self.plans.remove(&number).is_some_and(|plan| plan.in_use.is_some());
        }
        // Most of many peers are never sent anything.
        if counts.iter().all(|count| count.bytes == 0) && !self.plans.contains_key(&number) {
            return false;
        }
        let plan = self.plans.entry(number).or_insert_with(|| PlanRates::new(now));
        let mut changed = plan.follow(lanes, fixed);
        let is_other = std::mem::take(&mut plan.is_new);
        let elapsed = now.since(plan.began);
        let is_again = plan.lanes.iter().zip(counts).any(|(lane, count)| lane.began_again(count, elapsed));
        plan.lanes.iter_mut().zip(counts).for_each(|(lane, count)| lane.last = *count);
        let is_whole = !is_other && !is_again && elapsed < ROUND_MAX;
        if is_whole && elapsed < ROUND {
            return false;
        }
        if is_whole {
            plan.end_round(elapsed);
            changed = plan.choose();
        } else {
            plan.lanes.iter_mut().for_each(|lane| lane.carried_kbit = 0);
        }
        plan.began = now;
        plan.lanes.iter_mut().for_each(|lane| lane.begun = lane.last);
        changed
    }

    /// Those of a plan that has these lanes now.
    pub fn follow(&mut self, number: u32, lanes: &[Lane], fixed: impl Fn(u8) -> bool) {
        if let Some(plan) = self.plans.get_mut(&number) {
            plan.follow(lanes, fixed);
        }
    }

    /// What the last round of a plan was, once.
    pub fn take_round(&mut self, number: u32) -> Option<Round> {
        self.plans.get_mut(&number)?.round.take()
    }

    /// Forgets plans that are gone.
    pub fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        self.plans.retain(|number, _| is_there(*number));
    }

    /// The plans that are not spread by weights.
    pub fn in_use(&self) -> impl Iterator<Item = u32> + '_ {
        self.plans.iter().filter(|(_, plan)| plan.in_use.is_some()).map(|(number, _)| *number)
    }

    /// What these lanes of a plan are spread by, in kbit/s; empty: by their weights.
    pub fn of(&self, number: u32, lanes: &[Lane]) -> Vec<u32> {
        let plan = self.plans.get(&number).filter(|plan| plan.are(lanes));
        plan.and_then(|plan| plan.in_use.clone()).unwrap_or_default()
    }

    /// What was measured of these lanes of a plan, in kbit/s.
    pub fn measured(&self, number: u32, lanes: &[Lane]) -> Vec<Option<u32>> {
        let Some(plan) = self.plans.get(&number).filter(|plan| plan.are(lanes)) else {
            return vec![None; lanes.len()];
        };
        plan.lanes.iter().map(|lane| lane.rate_kbit.filter(|_| lane.measured).map(to_kbit)).collect()
    }

    /// The most that was measured to leave by a member under one plan, in kbit/s.
    pub fn member_kbit(&self, slot: u8) -> Option<u32> {
        let of_plan = |plan: &PlanRates| {
            let lanes = plan.lanes.iter().filter(|lane| lane.slot == slot && lane.measured);
            lanes.filter_map(|lane| lane.rate_kbit).reduce(|sum, rate| sum + rate)
        };
        self.plans.values().filter_map(of_plan).max().map(to_kbit)
    }

    /// Whether lanes of this member have shares by what was measured.
    pub fn is_in_use(&self, slot: u8) -> bool {
        let has = |plan: &&PlanRates| plan.lanes.iter().any(|lane| lane.slot == slot);
        self.plans.values().filter(has).any(|plan| plan.in_use.is_some())
    }
}

fn to_kbit(rate: u64) -> u32 {
    u32::try_from(rate.clamp(1, RATE_KBIT_MAX)).unwrap_or(u32::MAX)
}

/// By how many parts of a thousand two numbers differ.
fn permille_apart(one: u64, other: u64) -> u64 {
    one.abs_diff(other).saturating_mul(1000) / one.max(other).max(1)
}

impl PlanRates {
    fn new(now: Time) -> PlanRates {
        PlanRates {
            began: now,
            lanes: Vec::new(),
            is_new: true,
            past: Past::default(),
            losses: Losses::default(),
            busy_rounds: 0,
            all_busy: false,
            carried_before: 0,
            quiet: Duration::ZERO,
            in_use: None,
            usage: Use::default(),
            round: None,
        }
    }

    /// Whether these are its lanes.
    fn are(&self, lanes: &[Lane]) -> bool {
        let same = |(known, lane): (&LaneRate, &Lane)| known.is(lane);
        self.lanes.len() == lanes.len() && self.lanes.iter().zip(lanes).all(same)
    }

    /// The plan has these lanes now. Whether other ones make its rates other ones.
    fn follow(&mut self, lanes: &[Lane], fixed: impl Fn(u8) -> bool) -> bool {
        let is_other = !self.are(lanes);
        if is_other {
            self.lanes = self.past.carry_over(&self.lanes, lanes);
        }
        for (lane, told) in self.lanes.iter_mut().zip(lanes) {
            lane.follow(told.weight, fixed(told.slot));
        }
        if !is_other {
            return false;
        }
        (self.is_new, self.in_use) = (true, None);
        self.losses.clear();
        self.choose()
    }

    /// Learns from what was counted in a round.
    fn end_round(&mut self, elapsed: Duration) {
        let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1);
        let busiest = self.lanes.iter().map(LaneRate::busy_us).max().unwrap_or(0);
        self.usage = self.usage.next(&self.lanes, elapsed_us, busiest);
        self.lanes.iter_mut().for_each(|lane| lane.carried_kbit = lane.carried(elapsed_us));
        let carried: u64 = self.lanes.iter().map(|lane| lane.carried_kbit).sum();
        if u64::from(busiest) * 100 < elapsed_us.saturating_mul(BUSY_PERCENT) {
            if LESS_PERCENT.contains(&(carried.saturating_mul(100) / self.carried_before.max(1))) {
                self.lanes.iter_mut().for_each(LaneRate::take_back);
                self.carried_before = 0;
            }
            self.losses.take(&mut self.lanes);
            // One that sends as much as the lanes carry has no queue where its window is just right.
            let is_cut = self.lanes.iter().any(LaneRate::is_cut);
            if carried > 0 && (is_cut || carried < self.sums().0 / 2) {
                self.quiet += elapsed;
            }
            if self.quiet >= FORGET {
                self.lanes.iter_mut().for_each(LaneRate::forget);
                self.past.forget();
                self.quiet = Duration::ZERO;
                self.round = Some(Round::Forgotten);
            }
            return;
        }
        self.quiet = Duration::ZERO;
        self.losses.clear();
        if !self.is_seen(elapsed_us, busiest) {
            return;
        }
        self.round = Some(Round::Busy(self.ends(elapsed_us)));
        let sums = self.sums();
        for lane in &mut self.lanes {
            let us = lane.busy_us();
            if us >= busiest / BUSY_PART {
                lane.measure(us);
            } else if lane.grow(elapsed_us, lane.told(sums)) {
                self.carried_before = carried;
            }
        }
        if self.lanes.iter().all(|lane| lane.rate().is_some()) {
            self.lanes.iter_mut().for_each(LaneRate::uncut);
        }
        self.all_busy = self.lanes.iter().all(|lane| lane.busy_us() >= busiest / BUSY_PART);
        self.busy_rounds += 1;
        if self.busy_rounds.is_multiple_of(BACK_ROUNDS) {
            self.go_back();
        }
    }

    /// Whether what lanes delivered explains what they were sent.
    fn is_seen(&self, elapsed_us: u64, busiest: u32) -> bool {
        let busy = self.lanes.iter().filter(|lane| lane.busy_us() >= (busiest / BUSY_PART).max(1));
        let (lanes, delivered, sent) = busy.fold((0, 0, 0), |(lanes, delivered, sent), lane| {
            (lanes + 1, delivered + lane.delivered(lane.busy_us()), sent + lane.carried_tcp(elapsed_us))
        });
        lanes * 2 <= self.lanes.len() || delivered * 100 >= sent * SEEN_PERCENT
    }

    /// What members at both ends carried.
    fn ends(&self, elapsed_us: u64) -> Vec<EndCount> {
        let mut ends: Vec<EndCount> = Vec::new();
        for lane in &self.lanes {
            let kbit = lane.bytes().saturating_mul(8000) / elapsed_us;
            let waited = u64::from(lane.busy_us()) * 100 >= elapsed_us.saturating_mul(BUSY_PERCENT);
            for end in both_ends(lane.slot, lane.peer_mac) {
                match ends.iter_mut().find(|known| known.end == end) {
                    Some(known) => {
                        known.lanes += 1;
                        known.kbit += kbit;
                        known.waited |= waited;
                    }
                    None => ends.push(EndCount { end, lanes: 1, kbit, waited }),
                }
            }
        }
        ends
    }

    fn go_back(&mut self) {
        self.all_busy = false;
        let sums = self.sums();
        for lane in self.lanes.iter_mut().filter(|lane| lane.measured && lane.grown_from.is_none()) {
            let Some(rate) = lane.rate_kbit else { continue };
            let most = rate * BACK_PERCENT / 100 + 1;
            lane.assume(lane.told(sums).clamp(rate - most, rate + most));
        }
    }

    /// The sums of what is known of the rates, and of those lanes' weights.
    fn sums(&self) -> (u64, u64) {
        let known = self.lanes.iter().filter_map(|lane| Some((lane.rate()?, lane.weight())));
        known.fold((0, 0), |(rates, weights), (rate, weight)| (rates + rate, weights + weight))
    }

    /// Chooses what to spread by; whether that is something else now.
    fn choose(&mut self) -> bool {
        let chosen = self.rates();
        let same = match (&self.in_use, &chosen) {
            (None, None) => true,
            (Some(old), Some(new)) => {
                let (before, after) = (sum(old), sum(new));
                let share = |rate: u32, sum: u64| (u64::from(rate) << 24) / sum.max(1);
                let worth = if self.all_busy { WORTH_PERMILLE_BUSY } else { WORTH_PERMILLE };
                let shares = old.iter().zip(new);
                let apart =
                    |(old, new): (&u32, &u32)| permille_apart(share(*old, before), share(*new, after));
                shares.map(apart).all(|apart| apart < worth)
            }
            _ => false,
        };
        if !same {
            self.in_use = chosen;
        }
        !same
    }

    /// The rates, unless they are in the proportion of the weights. One that is not known is taken for what the others suggest.
    fn rates(&self) -> Option<Vec<u32>> {
        // Where nothing is known the weights are in use, or what is believed of them.
        let sums = match self.sums() {
            (_, 0) => (1, 1),
            sums => sums,
        };
        let limit = if self.in_use.is_some() { SAME_AGAIN_PERMILLE } else { SAME_PERMILLE };
        let same = |lane: &LaneRate| {
            let is_near = |rate| permille_apart(rate, lane.told(sums)) <= limit;
            (lane.fixed || lane.grown_from.is_none() && !lane.is_cut()) && lane.rate().is_none_or(is_near)
        };
        if self.lanes.iter().all(same) {
            return None;
        }
        let rates: Vec<u64> =
            self.lanes.iter().map(|lane| lane.rate().unwrap_or_else(|| lane.told(sums))).collect();
        let least = rates.iter().max().map_or(0, |fastest| fastest / SHARE_PART_MIN);
        Some(rates.into_iter().map(|rate| to_kbit(rate.max(least))).collect())
    }
}

/// What a lane of this weight would have of the rates of lanes whose weights sum up to `weights`.
fn in_proportion(weight: u64, rates: u64, weights: u64) -> u64 {
    let rate = u128::from(weight) * u128::from(rates) / u128::from(weights.max(1));
    u64::try_from(rate).unwrap_or(RATE_KBIT_MAX)
}

fn sum(rates: &[u32]) -> u64 {
    rates.iter().map(|rate| u64::from(*rate)).sum()
}

#[cfg(test)]
mod tests;
