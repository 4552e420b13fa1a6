//! Records for `lanes`.

use super::picked::{is_peer, no_peer};
use crate::{
    io::error::About as _,
    world::{
        bond::Bond,
        driven::{Driven, events::lane_state},
    },
};
use linkbraid_api::{Error, LaneRecord, Records, ShareFrom};
use linkbraid_proto::{
    Time,
    arp_plus::{Peer, PeerKey},
    host::{DEFAULT_CLASS, Host, PLAIN_PLAN, lane_index},
    inspector::LaneSnapshot,
    plan::Lane,
};
use std::collections::HashMap;

/// Stands for a peer where a lane is to all plain hosts.
const PLAIN_HOSTS: &str = "plain hosts";

/// `lanes`
pub(crate) fn lanes(bonds: &[&Bond], now: Time, peer: Option<&str>) -> Result<Records, Error> {
    let Some(wanted) = peer else {
        return Ok(Records::Lanes(lanes_to(bonds, now, |_, _| true, usize::MAX)?));
    };
    let mut lanes = lanes_to(bonds, now, |_, peer| is_peer(peer, wanted), usize::MAX)?;
    lanes.retain(|lane| lane.peer != PLAIN_HOSTS);
    if lanes.is_empty() { Err(no_peer(bonds, wanted)) } else { Ok(Records::Lanes(lanes)) }
}

/// Those to plain hosts, and to those peers that are wanted: to so many of each bond at most.
pub(crate) fn lanes_to(
    bonds: &[&Bond],
    now: Time,
    is_wanted: impl Fn(&Bond, &Peer) -> bool,
    peers_max: usize,
) -> Result<Vec<LaneRecord>, Error> {
    let mut records = Vec::new();
    for bond in bonds {
        let driven = bond.driven();
        let host = &driven.host;
        let own = host.own_side();
        let snapshot = host.inspector().snapshot(now);
        // Looked through once, and not once for each peer: there may be thousands.
        let mut known: HashMap<PeerKey, Vec<&LaneSnapshot>> = HashMap::new();
        for lane in &snapshot.lanes {
            known.entry(lane.lane.peer).or_default().push(lane);
        }
        for peer in host.arp_plus().peers().filter(|peer| is_wanted(bond, peer)).take(peers_max) {
            let Some(base) = host.plan_of(&peer.key) else { continue };
            let name = peer.address().map_or_else(|| peer.mac().to_string(), |address| address.to_string());
            let known = known.remove(&peer.key).unwrap_or_default();
            let plans: Vec<(u8, Vec<Lane>)> = std::iter::once(DEFAULT_CLASS)
                .chain(own.class_numbers())
                .map(|class| (class, own.peer_lanes(peer, host.inspector(), class).lanes))
                .collect();
            for (class, lanes) in &plans {
                let (class, lanes) = (*class, &lanes[..]);
                let plan = Plan { peer: &name, class, number: host.class_plan(base, class), lanes };
                add(&mut records, (bond, &driven), &plan, |lane| {
                    let index = lane_index(peer, lane);
                    let is_it = |known: &&&LaneSnapshot| {
                        known.lane.slot == lane.slot && Some(known.lane.index) == index
                    };
                    known.iter().find(is_it).map_or("heard", |known| lane_state(known.state))
                })?;
                if class == DEFAULT_CLASS {
                    let used: Vec<&Lane> = plans.iter().flat_map(|(_, lanes)| lanes).collect();
                    records.extend(unused((bond, &driven), peer, &name, &known, &used));
                }
            }
        }
        for class in std::iter::once(DEFAULT_CLASS).chain(own.class_numbers()) {
            let lanes = own.plain_lanes(None, class).lanes;
            let plan =
                Plan { peer: PLAIN_HOSTS, class, number: host.class_plan(PLAIN_PLAN, class), lanes: &lanes };
            add(&mut records, (bond, &driven), &plan, |_| "heard")?;
        }
    }
    Ok(records)
}

/// One plan in force.
struct Plan<'a> {
    peer: &'a str,
    class: u8,
    /// Its number in the data path; a class without a plan of its own has that of the rest.
    number: u32,
    lanes: &'a [Lane],
}

fn add(
    records: &mut Vec<LaneRecord>,
    (bond, driven): (&Bond, &Driven),
    plan: &Plan<'_>,
    state: impl Fn(&Lane) -> &'static str,
) -> Result<(), Error> {
    let counts = bond.path.lane_counts(plan.number).about(&bond.saved.name, "cannot read counters")?;
    let rates = driven.host.lane_rates(plan.number, plan.lanes);
    let rate = |i: usize, lane: &Lane| rates.in_use.get(i).copied().unwrap_or(lane.weight);
    // Borrowed lanes take no weight off the others.
    let own = plan.lanes.iter().enumerate().filter(|(_, lane)| lane.class == DEFAULT_CLASS);
    let sum: u64 = own.map(|(i, lane)| u64::from(rate(i, lane))).sum();
    for (i, lane) in plan.lanes.iter().enumerate() {
        let count = counts.get(i).copied().unwrap_or_default();
        let share = u64::from(rate(i, lane)) * 1_000_000 / sum.max(1);
        records.push(LaneRecord {
            bond: bond.saved.name.to_string(),
            peer: plan.peer.to_owned(),
            member: driven.name_of(lane.slot),
            peer_mac: lane.peer_mac.map(|mac| mac.to_string()),
            state: state(lane).to_owned(),
            plan: Some(plan.number),
            share_ppm: if lane.class == DEFAULT_CLASS { u32::try_from(share).unwrap_or(u32::MAX) } else { 0 },
            tx_frames: count.frames,
            tx_bytes: count.bytes,
            told_kbit: Some(lane.weight),
            measured_kbit: rates.measured.get(i).copied().flatten(),
            share_from: Some(share_from(&driven.host, lane.slot, !rates.in_use.is_empty())),
            class: bond.class_name(plan.class).map(Into::into),
            borrowed_from: bond.class_name(lane.class).map(Into::into),
        });
    }
    Ok(())
}

/// Lanes that are known and in no plan.
fn unused(
    (bond, driven): (&Bond, &Driven),
    peer: &Peer,
    name: &str,
    known: &[&LaneSnapshot],
    used: &[&Lane],
) -> Vec<LaneRecord> {
    let in_plan = |other: &LaneSnapshot| {
        used.iter()
            .any(|lane| lane.slot == other.lane.slot && lane_index(peer, lane) == Some(other.lane.index))
    };
    let record = |other: &&LaneSnapshot| LaneRecord {
        bond: bond.saved.name.to_string(),
        peer: name.to_owned(),
        member: driven.name_of(other.lane.slot),
        peer_mac: Some(other.mac.to_string()),
        state: lane_state(other.state).to_owned(),
        plan: None,
        share_ppm: 0,
        tx_frames: 0,
        tx_bytes: 0,
        told_kbit: None,
        measured_kbit: None,
        share_from: None,
        class: None,
        borrowed_from: None,
    };
    known.iter().filter(|other| !in_plan(other)).map(record).collect()
}

/// What a member's shares come from; `measured`: some plan is spread by what was measured.
pub(super) fn share_from(host: &Host, slot: u8, measured: bool) -> ShareFrom {
    if host.is_weight_fixed(slot) {
        ShareFrom::Fixed
    } else if measured {
        ShareFrom::Measured
    } else {
        ShareFrom::Told
    }
}
