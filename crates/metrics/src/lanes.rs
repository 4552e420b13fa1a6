//! Peers, and the lanes to them.

use crate::{
    view::{View, name},
    write::{Family, Labels, Writer, kbit, number, yes},
};
use linkbraid_api::{LaneRecord, PeerRecord, PeerState};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt,
};

const INFO: Family<4> = Family {
    name: "peer",
    help: "The MAC and the host id of a peer (absent: it speaks the published part of ARP+ only); always 1.",
    labels: ["bond", "peer", "mac", "host_id"],
};
const UP: Family<2> = Family {
    name: "peer_up",
    help: "1 if the peer was heard lately and at least one lane to it is up, else 0.",
    labels: ["bond", "peer"],
};
const REDUNDANCY: Family<2> = Family {
    name: "peer_redundancy_left",
    help: "Members, own or the peer's, that can still fail before the peer is unreachable, whichever these are.",
    labels: ["bond", "peer"],
};
const HEARD: Family<2> = Family {
    name: "peer_heard_seconds",
    help: "Time since ARP+ of the peer was last heard; each second on a network without loss, more seldom where there are many hosts.",
    labels: ["bond", "peer"],
};
const EPOCH: Family<2> = Family {
    name: "peer_epoch",
    help: "Grows each time the peer's daemon starts.",
    labels: ["bond", "peer"],
};

const LANE_UP: Family<4> = Family {
    name: "lane_up",
    help: "1 if the lane works: its probes are answered, or it is not probed and heard; else 0. The peer of lanes to hosts \
           that do not run linkbraid is 'plain hosts'.",
    labels: ["bond", "member", "peer", "peer_mac"],
};
const LANE_USED: Family<4> = Family {
    name: "lane_used",
    help: "1 if the plan of some class has the lane, else 0. A lane that is used and not up is a suspect: nothing better is there.",
    labels: ["bond", "member", "peer", "peer_mac"],
};
const SHARE: Family<5> = Family {
    name: "lane_share_ratio",
    help: "The lane's share of its plan, 0 to 1. The class is absent for the default class; 0: lent by another class.",
    labels: ["bond", "member", "peer", "peer_mac", "class"],
};
const TOLD: Family<5> = Family {
    name: "lane_told_bytes_per_second",
    help: "What the links at both ends, or the user, say that the lane carries.",
    labels: ["bond", "member", "peer", "peer_mac", "class"],
};
const MEASURED: Family<5> = Family {
    name: "lane_measured_bytes_per_second",
    help: "What the lane was measured to carry; absent while nothing has waited for it.",
    labels: ["bond", "member", "peer", "peer_mac", "class"],
};
const TX_BYTES: Family<5> = Family {
    name: "lane_transmit_bytes",
    help: "Bytes sent over the lane under the plan in force; starts again with each plan. Classes without a plan of their own \
           are counted in the default class.",
    labels: ["bond", "member", "peer", "peer_mac", "class"],
};
const TX_FRAMES: Family<5> = Family {
    name: "lane_transmit_frames",
    help: "Frames sent over the lane under the plan in force; starts again with each plan.",
    labels: ["bond", "member", "peer", "peer_mac", "class"],
};

/// Whether frames sent over a lane arrive, as far as that can be known.
fn is_up(lane: &LaneRecord) -> bool {
    matches!(lane.state.as_str(), "up" | "heard")
}

/// Whether a plan has it.
fn is_used(lane: &LaneRecord) -> bool {
    lane.plan.is_some()
}

pub(crate) fn write(to: &mut Writer<'_>, view: &View<'_>) -> fmt::Result {
    of_peers(to, view)?;
    of_lanes(to, view)
}

fn of_peers(to: &mut Writer<'_>, view: &View<'_>) -> fmt::Result {
    let mut pairs: BTreeMap<(&str, &str), BTreeSet<(&str, &str)>> = BTreeMap::new();
    for lane in view.lanes.iter().filter(|lane| is_up(lane)) {
        if let Some(mac) = &lane.peer_mac {
            pairs.entry((&lane.bond, &lane.peer)).or_default().insert((&lane.member, mac));
        }
    }
    let ways: BTreeMap<_, _> = pairs.iter().map(|(peer, pairs)| (*peer, disjoint(pairs))).collect();
    let ways = |peer: &PeerRecord| ways.get(&(peer.bond.as_str(), name(peer))).copied().unwrap_or(0);
    to.infos(
        &INFO,
        view.peers.iter().map(|peer| {
            let host = peer.host_id.as_deref().unwrap_or_default();
            [peer.bond.as_str(), name(peer), peer.mac.as_str(), host].map(Into::into)
        }),
    )?;
    let mut gauges = |family: &Family<2>, value: &dyn Fn(&PeerRecord) -> Option<f64>| {
        let series = view
            .peers
            .iter()
            .filter_map(|peer| Some(([peer.bond.as_str().into(), name(peer).into()], value(peer)?)));
        to.gauges(family, series)
    };
    gauges(&UP, &|peer| Some(yes(peer.state == PeerState::Alive && ways(peer) > 0)))?;
    gauges(&REDUNDANCY, &|peer| Some(ways(peer).saturating_sub(1) as f64))?;
    gauges(&HEARD, &|peer| Some(number(peer.heard_ms) / 1e3))?;
    gauges(&EPOCH, &|peer| peer.epoch.map(number))
}

fn of_lanes(to: &mut Writer<'_>, view: &View<'_>) -> fmt::Result {
    // In some plans and in others not: the same lane is listed for each class.
    let used: HashSet<Labels<'_, 4>> =
        view.lanes.iter().filter(|lane| is_used(lane)).map(|lane| labels(lane)).collect();
    to.gauges(&LANE_UP, view.lanes.iter().map(|lane| (labels(lane), yes(is_up(lane)))))?;
    let is_in = view.lanes.iter().map(|lane| labels(lane));
    to.gauges(&LANE_USED, is_in.map(|lane| (lane.clone(), yes(used.contains(&lane)))))?;
    let of_plans = |value: fn(&LaneRecord) -> Option<f64>| {
        let used = view.lanes.iter().filter(|lane| is_used(lane));
        used.filter_map(move |lane| Some((in_class(lane), value(lane)?)))
    };
    to.gauges(&SHARE, of_plans(|lane| Some(f64::from(lane.share_ppm) / 1e6)))?;
    to.gauges(&TOLD, of_plans(|lane| lane.told_kbit.map(kbit)))?;
    to.gauges(&MEASURED, of_plans(|lane| lane.measured_kbit.map(kbit)))?;
    // The default class comes first, and what has no plan of its own is counted in that one's.
    let mut counted = HashSet::new();
    let counted: Vec<&&LaneRecord> =
        view.lanes.iter().filter(|lane| is_used(lane) && counted.insert((lane.plan, labels(lane)))).collect();
    to.counters(&TX_BYTES, counted.iter().map(|lane| (in_class(lane), number(lane.tx_bytes))))?;
    to.counters(&TX_FRAMES, counted.iter().map(|lane| (in_class(lane), number(lane.tx_frames))))
}

fn labels(lane: &LaneRecord) -> Labels<'_, 4> {
    let mac = lane.peer_mac.as_deref().unwrap_or_default();
    [lane.bond.as_str(), lane.member.as_str(), lane.peer.as_str(), mac].map(Into::into)
}

fn in_class(lane: &LaneRecord) -> Labels<'_, 5> {
    let [bond, member, peer, mac] = labels(lane);
    [bond, member, peer, mac, lane.class.as_deref().unwrap_or_default().into()]
}

/// The most lanes of which no two have an end in common, and so the fewest members that must fail until none is left (König).
fn disjoint(lanes: &BTreeSet<(&str, &str)>) -> usize {
    // Whom each of the peer's members is taken by.
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    let own: BTreeSet<&str> = lanes.iter().map(|(own, _)| *own).collect();
    own.into_iter().filter(|own| find(own, lanes, &mut taken, &mut BTreeSet::new())).count()
}

/// Finds one of the peer's members for one of ours, and another one for whoever has that.
fn find<'a>(
    own: &'a str,
    lanes: &BTreeSet<(&'a str, &'a str)>,
    taken: &mut BTreeMap<&'a str, &'a str>,
    tried: &mut BTreeSet<&'a str>,
) -> bool {
    for (_, theirs) in lanes.iter().filter(|(from, _)| *from == own) {
        if !tried.insert(theirs) {
            continue;
        }
        let other = taken.get(theirs).copied();
        if other.is_none_or(|other| find(other, lanes, taken, tried)) {
            taken.insert(theirs, own);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_ways_are_left_as_have_no_end_in_common() {
        let ways = |lanes: &[(&'static str, &'static str)]| disjoint(&lanes.iter().copied().collect());
        assert_eq!(ways(&[]), 0);
        assert_eq!(ways(&[("eth0", "A"), ("eth1", "A")]), 1, "the peer has one member");
        assert_eq!(ways(&[("eth0", "A"), ("eth0", "B")]), 1, "there is one of ours");
        assert_eq!(ways(&[("eth0", "A"), ("eth0", "B"), ("eth1", "A")]), 2, "eth0 has to give A away");
        assert_eq!(ways(&[("a", "A"), ("a", "B"), ("b", "A"), ("c", "A"), ("c", "C")]), 3);
    }
}
