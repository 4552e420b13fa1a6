//! The properties of each frame that a host takes in, and when it may come twice.

use super::{Fault, Machine, Sent, World, mac};
use crate::network::millis;
use linkbraid_proto::host::{Host, PeerMac};
use linkbraid_wire::MacAddr;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Two announcements of the longest interval (clause 5.1): one may get lost.
const HEARD_AGAIN: Duration = millis(2 * 950);

/// Why a frame may come twice. Each is a state of the tables at one end; once all is settled ([`World::settled`]) none counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Excuse {
    /// The sender takes two members on one switch for members of two segments: they have not heard each other yet, or
    /// not for 3.5 s (clause 9.1). It sends a copy to each. While its daemon runs, that ends at most [`HEARD_AGAIN`] after
    /// one can hear the other.
    SegmentsOfSender,
    /// The sender does not know the receiver, and sends a copy to each segment, as for a plain host that was never heard.
    ReceiverUnknown,
    /// The same at the receiver: each of the two takes in what their switch forwards to both.
    SegmentsOfReceiver,
    /// The receiver does not know the sender of a broadcast, and takes in one copy a segment, as from a plain host.
    SenderUnknown,
    /// The receiver's daemon died while it wrote its tables, and no other one has heard the sender since: some MACs of the
    /// sender have the old member that takes in broadcasts, some the new one.
    HalfWritten,
    /// The receiver presumes the member failed that the frame is for, though its link is back (11.2: the up-delay): the frame
    /// comes to that member, and to the one that takes in what switches flood for it. Twice is better than not at all.
    HeldDead,
    /// What the receiver takes in changed while the copies were on their way, that is within [`DELAY_MAX`].
    ChangedOnTheWay,
}

/// What decides on which member a host takes in a frame of one other host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Intake {
    elected: Vec<(u8, Option<u8>)>,
    /// By each MAC of the sender that is known: the member that takes in its broadcasts.
    broadcast_slots: Vec<Option<Option<u8>>>,
    /// Whether the member lives that the frame is for.
    lives: bool,
    /// The member that takes in what is for a guest.
    guest_slot: Option<u8>,
}

impl World {
    /// The properties of every frame that a host, plain or not, or a guest takes in.
    pub(super) fn accept(&mut self, number: u64, station: usize, slot: u8, destination: MacAddr) {
        let Sent { from, to, .. } = self.sent[number as usize];
        let when = self.now();
        assert_ne!(
            self.home(from),
            self.home(station),
            "a loop: frame {number} from {from} comes back to {station} on member {slot} at {when:?}"
        );
        assert!(
            to.is_none_or(|to| to == station),
            "frame {number} is for {to:?} and comes to {station} at {when:?}"
        );
        self.count(number, station, destination);
    }

    /// A frame comes once to each; twice where that is excused.
    pub(super) fn count(&mut self, number: u64, station: usize, destination: MacAddr) {
        let Sent { from, to, excuse, .. } = self.sent[number as usize];
        let (when, host) = (self.now(), self.home(station));
        let intake = self.intake(host, from, destination);
        let Some(before) = self.delivered.insert((number, station), intake.clone()) else { return };
        let excuse = excuse.or_else(|| self.excuse_at_receiver(host, from, destination, before == intake));
        match excuse.filter(|_| !self.settled) {
            Some(excuse) => *self.twice.entry(excuse).or_default() += 1,
            None => {
                panic!(
                    "frame {number} from {from} to {to:?} comes twice to {station}, at {when:?}: {excuse:?}"
                )
            }
        }
    }

    fn intake(&self, host: usize, from: usize, destination: MacAddr) -> Intake {
        // A plain host takes in whatever is for it.
        let Some(Machine { path, .. }) = self.machines.get(host) else { return Intake::default() };
        let macs = self.cables.keys().filter(|port| port.0 == from).map(|port| mac(port.0, port.1));
        Intake {
            elected: path.rows.members.iter().map(|(slot, row)| (*slot, row.elected)).collect(),
            broadcast_slots: macs
                .map(|mac| path.rows.peer_macs.get(&mac).map(|row| row.broadcast_slot))
                .collect(),
            lives: destination.is_multicast() || path.lives(destination),
            guest_slot: path.guest_slot(destination),
        }
    }

    /// What at the sender allows a frame to come twice.
    pub(super) fn excuse_at_sender(&self, from: usize, to: Option<usize>) -> Option<Excuse> {
        if from >= self.machines.len() {
            return None;
        }
        if self.may_mistake_segments(from) {
            return Some(Excuse::SegmentsOfSender);
        }
        // One copy at most is on the switch of a plain host.
        let to = to.filter(|to| *to < self.machines.len());
        to.filter(|to| !self.knows(from, *to)).map(|_| Excuse::ReceiverUnknown)
    }

    /// What at the receiver allows a frame to come twice. `same`: it took both in by the same rows.
    fn excuse_at_receiver(
        &self,
        host: usize,
        from: usize,
        destination: MacAddr,
        same: bool,
    ) -> Option<Excuse> {
        if host >= self.machines.len() {
            return None;
        }
        if !same {
            return Some(Excuse::ChangedOnTheWay);
        }
        if self.may_mistake_segments(host) {
            return Some(Excuse::SegmentsOfReceiver);
        }
        if self.is_guest(destination) {
            return None;
        }
        if !destination.is_multicast() {
            return (!self.machines[host].path.lives(destination)).then_some(Excuse::HeldDead);
        }
        if from >= self.machines.len() {
            return None;
        }
        if !self.knows(host, from) {
            return Some(Excuse::SenderUnknown);
        }
        self.is_half_written(host, from).then_some(Excuse::HalfWritten)
    }

    /// Whether the rows of one host's MACs differ in which member takes in its broadcasts, and no running daemon has heard
    /// that host.
    fn is_half_written(&self, host: usize, from: usize) -> bool {
        let machine = &self.machines[host];
        // A member that left while no daemon ran still sends.
        let macs = self.cables.keys().filter(|port| port.0 == from).map(|port| mac(port.0, port.1));
        let rows: Vec<&PeerMac> = macs.filter_map(|mac| machine.path.rows.peer_macs.get(&mac)).collect();
        let has_heard = |daemon: &Host| rows.iter().all(|row| daemon.image().plans.contains_key(&row.plan));
        let differ = rows.windows(2).any(|rows| rows[0].broadcast_slot != rows[1].broadcast_slot);
        differ && !machine.daemon.as_ref().is_some_and(has_heard)
    }

    /// Whether the host takes members on one switch for members of several segments, and may.
    fn may_mistake_segments(&self, host: usize) -> bool {
        let ends = self.hearable.get(&host).map(|since| *since + HEARD_AGAIN);
        !self.knows_segments(host) && ends.is_none_or(|end| self.now() <= end)
    }

    /// Whether no two members of a host on one switch are taken for members of two segments, neither by what it sends nor
    /// by what it takes in: a daemon that died while it wrote may have left one and not the other.
    fn knows_segments(&self, host: usize) -> bool {
        let rows = &self.machines[host].path.rows;
        let on_switch = |slot: u8| self.cables.get(&(host, slot));
        let sends: BTreeSet<_> = rows.bond.elected.iter().map(|slot| on_switch(*slot)).collect();
        let mut takes_in = BTreeMap::new();
        let elected = rows.members.iter().filter_map(|(slot, row)| Some((on_switch(*slot), row.elected?)));
        sends.len() == rows.bond.elected.len()
            && elected
                .into_iter()
                .all(|(switch, elected)| *takes_in.entry(switch).or_insert(elected) == elected)
    }

    /// Notes since when hosts with a daemon could hear that two segments are one.
    pub(super) fn note_hearable(&mut self) {
        for host in 0..self.machines.len() {
            if self.could_know_segments(host) {
                let now = self.now();
                self.hearable.entry(host).or_insert(now);
            } else {
                self.hearable.remove(&host);
            }
        }
    }

    /// Whether an elected member hears what another one sends, and the daemon runs that is to see it.
    fn could_know_segments(&self, host: usize) -> bool {
        let Machine { daemon, path, .. } = &self.machines[host];
        let elected = &path.rows.bond.elected;
        let hears = |to: u8, from: u8| {
            let switch = self.cables[&(host, to)];
            to != from
                && self.cables[&(host, from)] == switch
                && !self.faults.contains(&Fault::Switch(switch))
                && !self.is_cut((host, from), Fault::From(host, from))
                && !self.is_cut((host, to), Fault::To(host, to))
        };
        daemon.is_some() && elected.iter().any(|to| elected.iter().any(|from| hears(*to, *from)))
    }

    /// Whether one data path knows the other host.
    pub fn knows(&self, host: usize, other: usize) -> bool {
        let rows = &self.machines[host].path.rows.peer_macs;
        self.machines[other].members.iter().all(|member| rows.contains_key(&member.mac))
    }
}
