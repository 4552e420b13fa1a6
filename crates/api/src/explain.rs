//! `explain`: one frame of a flow, and what the data path decides about it, step by step.

use crate::{LinkName, value};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr, str::FromStr};

/// The source port of a flow that names none: the first one of those for clients (RFC 6335, section 6).
pub const SOURCE_PORT: u16 = 49_152;
/// The destination port of a flow that names none: discard (RFC 863).
pub const DESTINATION_PORT: u16 = 9;

/// What the text of a flow looks like.
const ALLOWED: &str = "write 'tcp ADDRESS[:PORT] > ADDRESS[:PORT]', with tcp, udp or icmp, such as 'tcp 198.18.0.1 > 198.18.0.2:445'";

/// The protocol of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP, or ICMPv6: an echo request. It has no ports.
    Icmp,
}

impl FlowProtocol {
    const ALL: [(Self, &'static str); 3] = [(Self::Tcp, "tcp"), (Self::Udp, "udp"), (Self::Icmp, "icmp")];

    fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(one, _)| *one == self).map_or("", |(_, word)| word)
    }

    /// Whether it has ports.
    pub const fn has_ports(self) -> bool {
        !matches!(self, Self::Icmp)
    }
}

/// A flow: `tcp 198.18.0.1:49152 > 198.18.0.2:445`, with IPv6 addresses in brackets where a port follows. Text is the form of the
/// command and of JSON. Both addresses are of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Flow {
    /// Its protocol.
    pub protocol: FlowProtocol,
    /// Where it comes from.
    pub source: IpAddr,
    /// The port there; [`SOURCE_PORT`] where none is named, 0 without ports.
    pub source_port: u16,
    /// Where it goes.
    pub destination: IpAddr,
    /// The port there; [`DESTINATION_PORT`] where none is named, 0 without ports.
    pub destination_port: u16,
}

impl FromStr for Flow {
    type Err = String;

    /// Reads a flow; a refusal is a cause.
    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("'{text}' is not a flow; {ALLOWED}");
        let (word, ends) = text.trim().split_once(' ').ok_or_else(refused)?;
        let (from, to) = ends.split_once('>').ok_or_else(refused)?;
        let found = FlowProtocol::ALL.into_iter().find(|(_, known)| *known == word);
        let Some((protocol, _)) = found else {
            return Err(format!("'{word}' is not a protocol of flows; allowed are tcp, udp and icmp"));
        };
        let (source, source_port) = end(from.trim(), protocol, SOURCE_PORT)?;
        let (destination, destination_port) = end(to.trim(), protocol, DESTINATION_PORT)?;
        if source.is_ipv4() != destination.is_ipv4() {
            return Err(format!(
                "{source} and {destination} are of different families; give two of IPv4 or two of IPv6"
            ));
        }
        Ok(Self { protocol, source, source_port, destination, destination_port })
    }
}

/// One end of a flow: `ADDRESS`, `ADDRESS:PORT` or `[ADDRESS]:PORT`.
fn end(text: &str, protocol: FlowProtocol, default: u16) -> Result<(IpAddr, u16), String> {
    let (address, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, "")) => (address, None),
            Some((address, port)) => (address, Some(port.strip_prefix(':').unwrap_or(port))),
            None => (text, None),
        },
        // An IPv6 address without brackets has no port.
        None => match text.split_once(':') {
            Some((address, port)) if !port.contains(':') => (address, Some(port)),
            _ => (text, None),
        },
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return Err(format!("'{text}' is not an address with or without a port; {ALLOWED}"));
    };
    let port = match port {
        Some(_) if !protocol.has_ports() => {
            return Err(format!("'{text}' has a port, and icmp has none"));
        }
        None if !protocol.has_ports() => 0,
        None => default,
        Some(port) => value::port(port)?,
    };
    Ok((address, port))
}

impl fmt::Display for Flow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |address: IpAddr, port: u16| match address {
            _ if !self.protocol.has_ports() => address.to_string(),
            IpAddr::V4(_) => format!("{address}:{port}"),
            IpAddr::V6(_) => format!("[{address}]:{port}"),
        };
        let (from, to) = (end(self.source, self.source_port), end(self.destination, self.destination_port));
        write!(out, "{} {from} > {to}", self.protocol.word())
    }
}

impl TryFrom<String> for Flow {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Flow> for String {
    fn from(flow: Flow) -> Self {
        flow.to_string()
    }
}

/// `explain BOND FLOW`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// The bond
    pub bond: LinkName,

    /// The flow: 'tcp ADDRESS[:PORT] > ADDRESS[:PORT]', with tcp, udp or icmp. The source is this host or a guest of the bond. An
    /// IPv6 address with a port is in brackets
    pub flow: Flow,

    /// The differentiated services codepoint of the frame, 0 to 63 or a name such as ef [default: 0]
    #[arg(long, value_name = "DSCP", value_parser = value::dscp)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,

    /// The socket's priority (SO_PRIORITY) [default: 0]
    #[arg(long, value_name = "N", value_parser = value::priority)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,

    /// The firewall mark of the frame, decimal or behind 0x [default: 0]
    #[arg(long, value_name = "MARK", value_parser = value::mark)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fwmark: Option<u32>,
}

/// What `explain` found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplainRecord {
    /// The bond.
    pub bond: String,
    /// The flow, whole.
    pub flow: Flow,
    /// Whether the frame would be sent.
    pub sent: bool,
    /// The counter of `stats` that it would be counted by.
    pub reason: String,
    /// The member that it would leave by; absent where it is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The member that the copy of a mirrored frame would leave by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_member: Option<String>,
    /// Its class; absent: the default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The source MAC that it would leave with.
    pub source_mac: String,
    /// The destination MAC that it would leave with.
    pub destination_mac: String,
    /// Each decision with its reason, in their order.
    pub steps: Vec<StepRecord>,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepRecord {
    /// What is decided, as a word that is never renamed, such as `class`.
    pub name: String,
    /// The decision and its reason, in words.
    pub text: String,
    /// The lanes to choose from, in the step `plan`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<StepLaneRecord>,
}

/// A lane that a frame could take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepLaneRecord {
    /// The interface name of our member.
    pub member: String,
    /// The peer's MAC that it ends at; absent towards plain hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_mac: Option<String>,
    /// What it is told or measured to carry, in kbit/s: its part of the traffic is in proportion.
    pub kbit: u32,
    /// Its part of the traffic, in parts of a million; 0 for a borrowed lane.
    pub share_ppm: u32,
    /// How many bytes it is ahead of the lane that is furthest behind; absent where nothing was sent by these lanes yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_bytes: Option<u64>,
    /// The class that lends it while it has nothing to send; absent: it is not lent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrowed_from: Option<String>,
    /// Whether the frame may not take it now: its member has failed, or the class that lends it is busy.
    pub avoided: bool,
    /// Whether the frame takes it.
    pub taken: bool,
}

#[cfg(test)]
mod tests;
