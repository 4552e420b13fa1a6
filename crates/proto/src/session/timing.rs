//! What may be set of a session, and when things happen.

use crate::{inspector::OutOfRange, limits};
use linkbraid_wire::fabric::{MTU_MAX, MTU_MIN, NODES_MAX, NODES_MIN, Offer, STREAMS_MAX};
use std::{
    fmt::{Debug, Display},
    ops::RangeInclusive,
    time::Duration,
};

/// All durations of a session. The defaults are those of `docs/fabric.md`, section 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Longest time between two ALIVEs; the shortest is five eighths of it. Of many peers longer: see
    /// [`limits::ALIVE_RATE`].
    pub interval: Duration,
    /// Peers presume this node failed after that many intervals without one.
    pub multiplier: u8,
    /// Longest time between the first two HELLOs; doubled by each further one...
    pub retry_min: Duration,
    /// ...up to this. The shortest is five eighths of it.
    pub retry_max: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            interval: Duration::from_millis(100),
            multiplier: 4,
            retry_min: Duration::from_millis(10),
            retry_max: Duration::from_secs(1),
        }
    }
}

/// What can be set while a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Number of nodes of the fabric. May grow; see `docs/fabric.md`, clause 4.6.
    pub nodes: u16,
    /// MTU of the interface; the same on every node.
    pub mtu: u32,
    /// Queues of this node; the same on every node.
    pub queues: u8,
    /// What the data path is capable of, a bit each; advertised to peers.
    pub features: u16,
    /// The UDP port, not 0, at which this node takes frames past the daemons, if it does.
    pub fast_path: Option<u16>,
    /// When things happen.
    pub timing: Timing,
}

fn within<T: PartialOrd + Debug>(
    setting: &'static str,
    value: T,
    allowed: RangeInclusive<T>,
    text: impl Fn(&T) -> String,
) -> Result<(), OutOfRange> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let allowed = format!("{} to {}", text(allowed.start()), text(allowed.end()));
    Err(OutOfRange { setting, value: text(&value), allowed })
}

fn plain<T: Display>(value: &T) -> String {
    value.to_string()
}

fn duration(value: &Duration) -> String {
    format!("{value:?}")
}

impl Settings {
    /// Of a fabric of so many nodes, with that MTU, one queue and the default timing.
    pub fn new(nodes: u16, mtu: u32) -> Settings {
        Settings { nodes, mtu, queues: 1, features: 0, fast_path: None, timing: Timing::default() }
    }

    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// The first one that is not.
    pub fn check(&self) -> Result<(), OutOfRange> {
        let Timing { interval, multiplier, retry_min, retry_max } = self.timing;
        let intervals = limits::ALIVE_INTERVAL_MIN..=limits::ALIVE_INTERVAL_MAX;
        let multipliers = limits::ALIVE_MULTIPLIER_MIN..=limits::ALIVE_MULTIPLIER_MAX;
        //= docs/fabric.md#1.1
        within("nodes", self.nodes, NODES_MIN..=NODES_MAX, plain)?;
        within("mtu", self.mtu, MTU_MIN..=MTU_MAX, plain)?;
        within("queues", self.queues, 1..=STREAMS_MAX as u8, plain)?;
        within("short_cut", self.fast_path.unwrap_or(1), 1..=u16::MAX, plain)?;
        within("interval", interval, intervals, duration)?;
        within("multiplier", multiplier, multipliers, plain)?;
        within("retry_min", retry_min, Duration::from_millis(1)..=retry_max, duration)?;
        within("retry_max", retry_max, retry_min..=limits::ALIVE_INTERVAL_MAX, duration)
    }

    /// Time between two ALIVEs to one peer: as set, or longer where there are many.
    pub fn interval(&self) -> Duration {
        //= docs/fabric.md#5.2
        let peers = u32::from(self.nodes.saturating_sub(1));
        self.timing.interval.max(Duration::from_secs(1) * peers / limits::ALIVE_RATE)
    }

    /// Time between two measured round trips to one peer.
    pub fn ask_every(&self) -> Duration {
        //= docs/fabric.md#5.9
        let peers = u32::from(self.nodes.saturating_sub(1));
        (Duration::from_secs(1) * peers / limits::ASK_RATE).max(self.interval())
    }

    /// What the node says of itself.
    pub(super) fn offer(&self) -> Offer {
        Offer {
            nodes: self.nodes,
            mtu: self.mtu,
            // At most 10 s, by `check`.
            interval_us: u32::try_from(self.interval().as_micros()).unwrap_or(u32::MAX),
            multiplier: self.timing.multiplier,
            queues: self.queues,
            features: self.features,
        }
    }
}

/// After what time without proof a peer with that offer is presumed failed.
pub fn detection(offer: &Offer) -> Duration {
    //= docs/fabric.md#5.1
    let interval = Duration::from_micros(u64::from(offer.interval_us));
    let interval = interval.clamp(limits::ALIVE_INTERVAL_MIN, limits::ALIVE_INTERVAL_MAX);
    let multiplier = offer.multiplier.clamp(limits::ALIVE_MULTIPLIER_MIN, limits::ALIVE_MULTIPLIER_MAX);
    interval * u32::from(multiplier)
}
