//! Where all parts of the machine put what is to be done: actions, counters, open conflicts.

use super::{Action, Changed, Conflict, Counter, Counters, Event, PeerKey, Timing};
use crate::{Time, limits};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A conflict that has been seen lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenConflict {
    /// What.
    pub conflict: Conflict,
    /// When it was last seen.
    pub last_seen: Time,
    /// When it was last reported as an event.
    pub last_told: Time,
    /// How often it was seen.
    pub count: u64,
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    actions: VecDeque<Action>,
    /// Every host changed.
    all: bool,
    /// These did.
    peers: BTreeSet<PeerKey>,
    segments: bool,
    /// The own guests that are announced did.
    guests: bool,
    pub counters: Counters,
    conflicts: BTreeMap<Conflict, (Time, Time, u64)>,
}

impl Outbox {
    pub fn push(&mut self, action: Action) {
        if self.actions.len() >= limits::ACTIONS_MAX {
            return self.counters.one(Counter::LimitActions);
        }
        self.actions.push_back(action);
    }

    /// The inspector is to find out whether the host is what it was.
    pub fn challenge(&mut self, key: PeerKey) {
        self.push(Action::Challenge(key));
    }

    pub fn event(&mut self, event: Event) {
        self.push(Action::Event(event));
    }

    /// However often the table changes between two polls, it is read once.
    pub fn peer_changed(&mut self, key: PeerKey) {
        self.peers.insert(key);
    }

    /// The same of all hosts.
    pub const fn all_changed(&mut self) {
        self.all = true;
    }

    /// Hosts that changed and were not polled yet.
    pub fn changed_peers(&self) -> impl Iterator<Item = &PeerKey> {
        self.peers.iter()
    }

    pub const fn have_all_changed(&self) -> bool {
        self.all
    }

    pub const fn guests_changed(&mut self) {
        self.guests = true;
    }

    pub const fn segments_changed(&mut self) {
        self.segments = true;
    }

    pub fn poll(&mut self) -> Option<Action> {
        // Before the message that announces them: peers send for a guest as soon as they know of it.
        if std::mem::take(&mut self.guests) {
            return Some(Action::Guests);
        }
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        if std::mem::take(&mut self.segments) {
            return Some(Action::Segments);
        }
        let peers = std::mem::take(&mut self.peers);
        if std::mem::take(&mut self.all) {
            return Some(Action::Peers(Changed::All));
        }
        (!peers.is_empty()).then(|| Action::Peers(Changed::Peers(peers.into_iter().collect())))
    }

    /// Counts a conflict; reports it when it is new or goes on for long.
    pub fn conflict(&mut self, now: Time, timing: &Timing, conflict: Conflict) {
        //= docs/arp-plus.md#8.5
        self.counters.one(match conflict {
            Conflict::OwnAddress { .. } => Counter::ConflictOwnAddress,
            Conflict::OwnMac { .. } => Counter::ConflictOwnMac,
            Conflict::OwnHostId { .. } => Counter::ConflictOwnHostId,
            Conflict::PeerMac { .. } => Counter::ConflictPeerMac,
            Conflict::PeerAddress { .. } => Counter::ConflictPeerAddress,
            Conflict::PeerHostId { .. } => Counter::ConflictPeerHostId,
            Conflict::GuestMac { .. } => Counter::ConflictGuestMac,
            Conflict::OwnGuest { .. } => Counter::ConflictOwnGuest,
            Conflict::PeerGuest { .. } => Counter::ConflictPeerGuest,
        });
        if let Some((seen, reported, count)) = self.conflicts.get_mut(&conflict) {
            *seen = now;
            *count = count.saturating_add(1);
            if now.since(*reported) < timing.conflict {
                return;
            }
            *reported = now;
        } else if self.conflicts.len() >= limits::CONFLICTS_MAX {
            return self.counters.one(Counter::LimitConflicts);
        } else {
            self.conflicts.insert(conflict.clone(), (now, now, 1));
        }
        self.event(Event::Conflict(conflict));
    }

    /// Forgets conflicts that have ended.
    pub fn sweep(&mut self, now: Time, timing: &Timing) {
        self.conflicts.retain(|_, (seen, ..)| now.since(*seen) < timing.conflict);
    }

    pub fn conflicts(&self) -> Vec<OpenConflict> {
        let open =
            |(conflict, (last_seen, last_told, count)): (&Conflict, &(Time, Time, u64))| OpenConflict {
                conflict: conflict.clone(),
                last_seen: *last_seen,
                last_told: *last_told,
                count: *count,
            };
        self.conflicts.iter().map(open).collect()
    }
}
