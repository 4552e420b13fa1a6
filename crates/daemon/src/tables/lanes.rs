//! The lanes of a plan, from the members at both ends and what is known of the way between them.

use super::Alive;
use crate::bond::Member;
use linkbraid_dataplane::{self as dataplane, LANES_MAX, Plan};
use linkbraid_proto::{
    arp_plus::Peer,
    plan::{Lane, PlanMember, PlanPeerMember, plan},
};
use linkbraid_wire::MacAddr;

/// What a peer's member is taken for that speaks only the published part, in Mbit/s.
const WEIGHT_MBIT_UNTOLD: u32 = 1000;

/// The lanes to plain hosts, or to those of the segment with these slots.
pub(crate) fn plain_lanes(members: &[Member], slots: Option<&[u8]>) -> Vec<Lane> {
    let plan_member = |member: &Member| PlanMember {
        slot: member.slot,
        weight_mbit: member.weight_mbit(),
        up: member.live() && member.sound && slots.is_none_or(|slots| slots.contains(&member.slot)),
    };
    let own: Vec<PlanMember> = members.iter().map(plan_member).collect();
    plan(&own, None, |_, _| true)
}

/// The lanes to a peer.
pub(crate) fn peer_lanes(own: &[PlanMember], peer: &Peer, alive: &impl Alive) -> Vec<Lane> {
    let theirs: Vec<PlanPeerMember> = peer
        .members
        .iter()
        .map(|member| PlanPeerMember {
            index: member.index,
            mac: member.mac,
            weight_mbit: member.weight_mbit.unwrap_or(WEIGHT_MBIT_UNTOLD),
            up: member.up,
        })
        .collect();
    plan(own, Some(&theirs), |slot, index| alive.usable(peer, slot, index))
}

/// The peer's number of the member that a lane to it ends at.
pub(crate) fn lane_index(peer: &Peer, lane: &Lane) -> Option<u8> {
    peer.members.iter().find(|member| Some(member.mac) == lane.peer_mac).map(|member| member.index)
}

/// Every MAC that leads to the peer: its members' and those it had lately.
pub(super) fn all_macs(peer: &Peer) -> impl Iterator<Item = MacAddr> + '_ {
    peer.members.iter().map(|member| member.mac).chain(peer.aliases.iter().map(|alias| alias.mac))
}

pub(super) fn lanes_to_table(lanes: &[Lane]) -> Plan {
    let lanes = lanes.iter().take(LANES_MAX).map(|lane| dataplane::Lane {
        slot: lane.slot,
        peer_mac: lane.peer_mac.map(|mac| mac.0),
        weight: lane.weight,
        class: 0,
    });
    Plan { lanes: lanes.collect(), ..Plan::default() }
}
