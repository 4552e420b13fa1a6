//! One link of a host: cut it, lose frames on it, read its counters.

use crate::build;
use crate::counters::{self, LinkCount};
use crate::flags;
use crate::host::Host;
use crate::lab::Lab;
use crate::netns::Netns;
use crate::port::{PortConf, PortCount, Ports};
use crate::spec::{End, LinkSpec};
use crate::tool;
use linkbraid_api::Error;
use std::process::Command;
use std::time::Instant;

/// Which way frames go, seen from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the host.
    Out,
    /// To the host.
    In,
    /// Both.
    Both,
}

/// How a link can fail. Ends of it are told apart: what its own host sees, the other hosts don't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The NIC loses its carrier, as when the plug is pulled: `ip link set PORT down` at the switch. For other hosts
    /// this is the failure at the far end.
    Carrier,
    /// The switch's port forwards nothing either way; the carrier stays.
    Silent,
    /// Nothing from the host is forwarded, what is for it still comes.
    SilentOut,
    /// Nothing comes to the host, what it sends is still forwarded.
    SilentIn,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Carrier, Self::Silent, Self::SilentOut, Self::SilentIn];

    /// For names and messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Carrier => "carrier",
            Self::Silent => "silent",
            Self::SilentOut => "silent-out",
            Self::SilentIn => "silent-in",
        }
    }
}

/// A link of a lab that is up.
#[derive(Debug, Clone, Copy)]
pub struct Link<'lab> {
    lab: &'lab Lab,
    host: usize,
    index: usize,
    port: i32,
}

impl<'lab> Link<'lab> {
    pub(crate) fn find(lab: &'lab Lab, host: usize, index: usize) -> Result<Self, Error> {
        let spec = &lab.topology().hosts[host];
        let Some(link) = spec.links.get(index) else {
            let cause = format!("no such link; it has {}", spec.links.len());
            return Err(Error::new(format!("host {}", spec.name), format!("eth{index}"), cause));
        };
        let switch = &lab.switches[build::switch_of(lab.topology(), link)];
        let port = build::index_of(switch, &build::port_name(&spec.name, index))?;
        Ok(Self { lab, host, index, port })
    }

    /// What it was built from.
    pub fn spec(&self) -> &'lab LinkSpec {
        &self.lab.topology().hosts[self.host].links[self.index]
    }

    /// The host whose link it is.
    pub fn host(&self) -> Host<'lab> {
        Host::new(self.lab, self.host)
    }

    /// The NIC in the host: `eth0`, `eth1`, ...
    pub fn nic(&self) -> String {
        format!("eth{}", self.index)
    }

    /// The port in the switch's namespace.
    pub fn port(&self) -> String {
        build::port_name(&self.lab.topology().hosts[self.host].name, self.index)
    }

    fn switch(&self) -> (&'lab Netns, &'lab Ports) {
        let index = build::switch_of(self.lab.topology(), self.spec());
        (&self.lab.switches[index], &self.lab.ports[index])
    }

    /// The namespace of the switch that it ends at.
    pub(crate) fn switch_netns(&self) -> &'lab Netns {
        self.switch().0
    }

    /// What its port does to frames now.
    pub fn conf(&self) -> Result<PortConf, Error> {
        self.switch().1.conf(self.port)
    }

    /// Changes what its port does to frames; holds from the next frame on.
    pub fn set(&self, change: impl FnOnce(&mut PortConf)) -> Result<(), Error> {
        let mut conf = self.conf()?;
        change(&mut conf);
        self.switch().1.set(self.port, conf)
    }

    /// Makes it fail, at the instant returned (microseconds before the one system call that does it). Faults add up until
    /// [`Link::mend`].
    pub fn fail(&self, fault: Fault) -> Result<Instant, Error> {
        let at = Instant::now();
        match fault {
            Fault::Carrier => self.carrier(false),
            Fault::Silent => self.cut(Way::Both),
            Fault::SilentOut => self.cut(Way::Out),
            Fault::SilentIn => self.cut(Way::In),
        }?;
        Ok(at)
    }

    /// Makes it good again, whatever was wrong with it; it is good from the instant returned on.
    pub fn mend(&self) -> Result<Instant, Error> {
        self.restore()?;
        self.carrier(true)?;
        Ok(Instant::now())
    }

    /// Drops everything at the port, silently: both ends keep their carrier. One write to the port's map; what
    /// `tc filter add dev PORT ingress matchall action drop` (and `egress`) would do by hand, in the switch's namespace.
    pub fn cut(&self, way: Way) -> Result<(), Error> {
        self.set(|conf| {
            conf.cut_in |= way != Way::In;
            conf.cut_out |= way != Way::Out;
        })
    }

    /// Ends a cut, both ways.
    pub fn restore(&self) -> Result<(), Error> {
        self.set(|conf| (conf.cut_in, conf.cut_out) = (false, false))
    }

    /// Takes the carrier from the NIC, or gives it back, as pulling the plug does: a veth has a carrier while its far
    /// end is up, so this is `ip link set PORT down` in the switch's namespace. Of a cable, both ends lose it.
    pub fn carrier(&self, up: bool) -> Result<(), Error> {
        let mut ports = vec![self.port()];
        if let End::Cable { host, link } = &self.spec().end {
            ports.push(build::port_name(host, *link));
        }
        self.switch().0.run(|| ports.iter().try_for_each(|port| flags::set_up(port, up)))?
    }

    /// What its port has seen.
    pub fn port_count(&self) -> Result<PortCount, Error> {
        self.switch().1.count(self.port)
    }

    /// All its counters.
    pub fn count(&self) -> Result<LinkCount, Error> {
        let host = self.host();
        Ok(LinkCount {
            nic: host.nic_counts()?.get(self.index).copied().unwrap_or_default(),
            port: self.port_count()?,
            port_queue_drops: queue_drops(self.switch().0, &self.port())?,
            nic_queue_drops: queue_drops(host.netns(), &self.nic())?,
        })
    }
}

fn queue_drops(netns: &Netns, interface: &str) -> Result<u64, Error> {
    let words = ["-n", netns.name(), "-s", "-j", "qdisc", "show", "dev", interface];
    let json = tool::run(Command::new("tc").args(words))?;
    counters::parse_qdisc_drops(&json)
}
