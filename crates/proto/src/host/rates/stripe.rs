//! How long stripes are to be, by what lanes carry.
//!
//! - Members that are far slower than told want shorter ones.
//! - Where no lane is full though much is sent, something else is the limit, most often the processor. Longer stripes then cost it
//!   less for each byte, and the lanes have time for them.

use super::{LaneRate, Rates, to_kbit};
use crate::Time;
use std::{collections::BTreeMap, time::Duration};

/// A member that carries less than this part of what was told is far slower, in percent; and as long as it is.
const MUCH_LESS_PERCENT: u64 = 25;
const MUCH_LESS_AGAIN_PERCENT: u64 = 50;
/// Its rate is worth another stripe length if it changes by more than one n-th; a longer one not sooner than this after the last.
const SLOWEST_DIFFERS_PART: u32 = 4;
const LONGER_AFTER: Duration = Duration::from_secs(10);
/// Stripes follow what was measured of members slower than this alone: what limits faster ones is often the processor, and
/// shorter stripes cost it more.
const SLOW_KBIT: u64 = 300_000;
/// A lane is full if something waited on it for this part of a round, in percent.
const FULL_PERCENT: u64 = 75;
/// Much is sent if the lanes carry this part of their weights, in percent.
const MUCH_PERCENT: u64 = 10;
/// In so many rounds, one after the other, much was sent and no lane was full.
const ROOM_ROUNDS: u32 = 2;
/// What a plan's last round said counts for so long.
const ROUND_COUNTS: Duration = Duration::from_secs(1);

/// What the length of stripes follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StripeBasis {
    /// What the slowest member carries to all its peers, in kbit/s, if that is far less than what was told.
    pub slowest_kbit: Option<u32>,
    /// The lanes are not what limits, so that longer stripes cost nothing.
    pub long: bool,
}

/// The length in force, and since when.
#[derive(Debug, Default)]
pub(super) struct Stripe {
    basis: StripeBasis,
    slowest_since: Time,
    /// When they became short again; none: they never were long.
    shortened: Option<Time>,
    /// When something last wanted them long.
    wanted: Time,
}

/// How much of its lanes' room a plan takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Use {
    #[default]
    Little,
    /// Much, in so many rounds one after the other, and no lane is full.
    Much(u32),
    Full,
}

impl Use {
    /// After another round in which the lanes carried `carried` kbit/s, and something waited on the busiest one for `busy_us`.
    pub(super) fn next(self, lanes: &[LaneRate], elapsed_us: u64, busy_us: u32) -> Use {
        let carried: u64 = lanes.iter().map(|lane| lane.carried(elapsed_us)).sum();
        let weights: u64 = lanes.iter().map(|lane| lane.weight_kbit).sum();
        match self {
            _ if u64::from(busy_us) * 100 >= elapsed_us.saturating_mul(FULL_PERCENT) => Use::Full,
            _ if carried.saturating_mul(100) < weights.saturating_mul(MUCH_PERCENT) => Use::Little,
            Use::Much(rounds) => Use::Much(rounds.saturating_add(1)),
            Use::Little | Use::Full => Use::Much(1),
        }
    }
}

impl Rates {
    /// What the length of stripes follows.
    pub fn stripe(&self) -> StripeBasis {
        self.stripe.basis
    }

    /// Looks at what lanes carry; whether that is worth another length. `measures`: the data path tells what waits. `told`: the
    /// weight of a member, in Mbit/s, or 0 if the user said that it is its rate.
    pub fn follow_stripe(&mut self, now: Time, measures: bool, told: impl Fn(u8) -> u32) -> bool {
        let slowest = self.follow_slowest(now, told);
        let room = self.follow_room(now, measures);
        slowest || room
    }

    fn follow_slowest(&mut self, now: Time, told: impl Fn(u8) -> u32) -> bool {
        let old = self.stripe.basis.slowest_kbit;
        let percent = if old.is_some() { MUCH_LESS_AGAIN_PERCENT } else { MUCH_LESS_PERCENT };
        let slowest = self.find_slowest(now, percent, told);
        let (is_shorter, is_longer) = match (old, slowest) {
            (Some(old), Some(new)) => {
                let least = old / SLOWEST_DIFFERS_PART;
                (old.saturating_sub(new) > least, new.saturating_sub(old) > least)
            }
            (old, new) => (new.is_some(), old.is_some()),
        };
        if !is_shorter && (!is_longer || now.since(self.stripe.slowest_since) < LONGER_AFTER) {
            return false;
        }
        (self.stripe.basis.slowest_kbit, self.stripe.slowest_since) = (slowest, now);
        true
    }

    /// What the slowest member carries to all its peers, in kbit/s, if that is less than `percent` of what was told, and slow.
    fn find_slowest(&self, now: Time, percent: u64, told: impl Fn(u8) -> u32) -> Option<u32> {
        #[derive(Default)]
        struct Carries {
            kbit: u64,
            told: u64,
            is_measured: bool,
        }
        let mut members: BTreeMap<u8, Carries> = BTreeMap::new();
        for plan in self.plans.values() {
            let is_recent = now.since(plan.began) < ROUND_COUNTS;
            for lane in &plan.lanes {
                let measured = lane.rate().filter(|_| lane.measured);
                // A peer on whose lanes nothing waits has what they carry to it.
                let unmeasured = if is_recent { lane.carried_kbit } else { 0 };
                let member = members.entry(lane.slot).or_default();
                member.kbit += measured.unwrap_or(unmeasured);
                member.is_measured |= measured.is_some();
                // A plan leaves a member no more than the other end told.
                let weight = if measured.is_some() { lane.weight_kbit } else { 0 };
                member.told = member.told.max(weight).max(u64::from(told(lane.slot)) * 1000);
            }
        }
        let much_less = |member: &Carries| {
            member.is_measured
                && member.kbit < SLOW_KBIT
                && member.kbit.saturating_mul(100) < member.told.saturating_mul(percent)
        };
        members.into_values().filter(much_less).map(|member| to_kbit(member.kbit)).min()
    }

    /// Whether stripes become long, or short again.
    fn follow_room(&mut self, now: Time, measures: bool) -> bool {
        let recent = self.plans.values().filter(|plan| now.since(plan.began) < ROUND_COUNTS);
        let uses: Vec<Use> = recent.map(|plan| plan.usage).collect();
        let stripe = &mut self.stripe;
        let was_long = stripe.basis.long;
        if !measures || uses.contains(&Use::Full) {
            stripe.basis.long = false;
        } else if uses.iter().any(|usage| matches!(usage, Use::Much(rounds) if *rounds >= ROOM_ROUNDS)) {
            stripe.wanted = now;
            stripe.basis.long = was_long || stripe.shortened.is_none_or(|at| now.since(at) >= LONGER_AFTER);
        } else {
            stripe.basis.long = was_long && now.since(stripe.wanted) < LONGER_AFTER;
        }
        if was_long && !stripe.basis.long {
            stripe.shortened = Some(now);
        }
        was_long != stripe.basis.long
    }
}
