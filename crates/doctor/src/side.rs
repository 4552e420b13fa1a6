//! What one host knows of itself and of its lanes to the other.

use linkbraid_api::{BondRecord, FindingRecord, LaneRecord, Policy, Severity, ShareFrom};
use serde::{Deserialize, Serialize};
use std::fs;

/// A member, as its own host sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its interface.
    pub name: String,
    /// Its MAC.
    pub mac: String,
    /// Whether it is ready to carry traffic.
    pub live: bool,
    /// Why not.
    pub reason: String,
    /// The class that it is reserved for.
    pub class: Option<String>,
    /// Its weight in Mbit/s is the user's, whatever is measured.
    pub fixed_mbit: Option<u32>,
    /// Bytes sent and received since it joined.
    pub bytes: u64,
    /// Whether it stops sending while the switch asks for that (flow control); none: it does not say.
    #[serde(default)]
    pub heeds_pause: Option<bool>,
}

/// A lane of the default class to the other host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The own member.
    pub member: String,
    /// The MAC of the other host's.
    pub peer_mac: String,
    /// Its state, as `linkbraid lanes` says it.
    pub state: String,
    /// Its share of what is sent, in parts of a million.
    pub share_ppm: u32,
}

/// One of the two hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Its bond.
    pub bond: String,
    /// The MTU of the bond.
    pub mtu: u32,
    /// How the bond distributes frames.
    pub policy: Policy,
    /// Whether senders are spared reordering.
    pub damping: bool,
    /// Its members.
    pub members: Vec<Member>,
    /// Members that are named and not there.
    pub absent: Vec<String>,
    /// Its lanes to the other host.
    pub lanes: Vec<Lane>,
    /// What `check` finds amiss.
    pub findings: Vec<FindingRecord>,
    /// TCP's congestion control.
    pub congestion: String,
    /// Most bytes of a TCP socket's receive buffer.
    pub receive_buffer: u64,
    /// Most bytes of a TCP socket's send buffer.
    pub send_buffer: u64,
}

impl Side {
    /// From what the daemon says, for the lanes to a peer of that name (its address, or its MAC).
    pub fn of(bond: &BondRecord, lanes: &[LaneRecord], peer: &str, findings: &[FindingRecord]) -> Self {
        let members = bond.members.iter().map(|member| Member {
            name: member.interface.clone(),
            mac: member.mac.clone(),
            live: member.live,
            reason: member.reason.clone(),
            class: member.class.clone(),
            fixed_mbit: (member.share_from == Some(ShareFrom::Fixed)).then_some(member.weight_mbit),
            bytes: member.tx_bytes + member.rx_bytes,
            heeds_pause: linkbraid_link::heeds_pause(&member.interface),
        });
        let ours =
            lanes.iter().filter(|lane| lane.bond == bond.name && lane.peer == peer && lane.class.is_none());
        let lanes = ours.filter_map(|lane| {
            Some(Lane {
                member: lane.member.clone(),
                peer_mac: lane.peer_mac.clone()?,
                state: lane.state.clone(),
                share_ppm: lane.share_ppm,
            })
        });
        Self {
            bond: bond.name.clone(),
            mtu: bond.mtu,
            policy: bond.settings.policy,
            damping: bond.settings.damping,
            members: members.collect(),
            absent: bond.absent.clone(),
            lanes: lanes.collect(),
            findings: findings.iter().filter(|finding| finding.severity != Severity::Ok).cloned().collect(),
            congestion: setting("tcp_congestion_control").unwrap_or_default(),
            receive_buffer: most("tcp_rmem"),
            send_buffer: most("tcp_wmem"),
        }
    }

    /// What `check` has found of that name.
    pub fn finding(&self, name: &str) -> Option<&FindingRecord> {
        self.findings.iter().find(|finding| finding.name == name)
    }

    /// The members that carry what no class has for itself.
    pub fn default_members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.class.is_none())
    }
}

/// What the kernel's network namespace says of TCP.
fn setting(name: &str) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?.trim().to_owned())
}

/// The last of a setting's three numbers; 0: not known.
fn most(name: &str) -> u64 {
    setting(name).and_then(|text| text.split_whitespace().last()?.parse().ok()).unwrap_or(0)
}
