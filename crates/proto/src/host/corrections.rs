//! Members that told far more than they carry.
//!
//! A plan is made by what members tell. One that tells far too much gets lanes from members that then have no others: of four members of
//! 20 Mbit/s, towards three of 20 and one that says 10 Gbit/s, all four lead to that one. No shares of such lanes carry more than it does.
//! So where a member at the end of several lanes carries far less than it told, though something waits on them, plans to that
//! peer are made as if it had told what it carries, if they then have more.

use super::rates::{End, EndCount, Round};
use crate::arp_plus::PeerKey;
use std::collections::{BTreeMap, HashMap};

/// A member told far too much if that is so many times what it carries;
const TOLD_TIMES: u64 = 8;
/// and what it can have of the members at the other end is so many parts of a hundred of what it carries;
const USABLE_PERCENT: u64 = 150;
/// in so many busy rounds, one after the other;
const SUSPECT_ROUNDS: u32 = 3;
/// and with what it carries in place of what it told all lanes together have so many parts of a hundred of what they carry.
const GAIN_PERCENT: u64 = 125;
/// One that carries so many parts of a hundred of what it was corrected to is what it told again.
const AGAIN_PERCENT: u64 = 150;
/// What is carried is a told weight if it is as near to one, in parts of a thousand: members of the same kind stay equals.
const SAME_PERMILLE: u64 = 125;

/// A weight, and what stands in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Correction {
    told_mbit: u32,
    mbit: u32,
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
    /// Who is suspected of having told too much, for how many rounds.
    suspects: HashMap<PeerKey, (End, u32)>,
}

impl Learned {
    /// The corrected weights.
    pub const fn corrections(&self) -> &Corrections {
        &self.corrections
    }

    /// Forgets peers that are gone.
    pub fn retain(&mut self, is_there: impl Fn(&PeerKey) -> bool) {
        self.corrections.0.retain(|peer, _| is_there(peer));
        self.suspects.retain(|peer, _| is_there(peer));
    }

    /// Takes a round of the plan to a peer. `told` are the weights of members, in Mbit/s, and those that are `fixed` are
    /// believed; `have` is what all lanes together have with such corrections, in kbit/s. Whether plans to it are to be made again.
    pub fn take(
        &mut self,
        peer: PeerKey,
        round: &Round,
        told: &BTreeMap<End, u32>,
        fixed: impl Fn(End) -> bool,
        have: impl FnOnce(&Corrections) -> u64,
    ) -> bool {
        let ends = match round {
            Round::Busy(ends) => ends,
            Round::Forgotten => {
                self.suspects.remove(&peer);
                return self.corrections.0.remove(&peer).is_some();
            }
        };
        let is_more = |end: &EndCount, known: &Correction| {
            end.kbit.saturating_mul(100) > kbit(known.mbit).saturating_mul(AGAIN_PERCENT)
        };
        let corrected = self.corrections.0.get(&peer);
        let more = ends.iter().find(|end| {
            corrected.and_then(|ends| ends.get(&end.end)).is_some_and(|known| is_more(end, known))
        });
        if let Some(end) = more {
            self.corrections.of(peer).remove(&end.end);
            return true;
        }
        let Some((end, told_mbit)) = self.suspect(peer, ends, told, fixed) else {
            self.suspects.remove(&peer);
            return false;
        };
        let rounds = match self.suspects.get(&peer) {
            Some((suspect, rounds)) if *suspect == end.end => rounds + 1,
            _ => 1,
        };
        self.suspects.insert(peer, (end.end, rounds));
        if rounds < SUSPECT_ROUNDS {
            return false;
        }
        self.suspects.remove(&peer);
        let mut tried = self.corrections.clone();
        let mbit = like_others(end.kbit, told.values().copied());
        tried.of(peer).insert(end.end, Correction { told_mbit, mbit });
        let carried: u64 = ends.iter().filter(|end| end.end.is_own()).map(|end| end.kbit).sum();
        if have(&tried).saturating_mul(100) < carried.saturating_mul(GAIN_PERCENT) {
            return false;
        }
        self.corrections = tried;
        true
    }

    /// The member that told most above what it carries, if that is far too much, and what it told.
    fn suspect<'e>(
        &self,
        peer: PeerKey,
        ends: &'e [EndCount],
        told: &BTreeMap<End, u32>,
        fixed: impl Fn(End) -> bool,
    ) -> Option<(&'e EndCount, u32)> {
        let weight = |end: End| Some(kbit(self.corrections.weight(&peer, end, *told.get(&end)?)));
        let usable = |end: End| -> u64 {
            let others = ends.iter().filter(|other| other.end.is_own() != end.is_own());
            others.filter_map(|other| weight(other.end)).sum()
        };
        let is_far = |end: &&EndCount| {
            let Some(told) = weight(end.end) else { return false };
            let usable = told.min(usable(end.end));
            end.lanes > 1
                && !fixed(end.end)
                && end.waited
                && told >= end.kbit.saturating_mul(TOLD_TIMES)
                && usable.saturating_mul(100) >= end.kbit.saturating_mul(USABLE_PERCENT)
        };
        let times = |end: &&EndCount| weight(end.end).unwrap_or(0) / end.kbit.max(1);
        let end = ends.iter().filter(is_far).max_by_key(times)?;
        Some((end, *told.get(&end.end)?))
    }
}

const fn kbit(mbit: u32) -> u64 {
    mbit as u64 * 1000
}

/// That rate in Mbit/s, or a weight next to it.
fn like_others(rate: u64, told: impl Iterator<Item = u32>) -> u32 {
    let nearest = told.min_by_key(|told| kbit(*told).abs_diff(rate));
    let near = nearest.filter(|told| kbit(*told).abs_diff(rate) * 1000 <= rate * SAME_PERMILLE);
    near.unwrap_or_else(|| u32::try_from(rate.div_ceil(1000)).unwrap_or(u32::MAX)).max(1)
}

#[cfg(test)]
mod tests;
