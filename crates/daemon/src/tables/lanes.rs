//! The lanes of a plan, from the members at both ends and what is known of the way between them.

use super::Alive;
use crate::{bond::Member, state::SavedClass};
use linkbraid_api as api;
use linkbraid_dataplane::{self as dataplane, LANES_MAX, Plan, Policy};
use linkbraid_proto::{
    arp_plus::Peer,
    plan::{ClassLanes, ClassTerms, Lane, OwnEnd, PlanMember, class_lanes, peer_ends, rest_lanes},
};
use linkbraid_wire::MacAddr;

/// What a peer's member is taken for that speaks only the published part, in Mbit/s.
const WEIGHT_MBIT_UNTOLD: u32 = 1000;
/// All other traffic.
pub(crate) const REST: u8 = 0;

/// The own side of all plans.
#[derive(Debug, Clone)]
pub(crate) struct OwnSide {
    /// The members as plans to peers see them.
    pub ends: Vec<OwnEnd>,
    pub classes: Vec<OwnClass>,
    /// How all other traffic spreads.
    pub policy: api::Policy,
}

/// An own class.
#[derive(Debug, Clone)]
pub(crate) struct OwnClass {
    pub name: String,
    pub terms: ClassTerms,
    pub policy: api::Policy,
}

impl OwnSide {
    pub(crate) fn new(members: &[Member], classes: &[SavedClass], policy: api::Policy) -> Self {
        let class = |class: &SavedClass| OwnClass {
            name: class.name.clone(),
            terms: ClassTerms {
                number: class.number,
                has_members: class.has_members,
                block: class.settings.fallback == api::Fallback::Block,
                lends: class.settings.borrow == api::Borrow::Idle,
            },
            policy: class.settings.policy,
        };
        let end = |member: &Member| own_end(member, member.alive && !member.leaving);
        Self { ends: members.iter().map(end).collect(), classes: classes.iter().map(class).collect(), policy }
    }

    /// All other traffic, then every class.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u8> + '_ {
        std::iter::once(REST).chain(self.classes.iter().map(|class| class.terms.number))
    }

    fn lanes(
        &self,
        class: u8,
        ends: &[OwnEnd],
        peer: Option<&[linkbraid_proto::plan::PeerEnd]>,
        heard: impl Fn(u8, u8) -> bool,
    ) -> ClassLanes {
        match self.classes.iter().find(|own| own.terms.number == class) {
            Some(own) => class_lanes(&own.terms, ends, peer, heard),
            None => {
                let terms: Vec<ClassTerms> = self.classes.iter().map(|class| class.terms).collect();
                rest_lanes(ends, peer, &terms, heard)
            }
        }
    }

    /// Those lanes as the data path has them. Mirrored is what the other end can put together again.
    pub(super) fn to_table(&self, class: u8, lanes: &[Lane], mirrors: bool) -> Plan {
        let own = self.classes.iter().find(|own| own.terms.number == class);
        let policy = match own.map_or(self.policy, |own| own.policy) {
            api::Policy::Spread => Policy::Spread,
            api::Policy::Flow => Policy::Flow,
            api::Policy::Mirror if mirrors => Policy::Mirror,
            api::Policy::ActiveBackup | api::Policy::Mirror => Policy::ActiveBackup,
        };
        let lanes = lanes.iter().take(LANES_MAX).map(|lane| dataplane::Lane {
            slot: lane.slot,
            peer_mac: lane.peer_mac.map(|mac| mac.0),
            weight: lane.weight,
            class: lane.class,
        });
        Plan { lanes: lanes.collect(), policy, shares: own.is_some_and(|own| !own.terms.block) }
    }
}

fn own_end(member: &Member, up: bool) -> OwnEnd {
    let plan = PlanMember { slot: member.slot, weight_mbit: member.weight_mbit(), up };
    OwnEnd { member: plan, class: member.class }
}

/// The lanes of a class to plain hosts, or to those of the segment with these slots.
pub(crate) fn plain_lanes(own: &OwnSide, members: &[Member], slots: Option<&[u8]>, class: u8) -> ClassLanes {
    let fit = |member: &Member| {
        member.live() && member.sound && slots.is_none_or(|slots| slots.contains(&member.slot))
    };
    let ends: Vec<OwnEnd> = members.iter().map(|member| own_end(member, fit(member))).collect();
    own.lanes(class, &ends, None, |_, _| true)
}

/// The lanes of a class to a peer.
pub(crate) fn peer_lanes(own: &OwnSide, peer: &Peer, alive: &impl Alive, class: u8) -> ClassLanes {
    let number_of =
        |name: &str| own.classes.iter().find(|class| class.name == name).map(|class| class.terms.number);
    let theirs = peer_ends(peer, number_of, WEIGHT_MBIT_UNTOLD);
    own.lanes(class, &own.ends, Some(&theirs), |slot, index| alive.usable(peer, slot, index))
}

/// The peer's number of the member that a lane to it ends at.
pub(crate) fn lane_index(peer: &Peer, lane: &Lane) -> Option<u8> {
    peer.members.iter().find(|member| Some(member.mac) == lane.peer_mac).map(|member| member.index)
}

/// Every MAC that leads to the peer: its members' and those it had lately.
pub(super) fn all_macs(peer: &Peer) -> impl Iterator<Item = MacAddr> + '_ {
    peer.members.iter().map(|member| member.mac).chain(peer.aliases.iter().map(|alias| alias.mac))
}
