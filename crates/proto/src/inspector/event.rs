//! What goes into the inspector and what comes out.

use super::{LaneState, MemberState, Timing, Usage};
use crate::{
    Time,
    arp_plus::{Changed, Peer, PeerKey},
};
use linkbraid_wire::MacAddr;
use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr, time::Duration};

/// What is known of an own member, from netlink events and from polls alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberReport {
    /// The daemon's number of it; stays while other members come and go.
    pub slot: u8,
    /// Its own MAC.
    pub mac: MacAddr,
    /// Whether it is set up.
    pub admin_up: bool,
    /// Whether it has carrier.
    pub carrier: bool,
    /// Its speed in Mbit/s, if known.
    pub speed_mbit: Option<u32>,
    /// Whether it sends and receives at once, if known.
    pub full_duplex: Option<bool>,
}

/// What is known of a peer from ARP+.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerReport {
    /// What it is known by.
    pub key: PeerKey,
    /// Its epoch, if it advertised one.
    pub epoch: Option<u64>,
    /// Whether it may know probes: it speaks more than the published part.
    pub probes: bool,
    /// Whether it reads PROBEs of any length.
    pub long_probes: bool,
    /// Its members.
    pub members: Vec<PeerMemberReport>,
}

/// A member of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerMemberReport {
    /// The peer's number of it.
    pub index: u8,
    /// Its MAC.
    pub mac: MacAddr,
    /// Whether the peer takes traffic there.
    pub up: bool,
    /// The own members (slots) that heard it lately.
    pub heard: Vec<u8>,
}

impl From<&Peer> for PeerReport {
    fn from(peer: &Peer) -> PeerReport {
        let member = |member: &crate::arp_plus::PeerMember| PeerMemberReport {
            index: member.index,
            mac: member.mac,
            up: member.up,
            heard: member.heard.iter().map(|(slot, _)| *slot).collect(),
        };
        PeerReport {
            key: peer.key,
            epoch: peer.epoch,
            probes: peer.is_extended(),
            long_probes: peer.takes_long_probes(),
            members: peer.members.iter().map(member).collect(),
        }
    }
}

/// A plain host that is to be probed. Its lanes have the index 0, its key is [`PeerKey::Plain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlainReport {
    /// Its MAC.
    pub mac: MacAddr,
    /// An address that it answers for: to ARP, or to neighbour solicitations.
    pub ip: IpAddr,
}

/// One (own member, peer's member) pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaneId {
    /// The peer.
    pub peer: PeerKey,
    /// The own member.
    pub slot: u8,
    /// The peer's number of its member.
    pub index: u8,
}

impl fmt::Display for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}-{}", self.peer, self.slot, self.index)
    }
}

/// A lane of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneUse {
    /// The lane.
    pub lane: LaneId,
    /// How its plan uses it; not [`Usage::Unused`].
    pub usage: Usage,
}

/// An input of the inspector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<'a> {
    /// The own members now, all of them.
    Members(Vec<MemberReport>),
    /// The peers now, all of them; handed in again whenever `arp_plus::Action::Peers` of all comes.
    Peers(Vec<PeerReport>),
    /// What one peer is now; none: it is gone. Handed in whenever `arp_plus::Action::Peers` names it.
    Peer(PeerKey, Option<PeerReport>),
    /// The plain hosts that are to be probed now, all of them: at most [`crate::limits::PLAIN_PROBED_MAX`] that traffic
    /// goes to. One that is left out is forgotten.
    Plain(Vec<PlainReport>),
    /// Something is sent to plain hosts, and they have fallen silent: are they still there, over each member?
    PlainStalled,
    /// The own IP address for the published part of probes.
    Address(Option<IpAddr>),
    /// What lanes are to carry now, in bytes without the Ethernet header.
    Mtu(u32),
    /// The lanes of all plans now.
    Plan(Vec<LaneUse>),
    /// The lanes of the plan to one peer or plain host now.
    PlanOf(PeerKey, Vec<LaneUse>),
    /// Other settings; they are bounded as [`Timing::bounded`] says.
    Timing(Timing),
    /// A frame that [`linkbraid_wire::is_probe`] or [`linkbraid_wire::is_plain_answer`] recognises came in on a
    /// member. Hand in all that wait before a `Timeout`: what is in a queue has arrived.
    Frame {
        /// The member.
        slot: u8,
        /// The frame, Ethernet header first.
        bytes: &'a [u8],
    },
    /// This host resets the link of that member (slot), or is about to: it sets its MTU, or has put it into the bond. What
    /// fails of it within [`crate::limits::RESET_SETTLES`] is no failure of the link.
    Reset(u8),
    /// This host has slept, and its clock has stood still meanwhile.
    Woke,
    /// The time that `poll_timeout` named has come. Too early or once too often does no harm.
    Timeout,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Verdicts are others: make plans again, all of them if a member changed, or what its lanes say of it. Comes before
    /// everything else.
    Verdicts(Changed),
    /// Send these bytes, a whole Ethernet frame, out of that member as they are.
    Send {
        /// The member.
        slot: u8,
        /// The frame.
        frame: Vec<u8>,
    },
    /// A peer has answered a PROBE that left at `asked`: the first one on a lane, in an epoch, or after
    /// [`super::Inspector::challenge`].
    Proven {
        /// The peer.
        peer: PeerKey,
        /// The MAC of its member.
        mac: MacAddr,
        /// When the PROBE left.
        asked: Time,
    },
    /// Something worth reporting.
    Event(Event),
}

/// Whether something can carry traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Not judged: what is heard decides.
    Unknown,
    /// Proven.
    Alive,
    /// Not proven any more, but nothing better is left: keep using it.
    Suspect,
    /// Not to be used.
    #[serde(rename = "dead")]
    Failed,
}

impl Verdict {
    /// Whether a plan may use the lane. This is how verdicts and ARP+'s `heard` go together:
    ///
    /// ```text
    /// plan(own, peer, |slot, index| inspector.lane_alive(&key, slot, index).usable(peer.heard(slot, index)))
    /// ```
    pub const fn usable(self, heard: bool) -> bool {
        match self {
            Verdict::Unknown => heard,
            Verdict::Alive | Verdict::Suspect => true,
            Verdict::Failed => false,
        }
    }
}

/// Why a member changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberReason {
    /// It has joined the bond.
    Joined,
    /// It has left the bond.
    Left,
    /// No carrier.
    NoCarrier,
    /// It was set down.
    SetDown,
    /// Carrier is back: it waits, longer if it flaps.
    CarrierBack,
    /// It has waited long enough.
    Waited,
    /// It has not waited long enough, but no other member is up.
    OnlyOne,
}

/// Why a lane changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneReason {
    /// It was met for the first time.
    Met,
    /// Enough probes were answered.
    Admitted,
    /// A suspect was proven again.
    ProvenAgain,
    /// What was sent before it was given up has been answered: it is slow, and not lost.
    Slow,
    /// Probes were answered for the first time.
    Answered,
    /// No probe was answered within the detection time.
    NoAnswer,
    /// The peer says that it is lost: its probes arrive, but not ours.
    PeerLost,
    /// No lane of the peer is answered, this one no less than others: keep using it.
    NoneAnswers,
    /// The own member is down.
    MemberDown,
    /// The peer says that its member is down.
    PeerMemberDown,
    /// Both members are up again.
    MembersUp,
}

/// Something worth reporting, with the old, the new, the reason and how long it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A member.
    Member {
        /// Which.
        slot: u8,
        /// Until now; none if it has just joined.
        old: Option<MemberState>,
        /// From now on; none if it has left.
        new: Option<MemberState>,
        /// Why.
        reason: MemberReason,
        /// For a member that is up: since its carrier came back.
        took: Duration,
    },
    /// A lane began or ended to be usable, or is a suspect.
    Lane {
        /// Which.
        lane: LaneId,
        /// Until now.
        old: LaneState,
        /// From now on.
        new: LaneState,
        /// Why.
        reason: LaneReason,
        /// Lost: since its last proof. Admitted: since the first probe was answered.
        took: Duration,
    },
    /// A lane that is proven does not carry frames as long as the MTU allows, or does again.
    Length {
        /// Which.
        lane: LaneId,
        /// The MTU.
        mtu: u32,
        /// Whether it does.
        carries: bool,
    },
    /// A member's speed, in Mbit/s, is another one: make plans again.
    Speed {
        /// Which.
        slot: u8,
        /// Until now.
        old: Option<u32>,
        /// From now on.
        new: Option<u32>,
    },
    /// A member sends and receives in turn: every collision costs, and a wrong setting at one end is the usual cause.
    HalfDuplex {
        /// Which.
        slot: u8,
    },
}
