//! What a lab looks like: hosts, their links and what the links end at. Plain data, no I/O.

use crate::shape;
use linkbraid_api::Error;
use linkbraid_terminal::limits::{HOSTS_MAX, LINKS_MAX, RATE_MBIT};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The most switches of one lab.
pub const SWITCHES_MAX: usize = 64;
/// How much faster than its link a switch port may be, in percent: more would be another link.
pub const PORT_MARGIN_MAX: u32 = 10;
/// The longest name of a host or a lab, so that names of interfaces and namespaces stay short.
pub const NAME_BYTES_MAX: usize = 8;
/// The MTU of a link unless the topology says otherwise, in bytes.
pub const DEFAULT_MTU: u32 = 1500;

/// A whole lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Its name: a letter, then letters and digits. Shows in messages; a lab that stays is found by it.
    pub name: String,
    /// The switches, by index.
    pub switches: Vec<Switch>,
    /// The hosts.
    pub hosts: Vec<HostSpec>,
    /// What holds for all links.
    #[serde(default)]
    pub options: Options,
}

/// An ordinary, unmanaged switch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// A MAC of a lab NIC stays on the port it belongs to, whatever frames claim; otherwise the switch relearns at
    /// every frame, as a Linux bridge does.
    #[serde(default)]
    pub sticky: bool,
}

/// One host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Its name, unique in the lab: a letter, then letters and digits.
    pub name: String,
    /// A host that never heard of linkbraid. The lab treats it alike; demos, tests and benchmarks start no daemon on it.
    #[serde(default)]
    pub plain: bool,
    /// Its NICs, `eth0` and on.
    pub links: Vec<LinkSpec>,
    /// Addresses of `eth0`, `ADDRESS/PREFIX`, from 198.18.0.0/15 and 2001:db8::/32 only.
    pub addresses: Vec<String>,
}

/// One link of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Its rate, both ways, in Mbit/s; without one it is as fast as the machine.
    #[serde(default)]
    pub rate_mbit: Option<u32>,
    /// What it ends at.
    pub end: End,
    /// Its MTU in bytes.
    #[serde(default = "default_mtu")]
    pub mtu: u32,
    /// Frames lost at random in each direction, in parts of a million. See [`Options::segment`].
    #[serde(default)]
    pub loss_ppm: u32,
    /// ECN-capable packets marked at random on their way to the host, in parts of a million.
    #[serde(default)]
    pub mark_ppm: u32,
}

/// What a link ends at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum End {
    /// A port of the switch with this index.
    Switch(usize),
    /// A cable to another host's link, which must name this one in turn.
    Cable {
        /// The other host.
        host: String,
        /// The index of its link.
        link: usize,
    },
}

/// What holds for all links of a lab.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Hosts cut their GSO buffers into MTU frames before the wire (`tso off gso off`). Without it a buffer that fits
    /// the burst of its link crosses whole: cheaper, but random loss then takes many segments at once. Set it
    /// whenever `loss_ppm` or `mark_ppm` is set, and to count frames.
    pub segment: bool,
    /// Hosts merge what arrives (GRO through NAPI, as real NICs do); veth does not by itself.
    pub gro: bool,
    /// The output buffer of a switch port in bytes, instead of [`shape::port_buffer`].
    pub port_buffer_bytes: Option<u32>,
    /// How much faster switch ports send than the links' rate, in percent; hosts' NICs keep to the rate. At 0, what waits in a
    /// port because the machine paused waits there for as long as the NIC before it is busy, and delays all that passes.
    /// For labs in which two NICs never send to one port at a time: that port's link would be faster than its rate.
    pub port_margin_percent: u32,
    /// The burst of each link in bytes, instead of [`shape::burst`].
    pub burst_bytes: Option<u32>,
    /// Leave a sender's socket charged across the switch, as bare veth does: no overload is ever seen as loss. Only
    /// to compare with.
    pub back_pressure: bool,
}

fn default_mtu() -> u32 {
    DEFAULT_MTU
}

impl Options {
    /// The burst of a link in bytes.
    pub fn burst(&self, rate_mbit: u32, mtu: u32) -> u32 {
        self.burst_bytes.unwrap_or_else(|| shape::burst(rate_mbit, mtu))
    }

    /// The token bucket of a host's NIC, as `tc` wants it.
    pub(crate) fn nic_bucket(&self, rate_mbit: u32, mtu: u32) -> String {
        let (burst, queue) = (self.burst(rate_mbit, mtu), shape::host_queue(mtu));
        format!("tbf rate {rate_mbit}mbit burst {burst} limit {queue}")
    }

    /// The token bucket of a switch port, as `tc` wants it.
    pub(crate) fn port_bucket(&self, rate_mbit: u32, mtu: u32) -> String {
        let rate = shape::port_rate_kbit(rate_mbit, self.port_margin_percent);
        let burst = self.burst(rate_mbit, mtu);
        let buffer = self.port_buffer_bytes.unwrap_or_else(|| shape::port_buffer(rate_mbit));
        format!("tbf rate {rate}kbit burst {burst} limit {buffer}")
    }
}

impl Topology {
    /// `hosts` hosts, each with `links` equal links into one switch. Hosts are named `a`, `b`, ... (`h26` from there
    /// on) and get 198.18.0.N/24 and 2001:db8::N/64 on `eth0`, N from 1.
    pub fn symmetric(hosts: usize, links: usize, rate_mbit: Option<u32>) -> Self {
        let mut lab = Self::empty("lab", 1);
        for _ in 0..hosts {
            lab = lab.host(std::iter::repeat_n(LinkSpec::switch(0, rate_mbit), links));
        }
        lab
    }

    /// Two hosts whose links go pair by pair through switches that do not know each other.
    pub fn separate_switches(links: usize, rate_mbit: Option<u32>) -> Self {
        let ports = |lab: Self| lab.host((0..links).map(|i| LinkSpec::switch(i, rate_mbit)));
        ports(ports(Self::empty("lab", links)))
    }

    /// Two hosts with `links` cables between them.
    pub fn cables(links: usize, rate_mbit: Option<u32>) -> Self {
        let ends = |to: &'static str| (0..links).map(move |i| LinkSpec::cable(to, i, rate_mbit));
        Self::empty("lab", 0).host(ends("b")).host(ends("a"))
    }

    /// No host yet, and `switches` switches.
    pub fn empty(name: &str, switches: usize) -> Self {
        Self {
            name: name.into(),
            switches: vec![Switch::default(); switches],
            hosts: Vec::new(),
            options: Options::default(),
        }
    }

    /// The same lab with one more host, named and addressed by its place.
    #[must_use]
    pub fn host(mut self, links: impl IntoIterator<Item = LinkSpec>) -> Self {
        let index = self.hosts.len();
        let name = match u8::try_from(index) {
            Ok(i @ 0..26) => char::from(b'a' + i).to_string(),
            _ => format!("h{index}"),
        };
        let number = index + 1;
        self.hosts.push(HostSpec {
            name,
            plain: false,
            links: links.into_iter().collect(),
            addresses: vec![format!("198.18.0.{number}/24"), format!("2001:db8::{number:x}/64")],
        });
        self
    }

    /// The same as [`Topology::host`], but a plain host.
    #[must_use]
    pub fn plain_host(self, links: impl IntoIterator<Item = LinkSpec>) -> Self {
        let mut lab = self.host(links);
        if let Some(host) = lab.hosts.last_mut() {
            host.plain = true;
        }
        lab
    }

    /// The same lab under another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// The same lab with other options.
    #[must_use]
    pub fn with(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Refuses what cannot be built, and any address outside the ranges for benchmarks and documentation.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |what: &str, cause: String| Err(Error::new(format!("lab {}", self.name), what, cause));
        check_name("lab", &self.name)?;
        if self.hosts.is_empty() || self.hosts.len() > HOSTS_MAX {
            return refuse(
                "cannot build",
                format!("{} hosts, allowed are 1 to {HOSTS_MAX}", self.hosts.len()),
            );
        }
        let margin = self.options.port_margin_percent;
        if margin > PORT_MARGIN_MAX {
            let cause = format!("port_margin_percent {margin}, allowed are 0 to {PORT_MARGIN_MAX}");
            return refuse("cannot build", cause);
        }
        if self.switches.len() > SWITCHES_MAX {
            return refuse("cannot build", format!("more than {SWITCHES_MAX} switches"));
        }
        for (i, host) in self.hosts.iter().enumerate() {
            check_name("host", &host.name)?;
            let what = format!("cannot build host '{}'", host.name);
            if self.hosts[..i].iter().any(|h| h.name == host.name) {
                return refuse(&what, "the name is used twice".into());
            }
            if host.links.len() > LINKS_MAX {
                return refuse(&what, format!("{} links, allowed are 0 to {LINKS_MAX}", host.links.len()));
            }
            if host.links.is_empty() && !host.addresses.is_empty() {
                return refuse(&what, "it has addresses but no link to put them on".into());
            }
            for address in &host.addresses {
                check_address(address)
                    .map_err(|cause| Error::new(format!("lab {}", self.name), &what, cause))?;
            }
            for (j, link) in host.links.iter().enumerate() {
                self.check_link(host, j, link).map_err(|cause| {
                    Error::new(format!("lab {}", self.name), format!("{what} eth{j}"), cause)
                })?;
            }
        }
        Ok(())
    }

    fn check_link(&self, host: &HostSpec, index: usize, link: &LinkSpec) -> Result<(), String> {
        if let Some(rate) = link.rate_mbit.filter(|r| !RATE_MBIT.contains(r)) {
            return Err(format!("{rate} Mbit/s is outside {} to {}", RATE_MBIT.start(), RATE_MBIT.end()));
        }
        if !(68..=65_535).contains(&link.mtu) {
            return Err(format!("MTU {} is outside 68 to 65535", link.mtu));
        }
        if link.loss_ppm > 1_000_000 || link.mark_ppm > 1_000_000 {
            return Err("loss or marking is outside 0 to 1000000 parts of a million".into());
        }
        match &link.end {
            End::Switch(s) if *s < self.switches.len() => Ok(()),
            End::Switch(s) => Err(format!("there is no switch {s}, the lab has {}", self.switches.len())),
            End::Cable { host: other, link: far } => {
                let back = self.hosts.iter().find(|h| h.name == *other).and_then(|h| h.links.get(*far));
                match back.map(|l| &l.end) {
                    Some(End::Cable { host: h, link: l }) if *h == host.name && *l == index => {
                        if *other == host.name && *far == index {
                            return Err("a cable needs two ends".into());
                        }
                        Ok(())
                    }
                    _ => Err(format!("the cable's other end, '{other}' eth{far}, does not lead back")),
                }
            }
        }
    }
}

impl LinkSpec {
    /// A link into a switch.
    pub fn switch(index: usize, rate_mbit: Option<u32>) -> Self {
        Self { rate_mbit, end: End::Switch(index), mtu: DEFAULT_MTU, loss_ppm: 0, mark_ppm: 0 }
    }

    /// One end of a cable to `link` of `host`.
    pub fn cable(host: &str, link: usize, rate_mbit: Option<u32>) -> Self {
        Self { end: End::Cable { host: host.into(), link }, ..Self::switch(0, rate_mbit) }
    }

    /// The same link with another MTU.
    #[must_use]
    pub fn mtu(mut self, bytes: u32) -> Self {
        self.mtu = bytes;
        self
    }

    /// The same link with random loss in each direction.
    #[must_use]
    pub fn loss_ppm(mut self, ppm: u32) -> Self {
        self.loss_ppm = ppm;
        self
    }
}

/// A name becomes a part of paths and of names of namespaces.
pub(crate) fn check_name(kind: &str, name: &str) -> Result<(), Error> {
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(lower)
        && name.len() <= NAME_BYTES_MAX;
    if good {
        return Ok(());
    }
    let cause =
        format!("'{name}' is not a lower-case letter and up to {} letters and digits", NAME_BYTES_MAX - 1);
    Err(Error::new("lab", format!("bad name of a {kind}"), cause))
}

/// Only 198.18.0.0/15 (RFC 2544) and 2001:db8::/32 (RFC 3849) may appear in a lab.
pub(crate) fn check_address(text: &str) -> Result<(), String> {
    let parts =
        text.split_once('/').and_then(|(a, p)| Some((a.parse::<IpAddr>().ok()?, p.parse::<u8>().ok()?)));
    let good = match parts {
        Some((IpAddr::V4(v4), 15..=32)) => v4.octets()[0] == 198 && v4.octets()[1] & 0xfe == 18,
        Some((IpAddr::V6(v6), 32..=128)) => v6.segments()[0] == 0x2001 && v6.segments()[1] == 0x0db8,
        _ => false,
    };
    if good {
        return Ok(());
    }
    Err(format!("address '{text}' is not inside 198.18.0.0/15 or 2001:db8::/32"))
}

#[cfg(test)]
mod tests;
