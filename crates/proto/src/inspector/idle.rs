//! Peers that nothing is sent to. Only those nearest by host id are probed all the same, so that what probing costs follows
//! what this host talks to, and not what exists.
//!
//! An *unprobed* peer has no lanes: what is heard decides which pairs a plan has, as for every lane before it is tested. Its
//! lanes are made and tested again with the first frame that is sent to it. Its own PROBEs are answered, and nothing more.
//! Peers whose lanes are not all in order stay probed, so that what is known of a failure is not forgotten.

use super::{Inspector, LaneId, LaneState, Peer, Usage, Wake};
use crate::{Time, arp_plus::PeerKey, limits};
use std::collections::{BTreeMap, BTreeSet};

impl Peer {
    /// Whether each lane that should work does, so that nothing is forgotten with them.
    fn is_settled(&self) -> bool {
        self.lanes.values().all(|lane| match lane.state {
            LaneState::Cut => true,
            LaneState::Up => !lane.doubted && lane.length.carries != Some(false),
            LaneState::Down => !(lane.is_tested() || lane.known || lane.heard),
            LaneState::Init | LaneState::Suspect => false,
        })
    }
}

impl Inspector {
    /// Sees to it that peers are looked at again while there are more of them than are probed anyway.
    pub(super) fn plan_idle_look(&mut self, now: Time) {
        let is_due = self.lanes > limits::IDLE_LANES || self.unprobed > 0;
        match self.idle_look {
            None if is_due => {
                let at = now + limits::IDLE_LOOK;
                self.idle_look = Some(at);
                self.agenda.insert((at, Wake::Idle));
            }
            Some(at) if !is_due => {
                self.idle_look = None;
                self.agenda.remove(&(at, Wake::Idle));
            }
            None | Some(_) => {}
        }
    }

    /// Leaves those unprobed that nothing was sent to for long, but for the nearest ones.
    pub(super) fn look_at_idle(&mut self, now: Time) {
        self.idle_look = None;
        //= docs/arp-plus.md#11.21
        let nearest = self.nearest();
        let peers = self.peers.iter().filter(|(_, peer)| peer.plain.is_none());
        for key in peers.map(|(key, _)| *key).collect::<Vec<_>>() {
            let Some(peer) = self.peers.get_mut(&key) else { continue };
            let (in_use, was_near) = (peer.in_use, peer.near);
            peer.near = nearest.contains(&key);
            if in_use {
                peer.idle_from = now + limits::IDLE_AFTER_USE;
            }
            if peer.near || in_use {
                self.probe_again(now, key);
            } else if peer.only_lane.is_some() {
                self.follow_only_lane(now, key);
            } else if !peer.lanes.is_empty() && now >= peer.idle_from && peer.is_settled() {
                self.leave_unprobed(key);
            }
            if self.peers.get(&key).is_some_and(|peer| peer.near != was_near) {
                self.repace_lanes_of(now, key);
            }
            // Those for which there was no room, or not for all lanes, have it now, maybe.
            let lacks = |peer: &Peer| self.lanes_wanted(peer) > peer.lanes.len();
            if self.lanes < limits::PROBED_LANES_MAX && self.peers.get(&key).is_some_and(lacks) {
                self.make_lanes_of(now, key, true);
            }
        }
    }

    /// The peers with the next higher and the next lower host ids in turn, as a ring: each host is watched by some others. One that
    /// never answered has no place: a stranger who invents hosts would take all.
    fn nearest(&self) -> BTreeSet<PeerKey> {
        let own = PeerKey::Host(self.host_id);
        let counts = |(_, peer): &(&PeerKey, &Peer)| peer.plain.is_none() && peer.answers;
        let after = self.peers.range(own..).chain(self.peers.range(..own)).filter(counts);
        let before = self.peers.range(..own).rev().chain(self.peers.range(own..).rev()).filter(counts);
        let (mut nearest, mut lanes) = (BTreeSet::new(), 0);
        for (key, peer) in after.zip(before).flat_map(|(after, before)| [after, before]) {
            if nearest.len() >= limits::IDLE_PEERS_MIN && lanes >= limits::IDLE_LANES {
                break;
            }
            if nearest.insert(*key) {
                lanes += peer.report.members.len() * self.members.len();
            }
        }
        nearest
    }

    /// The peers that are probed, and when a lane of each was proven last.
    pub fn probed(&self) -> BTreeMap<PeerKey, Option<Time>> {
        let peers = self.peers.iter().filter(|(_, peer)| peer.plain.is_none() && !peer.lanes.is_empty());
        peers
            .map(|(key, peer)| (*key, peer.lanes.values().filter_map(|lane| lane.last_proof).max()))
            .collect()
    }

    /// Whether plans say that frames were sent to the peer lately; [`Peer::in_use`] keeps it.
    pub(super) fn is_in_use(&self, key: &PeerKey) -> bool {
        let at = |number| LaneId { peer: *key, slot: number, index: number };
        self.usage.range(at(0)..=at(u8::MAX)).any(|(_, usage)| *usage >= Usage::Light)
    }

    /// Among many, a peer that nothing is sent to is asked over one lane whether it is there.
    pub(super) fn ask_by_one(&mut self, key: PeerKey) {
        //= docs/arp-plus.md#11.22
        let is_crowd = self.lanes >= limits::CROWD_LANES;
        if let Some(peer) = self.peers.get_mut(&key).filter(|peer| peer.plain.is_none()) {
            peer.only_lane = (is_crowd && !peer.in_use).then_some(0);
        }
    }

    /// The lane that is to be made of a peer that has only one; none if it has it.
    pub(super) fn only_lane(&self, key: PeerKey) -> Option<Option<(u8, u8)>> {
        let peer = self.peers.get(&key)?;
        let number = peer.only_lane?;
        Some(if peer.lanes.is_empty() { self.heard_lane(peer, number) } else { None })
    }

    /// That one of the lanes by which the peer is heard; none if it is heard by none.
    fn heard_lane(&self, peer: &Peer, number: usize) -> Option<(u8, u8)> {
        let members = || peer.report.members.iter();
        let of = |slot: u8| {
            members()
                .filter(move |member| member.heard.contains(&slot))
                .map(move |member| (slot, member.index))
        };
        let heard: Vec<(u8, u8)> = self.members.keys().flat_map(|slot| of(*slot)).collect();
        heard.get(number.checked_rem(heard.len())?).copied()
    }

    /// Once the peer has answered over its only lane, nothing more is asked of it. If it does not answer, the next one is tried.
    fn follow_only_lane(&mut self, now: Time, key: PeerKey) {
        //= docs/arp-plus.md#11.22
        let Some(peer) = self.peers.get_mut(&key) else { return };
        if peer.lanes.values().any(|lane| lane.state == LaneState::Up) {
            self.leave_unprobed(key);
        } else if peer.lanes.values().all(|lane| now.since(lane.since) >= limits::CROWD_NEXT_LANE) {
            peer.only_lane = peer.only_lane.map(|lane| lane.wrapping_add(1));
            self.remove_lanes_of(key);
            self.make_lanes_of(now, key, true);
        }
    }

    fn leave_unprobed(&mut self, key: PeerKey) {
        self.remove_lanes_of(key);
        if let Some(peer) = self.peers.get_mut(&key) {
            (peer.unprobed, peer.only_lane) = (true, None);
            self.unprobed += 1;
        }
    }

    /// Probes a peer over all lanes from now on, if it was not: something is sent to it, or it is one of the nearest.
    pub(super) fn probe_again(&mut self, now: Time, key: PeerKey) {
        let Some(peer) = self.peers.get_mut(&key) else { return };
        if peer.only_lane.take().is_some() {
            self.make_lanes_of(now, key, true);
        }
        self.probe_unprobed(now, key);
    }

    /// Tests an unprobed peer, which may have changed.
    pub(super) fn test_again(&mut self, now: Time, key: PeerKey) {
        if self.peers.get(&key).is_some_and(|peer| peer.unprobed) {
            self.ask_by_one(key);
            self.probe_unprobed(now, key);
        }
    }

    fn probe_unprobed(&mut self, now: Time, key: PeerKey) {
        let Some(peer) = self.peers.get_mut(&key) else { return };
        if std::mem::take(&mut peer.unprobed) {
            peer.idle_from = now + limits::IDLE_AFTER_MET;
            self.unprobed -= 1;
            self.make_lanes_of(now, key, true);
        }
    }

    /// Gives up the lanes of a peer that nothing is sent to, for one that something is sent to.
    pub(super) fn make_room_of_idle(&mut self, wanted: &PeerKey) -> bool {
        let may_go = |(key, peer): &(&PeerKey, &Peer)| {
            *key != wanted && peer.plain.is_none() && !peer.lanes.is_empty() && !peer.in_use
        };
        let Some((key, _)) = self.peers.iter().find(may_go) else { return false };
        let key = *key;
        self.leave_unprobed(key);
        true
    }
}
