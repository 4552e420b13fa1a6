//! What goes into ARP+ and what comes out.

use super::{GuestAddress, Peer, PeerKey, PeerState, SeenGuests, State};
use crate::Time;
use linkbraid_wire::{Class, HostId, MacAddr, Message};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
};

/// One member of the own bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnMember {
    /// The daemon's number of it; stays while other members come and go.
    pub slot: u8,
    /// Its own MAC.
    pub mac: MacAddr,
    /// Whether it takes and gives traffic. It is advertised to peers.
    pub up: bool,
    /// Whether nothing speaks against it ([`crate::inspector::Inspector::member_sound`]). It is not advertised; it
    /// decides where broadcasts are taken in.
    pub sound: bool,
    /// Whether it was added just now and nobody has answered through it. It is not advertised; it is no segment of its own,
    /// for it may be on the switch of the others, and would take in again what they do.
    pub joining: bool,
    /// Its share in Mbit/s.
    pub weight_mbit: u32,
    /// The class that has it for itself; 0: none.
    pub class: u8,
}

/// An input of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<'a> {
    /// Join: the published S0 to S1.
    Start,
    /// The members now, all of them, the primary one first. Handed in at any time, before `Start` too.
    Members(Vec<OwnMember>),
    /// Members (slots) that an earlier machine found on one segment, for each segment. Handed in before the first `Members`, it
    /// holds until a pair was not heard for [`super::Timing::heard`].
    Segments(Vec<Vec<u8>>),
    /// The IP addresses now, all of them. The first one goes into the published part.
    Addresses(Vec<IpAddr>),
    /// The classes now, all of them, in any order. They must keep the rules of the specification's clause 3.9, or
    /// nothing more is sent ([`super::Counter::TxRefused`]).
    Classes(Vec<Class>),
    /// Bytes that are added to each message before it leaves: guests are announced that fit with those.
    Appended(usize),
    /// Whether published-only hosts may be peers. They are not, unless this says so.
    PublishedOnly(bool),
    /// The MACs of plain hosts, as far as they are known: no peer is believed to have one of them unless it speaks from it.
    Taken(BTreeSet<MacAddr>),
    /// A PROBE that left at `asked` was answered.
    Proven {
        /// By that host, in the epoch that is known...
        peer: PeerKey,
        /// ...from that member.
        mac: MacAddr,
        /// When it left.
        asked: Time,
    },
    /// That member of a host has proven by a key that it speaks now. What it had said before was refused.
    Met {
        /// The own member that heard it.
        slot: u8,
        /// Its MAC.
        mac: MacAddr,
        /// Its host.
        host: HostId,
    },
    /// The peers that are probed now, and when a lane of each was proven last in the epoch that is known. Handed in before
    /// `Timeout` where [`super::ArpPlus::follows_probes`].
    Probed(BTreeMap<PeerKey, Option<Time>>),
    /// No lane of that host is proven, so it cannot object ([`Action::Challenge`]).
    NobodyObjects(PeerKey),
    /// What this host is capable of, a bit each ([`linkbraid_wire::FEATURE_MIRROR`]).
    Features(u32),
    /// What is known of guests here, all of it. The addresses that an earlier machine had announced are to be handed in before
    /// ([`Input::FormerGuests`]).
    Guests(&'a SeenGuests),
    /// The own guests that an earlier machine had announced. They stay until [`Input::Guests`] says otherwise.
    FormerGuests(Vec<(GuestAddress, MacAddr)>),
    /// The MACs of the next hops that lead out of the network.
    Gateways(BTreeSet<MacAddr>),
    /// A whole Ethernet frame of EtherType ARP+ came in on a member.
    Frame {
        /// The member.
        slot: u8,
        /// The frame, Ethernet header first.
        bytes: &'a [u8],
        /// Whether its sender is a stranger who was heard before (docs/arp-plus.md, 7.13).
        heard_again: bool,
    },
    /// This host has slept, and its clock has stood still meanwhile: it joins again, as others may have changed.
    Woke,
    /// Leave: broadcast CLEAR and forget all hosts. Drain the actions afterwards.
    Stop,
    /// The time that `poll_timeout` named has come. Too early or once too often does no harm.
    Timeout,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes, a whole Ethernet frame, out of that member as they are.
    Send {
        /// The member.
        slot: u8,
        /// The frame.
        frame: Vec<u8>,
    },
    /// The table is another one: read these of `peers()`.
    Peers(Changed),
    /// Which own members hear each other has changed: read `segments()`.
    Segments,
    /// Other own guests are announced than before: read `announced_guests()`.
    Guests,
    /// A message says that this host has left or started again. Send PROBEs over its lanes: an answer in the epoch that is known
    /// ([`Input::Proven`]) shows that it has not.
    Challenge(PeerKey),
    /// Something worth reporting.
    Event(Event),
}

/// Which hosts of a table changed, or came, or went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// All of them; what is of no host in particular, such as the plan for plain hosts, is to be looked at, too.
    All,
    /// These.
    Peers(Vec<PeerKey>),
}

/// Why an entry changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// First message of this host.
    Joined,
    /// A later mapping within the same epoch.
    Changed,
    /// The host started again.
    Restarted {
        /// The epoch until now.
        old_epoch: u64,
        /// The epoch from now on.
        new_epoch: u64,
    },
    /// It was silent and speaks again.
    HeardAgain,
    /// Nothing heard for a while.
    Silent,
    /// Nothing heard for so long that the entry is deleted.
    Expired,
    /// It said that it leaves.
    Left,
    /// The same machine now goes by another key: it got an identity or another address.
    Replaced,
    /// All its MACs went to another host while it was silent.
    LostMacs,
    /// It made room for another host: the table was full, and it never answered a PROBE.
    Evicted,
    /// It speaks only the published part, and such hosts are not to be peers any more.
    PublishedOnly,
}

/// Somebody claims what is another's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conflict {
    /// Another host claims an IP address of this one.
    OwnAddress {
        /// The address.
        address: IpAddr,
        /// The Ethernet source of the claim.
        by: MacAddr,
    },
    /// Another host claims a MAC of this one.
    OwnMac {
        /// The MAC.
        mac: MacAddr,
        /// The Ethernet source of the claim.
        by: MacAddr,
    },
    /// Another host uses the host id of this one.
    OwnHostId {
        /// The address of the other host.
        address: Option<IpAddr>,
        /// Its primary MAC.
        by: MacAddr,
    },
    /// A host claims the MAC of another live host.
    PeerMac {
        /// The MAC.
        mac: MacAddr,
        /// Who has it.
        owner: PeerKey,
        /// The Ethernet source of the claim.
        by: MacAddr,
    },
    /// A host claims an IP address of another live host.
    PeerAddress {
        /// The address.
        address: IpAddr,
        /// Who has it.
        owner: PeerKey,
        /// The Ethernet source of the claim.
        by: MacAddr,
    },
    /// A host announces a guest whose MAC is that of a member of a host, or of a gateway.
    GuestMac {
        /// The MAC.
        mac: MacAddr,
        /// The primary MAC of the host that announces it.
        by: MacAddr,
    },
    /// A host announces a guest that sends behind this host, too.
    OwnGuest {
        /// The guest's MAC.
        mac: MacAddr,
        /// The primary MAC of the host that announces it.
        by: MacAddr,
    },
    /// Two hosts announce one guest.
    PeerGuest {
        /// The guest's MAC.
        mac: MacAddr,
        /// Who announced it first.
        owner: PeerKey,
        /// The primary MAC of the host that announced it last.
        by: MacAddr,
    },
    /// Two hosts use one host id.
    PeerHostId {
        /// The host id.
        host: HostId,
        /// The address of the one that was heard first.
        owner: Option<IpAddr>,
        /// The address of the other one.
        address: Option<IpAddr>,
        /// Its primary MAC.
        by: MacAddr,
    },
}

impl Conflict {
    /// The same message from all members of a host is one claim.
    pub(super) fn own_host_id(src: MacAddr, message: &Message) -> Conflict {
        Conflict::OwnHostId { address: message.all_addresses().next(), by: primary(src, message) }
    }

    /// A message claims the id of another host than the one it is from.
    pub(super) fn peer_host_id(peer: &Peer, host: HostId, src: MacAddr, message: &Message) -> Conflict {
        let (owner, address) = (peer.address(), message.all_addresses().next());
        Conflict::PeerHostId { host, owner, address, by: primary(src, message) }
    }
}

fn primary(src: MacAddr, message: &Message) -> MacAddr {
    message.hardware.first().copied().unwrap_or(src)
}

impl fmt::Display for Conflict {
    /// One sentence without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Conflict::OwnAddress { address, by } => write!(f, "{by} claims this host's address {address}"),
            Conflict::OwnMac { mac, by } => write!(f, "{by} claims this host's MAC {mac}"),
            Conflict::OwnHostId { address: Some(address), .. } => {
                write!(f, "{address} has the same host id as this host")
            }
            Conflict::OwnHostId { address: None, by } => write!(f, "{by} uses this host's id"),
            Conflict::PeerMac { mac, owner, by } => write!(f, "{by} claims the MAC {mac} of host {owner}"),
            Conflict::PeerAddress { address, owner, by } => {
                write!(f, "{by} claims the address {address} of host {owner}")
            }
            Conflict::GuestMac { mac, by } => {
                write!(f, "{by} announces a guest with the MAC {mac} of a host's member or of a gateway")
            }
            Conflict::OwnGuest { mac, by } => {
                write!(
                    f,
                    "{by} announces a guest with the MAC {mac}, and one with that MAC sends behind this host"
                )
            }
            Conflict::PeerGuest { mac, owner, by } => {
                write!(f, "{by} announces a guest with the MAC {mac}, and host {owner} does, too")
            }
            Conflict::PeerHostId { owner: Some(owner), address: Some(address), .. } if owner != address => {
                write!(f, "{owner} and {address} have the same host id")
            }
            Conflict::PeerHostId { host, by, .. } => write!(f, "{by} uses the id of host {host}"),
        }
    }
}

/// Something worth reporting, with the old, the new and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The protocol went to another state that lasts.
    State {
        /// Until now.
        old: State,
        /// From now on.
        new: State,
    },
    /// An entry of the table.
    Peer {
        /// Which.
        key: PeerKey,
        /// Its first IP address, if it has advertised one.
        address: Option<IpAddr>,
        /// Its primary MAC.
        mac: MacAddr,
        /// Its life until now; none if it was not there.
        old: Option<PeerState>,
        /// Its life from now on; none if it is gone.
        new: Option<PeerState>,
        /// Why.
        reason: Reason,
        /// It has answered a PROBE.
        proven: bool,
    },
    /// Somebody claims what is another's; the frame had no effect, unless it is a peer's address.
    Conflict(Conflict),
    /// A host speaks only the published part, and such hosts are not to be peers; reported once.
    PublishedOnly {
        /// The Ethernet source of its message.
        mac: MacAddr,
    },
    /// The table is full; reported once until there is room again.
    TableFull {
        /// The limit.
        hosts: usize,
    },
}
