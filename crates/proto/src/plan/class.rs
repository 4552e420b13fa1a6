//! Whose members the lanes of a class join, and those of the default class.
//!
//! A class takes members that both ends have set apart for it; where an end has none, those of that end's rest. The rest
//! keeps off all members that are set apart, by a peer for a class that we do not know, too. None of that may cut a host
//! off: unless its owner wants a class blocked, pairs of members are tried in a fixed order, from those that are meant
//! for it to any at all, and the first kind counts of which a pair is usable.

use super::{Lane, PlanMember, PlanPeerMember, plan};
use crate::{
    arp_plus::{Peer, PeerClass, PeerMember},
    limits,
};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// An own member, and what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnEnd {
    /// The member.
    pub member: PlanMember,
    /// The class that has it for itself; 0: none.
    pub class: u8,
}

/// What traffic a peer's member is for, in the own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// All that is in no class.
    Default,
    /// The class of the same name as this one of ours.
    Class(u8),
    /// A class that we do not have, or of unknown name.
    Unknown,
}

/// A member of the peer, and what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerEnd {
    /// The member.
    pub member: PlanPeerMember,
    /// What traffic it is for.
    pub purpose: Purpose,
    /// Whether other traffic may borrow it.
    pub lent: bool,
}

/// An own class, as far as lanes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassTerms {
    /// Its number, from 1.
    pub number: u8,
    /// Whether it was given members at all, live or not, here or not.
    pub has_members: bool,
    /// Whether it would rather not be sent than use the members of the default class.
    pub block: bool,
    /// Whether the default class may borrow its members.
    pub lends: bool,
}

/// By whose own members the lanes leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// By those of the class (of the default class: by those in no class).
    Own,
    /// By others, because those can't or are not there.
    Shared,
    /// By none: the class is to be blocked rather than share.
    Blocked,
}

/// The lanes of a class, or of the default class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassLanes {
    /// Those it has for itself ascend by slot, then by the peer's index; then come borrowed ones, class by class.
    pub lanes: Vec<Lane>,
    /// Where they come from.
    pub source: Source,
}

/// The members of a peer for [`default_lanes`] and [`class_lanes`]. `number_of` gives the own number of the class of that name,
/// `weight_unknown` is for members whose weight the peer did not advertise, in Mbit/s.
pub fn peer_ends(peer: &Peer, number_of: impl Fn(&str) -> Option<u8>, weight_unknown: u32) -> Vec<PeerEnd> {
    let end = |member: &PeerMember| {
        //= docs/arp-plus.md#13.1
        let (purpose, lent) = match peer.class_of(member) {
            PeerClass::Default => (Purpose::Default, false),
            PeerClass::Named(name) => (
                number_of(name).map_or(Purpose::Unknown, Purpose::Class),
                peer.class_named(name).is_some_and(|class| class.may_borrow),
            ),
            PeerClass::Unknown => (Purpose::Unknown, false),
        };
        let member = PlanPeerMember {
            index: member.index,
            mac: member.mac,
            weight_mbit: member.weight_mbit.unwrap_or(weight_unknown),
            // What nothing was heard from may be anybody's.
            up: member.up && member.spoke,
        };
        PeerEnd { member, purpose, lent }
    };
    peer.members.iter().map(end).collect()
}

/// Members of one end by what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// For the class in question.
    Class,
    /// For no class.
    Default,
    /// All.
    Any,
}

/// What the default class tries, in this order: own members, peer's members.
const REST_TRIES: [(Of, Of); 4] =
    [(Of::Default, Of::Default), (Of::Default, Of::Any), (Of::Any, Of::Default), (Of::Any, Of::Any)];

/// What a class tries, in this order; the kinds that other classes' members belong to come last.
const CLASS_TRIES: [(Of, Of); 9] = [
    (Of::Class, Of::Class),
    (Of::Class, Of::Default),
    (Of::Default, Of::Class),
    (Of::Default, Of::Default),
    (Of::Class, Of::Any),
    (Of::Default, Of::Any),
    (Of::Any, Of::Class),
    (Of::Any, Of::Default),
    (Of::Any, Of::Any),
];

/// The plan of all that is in no class, towards a peer or, with no peer, towards plain hosts. `classes` are all own ones;
/// what they lend comes after the lanes of the default class itself and takes no weight off them.
///
/// `heard` says whether a pair (slot, peer's index) is usable. Without classes at either end this is [`plan`].
pub fn default_lanes(
    own: &[OwnEnd],
    peer: Option<&[PeerEnd]>,
    classes: &[ClassTerms],
    heard: impl Fn(u8, u8) -> bool,
) -> ClassLanes {
    let ends = Ends::new(own, peer, &heard);
    let (mut lanes, source) = ends.first(0, &REST_TRIES).unwrap_or((Vec::new(), Source::Own));
    let mut lenders: Vec<u8> = classes.iter().filter(|class| class.lends).map(|class| class.number).collect();
    lenders.sort_unstable();
    lenders.into_iter().for_each(|class| ends.borrow(class, &mut lanes));
    ClassLanes { lanes, source }
}

/// The plan of a class, towards a peer or, with no peer, towards plain hosts. `heard` as for [`default_lanes`].
pub fn class_lanes(
    class: &ClassTerms,
    own: &[OwnEnd],
    peer: Option<&[PeerEnd]>,
    heard: impl Fn(u8, u8) -> bool,
) -> ClassLanes {
    //= docs/arp-plus.md#13.5
    let for_it = |end: &PeerEnd| end.purpose == Purpose::Class(class.number);
    let own_only = class.block && class.has_members;
    let theirs_only = class.block && peer.is_some_and(|peer| peer.iter().any(for_it));
    let wanted =
        |(own, peer): &(Of, Of)| (!own_only || *own == Of::Class) && (!theirs_only || *peer == Of::Class);
    let tries: Vec<(Of, Of)> = CLASS_TRIES.into_iter().filter(wanted).collect();
    let nothing = (Vec::new(), if class.block { Source::Blocked } else { Source::Shared });
    let (lanes, source) = Ends::new(own, peer, &heard).first(class.number, &tries).unwrap_or(nothing);
    ClassLanes { lanes, source }
}

/// What is live at both ends, and which pairs of it are usable.
struct Ends<'a, H> {
    own: Vec<OwnEnd>,
    /// None: plain hosts.
    peer: Option<Vec<PeerEnd>>,
    /// The same before the failed ones were left out.
    all_of_peer: &'a [PeerEnd],
    heard: &'a H,
}

impl<'a, H: Fn(u8, u8) -> bool> Ends<'a, H> {
    fn new(own: &[OwnEnd], peer: Option<&'a [PeerEnd]>, heard: &'a H) -> Self {
        let peer = peer.filter(|peer| !peer.is_empty());
        let all_of_peer = peer.unwrap_or_default();
        // As in `plan`: a peer whose members all failed is tried all the same.
        let any_up = all_of_peer.iter().any(|end| end.member.up);
        let live = |peer: &[PeerEnd]| peer.iter().copied().filter(|end| end.member.up || !any_up).collect();
        let own = own.iter().copied().filter(|end| end.member.up).collect();
        Ends { own, peer: peer.map(live), all_of_peer, heard }
    }

    fn own(&self, class: u8, of: Of) -> Vec<PlanMember> {
        let wanted = |end: &&OwnEnd| match of {
            Of::Class => end.class == class,
            Of::Default => end.class == 0,
            Of::Any => true,
        };
        self.own.iter().filter(wanted).map(|end| end.member).collect()
    }

    fn peer(&self, class: u8, of: Of) -> Option<Vec<PlanPeerMember>> {
        let wanted = |end: &&PeerEnd| match of {
            Of::Class => end.purpose == Purpose::Class(class),
            Of::Default => end.purpose == Purpose::Default,
            Of::Any => true,
        };
        Some(self.peer.as_ref()?.iter().filter(wanted).map(|end| end.member).collect())
    }

    fn usable(&self, own: &[PlanMember], peer: Option<&[PlanPeerMember]>) -> bool {
        //= docs/arp-plus.md#13.7
        let pair = |own: &PlanMember| {
            peer.is_none_or(|peer| peer.iter().any(|theirs| (self.heard)(own.slot, theirs.index)))
        };
        own.iter().any(pair)
    }

    /// The lanes of the first kind of pairs of which one is usable, else of the first kind of which there is one.
    fn first(&self, class: u8, tries: &[(Of, Of)]) -> Option<(Vec<Lane>, Source)> {
        //= docs/arp-plus.md#13.2
        //= docs/arp-plus.md#13.3
        let sides = |(of, theirs): &(Of, Of)| {
            let (own, peer) = (self.own(class, *of), self.peer(class, *theirs));
            let there = !own.is_empty() && peer.as_ref().is_none_or(|peer| !peer.is_empty());
            let meant = if class == 0 { Of::Default } else { Of::Class };
            let source = if *of == meant { Source::Own } else { Source::Shared };
            there.then_some((own, peer, source))
        };
        let there: Vec<_> = tries.iter().filter_map(sides).collect();
        //= docs/arp-plus.md#13.4
        let usable = there.iter().find(|(own, peer, _)| self.usable(own, peer.as_deref()));
        let (own, peer, source) = usable.or_else(|| there.first())?;
        Some((plan(own, peer.as_deref(), self.heard), *source))
    }

    /// Adds what that class lends to the lanes of the default class, as far as there is room; the thinnest lanes stay away.
    fn borrow(&self, class: u8, lanes: &mut Vec<Lane>) {
        //= docs/arp-plus.md#13.6
        let own = self.own(class, Of::Class);
        let peer = self.lent_by_peer(class);
        if !self.usable(&own, peer.as_deref()) {
            return;
        }
        let mut more = plan(&own, peer.as_deref(), self.heard);
        // Where nothing else lives, the default class has them already.
        let has =
            |lane: &Lane| lanes.iter().any(|had| (had.slot, had.peer_mac) == (lane.slot, lane.peer_mac));
        more.retain(|lane| !has(lane));
        let room = limits::LANES_MAX.saturating_sub(lanes.len());
        let mut ranked: Vec<(usize, Lane)> = more.into_iter().enumerate().collect();
        ranked.sort_by_key(|(_, lane)| std::cmp::Reverse(lane.weight));
        ranked.truncate(room);
        ranked.sort_by_key(|(at, _)| *at);
        lanes.extend(ranked.into_iter().map(|(_, lane)| Lane { class, ..lane }));
    }

    /// Members of the peer that lanes borrowed from a class of ours may end at: those that the peer lends of the class of
    /// the same name, or, if it has no member for that, those of its rest.
    fn lent_by_peer(&self, class: u8) -> Option<Vec<PlanPeerMember>> {
        let for_it = |end: &PeerEnd| end.purpose == Purpose::Class(class);
        if !self.all_of_peer.iter().any(for_it) {
            return self.peer(class, Of::Default);
        }
        let lent = |end: &&PeerEnd| for_it(end) && end.lent;
        Some(self.peer.as_ref()?.iter().filter(lent).map(|end| end.member).collect())
    }
}
