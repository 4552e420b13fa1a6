//! What all lanes together say of a member.
//!
//! A member whose switch port forwards nothing keeps its carrier, so [`Inspector::member_alive`] knows nothing of it; its
//! lanes do. Each peer has one vote on each member: for it, if one of its lanes there is proven; against it, if one was
//! proven, is no longer, and the peer is proven through another member. One vote for it outweighs all others, since a
//! lane that is lost may be the peer's fault, but one that is proven is no accident.
//!
//! Votes are counted again only for peers with a lane that changed, once for each input.

use super::{Inspector, LaneState, Peer, Verdict, lane::Lane};
use crate::{Time, arp_plus::PeerKey};
use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// What one peer says of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vote {
    /// A lane is proven.
    For,
    /// No lane is proven, but the peer is through another member.
    Against,
    /// Lanes without proof are kept because nothing better is left.
    Doubt,
}

/// How many peers say what of one member.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    votes: [usize; 3],
}

impl Tally {
    const fn verdict(&self) -> Verdict {
        match self.votes {
            [0, 0, 0] => Verdict::Unknown,
            [0, 0, _] => Verdict::Suspect,
            [0, ..] => Verdict::Failed,
            _ => Verdict::Alive,
        }
    }
}

/// All votes, and the peers whose votes are to be counted again.
#[derive(Debug, Default)]
pub(super) struct Sound {
    changed: BTreeSet<PeerKey>,
    votes: BTreeMap<PeerKey, BTreeMap<u8, Vote>>,
    tallies: BTreeMap<u8, Tally>,
}

impl Sound {
    /// A lane of that peer changed, came or went.
    pub fn changed(&mut self, peer: PeerKey) {
        self.changed.insert(peer);
    }

    fn verdict(&self, slot: u8) -> Verdict {
        self.tallies.get(&slot).map_or(Verdict::Unknown, Tally::verdict)
    }

    /// Takes the peer's votes in place of its former ones; whether that changes what is said of any member.
    fn replace(&mut self, peer: PeerKey, new: BTreeMap<u8, Vote>) -> bool {
        let old = self.votes.remove(&peer).unwrap_or_default();
        let slots: BTreeSet<u8> = old.keys().chain(new.keys()).copied().collect();
        let before: Vec<Verdict> = slots.iter().map(|slot| self.verdict(*slot)).collect();
        for (slot, vote) in &old {
            if let Some(tally) = self.tallies.get_mut(slot) {
                tally.votes[*vote as usize] -= 1;
            }
        }
        for (slot, vote) in &new {
            self.tallies.entry(*slot).or_default().votes[*vote as usize] += 1;
        }
        if !new.is_empty() {
            self.votes.insert(peer, new);
        }
        self.tallies.retain(|_, tally| tally.votes != [0; 3]);
        !slots.iter().map(|slot| self.verdict(*slot)).eq(before)
    }
}

impl Inspector {
    /// What the lanes of a member say of it, over all peers: proven on any lane, [`Verdict::Alive`]; on none, though a
    /// lane was once whose peer is proven through another member, [`Verdict::Failed`]; else kept on suspicion,
    /// [`Verdict::Suspect`]; else [`Verdict::Unknown`]. It says nothing of carrier, as [`Inspector::member_alive`] does.
    ///
    /// Looks up one number. When it becomes another one, [`super::Action::Verdicts`] of all comes.
    pub fn member_sound(&self, slot: u8) -> Verdict {
        //= docs/arp-plus.md#11.11
        self.sound.verdict(slot)
    }

    /// Since when no way to the peer is proven: when one of its lanes changed last. None while one is, or while none of its lanes could be.
    pub fn unproven_since(&self, peer: &PeerKey) -> Option<Time> {
        let lanes = &self.peers.get(peer)?.lanes;
        let open = lanes.values().filter(|lane| lane.state != LaneState::Cut);
        if lanes.values().any(|lane| lane.is_trusted()) { None } else { open.map(|lane| lane.since).max() }
    }

    /// Counts the votes of all peers whose lanes changed.
    pub(super) fn count_votes(&mut self) {
        for key in std::mem::take(&mut self.sound.changed) {
            let new = self.peers.get(&key).map(votes).unwrap_or_default();
            //= docs/arp-plus.md#11.11
            self.out.all |= self.sound.replace(key, new);
        }
    }
}

/// What a peer's lanes say of each member.
fn votes(peer: &Peer) -> BTreeMap<u8, Vote> {
    let proven = peer.lanes.values().any(|lane| lane.is_trusted());
    let mut votes = BTreeMap::new();
    for ((slot, _), lane) in &peer.lanes {
        let Some(vote) = vote(lane, proven) else { continue };
        let said = votes.entry(*slot).or_insert(vote);
        if (vote as usize) < *said as usize {
            *said = vote;
        }
    }
    votes
}

/// What one lane says; `proven`: whether any lane of the peer is. If what it says outweighs those of the peer that are on
/// its member, no proven one is among them.
fn vote(lane: &Lane, proven: bool) -> Option<Vote> {
    match lane.state {
        //= docs/arp-plus.md#11.12
        LaneState::Up if lane.doubted => Some(if proven { Vote::Against } else { Vote::Doubt }),
        LaneState::Up => Some(Vote::For),
        LaneState::Suspect => Some(Vote::Doubt),
        //= docs/arp-plus.md#12.5
        // Where a host was never proven there may be no way to it: it may be on another switch.
        LaneState::Down | LaneState::Init => (proven && lane.known && !lane.fresh).then_some(Vote::Against),
        LaneState::Cut => None,
    }
}
