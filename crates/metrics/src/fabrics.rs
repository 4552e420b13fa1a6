//! Fabrics, their nodes and queues.

use crate::{
    view::View,
    write::{Distribution, Family, Writer, number, yes},
};
use linkbraid_api::{FabricPeerRecord, Health, NodeState, RoundTripRecord};
use std::fmt;

const INFO: Family<3> = Family {
    name: "fabric",
    help: "The number of this node and the transport of the fabric; always 1.",
    labels: ["fabric", "node", "transport"],
};
const UP: Family<1> =
    Family { name: "fabric_up", help: "1 if at least one other node is up, else 0.", labels: ["fabric"] };
const HEALTHY: Family<1> =
    Family { name: "fabric_healthy", help: "1 if all other nodes are up, else 0.", labels: ["fabric"] };
const CPU: Family<1> = Family {
    name: "fabric_cpu_seconds",
    help: "Processor time of the fabric's threads since it started.",
    labels: ["fabric"],
};
const MEMORY: Family<1> = Family {
    name: "fabric_memory_bytes",
    help: "Memory that the fabric shares with the other nodes; absent where none is shared.",
    labels: ["fabric"],
};

const NODE_UP: Family<2> = Family {
    name: "fabric_node_up",
    help: "1 if frames flow to the other node, else 0.",
    labels: ["fabric", "node"],
};
const NODE_TX_BYTES: Family<2> = Family {
    name: "fabric_node_transmit_bytes",
    help: "Bytes sent to the node, with Ethernet headers.",
    labels: ["fabric", "node"],
};
const NODE_TX_FRAMES: Family<2> = Family {
    name: "fabric_node_transmit_frames",
    help: "Frames sent to the node.",
    labels: ["fabric", "node"],
};
const NODE_RX_BYTES: Family<2> = Family {
    name: "fabric_node_receive_bytes",
    help: "Bytes received from the node, with Ethernet headers.",
    labels: ["fabric", "node"],
};
const NODE_RX_FRAMES: Family<2> = Family {
    name: "fabric_node_receive_frames",
    help: "Frames received from the node.",
    labels: ["fabric", "node"],
};
const NODE_DROPPED: Family<2> = Family {
    name: "fabric_node_dropped_frames",
    help: "Frames to the node or from it that were dropped.",
    labels: ["fabric", "node"],
};
const NODE_QUEUED: Family<2> = Family {
    name: "fabric_node_queued_bytes",
    help: "Bytes that wait for the node in the transport's queue.",
    labels: ["fabric", "node"],
};
const NODE_VXLAN: Family<2> = Family {
    name: "fabric_node_vxlan",
    help: "1 if frames to the node take the VXLAN fast path, else 0; absent where the transport has none.",
    labels: ["fabric", "node"],
};
const ROUND_TRIP: Family<2> = Family {
    name: "fabric_round_trip_seconds",
    help: "Round trips of session messages to the node, through the queues that frames use.",
    labels: ["fabric", "node"],
};

/// The limits of the buckets of round trips: powers of two, in nanoseconds, from a microsecond to a second.
const BUCKET_POWERS: std::ops::RangeInclusive<u32> = 10..=30;

pub(crate) fn write(to: &mut Writer<'_>, view: &View<'_>) -> fmt::Result {
    let fabrics = &view.fabrics;
    to.infos(
        &INFO,
        fabrics.iter().map(|one| {
            [one.name.as_str().into(), one.node.to_string().into(), one.transport.as_str().into()]
        }),
    )?;
    let of = |value: fn(Health) -> bool| {
        fabrics.iter().map(move |one| ([one.name.as_str().into()], yes(value(one.health))))
    };
    to.gauges(&UP, of(|health| health != Health::Down))?;
    to.gauges(&HEALTHY, of(|health| health == Health::Ok))?;
    let cpu = view.fabric_stats.iter();
    to.counters(&CPU, cpu.map(|one| ([one.fabric.as_str().into()], number(one.cpu_ms) / 1e3)))?;
    let memory =
        fabrics.iter().filter_map(|one| Some(([one.name.as_str().into()], number(one.memory_bytes?))));
    to.gauges(&MEMORY, memory)?;
    let nodes = |value: fn(&FabricPeerRecord) -> Option<f64>| {
        fabrics.iter().flat_map(move |fabric| {
            // Who has not joined, or has left, is missed by nobody.
            let peers = fabric.peers.iter().filter(|peer| peer.state != NodeState::Absent);
            peers.filter_map(move |peer| {
                Some(([fabric.name.as_str().into(), peer.node.to_string().into()], value(peer)?))
            })
        })
    };
    to.gauges(&NODE_UP, nodes(|peer| Some(yes(peer.state == NodeState::Up))))?;
    to.counters(&NODE_TX_BYTES, nodes(|peer| Some(number(peer.tx_bytes))))?;
    to.counters(&NODE_TX_FRAMES, nodes(|peer| Some(number(peer.tx_frames))))?;
    to.counters(&NODE_RX_BYTES, nodes(|peer| Some(number(peer.rx_bytes))))?;
    to.counters(&NODE_RX_FRAMES, nodes(|peer| Some(number(peer.rx_frames))))?;
    to.counters(&NODE_DROPPED, nodes(|peer| Some(number(peer.dropped_frames))))?;
    to.gauges(&NODE_QUEUED, nodes(|peer| Some(number(peer.queued_bytes))))?;
    to.gauges(&NODE_VXLAN, nodes(|peer| peer.vxlan.as_ref().map(|vxlan| yes(vxlan.taken))))?;
    let trips = view.fabric_stats.iter().flat_map(|fabric| {
        fabric.peers.iter().filter_map(move |peer| {
            let trips = distribution(peer.round_trip.as_ref()?);
            Some(([fabric.fabric.as_str().into(), peer.node.to_string().into()], trips))
        })
    });
    to.histograms(&ROUND_TRIP, trips)
}

/// The same limits for all nodes and at all times, so that they can be added up.
fn distribution(trips: &RoundTripRecord) -> Distribution {
    let limits: Vec<u64> = BUCKET_POWERS.map(|power| 1 << power).collect();
    let mut buckets: Vec<(f64, u64)> = limits.iter().map(|ns| (number(*ns) / 1e9, 0)).collect();
    buckets.push((f64::INFINITY, 0));
    for bucket in &trips.histogram {
        buckets[limits.partition_point(|limit| *limit < bucket.below_ns)].1 += bucket.count;
    }
    Distribution { buckets, sum: number(trips.sum_ns) / 1e9 }
}
