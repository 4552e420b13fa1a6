//! Fabrics: Ethernet interfaces whose frames travel over whatever the nodes share.

use crate::{
    CounterRecord, EventRecord, Health, LinkName,
    key::{Auth, KeyRecord, KeySource},
    options::options,
    value::{self, Number, words},
};
use clap::{ArgGroup, Args, ValueEnum};
use serde::{Deserialize, Serialize};

options! {
    /// How a fabric carries frames.
    FabricOptions / FabricSettings of "fabric";
    /// MTU in bytes, the same on all nodes
    // That of other Ethernet interfaces, which it may be bridged with.
    mtu ("mtu"): FabricMtu = Number(1500);
    /// How its threads wait for frames: adaptive, busy or sleep
    poll ("poll"): Poll = Poll::Adaptive;
    /// The keys of its nodes: none, the whole path of a key file, or credential:NAME
    key ("key"): KeySource = KeySource::None;
    /// Which nodes are believed: off (all), permit (all, and own control messages are signed), require (those that have the
    /// key)
    auth ("auth"): Auth = Auth::Off;
    /// Whether frames are encrypted, with keys made of that key: off or on; on needs auth require and the transport udp:, which
    /// does not use VXLAN then
    encrypt ("encrypt"): Encrypt = Encrypt::Off;
}

/// Whether frames are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Encrypt {
    /// Who sees the packets can read and change frames.
    #[default]
    Off,
    /// Frames are encrypted, and those that are not are refused. A node without encryption is not connected.
    On,
}

words!(Encrypt, "WORD");

/// An MTU in bytes: from what IPv6 needs (RFC 8200, section 5) to what the kernel gives a TAP device (drivers/net/tun.c).
pub type FabricMtu = Number<1280, 65_521>;

/// How the threads of a fabric wait for frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Poll {
    /// They spin for as long as that has been worthwhile lately, then sleep.
    #[default]
    Adaptive,
    /// They always spin, which takes one processor for each queue.
    Busy,
    /// They sleep whenever there is nothing to do.
    Sleep,
}

words!(Poll, "HOW");

/// `fabric add NAME --node N --nodes M --transport URL`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FabricAdd {
    /// The name of the new interface, such as fab0
    pub name: LinkName,
    /// The number of this node, from 0
    #[arg(long, value_name = "N", value_parser = value::node)]
    pub node: u16,
    /// The number of nodes, 2 to 512, the same on all nodes
    #[arg(long, value_name = "M", value_parser = value::nodes)]
    pub nodes: u16,
    /// What carries the frames: shm:PATH, udp:FILE, udp:etcd://HOST:PORT/NAME or ofi:PROVIDER,FILE
    #[arg(long, value_name = "URL")]
    pub transport: String,
    /// The options that are given.
    #[command(flatten)]
    #[serde(flatten)]
    pub options: FabricOptions,
    /// Its MAC [default: derived from the fabric's name and the node's number]
    #[arg(long, value_name = "MAC")]
    #[serde(default)]
    pub mac: Option<String>,
    /// Queues, each with a thread of its own, 1 to 64, the same on all nodes [default: 1]
    #[arg(long, value_name = "N", value_parser = value::queues)]
    #[serde(default)]
    pub queues: Option<u16>,
    /// An IPv4 or IPv6 address for the interface. May be repeated
    #[arg(long = "address", value_name = "CIDR", num_args = 1, value_parser = value::cidr)]
    #[serde(default)]
    pub addresses: Vec<String>,
}

impl FabricAdd {
    /// What is in force where these options are given.
    pub fn settings(&self) -> FabricSettings {
        FabricSettings::default().with(&self.options)
    }
}

/// `fabric set NAME ...`: only what is given changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[group(skip)]
#[command(
    group = ArgGroup::new("change")
        .required(true)
        .multiple(true)
        .args(FabricOptions::ids())
        .args(["nodes", "addresses"])
)]
pub struct FabricSet {
    /// The fabric
    pub name: LinkName,
    /// The options that are given.
    #[command(flatten)]
    #[serde(flatten)]
    pub options: FabricOptions,
    /// A higher number of nodes, up to 512; this node restarts its session
    #[arg(long, value_name = "M", value_parser = value::nodes, conflicts_with = "addresses")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u16>,
    /// An address for the interface; replaces those given with this option before, others stay. May be repeated
    #[arg(long = "address", value_name = "CIDR", num_args = 1, value_parser = value::cidr)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
}

/// `fabric del NAME`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FabricDel {
    /// The fabric
    pub name: LinkName,
}

/// The state of another node of a fabric, as this node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// Frames flow.
    Up,
    /// Nothing is received from it.
    Down,
    /// It answers, but one of the two refuses the other.
    Refused,
    /// The directory does not have it, and it is not up: it has not joined yet, or has left.
    Absent,
}

/// A fabric, as `fabric show` reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FabricRecord {
    /// Its interface name.
    pub name: String,
    /// Whether all other nodes are up, some, or none.
    pub health: Health,
    /// Why it is not well, or an empty string.
    pub reason: String,
    /// The number of this node.
    pub node: u16,
    /// The number of nodes.
    pub nodes: u16,
    /// The URL of the transport.
    pub transport: String,
    /// Its MAC.
    pub mac: String,
    /// How it carries frames.
    #[serde(flatten)]
    pub settings: FabricSettings,
    /// The keys in use, without their secrets.
    #[serde(default)]
    pub keys: Vec<KeyRecord>,
    /// Its addresses, `ADDRESS/PREFIX`.
    pub addresses: Vec<String>,
    /// Queues, each with a thread of its own.
    pub queues: u16,
    /// This start of this node; absent while it does not run.
    pub epoch: Option<u64>,
    /// Bytes of memory that it shares with the other nodes, for each node; absent where none is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_memory_bytes: Option<u64>,
    /// The same for all nodes together: the size of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// What the kernel leaves to the receiver: `checksum`, `tso`, `uso`.
    pub offloads: Vec<String>,
    /// The VXLAN fast path; absent where the transport has none or forbids it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vxlan: Option<FabricVxlanRecord>,
    /// Processor time of its threads since it started, in milliseconds.
    pub cpu_ms: u64,
    /// Of that, their share of one processor lately, in parts of a million; more than a million with several queues.
    pub cpu_ppm: u32,
    /// The other nodes, by number.
    pub peers: Vec<FabricPeerRecord>,
    /// What happened lately, oldest first; a bounded number.
    pub events: Vec<EventRecord>,
}

/// The VXLAN fast path of a fabric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FabricVxlanRecord {
    /// Its UDP port, or the one that it wants; 0 where it can have none.
    pub port: u16,
    /// The hook that its programs sit on, `tcx` or `clsact`; absent while it is not used.
    pub hook: Option<String>,
    /// Why it is not used, or an empty string.
    pub reason: String,
}

/// What the VXLAN fast path carries between this node and another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FabricPeerVxlanRecord {
    /// Whether frames to the node take it.
    pub taken: bool,
    /// Why they do not, or not all of them; an empty string if all do.
    pub reason: String,
    /// Frames sent over it, which are included in all that were sent.
    pub tx_frames: u64,
    /// Bytes of these frames.
    pub tx_bytes: u64,
    /// Frames received over it, which are included in all that were received.
    pub rx_frames: u64,
    /// Bytes of these frames.
    pub rx_bytes: u64,
}

/// One other node of a fabric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FabricPeerRecord {
    /// The number of the node.
    pub node: u16,
    /// Its state, as this node sees it.
    pub state: NodeState,
    /// Why it is not up, or an empty string.
    pub reason: String,
    /// Its epoch, while it is up.
    pub epoch: Option<u64>,
    /// Milliseconds since it entered this state.
    pub since_ms: u64,
    /// Milliseconds since it was last heard; absent if it never was.
    pub heard_ms: Option<u64>,
    /// The published number of the queue to it.
    pub send_queue: u32,
    /// The published number of the queue from it.
    pub receive_queue: u32,
    /// Frames sent to it.
    pub tx_frames: u64,
    /// Bytes sent to it, with Ethernet headers.
    pub tx_bytes: u64,
    /// Frames received from it.
    pub rx_frames: u64,
    /// Bytes received from it, with Ethernet headers.
    pub rx_bytes: u64,
    /// Frames to it or from it that were dropped.
    pub dropped_frames: u64,
    /// Bytes that wait for it in the transport.
    pub queued_bytes: u64,
    /// What the VXLAN fast path carries; absent where the transport has none or forbids it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vxlan: Option<FabricPeerVxlanRecord>,
}

/// The counters of one fabric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FabricStatsRecord {
    /// The name of the fabric.
    pub fabric: String,
    /// Processor time of its threads since it started, in milliseconds.
    #[serde(default)]
    pub cpu_ms: u64,
    /// Of that, their share of one processor lately, in parts of a million; more than a million with several queues.
    #[serde(default)]
    pub cpu_ppm: u32,
    /// Those of all nodes together, in the order of their numbers.
    pub counters: Vec<CounterRecord>,
    /// Those that are counted for each node.
    pub peers: Vec<FabricPeerStats>,
}

/// The counters of one other node of a fabric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FabricPeerStats {
    /// The number of the node.
    pub node: u16,
    /// Bytes that wait for it in the transport.
    #[serde(default)]
    pub queued_bytes: u64,
    /// Round-trip times; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<RoundTripRecord>,
    /// In the order of their numbers.
    pub counters: Vec<CounterRecord>,
}

/// Round-trip times of session messages to another node, in nanoseconds, since this node started.
///
/// They are measured some times a second, under load and without, through the queues that frames use. They include the time
/// until both ends read the message, and one clock, this node's own, measures both ends of the interval. The quantiles are
/// right to one part in a hundred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RoundTripRecord {
    /// The number of round trips measured.
    pub count: u64,
    /// The shortest round trip.
    pub min_ns: u64,
    /// Half took at most this.
    pub p50_ns: u64,
    /// Nine of ten took at most this.
    pub p90_ns: u64,
    /// 99 of 100 took at most this.
    pub p99_ns: u64,
    /// 999 of 1000 took at most this.
    #[serde(default)]
    pub p999_ns: u64,
    /// The longest round trip.
    pub max_ns: u64,
    /// All together.
    #[serde(default)]
    pub sum_ns: u64,
    /// How many took how long, shortest first; those that have none are left out.
    #[serde(default)]
    pub histogram: Vec<LatencyBucket>,
}

/// The number of those that took less than `below_ns`, a power of two, and at least half of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyBucket {
    /// The upper limit, in nanoseconds, which none of them reaches.
    pub below_ns: u64,
    /// The number of round trips.
    pub count: u64,
}
