//! The daemon's records as metrics for Prometheus: records in, text out, nothing else.
//!
//! Every series is about a bond, a member, a class, a fabric, a node, or a host of the ARP+ table, and its labels name these. No
//! label names a flow, a plain host, or a host that has never proven that it is there: anybody on the wire can make up such hosts.
//! `docs/metrics.md` lists all families; a test compares it with what is written here.

mod bonds;
mod counters;
mod events;
mod fabrics;
mod lanes;
mod view;
mod write;

pub use events::Events;
pub use view::{PEERS_MAX, may_have_series};

use linkbraid_api::Records;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, prometheus_text, text},
    registry::Registry,
};
use std::{fmt, sync::Arc, time::Duration};
use view::View;
use write::{Family, Writer};

/// How metrics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.0, which Prometheus prefers.
    OpenMetrics,
    /// The older text format of Prometheus, version 0.0.4, which everybody reads.
    Text,
}

impl Format {
    /// The format for a client with this `Accept` header: OpenMetrics if it names it, as Prometheus does.
    pub fn accepted(header: &str) -> Self {
        match header.to_ascii_lowercase().contains("application/openmetrics-text") {
            true => Self::OpenMetrics,
            false => Self::Text,
        }
    }

    /// The `Content-Type` header of the answer.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// What the daemon says of itself at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The records, in any order. Those of one kind may be in several parts.
    pub records: Vec<Records>,
    /// How many parts could not be read.
    pub failed: u32,
    /// How long the daemon's control thread needed for them.
    pub took: Duration,
}

/// All that one scrape shows.
#[derive(Debug)]
struct Scrape {
    version: &'static str,
    snapshot: Arc<Snapshot>,
    events: Events,
}

const BUILD: Family<1> =
    Family { name: "build", help: "The version of the daemon; always 1.", labels: ["version"] };
const SNAPSHOT_SECONDS: Family<0> = Family {
    name: "snapshot_seconds",
    help: "Time that the daemon's control thread needed to make the records behind these metrics.",
    labels: [],
};
const SNAPSHOT_FAILED: Family<0> = Family {
    name: "snapshot_failed_parts",
    help: "Parts of the records that could not be read, and whose metrics are missing; the log says why.",
    labels: [],
};

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Writer::new(encoder);
        let view = View::new(&self.snapshot.records);
        to.infos(&BUILD, [[self.version.into()]])?;
        to.gauges(&SNAPSHOT_SECONDS, [([], self.snapshot.took.as_secs_f64())])?;
        to.gauges(&SNAPSHOT_FAILED, [([], f64::from(self.snapshot.failed))])?;
        bonds::write(&mut to, &view)?;
        lanes::write(&mut to, &view)?;
        counters::write(&mut to, &view)?;
        fabrics::write(&mut to, &view)?;
        self.events.write(&mut to)
    }
}

/// The text of a scrape. `version` is the daemon's.
///
/// # Errors
/// Something cannot be written as text; nothing of ours is known to be so.
pub fn text(
    version: &'static str,
    snapshot: Arc<Snapshot>,
    events: &Events,
    format: Format,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("linkbraid");
    registry.register_collector(Box::new(Scrape { version, snapshot, events: events.clone() }));
    let mut out = String::new();
    match format {
        Format::OpenMetrics => text::encode(&mut out, &registry)?,
        Format::Text => prometheus_text::encode(&mut out, &registry)?,
    }
    Ok(out)
}
