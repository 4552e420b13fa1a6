//! What the victims and their daemons have come to so far.

use super::VICTIMS;
use crate::activity::{ProcessActivity, anonymous_bytes};
use crate::bed::{BOND, Bed};
use linkbraid_api::{Error, LaneRecord, StatsRecord};

#[derive(Debug)]
pub(super) struct Look {
    /// Lanes of both victims to peers.
    pub(super) lanes_lost: u64,
    /// And to plain hosts.
    pub(super) plain_lanes_lost: u64,
    /// Lines of both logs.
    pub(super) lines: u64,
    /// Memory of each daemon.
    bytes: Vec<u64>,
    work: Vec<ProcessActivity>,
}

impl Look {
    pub(super) fn at(bed: &Bed) -> Result<Self, Error> {
        let mut look =
            Self { lanes_lost: 0, plain_lanes_lost: 0, lines: 0, bytes: Vec::new(), work: Vec::new() };
        for name in VICTIMS {
            let host = bed.host(name)?;
            let stats: Vec<StatsRecord> = host.ask(&format!("stats {BOND}"))?;
            let count = |name: &str| -> u64 {
                let counters = stats.iter().flat_map(|stats| &stats.counters);
                counters.filter(|counter| counter.name == name).map(|counter| counter.frames).sum()
            };
            let plain = count("probe_plain_lane_lost");
            look.plain_lanes_lost += plain;
            look.lanes_lost += count("probe_lane_lost") - plain;
            look.lines += std::fs::read_to_string(host.log()).unwrap_or_default().lines().count() as u64;
            let pid = bed.daemon_id(name)?;
            look.bytes.push(anonymous_bytes(pid)?);
            look.work.push(ProcessActivity::of(pid)?);
        }
        Ok(look)
    }

    /// Percent of a core that the busier daemon took since an earlier look.
    pub(super) fn cpu_since(&self, earlier: &Self) -> f64 {
        let all = self.work.iter().zip(&earlier.work).map(|(now, then)| now.since(*then).0);
        all.fold(0.0, f64::max)
    }

    /// How many bytes of memory the daemon that grew most has grown by since an earlier look.
    pub(super) fn grown_since(&self, earlier: &Self) -> u64 {
        self.bytes.iter().zip(&earlier.bytes).map(|(now, then)| now.saturating_sub(*then)).max().unwrap_or(0)
    }
}

/// How many lanes of the victims are proven.
pub(super) fn lanes(bed: &Bed) -> Result<usize, Error> {
    let mut up = 0;
    for name in VICTIMS {
        let lanes: Vec<LaneRecord> = bed.host(name)?.ask(&format!("lanes {BOND}"))?;
        up += lanes.iter().filter(|lane| lane.state == "up").count();
    }
    Ok(up)
}
