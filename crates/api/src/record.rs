//! What the daemon tells: plain values, one record a thing, shared by text, JSON and tests.

use crate::request::{Policy, Stripe};
use serde::{Deserialize, Serialize};

/// The answer to `show`, `peers`, `lanes` and `stats`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Records {
    /// `show`
    Bonds(Vec<BondRecord>),
    /// `peers`
    Peers(Vec<PeerRecord>),
    /// `lanes`
    Lanes(Vec<LaneRecord>),
    /// `stats`
    Stats(Vec<StatsRecord>),
}

/// Is it well?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Every member carries traffic.
    Ok,
    /// Some members carry traffic.
    Degraded,
    /// No member carries traffic.
    Down,
}

/// One bond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BondRecord {
    /// Its interface name.
    pub name: String,
    /// Whether it is well.
    pub health: Health,
    /// Why it is not, or an empty string.
    pub reason: String,
    /// Its MAC, that of its first member.
    pub mac: String,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its addresses, `ADDRESS/PREFIX`.
    pub addresses: Vec<String>,
    /// How traffic spreads.
    pub policy: Policy,
    /// The stripe as asked for.
    pub stripe: Stripe,
    /// The stripe in force, in bytes.
    pub stripe_bytes: u32,
    /// Whether duplicate ACKs of striped flows are damped.
    pub damping: bool,
    /// The hook the programs sit on: `tcx` or `clsact`.
    pub hook: String,
    /// This host's ARP+ identity, 32 hexadecimal digits.
    pub host_id: String,
    /// The state of ARP+: `S0` to `S3`.
    pub arp_plus_state: String,
    /// Hosts in the ARP+ table.
    pub peers: u32,
    /// The members, in order.
    pub members: Vec<MemberRecord>,
    /// Addresses and routes that came from a member and go back to it.
    pub moved: Vec<AddressMove>,
    /// Conflicts seen: another host claims our address or MAC. One sentence each.
    pub conflicts: Vec<String>,
}

/// An address that moved from a member to the bond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressMove {
    /// `ADDRESS/PREFIX`.
    pub address: String,
    /// The member it came from.
    pub member: String,
}

/// One member of a bond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// Its interface name.
    pub interface: String,
    /// Its own MAC.
    pub mac: String,
    /// Whether it carries traffic.
    pub live: bool,
    /// Why it does not, or an empty string.
    pub reason: String,
    /// The link's own speed in Mbit/s, if it tells one.
    pub speed_mbit: Option<u32>,
    /// Its share in Mbit/s.
    pub weight_mbit: u32,
    /// Which of the bond's members hear each other: those with the same number.
    pub segment: u32,
    /// Whether broadcasts of its segment are taken in here.
    pub elected: bool,
    /// Frames that left through it since it joined.
    pub tx_frames: u64,
    /// Bytes that left through it, with Ethernet headers.
    pub tx_bytes: u64,
    /// Frames taken in from it.
    pub rx_frames: u64,
    /// Bytes taken in from it.
    pub rx_bytes: u64,
}

/// The life of a peer in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerState {
    /// It speaks and is heard.
    Alive,
    /// It has not been heard for a while; its entry is kept a little longer.
    Silent,
}

/// One host of the ARP+ table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerRecord {
    /// The bond it is a peer of.
    pub bond: String,
    /// Its IP address, if it has told one.
    pub address: Option<String>,
    /// Its identity, 32 hexadecimal digits; absent for a host that speaks only the published part.
    pub host_id: Option<String>,
    /// Its epoch: grows each time it starts.
    pub epoch: Option<u64>,
    /// Its life.
    pub state: PeerState,
    /// The MAC that neighbours resolve it to.
    pub mac: String,
    /// Its members.
    pub members: Vec<PeerMemberRecord>,
    /// Milliseconds since it was last heard.
    pub heard_ms: u64,
}

/// One member of a peer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerMemberRecord {
    /// Its MAC.
    pub mac: String,
    /// Whether the peer takes traffic there.
    pub live: bool,
    /// Its share in Mbit/s, if told.
    pub weight_mbit: Option<u32>,
}

/// One lane of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneRecord {
    /// The bond.
    pub bond: String,
    /// The peer's address, or its MAC if it has none; `plain hosts` for the lanes to all others.
    pub peer: String,
    /// Our member.
    pub member: String,
    /// The peer's MAC this lane ends at; absent towards plain hosts.
    pub peer_mac: Option<String>,
    /// The lane's share of the plan, in parts of a million.
    pub share_ppm: u32,
    /// Frames sent over it under the plan in force.
    pub tx_frames: u64,
    /// Bytes sent over it under the plan in force.
    pub tx_bytes: u64,
}

/// The counters of one bond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatsRecord {
    /// The bond.
    pub bond: String,
    /// One counter a reason, in the order of their numbers.
    pub counters: Vec<CounterRecord>,
}

/// One numbered reason of the data path or of ARP+.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterRecord {
    /// Its name, never renamed.
    pub name: String,
    /// Its number, never reused.
    pub number: u32,
    /// One sentence.
    pub description: String,
    /// `pass`, `drop`, `sent` or `protocol`.
    pub verdict: String,
    /// How many frames.
    pub frames: u64,
    /// How many bytes; 0 where bytes are not counted.
    pub bytes: u64,
}
