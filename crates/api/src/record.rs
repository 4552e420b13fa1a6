//! What the daemon reports: plain values, one record a thing, shared by text, JSON and tests.

use crate::bond::BondSettings;
use crate::class::{ClassRecord, LatencyRecord};
use crate::confirm::ChangeRecord;
use crate::explain::ExplainRecord;
use crate::fabric::{FabricRecord, FabricStatsRecord};
use crate::key::KeyRecord;
use serde::{Deserialize, Serialize};

/// The answer to a word that shows something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// `stats --latency`
    Latency(Vec<LatencyRecord>),
    /// `class show`
    Classes(Vec<ClassRecord>),
    /// `fabric show`, and `show` of a fabric
    Fabrics(Vec<FabricRecord>),
    /// `stats` of fabrics
    FabricStats(Vec<FabricStatsRecord>),
    /// `check`
    Findings(Vec<FindingRecord>),
    /// `explain`
    Explained(Box<ExplainRecord>),
    /// `apply`
    Applied(ApplyRecord),
    /// The change that waits to be confirmed, if there is one
    Changes(Vec<ChangeRecord>),
}

/// What `apply` has done, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ApplyRecord {
    /// The path of the file; of several, one after the other, separated by a comma and a space.
    pub file: String,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// One after the other; none where everything is as the file says.
    pub actions: Vec<ActionRecord>,
    /// Whole lines for the user.
    pub warnings: Vec<String>,
}

/// A step of `apply`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ActionRecord {
    /// The bond or fabric.
    pub object: String,
    /// The command that does it.
    pub command: String,
    /// The file that says so; absent for what no file names any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// How well a bond or fabric works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Every member carries traffic, and nothing bypasses the bond.
    Ok,
    /// It carries traffic, but not with every member, or not all of it.
    Degraded,
    /// It carries no traffic.
    Down,
}

/// A bond, as `show` reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BondRecord {
    /// Its interface name.
    pub name: String,
    /// How well it works.
    pub health: Health,
    /// Why it is not, or an empty string.
    pub reason: String,
    /// Its MAC, that of its first member.
    pub mac: String,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its addresses, `ADDRESS/PREFIX`.
    pub addresses: Vec<String>,
    /// How it carries traffic.
    #[serde(flatten)]
    pub settings: BondSettings,
    /// The stripe in force, in bytes.
    pub stripe_bytes: u32,
    /// The hook the programs sit on: `tcx` or `clsact`.
    pub hook: String,
    /// This host's ARP+ identity, 32 hexadecimal digits.
    pub host_id: String,
    /// The keys of ARP+, without their secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<KeyRecord>,
    /// The state of ARP+: `S0` to `S3`.
    pub arp_plus_state: String,
    /// Hosts in the ARP+ table.
    pub peers: u32,
    /// The members, in order.
    pub members: Vec<MemberRecord>,
    /// Members whose interfaces are gone, or are back and were refused, which a finding says; each joins again as soon as it can.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Machines and containers behind the bond that have named an address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestRecord>,
    /// Addresses and routes that came from a member and go back to it.
    pub moved: Vec<AddressMove>,
    /// Conflicts seen: another host claims our address or MAC. One sentence each.
    pub conflicts: Vec<String>,
    /// What else is not as it is to be, with a command that helps, as `check` says it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingRecord>,
    /// What happened lately, oldest first; a bounded number.
    pub events: Vec<EventRecord>,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The bond itself.
    Bond,
    /// A member.
    Member,
    /// A lane.
    Lane,
    /// A peer.
    Peer,
    /// Another host claims what is ours.
    Conflict,
    /// A fabric itself.
    Fabric,
    /// Another node of a fabric.
    Node,
    /// Events were lost because the client read too slowly.
    Lost,
}

/// Something that changed: what, when, why, and how long it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventRecord {
    /// When, in milliseconds since 1970 (UTC).
    pub time_ms: u64,
    /// The bond; or the fabric, where it is about that or one of its nodes.
    pub bond: String,
    /// What it is about.
    pub kind: EventKind,
    /// Its name: the bond's, the member's, `MEMBER > PEER (MAC)` for a lane, the peer's address, a fabric's, a node's number.
    pub object: String,
    /// What it was; absent if it is new.
    pub old: Option<String>,
    /// What it is; absent if it is gone.
    pub new: Option<String>,
    /// Why, as a word that is never renamed, such as `no_carrier`.
    pub reason: String,
    /// Why, in words.
    pub text: String,
    /// How long it took to detect the change or to recover, in microseconds, if that is known.
    pub took_us: Option<u64>,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// It works, but badly.
    Warning,
    /// It does not work.
    Error,
}

/// One thing that `check` looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingRecord {
    /// The severity of the finding.
    pub severity: Severity,
    /// The interface, the bond, or `this machine`.
    pub object: String,
    /// What was looked at, as a word that is never renamed, such as `duplex`.
    pub name: String,
    /// What was found, in words.
    pub text: String,
    /// A command that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// An address that moved from a member to the bond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AddressMove {
    /// `ADDRESS/PREFIX`.
    pub address: String,
    /// The member it came from.
    pub member: String,
}

/// A member of a bond, as `show` reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemberRecord {
    /// Its interface name.
    pub interface: String,
    /// Its own MAC.
    pub mac: String,
    /// Whether it is ready to carry traffic: in the bond for good, up and with carrier.
    pub live: bool,
    /// Why it carries none, or an empty string; also of one that is ready, where none of its lanes is proven.
    pub reason: String,
    /// The link's own speed in Mbit/s, if its driver reports one.
    pub speed_mbit: Option<u32>,
    /// Its share in Mbit/s, as its link or the user tells.
    pub weight_mbit: u32,
    /// The most that was measured to leave by it to one peer, in kbit/s; absent while nothing has waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_kbit: Option<u32>,
    /// What its share comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_from: Option<ShareFrom>,
    /// Which of the bond's members hear each other: those with the same number.
    pub segment: u32,
    /// Whether broadcasts of its segment are taken in here.
    pub elected: bool,
    /// Frames that left through it since it joined.
    pub tx_frames: u64,
    /// Bytes that left through it, with Ethernet headers.
    pub tx_bytes: u64,
    /// Frames received by it.
    pub rx_frames: u64,
    /// Bytes received by it, with Ethernet headers.
    pub rx_bytes: u64,
    /// The class that it is a member of; absent: it carries all other traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}

/// A guest behind a bond, here or at a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GuestRecord {
    /// Its MAC.
    pub mac: String,
    /// The VLAN that its frames carry the tag of; 0: none.
    pub vlan: u16,
    /// Its addresses there.
    pub addresses: Vec<String>,
    /// Whether its frames go over all lanes to peers that give guests' frames their MACs back.
    pub striped: bool,
    /// Why not, or an empty string.
    pub reason: String,
    /// The members by which plain hosts reach it, one for each segment: a switch has its MAC on their ports. Of a peer's guest
    /// they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}

/// The life of a peer in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PeerState {
    /// It was heard recently.
    Alive,
    /// It has not been heard for a while; its entry is kept a little longer.
    Silent,
}

/// One host of the ARP+ table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeerRecord {
    /// The bond it is a peer of.
    pub bond: String,
    /// Its IP address, if it has announced one.
    pub address: Option<String>,
    /// Its identity, 32 hexadecimal digits; absent for a host that speaks only the published part.
    pub host_id: Option<String>,
    /// Its epoch: grows each time it starts.
    pub epoch: Option<u64>,
    /// Whether it was heard recently.
    pub state: PeerState,
    /// The MAC that neighbours resolve it to.
    pub mac: String,
    /// Its members.
    pub members: Vec<PeerMemberRecord>,
    /// Milliseconds since it was last heard.
    pub heard_ms: u64,
    /// Whether it has answered a probe in its present life; anybody on the wire can make up one that has not.
    #[serde(default)]
    pub proven: bool,
    /// The guests that it announces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestRecord>,
}

/// A member of a peer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeerMemberRecord {
    /// Its MAC.
    pub mac: String,
    /// Whether the peer takes traffic there.
    pub live: bool,
    /// Its weight in Mbit/s, if the peer announces one.
    pub weight_mbit: Option<u32>,
    /// The name of the peer's class that it is a member of; absent: it carries all other traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}

/// What the shares of a plan's lanes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShareFrom {
    /// What is told: nothing was measured, or the same.
    Told,
    /// What was measured, which is something else.
    Measured,
    /// What the user says, whatever is measured (`--weight-fixed`).
    Fixed,
}

/// A lane, as `lanes` reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LaneRecord {
    /// The interface name of the bond.
    pub bond: String,
    /// The peer's address, or its MAC if it has none; `plain hosts` for the lanes to all others.
    pub peer: String,
    /// The interface name of our member.
    pub member: String,
    /// The peer's MAC this lane ends at; absent towards plain hosts.
    pub peer_mac: Option<String>,
    /// What is known of it: `up`, `suspect`, `init`, `down`, `cut` by its probes, or `heard` where it is not probed.
    pub state: String,
    /// The number of the plan that it is in. A class without a plan of its own has that of all other traffic, with the same counts;
    /// absent for a lane that is in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<u32>,
    /// The lane's share of the plan, in parts of a million; 0 for a lane that is not in it.
    pub share_ppm: u32,
    /// Frames sent over it under the plan in force.
    pub tx_frames: u64,
    /// Bytes sent over it under the plan in force.
    pub tx_bytes: u64,
    /// What the links at both ends say that it carries, in kbit/s, or what the user says; absent for a lane that is not in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_kbit: Option<u32>,
    /// What it was measured to carry, in kbit/s; absent while nothing has waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_kbit: Option<u32>,
    /// What its share comes from; absent for a lane that is not in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_from: Option<ShareFrom>,
    /// The class whose frames the plan is for; absent: all other traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The class that lends this lane to all other traffic while it has nothing to send; absent: it is not lent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrowed_from: Option<String>,
}

/// The counters of a bond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatsRecord {
    /// The interface name of the bond.
    pub bond: String,
    /// One counter a reason, in the order of their numbers.
    pub counters: Vec<CounterRecord>,
}

/// One numbered reason of the data path or of ARP+.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CounterRecord {
    /// Its name, never renamed.
    pub name: String,
    /// Its number, never reused.
    pub number: u32,
    /// One sentence for people.
    pub description: String,
    /// `pass`, `drop`, `sent` or `protocol`.
    pub verdict: String,
    /// How many frames.
    pub frames: u64,
    /// How many bytes; 0 where bytes are not counted.
    pub bytes: u64,
}
