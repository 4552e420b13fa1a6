//! Members that told far more than they carry.
//!
//! A plan is made by what members tell. One that tells far too much gets lanes from members that then have no others: of four members of
//! 20 Mbit/s, towards three of 20 and one that says 10 Gbit/s, all four lead to that one. No shares of such lanes carry more than it does.
//! So plans to that peer are made as if such members had told what they carry, if the lanes of these plans carry more.
//!
//! All such members are corrected at once, or all at one end: one that shares a slow member of the other end seems slow itself. Where
//! all tell as much too much, the lanes are the right ones, and to correct one of them alone would make it the slowest by far.

use super::rates::{End, EndCount, Round};
use crate::{
    arp_plus::PeerKey,
    plan::{self, Lane},
};
use std::collections::{BTreeMap, HashMap};

/// A member told far too much if that is so many times what it carries,
const TOLD_TIMES: u64 = 8;
/// and it carries at least one n-th of what the busiest one of these does: who carries little was given little.
const BUSY_PART: u64 = 2;
/// In so many busy rounds, one after the other,
const SUSPECT_ROUNDS: u32 = 3;
/// lanes made by what they carry can carry so many parts of a hundred of what the lanes in force can.
const GAIN_PERCENT: u64 = 125;
/// One that carries so many parts of a hundred of what it was corrected to is what it told again.
const AGAIN_PERCENT: u64 = 150;
/// What is carried is a told weight, or what another one carries, if it is no more above or below that, in parts of a thousand of it:
/// members of the same kind stay equals. In a flow's first second a member carries less than it can.
const SAME_ABOVE_PERMILLE: u64 = 125;
const SAME_BELOW_PERMILLE: u64 = 300;

/// A weight, and what stands in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Correction {
    told_mbit: u32,
    mbit: u32,
}

/// A member that told far more than it carries.
#[derive(Debug)]
struct Suspect {
    end: End,
    correction: Correction,
}

/// The corrected weights, of members at both ends of the lanes to each peer.
#[derive(Debug, Clone, Default)]
pub(super) struct Corrections(BTreeMap<PeerKey, BTreeMap<End, Correction>>);

impl Corrections {
    /// The weight of that member in plans to a peer.
    pub fn weight(&self, peer: &PeerKey, end: End, told_mbit: u32) -> u32 {
        let known = self.0.get(peer).and_then(|ends| ends.get(&end));
        known.filter(|known| known.told_mbit == told_mbit).map_or(told_mbit, |known| known.mbit)
    }

    fn of(&mut self, peer: PeerKey) -> &mut BTreeMap<End, Correction> {
        self.0.entry(peer).or_default()
    }
}

/// What leads to corrections.
#[derive(Debug, Default)]
pub(super) struct Learned {
    corrections: Corrections,
    /// In how many rounds other lanes could have carried more.
    shown: HashMap<PeerKey, u32>,
}

impl Learned {
    /// The corrected weights.
    pub const fn corrections(&self) -> &Corrections {
        &self.corrections
    }

    /// Forgets peers that are gone.
    pub fn retain(&mut self, is_there: impl Fn(&PeerKey) -> bool) {
        self.corrections.0.retain(|peer, _| is_there(peer));
        self.shown.retain(|peer, _| is_there(peer));
    }

    /// Takes a round of the plan to a peer. `told` are the weights of members, in Mbit/s, and those that are `fixed` are
    /// believed; `lanes` are those of a plan with such corrections. Whether plans to it are to be made again.
    pub fn take(
        &mut self,
        peer: PeerKey,
        round: &Round,
        told: &BTreeMap<End, u32>,
        fixed: impl Fn(End) -> bool,
        lanes: impl Fn(&Corrections) -> Vec<Lane>,
    ) -> bool {
        let ends = match round {
            Round::Busy(ends) => ends,
            Round::Forgotten => {
                self.shown.remove(&peer);
                return self.corrections.0.remove(&peer).is_some();
            }
        };
        let is_more = |end: &EndCount, known: &Correction| {
            end.kbit.saturating_mul(100) > kbit(known.mbit).saturating_mul(AGAIN_PERCENT)
        };
        let corrected = self.corrections.0.get(&peer);
        let more = |end: &EndCount| {
            corrected.and_then(|ends| ends.get(&end.end)).is_some_and(|known| is_more(end, known))
        };
        if ends.iter().any(more) {
            return self.corrections.0.remove(&peer).is_some();
        }
        let rounds = self.shown.remove(&peer).unwrap_or(0) + 1;
        let suspects = self.suspects(peer, ends, told, &fixed);
        if suspects.is_empty() {
            return false;
        }
        let in_force = lanes(&self.corrections);
        let (own, theirs): (Vec<&Suspect>, Vec<&Suspect>) =
            suspects.iter().partition(|suspect| suspect.end.is_own());
        let tries = [suspects.iter().collect(), own, theirs];
        let better = tries.into_iter().filter(|tried| !tried.is_empty()).find_map(|suspects| {
            let mut tried = self.corrections.clone();
            tried.of(peer).extend(suspects.iter().map(|suspect| (suspect.end, suspect.correction)));
            let carries = |end| {
                let weight = |told| if fixed(end) { told } else { tried.weight(&peer, end, told) };
                told.get(&end).map_or(0, |told| kbit(weight(*told)))
            };
            let most = |lanes: &[Lane]| {
                plan::most(lanes, |slot| carries(End::Own(slot)), |mac| carries(End::Peer(mac)))
            };
            let wanted = most(&in_force).saturating_mul(GAIN_PERCENT);
            // No lanes carry more than the members at one end: mostly that ends it, without another plan.
            let sum =
                |own| told.keys().filter(|end| end.is_own() == own).map(|end| carries(*end)).sum::<u64>();
            let enough = |kbit: u64| kbit.saturating_mul(100) >= wanted;
            (enough(sum(true).min(sum(false))) && enough(most(&lanes(&tried)))).then_some(tried)
        });
        let Some(better) = better else { return false };
        if rounds < SUSPECT_ROUNDS {
            self.shown.insert(peer, rounds);
            return false;
        }
        self.corrections = better;
        true
    }

    /// The members that told far more than they carry, and what they carry.
    fn suspects(
        &self,
        peer: PeerKey,
        ends: &[EndCount],
        told: &BTreeMap<End, u32>,
        fixed: impl Fn(End) -> bool,
    ) -> Vec<Suspect> {
        let is_far = |end: &&EndCount| {
            let weight = |told| kbit(self.corrections.weight(&peer, end.end, told));
            let is_too_much = |told: &u32| weight(*told) >= end.kbit.saturating_mul(TOLD_TIMES);
            !fixed(end.end) && told.get(&end.end).is_some_and(is_too_much)
        };
        let far = || ends.iter().filter(is_far);
        let busiest = far().filter(|end| end.waited).map(|end| end.kbit).max().unwrap_or(u64::MAX);
        let mut known: Vec<u32> = told.values().copied().collect();
        let busy = far().filter(|end| end.kbit.saturating_mul(BUSY_PART) >= busiest);
        busy.map(|EndCount { end, kbit, .. }| {
            let mbit = like_others(*kbit, known.iter().copied());
            known.push(mbit);
            Suspect { end: *end, correction: Correction { told_mbit: told[end], mbit } }
        })
        .collect()
    }
}

const fn kbit(mbit: u32) -> u64 {
    mbit as u64 * 1000
}

/// That rate in Mbit/s, or a weight next to it.
fn like_others(rate: u64, told: impl Iterator<Item = u32>) -> u32 {
    let is_near = |told: &u32| {
        let permille = if kbit(*told) < rate { SAME_ABOVE_PERMILLE } else { SAME_BELOW_PERMILLE };
        kbit(*told).abs_diff(rate) * 1000 <= kbit(*told) * permille
    };
    let near = told.filter(is_near).min_by_key(|told| kbit(*told).abs_diff(rate));
    near.unwrap_or_else(|| u32::try_from(rate.div_ceil(1000)).unwrap_or(u32::MAX)).max(1)
}

#[cfg(test)]
mod tests;
