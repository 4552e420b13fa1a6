//! Frames by what became of them, and what the protocols count.

use crate::{
    view::View,
    write::{Family, Labels, Writer, number},
};
use linkbraid_api::CounterRecord;
use std::fmt;

const FRAMES: Family<3> = Family {
    name: "frames",
    help: "Frames of the bond by what became of them; the verdict is 'sent', 'pass' (received) or 'drop'. 'linkbraid stats \
           --all' has a sentence for each reason.",
    labels: ["bond", "reason", "verdict"],
};
const BYTES: Family<3> = Family {
    name: "frame_bytes",
    help: "Bytes of these frames, with Ethernet headers.",
    labels: ["bond", "reason", "verdict"],
};
const PROTOCOL: Family<2> = Family {
    name: "protocol_counts",
    help: "What ARP+, the inspector ('probe_'), the answers to plain hosts ('answer_') and keys ('auth_') count, by reason.",
    labels: ["bond", "reason"],
};
const FABRIC_FRAMES: Family<3> = Family {
    name: "fabric_frames",
    help: "Frames of the fabric by what became of them, as the counters of 'linkbraid stats' with the same names.",
    labels: ["fabric", "reason", "verdict"],
};
const FABRIC_PROTOCOL: Family<2> = Family {
    name: "fabric_counts",
    help: "What the queues, the session ('session_'), the transport ('transport_') and the VXLAN fast path ('vxlan_') of the \
           fabric count, by reason.",
    labels: ["fabric", "reason"],
};

/// A counter of what the protocols do, and not of frames of users.
fn is_protocol(counter: &CounterRecord) -> bool {
    counter.verdict == "protocol"
}

type Of<'a> = (&'a str, &'a [CounterRecord]);

/// Counters of frames.
fn frames<'a>(
    of: impl Iterator<Item = Of<'a>>,
    value: fn(&CounterRecord) -> u64,
) -> impl Iterator<Item = (Labels<'a, 3>, f64)> {
    of.flat_map(move |(name, all)| {
        let frames = all.iter().filter(|counter| !is_protocol(counter));
        frames.map(move |one| {
            ([name, one.name.as_str(), one.verdict.as_str()].map(Into::into), number(value(one)))
        })
    })
}

/// The others.
fn protocol<'a>(of: impl Iterator<Item = Of<'a>>) -> impl Iterator<Item = (Labels<'a, 2>, f64)> {
    of.flat_map(|(name, all)| {
        let counts = all.iter().filter(|counter| is_protocol(counter));
        counts.map(move |one| ([name, one.name.as_str()].map(Into::into), number(one.frames)))
    })
}

pub(crate) fn write(to: &mut Writer<'_>, view: &View<'_>) -> fmt::Result {
    let bonds = || view.stats.iter().map(|one| (one.bond.as_str(), &one.counters[..]));
    to.counters(&FRAMES, frames(bonds(), |one| one.frames))?;
    to.counters(&BYTES, frames(bonds(), |one| one.bytes))?;
    to.counters(&PROTOCOL, protocol(bonds()))?;
    let fabrics = || view.fabric_stats.iter().map(|one| (one.fabric.as_str(), &one.counters[..]));
    to.counters(&FABRIC_FRAMES, frames(fabrics(), |one| one.frames))?;
    to.counters(&FABRIC_PROTOCOL, protocol(fabrics()))
}
