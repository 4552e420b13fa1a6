//! Text becomes a rule, or one line that says why not.

use super::{IPV4, IPV6, Rule, masked};
use crate::{
    Error, limits,
    value::{self, DSCPS, hex_or_digits, long_digits as digits},
};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// The command that explains all conditions.
const HINT: &str = "linkbraid class add --help";

/// EtherTypes of VLAN tags (IEEE 802.1Q): rules look behind them.
const VLAN_TAGS: [u16; 2] = [0x8100, 0x88a8];

/// The least EtherType; below it the field is a length (IEEE 802.3, clause 3.2.6).
const ETHERTYPE_MIN: u32 = 0x600;

/// What failed, and its cause.
struct Refusal(String, String);

impl Refusal {
    fn new(what: impl Into<String>, cause: impl Into<String>) -> Self {
        Self(what.into(), cause.into())
    }
}

/// Reads a whole rule.
pub fn rule(text: &str) -> Result<Rule, Error> {
    let refused = |Refusal(what, cause)| Error::new(object(text), what, cause).hint(HINT);
    let rule = conditions(text).map_err(refused)?;
    can_match(&rule).map_err(refused)?;
    Ok(rule)
}

/// The rule as it was written, or its beginning where it is far too long.
fn object(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("rule '{}...'", &text[..end]),
        None => format!("rule '{text}'"),
    }
}

fn conditions(text: &str) -> Result<Rule, Refusal> {
    if text.is_empty() {
        return Err(Refusal::new("no condition", "write at least one, such as tcp-port=22"));
    }
    if text.len() > limits::RULE_BYTES_MAX {
        return Err(Refusal::new("too long", format!("at most {} bytes", limits::RULE_BYTES_MAX)));
    }
    let mut rule = Rule::default();
    for condition in text.split(',') {
        let Some((name, value)) = condition.split_once('=') else {
            let cause = format!("'{condition}'; write CONDITION=VALUE, with a comma between two");
            return Err(Refusal::new("not a condition", cause));
        };
        let first = match name {
            "priority" => put(&mut rule.priority, number("priority", value, 0, u32::MAX)?),
            "dscp" => put(&mut rule.dscp, dscp(value)?),
            "fwmark" => put(&mut rule.fwmark, fwmark(value)?),
            "tcp-port" => put(&mut rule.tcp_port, ports(value)?),
            "udp-port" => put(&mut rule.udp_port, ports(value)?),
            "host" => put(&mut rule.host, host(value)?),
            "ethertype" => put(&mut rule.ethertype, ethertype(value)?),
            "cgroup" => put(&mut rule.cgroup, cgroup(value)?),
            _ => {
                let known = "priority, dscp, fwmark, tcp-port, udp-port, host, ethertype, cgroup";
                return Err(Refusal::new("no such condition", format!("'{name}'; allowed are {known}")));
            }
        };
        if !first {
            let cause = format!("'{name}' twice; give each of both a --match of its own");
            return Err(Refusal::new("condition repeated", cause));
        }
    }
    Ok(rule)
}

/// Whether the place was empty.
fn put<T>(place: &mut Option<T>, value: T) -> bool {
    place.replace(value).is_none()
}

/// Conditions that exclude each other, each as short as a user can act upon it.
fn can_match(rule: &Rule) -> Result<(), Refusal> {
    let never = |cause: &str| Err(Refusal::new("cannot match", cause));
    if rule.tcp_port.is_some() && rule.udp_port.is_some() {
        return never("no frame is both TCP and UDP; give each a --match of its own");
    }
    let Some(ethertype) = rule.ethertype else { return Ok(()) };
    if VLAN_TAGS.contains(&ethertype) {
        return never("VLAN tags are looked behind; give the EtherType of what is tagged");
    }
    let is_ip = [IPV4, IPV6].contains(&ethertype);
    for (name, given) in [
        ("dscp", rule.dscp.is_some()),
        ("tcp-port", rule.tcp_port.is_some()),
        ("udp-port", rule.udp_port.is_some()),
        ("host", rule.host.is_some()),
    ] {
        if given && !is_ip {
            return never(&format!(
                "{name} is of IPv4 and IPv6, whose EtherTypes are {IPV4:#06x} and {IPV6:#06x}"
            ));
        }
    }
    match rule.host {
        Some((IpAddr::V4(_), _)) if ethertype != IPV4 => {
            never("the host's address is IPv4, the EtherType is that of IPv6")
        }
        Some((IpAddr::V6(_), _)) if ethertype != IPV6 => {
            never("the host's address is IPv6, the EtherType is that of IPv4")
        }
        _ => Ok(()),
    }
}

fn dscp(text: &str) -> Result<u8, Refusal> {
    value::dscp(text).map_err(|_| match digits(text) {
        Some(_) => Refusal::new("dscp out of range", DSCPS),
        None => Refusal::new("no such dscp", format!("'{text}'; allowed are {DSCPS}")),
    })
}

fn fwmark(text: &str) -> Result<(u32, u32), Refusal> {
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => (value, number("mask", mask, 0, u32::MAX)?),
        None => (text, u32::MAX),
    };
    let value = number("fwmark", value, 0, u32::MAX)?;
    if mask == 0 {
        return Err(Refusal::new("mask out of range", "0 would match every frame; at least one bit"));
    }
    if value & !mask != 0 {
        let cause = format!("{value:#x} has bits outside its mask {mask:#x}");
        return Err(Refusal::new("cannot match", cause));
    }
    Ok((value, mask))
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, Refusal> {
    let port = |port: &str| match digits(port).map(u16::try_from) {
        Some(Ok(port)) if port > 0 => Ok(port),
        Some(_) => Err(Refusal::new("port out of range", "1 to 65535")),
        None => {
            let cause = format!("'{text}'; 1 to 65535, or a range such as 5000-5010");
            Err(Refusal::new("port not a number", cause))
        }
    };
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (low, high) = (port(low)?, port(high)?);
    if low > high {
        return Err(Refusal::new("empty range", format!("{low} is above {high}; write {high}-{low}")));
    }
    Ok(low..=high)
}

fn host(text: &str) -> Result<(IpAddr, u8), Refusal> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        let cause = format!("'{address}'; write ADDRESS or ADDRESS/LENGTH, such as 198.18.0.0/24");
        return Err(Refusal::new("not an address", cause));
    };
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = match length.map(digits) {
        None => longest,
        Some(Some(length)) => u8::try_from(length)
            .ok()
            .filter(|length| *length <= longest)
            .ok_or_else(|| Refusal::new("prefix length out of range", format!("0 to {longest}")))?,
        Some(None) => return Err(Refusal::new("prefix length not a number", format!("0 to {longest}"))),
    };
    let address = masked(address, length);
    // RFC 4291, section 2.5.5.2: how programs write IPv4 addresses, not what is on a wire.
    if let IpAddr::V6(v6) = address
        && let Some(v4) = v6.to_ipv4_mapped().filter(|_| length >= 96)
    {
        let cause = format!("no frame has an IPv4-mapped address; write {v4}/{}", length - 96);
        return Err(Refusal::new("cannot match", cause));
    }
    Ok((address, length))
}

fn ethertype(text: &str) -> Result<u16, Refusal> {
    let allowed = format!("{ETHERTYPE_MIN:#x} to 0xffff");
    match hex_or_digits(text) {
        Some(value) => u16::try_from(value)
            .ok()
            .filter(|value| u32::from(*value) >= ETHERTYPE_MIN)
            .ok_or_else(|| Refusal::new("ethertype out of range", allowed)),
        None => Err(Refusal::new("ethertype not a number", format!("'{text}'; {allowed}"))),
    }
}

/// A path from the root of the hierarchy, as /proc/PID/cgroup writes it; the first `/` may be left out.
fn cgroup(text: &str) -> Result<String, Refusal> {
    let path = text.strip_prefix('/').unwrap_or(text);
    let path = path.strip_suffix('/').unwrap_or(path);
    if text.is_empty() || text.contains(char::is_control) {
        let cause = "write a path below the root of the hierarchy, such as /system.slice/ssh.service";
        return Err(Refusal::new("not a control group", cause));
    }
    if !path.is_empty() && path.split('/').any(|part| ["", ".", ".."].contains(&part)) {
        let cause = "an empty name, '.' or '..' is in its path; write it as /proc/self/cgroup does";
        return Err(Refusal::new("not a control group", cause));
    }
    Ok(format!("/{path}"))
}

/// A number, decimal or behind `0x`, within a range.
fn number(name: &str, text: &str, low: u32, high: u32) -> Result<u32, Refusal> {
    let Some(value) = hex_or_digits(text) else {
        return Err(Refusal::new(format!("{name} not a number"), format!("'{text}'; {low} to {high}")));
    };
    match u32::try_from(value) {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        _ => Err(Refusal::new(format!("{name} out of range"), format!("{low} to {high}"))),
    }
}
