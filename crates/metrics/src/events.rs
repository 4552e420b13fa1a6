//! What has happened since the metrics are kept: events by reason, and how long changes took.

use crate::write::{Distribution, Family, Writer, number};
use linkbraid_api::{EventKind, EventRecord};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

/// Upper limits of the buckets of durations: the kernel's carrier poll takes 10 ms, a lane is lost after 150 ms, and probes of lanes
/// that carry nothing come each second.
const LIMITS_MS: [u32; 12] = [5, 10, 20, 50, 100, 150, 200, 500, 1000, 2000, 5000, 10_000];

const EVENTS: Family<4> = Family {
    name: "events",
    help: "Events of bonds and fabrics by kind and reason, the same that 'linkbraid monitor' shows, since the daemon started.",
    labels: ["bond", "fabric", "kind", "reason"],
};
const CHANGES: Family<4> = Family {
    name: "detection_seconds",
    help: "Time that it took to detect a failure (the state is 'down' or 'suspect') or that a member or lane is well again \
           ('up'), by kind ('member', 'lane') and reason.",
    labels: ["bond", "kind", "reason", "state"],
};

/// Whose it is, its kind and its reason. Reasons are words of the daemon, and bonds that are gone are forgotten, so there is a
/// bounded number.
type Key = (String, &'static str, String);

/// Counts of events.
#[derive(Debug, Clone, Default)]
pub struct Events {
    counts: BTreeMap<Key, u64>,
    /// Also by the state that came of it.
    took: BTreeMap<(Key, String), Distribution>,
}

impl Events {
    /// One more.
    pub fn note(&mut self, event: &EventRecord) {
        let key = (event.bond.clone(), word(event.kind), event.reason.clone());
        if let (Some(us), Some(state)) = (event.took_us, &event.new) {
            let took = self.took.entry((key.clone(), state.clone())).or_insert_with(empty);
            let took_at = Duration::from_micros(us);
            let limit = |limit: &u32| Duration::from_millis(u64::from(*limit)) < took_at;
            took.buckets[LIMITS_MS.partition_point(limit)].1 += 1;
            took.sum += took_at.as_secs_f64();
        }
        *self.counts.entry(key).or_default() += 1;
    }

    /// So many were lost because they were not read in time.
    pub fn lost(&mut self, count: u64) {
        *self.counts.entry((String::new(), word(EventKind::Lost), "lost".to_owned())).or_default() += count;
    }

    /// Forgets bonds and fabrics but these.
    pub fn keep(&mut self, names: &BTreeSet<&str>) {
        let stays = |(name, ..): &Key| name.is_empty() || names.contains(name.as_str());
        self.counts.retain(|key, _| stays(key));
        self.took.retain(|(key, _), _| stays(key));
    }

    pub(crate) fn write(&self, to: &mut Writer<'_>) -> fmt::Result {
        let counts = self.counts.iter().map(|((name, kind, reason), count)| {
            let is_fabric = [word(EventKind::Fabric), word(EventKind::Node)].contains(kind);
            let (bond, fabric) = if is_fabric { ("", name.as_str()) } else { (name.as_str(), "") };
            ([bond, fabric, *kind, reason.as_str()].map(Into::into), number(*count))
        });
        to.counters(&EVENTS, counts)?;
        let took = self.took.iter().map(|(((bond, kind, reason), state), took)| {
            ([bond.as_str(), *kind, reason.as_str(), state.as_str()].map(Into::into), took.clone())
        });
        to.histograms(&CHANGES, took)
    }
}

fn empty() -> Distribution {
    let limits = LIMITS_MS.iter().map(|ms| f64::from(*ms) / 1e3);
    Distribution { buckets: limits.chain([f64::INFINITY]).map(|limit| (limit, 0)).collect(), sum: 0.0 }
}

/// As in JSON.
const fn word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Bond => "bond",
        EventKind::Member => "member",
        EventKind::Lane => "lane",
        EventKind::Peer => "peer",
        EventKind::Conflict => "conflict",
        EventKind::Fabric => "fabric",
        EventKind::Node => "node",
        EventKind::Lost => "lost",
    }
}
