//! One link of a host: cut it, lose frames on it, read its counters.

use crate::build;
use crate::counters::{self, LinkCount};
use crate::lab::Lab;
use crate::netns::Netns;
use crate::port::{PortConf, PortCount, Ports};
use crate::spec::{End, LinkSpec};
use crate::tool;
use linkbraid_api::Error;
use std::process::Command;

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

    /// Drops everything at the port, silently: both ends keep their carrier.
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

    /// Takes the carrier from the NIC, or gives it back, as pulling the plug does. Of a cable, both ends lose it.
    pub fn carrier(&self, up: bool) -> Result<(), Error> {
        let state = if up { "up" } else { "down" };
        let mut lines = vec![format!("link set {} {state}", self.port())];
        if let End::Cable { host, link } = &self.spec().end {
            lines.push(format!("link set {} {state}", build::port_name(host, *link)));
        }
        tool::ip_batch(self.switch().0.name(), &lines)
    }

    /// What its port has seen.
    pub fn port_count(&self) -> Result<PortCount, Error> {
        self.switch().1.count(self.port)
    }

    /// All its counters.
    pub fn count(&self) -> Result<LinkCount, Error> {
        let host = crate::host::Host::new(self.lab, self.host);
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
