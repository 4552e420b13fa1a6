//! Rules: what frames belong to a class. Text is the form of the command, of JSON and of the state file.

mod read;

use crate::{Error, value::named_dscps};
use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr, ops::RangeInclusive, str::FromStr};

/// EtherType of IPv4 (`ETH_P_IP` of `linux/if_ether.h`).
const IPV4: u16 = 0x0800;

/// EtherType of IPv6 (`ETH_P_IPV6` of `linux/if_ether.h`).
const IPV6: u16 = 0x86dd;

/// All conditions that are given must hold: `udp-port=5000-5010,host=198.18.0.0/24`. At least one is given.
///
/// One made from text can match: it has no conditions that exclude each other. It is written in one way whatever it was
/// read from: conditions in the order of the fields, host bits zero, a DSCP by its name, marks and EtherTypes in hex.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    /// `priority=6`: the socket's (`SO_PRIORITY`).
    pub priority: Option<u32>,
    /// `dscp=46` or a name such as `ef`: of IPv4 and IPv6, 0 to 63.
    pub dscp: Option<u8>,
    /// `fwmark=0x1[/MASK]`: value and mask; no bit of the value is outside the mask, and the mask is not 0.
    pub fwmark: Option<(u32, u32)>,
    /// `tcp-port=5201[-5210]`: source or destination; neither end is 0.
    pub tcp_port: Option<RangeInclusive<u16>>,
    /// `udp-port=5201[-5210]`: likewise.
    pub udp_port: Option<RangeInclusive<u16>>,
    /// `host=ADDRESS[/LENGTH]`: source or destination; bits beyond the length are 0.
    pub host: Option<(IpAddr, u8)>,
    /// `ethertype=0x88f7`: behind any VLAN tag.
    pub ethertype: Option<u16>,
    /// `cgroup=PATH`: sent by a process in this control group (version 2) or below, from the root of that hierarchy;
    /// begins with `/`.
    pub cgroup: Option<String>,
}

impl Rule {
    /// Whether each frame that `other` matches is one that this rule matches too, so that `other`, if it comes later,
    /// is never reached. False where that is not known.
    pub fn covers(&self, other: &Self) -> bool {
        fn within<T>(mine: Option<&T>, other: Option<&T>, holds: impl Fn(&T, &T) -> bool) -> bool {
            mine.is_none_or(|mine| other.is_some_and(|other| holds(mine, other)))
        }
        let ports = |mine: &RangeInclusive<u16>, other: &RangeInclusive<u16>| {
            mine.start() <= other.start() && other.end() <= mine.end()
        };
        within(self.priority.as_ref(), other.priority.as_ref(), |mine, other| mine == other)
            && within(self.dscp.as_ref(), other.dscp.as_ref(), |mine, other| mine == other)
            && within(self.fwmark.as_ref(), other.fwmark.as_ref(), |(value, mask), (other, others)| {
                mask & others == *mask && other & mask == *value
            })
            && within(self.tcp_port.as_ref(), other.tcp_port.as_ref(), ports)
            && within(self.udp_port.as_ref(), other.udp_port.as_ref(), ports)
            && within(self.host.as_ref(), other.host.as_ref(), |(address, length), (other, longer)| {
                address.is_ipv4() == other.is_ipv4()
                    && length <= longer
                    && masked(*other, *length) == *address
            })
            && within(self.ethertype.as_ref(), other.family().as_ref(), |mine, other| mine == other)
            && within(self.cgroup.as_ref(), other.cgroup.as_ref(), |mine, other| {
                other
                    .strip_prefix(mine.trim_end_matches('/'))
                    .is_some_and(|below| below.is_empty() || below.starts_with('/'))
            })
    }

    /// The EtherType of all frames that it can match, if they share one.
    fn family(&self) -> Option<u16> {
        let of_host = self.host.map(|(address, _)| if address.is_ipv4() { IPV4 } else { IPV6 });
        self.ethertype.or(of_host)
    }
}

/// The address with all bits beyond `length` zero; a length beyond the address's own is taken for that one.
fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(length.into())).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(length.into())).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = |range: &RangeInclusive<u16>| match (range.start(), range.end()) {
            (low, high) if low == high => low.to_string(),
            (low, high) => format!("{low}-{high}"),
        };
        let conditions = [
            ("priority", self.priority.map(|priority| priority.to_string())),
            (
                "dscp",
                self.dscp.map(|dscp| match named_dscps().find(|(number, _)| *number == dscp) {
                    Some((_, name)) => name,
                    None => dscp.to_string(),
                }),
            ),
            (
                "fwmark",
                self.fwmark.map(|(value, mask)| match mask {
                    u32::MAX => format!("{value:#x}"),
                    _ => format!("{value:#x}/{mask:#x}"),
                }),
            ),
            ("tcp-port", self.tcp_port.as_ref().map(ports)),
            ("udp-port", self.udp_port.as_ref().map(ports)),
            (
                "host",
                self.host.map(|(address, length)| match (address, length) {
                    (IpAddr::V4(address), 32) => address.to_string(),
                    (IpAddr::V6(address), 128) => address.to_string(),
                    _ => format!("{address}/{length}"),
                }),
            ),
            ("ethertype", self.ethertype.map(|ethertype| format!("{ethertype:#06x}"))),
            ("cgroup", self.cgroup.clone()),
        ];
        let mut between = "";
        for (name, value) in conditions {
            if let Some(value) = value {
                write!(out, "{between}{name}={value}")?;
                between = ",";
            }
        }
        Ok(())
    }
}

impl FromStr for Rule {
    type Err = Error;

    /// Reads `CONDITION=VALUE[,CONDITION=VALUE]...`; refuses what can match no frame.
    fn from_str(text: &str) -> Result<Self, Error> {
        read::rule(text)
    }
}

impl TryFrom<String> for Rule {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> Self {
        rule.to_string()
    }
}

#[cfg(test)]
mod tests;
