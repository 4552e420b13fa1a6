//! The own mapping: what this host advertises.

use super::{Config, Counter, OwnMember, outbox::Outbox};
use crate::{Time, limits};
use linkbraid_wire::{
    CLASSES_MAX, Class, Extension, GUESTS_MAX, Guest, HostId, Kind, MESSAGE_LEN_MAX, MacAddr, Member,
    Message, VERSION, with_interval,
};
use std::{collections::BTreeMap, net::IpAddr};

/// How the members differ from those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Differ {
    /// Not at all.
    Nothing,
    /// In what is not advertised: who is elected may be another one, but the mapping is the same.
    Soundness,
    /// In what advertised to peers.
    Mapping,
}

#[derive(Debug)]
pub(super) struct Own {
    pub host: HostId,
    pub epoch: u64,
    pub sequence: u32,
    pub members: Vec<OwnMember>,
    pub addresses: Vec<IpAddr>,
    /// Ascending by number.
    pub classes: Vec<Class>,
    pub features: u32,
    /// The mapping is announced on each member every 2^this seconds.
    pub doublings: u8,
    /// Bytes that are added to each message before it leaves.
    pub appended: usize,
    /// Those that are announced: as many as fit.
    pub guests: Vec<Guest>,
    /// MACs of members that have gone: frames they sent may still come back. Bounded by the grace time and
    /// by what an operator can remove in it.
    former: BTreeMap<MacAddr, Time>,
}

impl Own {
    pub fn new(config: &Config) -> Own {
        Own {
            host: config.host_id,
            epoch: config.epoch,
            sequence: 0,
            members: Vec::new(),
            addresses: Vec::new(),
            classes: Vec::new(),
            features: 0,
            doublings: 0,
            appended: 0,
            guests: Vec::new(),
            former: BTreeMap::new(),
        }
    }

    /// Every change gets a number of its own; 2^31 changes within an epoch are told apart (RFC 1982).
    pub const fn changed(&mut self) {
        //= docs/arp-plus.md#6.1
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Takes over the members; says what differs.
    pub fn set_members(&mut self, now: Time, mut members: Vec<OwnMember>, out: &mut Outbox) -> Differ {
        if members.len() > limits::MEMBERS_MAX {
            out.counters.add(Counter::LimitMembers, (members.len() - limits::MEMBERS_MAX) as u64);
            members.truncate(limits::MEMBERS_MAX);
        }
        if members == self.members {
            return Differ::Nothing;
        }
        let advertised = |member: &OwnMember| OwnMember { sound: true, joining: false, ..*member };
        if members.iter().map(advertised).eq(self.members.iter().map(advertised)) {
            self.members = members;
            return Differ::Soundness;
        }
        let gone = self.members.iter().map(|member| member.mac);
        self.former.extend(gone.map(|mac| (mac, now)));
        self.former.retain(|mac, _| members.iter().all(|member| member.mac != *mac));
        self.members = members;
        Differ::Mapping
    }

    /// Takes over the addresses; says whether anything differs.
    pub fn set_addresses(&mut self, mut addresses: Vec<IpAddr>, out: &mut Outbox) -> bool {
        if addresses.len() > limits::ADDRESSES_MAX {
            out.counters.add(Counter::LimitAddresses, (addresses.len() - limits::ADDRESSES_MAX) as u64);
            addresses.truncate(limits::ADDRESSES_MAX);
        }
        let differ = addresses != self.addresses;
        self.addresses = addresses;
        differ
    }

    /// Takes over the classes; says whether anything differs.
    pub fn set_classes(&mut self, mut classes: Vec<Class>, out: &mut Outbox) -> bool {
        //= docs/arp-plus.md#6.7
        classes.sort();
        if classes.len() > CLASSES_MAX {
            out.counters.add(Counter::LimitClasses, (classes.len() - CLASSES_MAX) as u64);
            classes.truncate(CLASSES_MAX);
        }
        let differ = classes != self.classes;
        self.classes = classes;
        differ
    }

    /// Announces as many of these guests as fit, the first ones first; says whether that are others than before.
    pub fn fit_guests(&mut self, all: Vec<Guest>, out: &mut Outbox) -> bool {
        //= docs/arp-plus.md#14.2
        let before = std::mem::take(&mut self.guests);
        let mut bytes = Vec::new();
        // What cannot be written is not sent either.
        let written = self.message(Kind::Change).emit(&mut bytes);
        let room = written.map_or(MESSAGE_LEN_MAX, |()| MESSAGE_LEN_MAX - bytes.len());
        let mut room = room.saturating_sub(self.appended);
        let number = all.len();
        for guest in all {
            if self.guests.len() < GUESTS_MAX && guest.tlv_len() <= room {
                room -= guest.tlv_len();
                self.guests.push(guest);
            }
        }
        let differ = before != self.guests;
        if differ {
            out.counters.add(Counter::LimitGuests, (number - self.guests.len()) as u64);
        }
        differ
    }

    pub fn slot_of(&self, mac: MacAddr) -> Option<u8> {
        self.members.iter().find(|member| member.mac == mac).map(|member| member.slot)
    }

    pub fn is_former(&self, mac: MacAddr) -> bool {
        self.former.contains_key(&mac)
    }

    pub fn member(&self, slot: u8) -> Option<&OwnMember> {
        self.members.iter().find(|member| member.slot == slot)
    }

    pub fn live(&self) -> impl Iterator<Item = &OwnMember> {
        self.members.iter().filter(|member| member.up)
    }

    pub fn sweep(&mut self, now: Time, grace: std::time::Duration) {
        self.former.retain(|_, since| now.since(*since) < grace);
    }

    pub fn message(&self, kind: Kind) -> Message {
        let advertised = |member: &OwnMember| Member {
            index: member.slot,
            up: member.up,
            weight_mbit: member.weight_mbit,
            class: member.class,
        };
        //= docs/arp-plus.md#6.2
        let extension = Extension {
            version: VERSION,
            host: self.host,
            epoch: self.epoch,
            sequence: self.sequence,
            members: self.members.iter().map(advertised).collect(),
            classes: self.classes.clone(),
            features: with_interval(self.features, self.doublings),
            guests: self.guests.clone(),
            addresses: self.addresses.iter().skip(1).copied().collect(),
            digest: Some(0), // `emit` computes it
            auth: None,
        };
        Message {
            kind,
            address: self.addresses.first().copied(),
            hardware: self.members.iter().map(|member| member.mac).collect(),
            extension: Some(extension),
        }
    }
}
