//! Writes what a host's machine wants into the data path's tables.

use linkbraid_dataplane::{self as dataplane, Result, Tables};
use linkbraid_proto::{host, limits, plan::Lane};
use linkbraid_wire::MacAddr;

// Those that are probed may be others than those that a member is reported to.
const _: () = assert!(dataplane::ANSWERS_MAX >= limits::ANSWER_HOSTS_MAX + limits::PLAIN_PROBED_MAX);
// Those of peers' guests, and those here.
const _: () = assert!(
    dataplane::GUEST_PAIRS_MAX
        >= limits::GUEST_ADDRESSES_MAX + linkbraid_wire::GUESTS_MAX * linkbraid_wire::GUEST_ADDRESSES_MAX
);
const _: () = assert!(dataplane::LANES_MAX == limits::LANES_MAX);
const _: () = assert!(dataplane::MEMBERS_MAX >= limits::MEMBERS_MAX);
const _: () = assert!(dataplane::CLASSES_MAX == linkbraid_wire::CLASSES_MAX + 1);
const _: () = assert!(dataplane::PLAIN_PLAN_FIRST == host::PLAIN_PLAN_FIRST);

/// What an earlier daemon left; what its plans hold is not read.
pub(crate) fn adopt(path: &Tables) -> Result<host::TableImage> {
    let member = |(slot, row): (u8, dataplane::Member)| {
        let dataplane::Member { ifindex, mac, live, elected } = row;
        (slot, host::MemberRow { ifindex, mac: MacAddr(mac), live, elected: slot_of(elected) })
    };
    let peer = |(mac, row): ([u8; 6], dataplane::PeerMac)| {
        let dataplane::PeerMac { plan, primary, broadcast_slot, kind } = row;
        let (primary, broadcast_slot) = (MacAddr(primary), slot_of(broadcast_slot));
        (MacAddr(mac), host::PeerMac { plan, primary, broadcast_slot, kind: from_kind(kind) })
    };
    let guest = |(at, pair): (dataplane::GuestAddress, dataplane::GuestPair)| {
        ((at.vlan, at.ip), host::GuestPair { mac: MacAddr(pair.mac), plan: pair.plan })
    };
    let answer = |(mac, row): ([u8; 6], dataplane::Answer)| {
        (MacAddr(mac), host::Answer { slot: row.slot, probed: row.probed })
    };
    let class_plans = path.class_plans()?.into_iter();
    Ok(host::TableImage {
        members: path.members()?.into_iter().map(member).collect(),
        class_plans: class_plans.map(|(base, class, number)| ((base, class), number)).collect(),
        peer_macs: path.peer_macs()?.into_iter().map(peer).collect(),
        guest_pairs: path.guest_pairs()?.into_iter().map(guest).collect(),
        answers: path.answers()?.into_iter().map(answer).collect(),
        ..host::TableImage::default()
    })
}

/// What the machine does not know of the bond.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bond {
    pub ifindex: u32,
    /// What distinguishes mirrored frames of this daemon from those of others before it.
    pub epoch: u32,
}

/// Writes one row.
pub(crate) fn write(path: &Tables, bond: Bond, write: &host::Write<'_>) -> Result<()> {
    match *write {
        host::Write::Bond(row) => path.set_bond(&dataplane::Bond {
            ifindex: bond.ifindex,
            mac: row.mac.0,
            damping: row.damping.then(dataplane::Damping::default),
            elected: row.elected.clone(),
            failed_slots: row.failed_slots,
            epoch: bond.epoch,
        }),
        host::Write::Member(slot, Some(row)) => {
            let elected = row.elected.unwrap_or(dataplane::NO_SLOT);
            let row = dataplane::Member { ifindex: row.ifindex, mac: row.mac.0, live: row.live, elected };
            path.set_member(slot, Some(&row))
        }
        host::Write::Member(slot, None) => {
            path.set_member(slot, None)?;
            // Nothing is left in a slot that becomes free.
            path.clear_member_counts(slot)?;
            path.forget_plain_hosts(slot)
        }
        host::Write::Class(number, row) => path.set_class(number, row.slots, row.lends),
        host::Write::Plan(number, plan) => path.set_plan(number, &plan.map(to_plan).unwrap_or_default()),
        host::Write::ClassPlan(base, class, number) => path.set_class_plan(base, class, number),
        host::Write::PeerMac(mac, Some(row)) => {
            let broadcast_slot = row.broadcast_slot.unwrap_or(dataplane::NO_SLOT);
            let kind = to_kind(row.kind);
            let row = dataplane::PeerMac { plan: row.plan, primary: row.primary.0, broadcast_slot, kind };
            path.set_peer_mac(mac.0, &row)
        }
        host::Write::PeerMac(mac, None) => path.delete_peer_mac(mac.0),
        host::Write::GuestPair((vlan, ip), row) => {
            let pair = row.map(|row| dataplane::GuestPair { mac: row.mac.0, plan: row.plan });
            path.set_guest_pair(dataplane::GuestAddress { vlan, ip }, pair)
        }
        host::Write::Answer(mac, Some(row)) => path.set_answer(mac.0, row.slot, row.probed),
        host::Write::Answer(mac, None) => path.delete_answer(mac.0),
    }
}

fn from_kind(kind: dataplane::PeerMacKind) -> host::MacKind {
    match kind {
        dataplane::PeerMacKind::Member { has_guests, takes_guests } => {
            host::MacKind::Member { has_guests, takes_guests }
        }
        dataplane::PeerMacKind::Alias { has_guests } => host::MacKind::Alias { has_guests },
        dataplane::PeerMacKind::Guest => host::MacKind::Guest,
    }
}

fn to_kind(kind: host::MacKind) -> dataplane::PeerMacKind {
    match kind {
        host::MacKind::Member { has_guests, takes_guests } => {
            dataplane::PeerMacKind::Member { has_guests, takes_guests }
        }
        host::MacKind::Alias { has_guests } => dataplane::PeerMacKind::Alias { has_guests },
        host::MacKind::Guest => dataplane::PeerMacKind::Guest,
    }
}

fn to_plan(plan: &host::Plan) -> dataplane::Plan {
    let lane = |(i, lane): (usize, &Lane)| dataplane::Lane {
        slot: lane.slot,
        peer_mac: lane.peer_mac.map(|mac| mac.0),
        weight: lane.weight,
        rate: plan.rates.get(i).copied(),
        class: lane.class,
    };
    dataplane::Plan {
        lanes: plan.lanes.iter().enumerate().map(lane).collect(),
        policy: plan.policy,
        shares: plan.shares,
    }
}

fn slot_of(slot: u8) -> Option<u8> {
    (slot != dataplane::NO_SLOT).then_some(slot)
}
