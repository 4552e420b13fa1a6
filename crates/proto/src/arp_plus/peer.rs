//! One host of the table.

use super::{Timing, tokens::Tokens};
use crate::{Time, limits};
use linkbraid_wire::{
    Class, FEATURE_GUESTS, FEATURE_LONG_PROBES, FEATURE_MIRROR, Guest, HostId, MacAddr, Message,
    split_interval,
};
use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr, time::Duration};

/// What the table knows a host by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerKey {
    /// Its host id.
    Host(HostId),
    /// Its IP address: a host that speaks only the published part.
    Address(IpAddr),
    /// Its MAC: a plain host. Only the inspector knows such; they are never in the table of ARP+.
    Plain(MacAddr),
}

impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerKey::Host(host) => host.fmt(f),
            PeerKey::Address(address) => address.fmt(f),
            PeerKey::Plain(mac) => mac.fmt(f),
        }
    }
}

/// The life of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerState {
    /// It speaks and is heard, or speaks only the published part and need not repeat itself.
    Alive,
    /// Unheard for a while; kept a little longer.
    Silent,
}

/// One host of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// What it is known by.
    pub key: PeerKey,
    /// Its life.
    pub state: PeerState,
    /// Its epoch; none of a host that speaks only the published part.
    pub epoch: Option<u64>,
    /// The number of its mapping within the epoch.
    pub sequence: Option<u32>,
    /// Hash of its whole mapping ([`Message::mapping_digest`]).
    pub digest: u64,
    /// Its IP addresses, the one of the published part first.
    pub addresses: Vec<IpAddr>,
    /// Its members in its own order, the primary one first; never empty.
    pub members: Vec<PeerMember>,
    /// Its classes, by its own numbers.
    pub classes: Vec<Class>,
    /// What it is capable of, a bit each; unknown bits say nothing.
    pub features: u32,
    /// It announces each of its members every 2^this seconds.
    pub doublings: u8,
    /// The guests that it announces. Which of them are believed is said by [`super::ArpPlus::located_guests`].
    pub guests: Vec<Guest>,
    /// MACs it had lately: neighbours may still send to them.
    pub aliases: Vec<Alias>,
    /// When it was last heard.
    pub last_heard: Time,
    /// A PROBE was answered by it in this epoch: nobody else knows what that brought back.
    pub answers: bool,
    /// When it was asked whether it is still there; of a published-only host.
    pub asked_at: Time,
    /// Since when it is probed, and when a lane of it was proven last; of a host that announces itself seldom.
    pub probed: Option<Time>,
    /// See [`Peer::probed`].
    pub proven_at: Option<Time>,
    /// How many changes of its mapping are taken.
    pub changes: Tokens,
}

/// One member of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerMember {
    /// The peer's own number of it; its place in the message where the peer sent none.
    pub index: u8,
    /// Its MAC.
    pub mac: MacAddr,
    /// Whether the peer takes traffic there.
    pub up: bool,
    /// Its share in Mbit/s, if known.
    pub weight_mbit: Option<u32>,
    /// The class that has it for itself, by the peer's number; 0: none. [`Peer::class_of`] gives its name.
    pub class: u8,
    /// ARP+ has come from this very MAC. Before that the MAC is only talk of another one, and may be anybody's.
    pub spoke: bool,
    /// The own members (slots) that heard it, with the time; pairs unheard for long are taken out.
    pub heard: Vec<(u8, Time)>,
}

/// What traffic a peer's member is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerClass<'a> {
    /// All that is in no class.
    Default,
    /// A class of that name.
    Named(&'a str),
    /// A class of which the peer did not advertise the name. Not for the default class, all the same.
    Unknown,
}

/// A former MAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alias {
    /// The MAC.
    pub mac: MacAddr,
    /// It leads to the host until then.
    pub until: Time,
}

impl Peer {
    /// What the sender of a message is known by; none if it sent neither id nor address.
    pub fn key_of(message: &Message) -> Option<PeerKey> {
        //= docs/arp-plus.md#7.1
        match &message.extension {
            Some(extension) => Some(PeerKey::Host(extension.host)),
            None => message.address.map(PeerKey::Address),
        }
    }

    /// A fresh entry from a message.
    pub(super) fn new(now: Time, key: PeerKey, message: &Message) -> Peer {
        let extension = message.extension.as_ref();
        let sent = extension.map_or(0, |extension| extension.features);
        let (features, doublings) = split_interval(sent);
        let member = |(place, mac): (usize, &MacAddr)| {
            let sent = extension.and_then(|extension| extension.members.get(place));
            PeerMember {
                index: sent.map_or(place as u8, |member| member.index),
                mac: *mac,
                up: sent.is_none_or(|member| member.up),
                weight_mbit: sent.map(|member| member.weight_mbit),
                class: sent.map_or(0, |member| member.class),
                spoke: false,
                heard: Vec::new(),
            }
        };
        Peer {
            key,
            state: PeerState::Alive,
            epoch: extension.map(|extension| extension.epoch),
            sequence: extension.map(|extension| extension.sequence),
            digest: message.mapping_digest(),
            addresses: message.all_addresses().collect(),
            members: message.hardware.iter().enumerate().map(member).collect(),
            classes: extension.map(|extension| extension.classes.clone()).unwrap_or_default(),
            features,
            doublings,
            guests: extension.map(|extension| extension.guests.clone()).unwrap_or_default(),
            aliases: Vec::new(),
            last_heard: now,
            answers: false,
            asked_at: Time::ZERO,
            probed: None,
            proven_at: None,
            changes: Tokens::default(),
        }
    }

    /// The MAC that neighbours resolve it to.
    pub fn mac(&self) -> MacAddr {
        self.members.first().map_or(MacAddr::ZERO, |member| member.mac)
    }

    /// The IP address of the published part, or the first one sent.
    pub fn address(&self) -> Option<IpAddr> {
        self.addresses.first().copied()
    }

    /// Whether it speaks more than the published part.
    pub const fn is_extended(&self) -> bool {
        self.epoch.is_some()
    }

    /// Its primary MAC, if nothing was heard from it: the peer may be known by a member that is down or out of hearing.
    pub fn silent_primary(&self) -> Option<MacAddr> {
        self.members.first().filter(|member| !member.spoke).map(|member| member.mac)
    }

    /// Whether ARP+ has come from that MAC, which is a member's.
    pub(super) fn spoke_from(&self, mac: MacAddr) -> bool {
        self.member(mac).is_some_and(|member| member.spoke)
    }

    /// The member with that MAC.
    pub fn member(&self, mac: MacAddr) -> Option<&PeerMember> {
        self.members.iter().find(|member| member.mac == mac)
    }

    /// What traffic one of its members is for.
    pub fn class_of(&self, member: &PeerMember) -> PeerClass<'_> {
        //= docs/arp-plus.md#3.11
        if member.class == 0 {
            return PeerClass::Default;
        }
        let class = self.classes.iter().find(|class| class.number == member.class);
        class.map_or(PeerClass::Unknown, |class| PeerClass::Named(&class.name))
    }

    /// Its class of that name.
    pub fn class_named(&self, name: &str) -> Option<&Class> {
        //= docs/arp-plus.md#13.1
        self.classes.iter().find(|class| class.name == name)
    }

    /// Whether it takes in mirrored frames.
    pub const fn takes_mirrored(&self) -> bool {
        self.features & FEATURE_MIRROR != 0
    }

    /// Whether it gives the frames of guests their MACs back.
    pub const fn takes_guests(&self) -> bool {
        self.features & FEATURE_GUESTS != 0
    }

    /// Whether it reads PROBEs of any length.
    pub const fn takes_long_probes(&self) -> bool {
        self.features & FEATURE_LONG_PROBES != 0
    }

    /// The guests that it announces, if it can be sent their frames.
    pub(super) fn announced_guests(&self) -> &[Guest] {
        //= docs/arp-plus.md#14.3
        if self.takes_guests() { &self.guests } else { &[] }
    }

    /// Whether the own member heard the peer's member lately.
    pub fn heard(&self, slot: u8, index: u8) -> bool {
        self.members.iter().any(|member| member.index == index && member.heard_on(slot))
    }

    /// Whether the own member heard any of the peer's lately.
    pub fn heard_on(&self, slot: u8) -> bool {
        self.members.iter().any(|member| member.heard_on(slot))
    }

    /// Whether the own member heard one lately that is live and in no class: one that broadcasts of the default class leave by.
    pub(super) fn rest_heard_on(&self, slot: u8) -> bool {
        let rest = |member: &&PeerMember| member.up && member.class == 0;
        self.members.iter().filter(rest).any(|member| member.heard_on(slot))
    }

    /// Notes that a message came from `src` on `slot`; says whether that pair is new.
    pub(super) fn hear(&mut self, now: Time, slot: u8, src: MacAddr) -> bool {
        //= docs/arp-plus.md#7.4
        self.last_heard = now;
        let Some(member) = self.members.iter_mut().find(|member| member.mac == src) else { return false };
        match member.heard.iter_mut().find(|(at, _)| *at == slot) {
            Some((_, when)) => {
                *when = now;
                false
            }
            None => {
                member.heard.push((slot, now));
                member.heard.sort_unstable();
                true
            }
        }
    }

    /// Keeps what an earlier entry of the same host knew: heard pairs of MACs that stay, MACs that go as aliases, and those that
    /// lead to it although it had given them up.
    /// Returns how many aliases there was no room for.
    pub(super) fn inherit(&mut self, now: Time, old: Peer, timing: &Timing) -> usize {
        //= docs/arp-plus.md#7.6
        let until = now + timing.alias;
        let spoken = old.members.iter().filter(|member| member.spoke);
        let former = spoken.map(|member| Alias { mac: member.mac, until });
        let mut aliases: Vec<Alias> = former.chain(old.aliases.iter().copied()).collect();
        aliases.retain(|alias| self.member(alias.mac).is_none());
        let too_many = aliases.len().saturating_sub(limits::ALIASES_MAX);
        aliases.truncate(limits::ALIASES_MAX);
        self.aliases = aliases;
        for member in &mut self.members {
            if let Some(before) = old.members.iter().find(|before| before.mac == member.mac) {
                member.heard.clone_from(&before.heard);
                member.spoke = before.spoke;
            }
            // A former MAC of the host has led to it ever since ARP+ came from it.
            member.spoke |= old.aliases.iter().any(|alias| alias.mac == member.mac);
        }
        self.changes = old.changes;
        (self.probed, self.proven_at, self.asked_at) = (old.probed, old.proven_at, old.asked_at);
        if self.epoch == old.epoch {
            self.answers = old.answers;
        }
        too_many
    }

    /// Whether a later mapping of a host says nothing new to those who use it: only how often it speaks may be another.
    pub(super) fn is_used_as(&self, old: &Peer) -> bool {
        let told =
            |member: &PeerMember| (member.index, member.mac, member.up, member.weight_mbit, member.class);
        (old.state, &self.addresses, &self.classes, &self.guests, self.features)
            == (PeerState::Alive, &old.addresses, &old.classes, &old.guests, old.features)
            && self.members.iter().map(told).eq(old.members.iter().map(told))
    }

    /// How long it may say nothing before it is silent, and before it is deleted; from when on that counts.
    pub(super) fn patience(&self, timing: &Timing) -> (Duration, Duration, Time) {
        let heard = self.last_heard.max(self.proven_at.unwrap_or(Time::ZERO));
        //= docs/arp-plus.md#5.15
        if let Some(since) = self.probed.filter(|_| self.doublings > 0) {
            return (timing.silent, timing.expire, heard.max(since));
        }
        let members = self.members.iter().filter(|member| !member.heard.is_empty()).count();
        let slower = timing.silent * (1 << self.doublings) / u32::try_from(members).unwrap_or(1).max(1);
        let most = if self.answers { Duration::MAX } else { limits::UNPROVEN_SILENT };
        let silent = slower.min(most).max(timing.silent);
        (silent, silent + timing.expire.saturating_sub(timing.silent), heard)
    }

    /// How long a pair counts as heard.
    pub(super) fn pair_lives(&self, timing: &Timing) -> Duration {
        timing.heard * (1 << self.doublings)
    }

    /// Who hears whom may be otherwise now: what is not heard again soon counts no more.
    pub(super) fn hear_again(&mut self, now: Time, timing: &Timing) {
        let oldest = now.minus(self.pair_lives(timing).saturating_sub(timing.heard));
        for (_, when) in self.members.iter_mut().flat_map(|member| &mut member.heard) {
            *when = (*when).min(oldest);
        }
    }

    /// That much of the time that has passed since it was heard does not count.
    pub(super) fn did_not_listen(&mut self, now: Time, late: Duration) {
        let later = |when: &mut Time| *when = (*when + late).min(now);
        if let Some(probed) = &mut self.probed {
            // Proofs are told again and again as they came.
            *probed = self.last_heard.max(self.proven_at.unwrap_or(Time::ZERO)).max(*probed);
            later(probed);
        }
        later(&mut self.last_heard);
        self.members.iter_mut().flat_map(|member| &mut member.heard).for_each(|(_, when)| later(when));
    }

    /// The pair that heard it last: the own slot and the peer's MAC.
    pub(super) fn last_heard_at(&self) -> Option<(u8, MacAddr)> {
        let pairs =
            self.members.iter().flat_map(|member| member.heard.iter().map(|heard| (member.mac, *heard)));
        pairs.max_by_key(|(_, (_, when))| *when).map(|(mac, (slot, _))| (slot, mac))
    }

    /// Drops pairs that `keep` does not want; says whether there were any.
    pub(super) fn retain_heard(&mut self, keep: impl Fn(u8, Time) -> bool) -> bool {
        let mut dropped = false;
        for member in &mut self.members {
            let before = member.heard.len();
            member.heard.retain(|(slot, when)| keep(*slot, *when));
            dropped |= member.heard.len() != before;
        }
        dropped
    }
}

impl PeerMember {
    /// Whether the own member heard this one lately.
    pub fn heard_on(&self, slot: u8) -> bool {
        self.heard.iter().any(|(at, _)| *at == slot)
    }
}
