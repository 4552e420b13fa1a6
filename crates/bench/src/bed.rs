//! A lab with linkbraid on its hosts: what measurements lie on.

mod class;
mod daemons;

pub use class::Class;

use crate::report::LabRecord;
use linkbraid_api::{BondRecord, Error, PeerRecord, PeerState, Policy};
use linkbraid_lab::{Daemon, Host, Lab, Link, Topology, tool, wait_for};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

pub const BOND: &str = "bond0";

/// How long hosts may take to find each other, and a daemon to see that a link went or came.
const SETTLE_LIMIT: Duration = Duration::from_secs(20);

/// A lab that is up. Dropping it removes the bonds, then the lab.
#[derive(Debug)]
pub struct Bed {
    name: String,
    bonded: Vec<String>,
    commands: Vec<String>,
    damping: Cell<bool>,
    class: Option<Class>,
    daemons: BTreeMap<String, Daemon>,
    // Last: the daemons and bonds above live in it.
    lab: Lab,
}

impl Bed {
    /// A lab that is [joined](Bed::join).
    pub fn bonded(name: &str, topology: Topology) -> Result<Self, Error> {
        let mut bed = Self::bare(name, topology)?;
        bed.join()?;
        Ok(bed)
    }

    /// Starts a daemon and makes a bond over all links on every host that is not plain; returns once they have found
    /// each other.
    pub fn join(&mut self) -> Result<(), Error> {
        let specs = self.lab.topology().hosts.clone();
        for spec in specs.iter().filter(|spec| !spec.plain) {
            let daemon = self.lab.host(&spec.name)?.daemon()?;
            self.daemons.insert(spec.name.clone(), daemon);
            self.bonded.push(spec.name.clone());
            self.bond(&spec.name)?;
            let lines = self.host(&spec.name)?.bond_lines(BOND);
            self.commands.extend(lines.iter().map(|line| format!("{}# linkbraid {line}", spec.name)));
        }
        self.meet()
    }

    /// Hosts and links alone, as a kernel has them.
    pub fn bare(name: &str, topology: Topology) -> Result<Self, Error> {
        tool::require(&["iperf3", "ping"])?;
        let lab = Lab::up(topology)?;
        Ok(Self {
            name: name.into(),
            bonded: Vec::new(),
            commands: Vec::new(),
            damping: Cell::new(true),
            class: None,
            daemons: BTreeMap::new(),
            lab,
        })
    }

    /// Runs a command line (split at spaces) on a host to set it up, and remembers it for the report; its standard output.
    pub fn set_up(&mut self, host: &str, line: &str) -> Result<String, Error> {
        let said = self.lab.host(host)?.sh(line)?;
        self.commands.push(format!("{host}# {line}"));
        Ok(said)
    }

    /// Delays what all ports of all switches send; see [`linkbraid_lab::Link::set_delay`].
    pub fn delay_ports(&mut self, delay: Duration) -> Result<(), Error> {
        let mut typed = Vec::new();
        for link in self.links()? {
            typed.extend(link.set_delay(delay)?);
        }
        self.commands.extend(typed.iter().map(|line| format!("switch# {line}")));
        Ok(())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn host(&self, name: &str) -> Result<Host<'_>, Error> {
        self.lab.host(name)
    }

    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    pub fn is_bonded(&self, name: &str) -> bool {
        self.bonded.iter().any(|bonded| bonded == name)
    }

    pub fn links(&self) -> Result<Vec<Link<'_>>, Error> {
        let links = self.lab.hosts().map(|host| host.links()).collect::<Result<Vec<_>, _>>()?;
        Ok(links.into_iter().flatten().collect())
    }

    /// Frames that the machine's own backlog was too full for, so far.
    pub fn backlog_drops(&self) -> Result<u64, Error> {
        self.links()?.iter().map(|link| Ok(link.port_count()?.backlog)).sum()
    }

    pub fn record(&self) -> LabRecord {
        let topology = self.lab.topology().clone();
        let links = topology.hosts.iter().flat_map(|host| &host.links);
        let burst_bytes: BTreeMap<u32, u32> = links
            .filter_map(|link| Some((link.rate_mbit?, topology.options.burst(link.rate_mbit?, link.mtu))))
            .collect();
        LabRecord { name: self.name.clone(), burst_bytes, commands: self.commands.clone(), topology }
    }

    /// Turns damping on or off on all bonds, if it is not so already.
    pub fn set_damping(&self, on: bool) -> Result<(), Error> {
        if self.damping.get() == on {
            return Ok(());
        }
        let word = if on { "on" } else { "off" };
        for name in &self.bonded {
            self.host(name)?.linkbraid(&format!("bond set {BOND} --damping {word}"))?;
        }
        self.damping.set(on);
        Ok(())
    }

    /// Gives all bonds a policy.
    pub fn set_policy(&self, policy: Policy) -> Result<(), Error> {
        for name in &self.bonded {
            self.host(name)?.linkbraid(&format!("bond set {BOND} --policy {}", policy.word()))?;
        }
        Ok(())
    }

    /// Has both bonds follow a policy, and then the default again: what is [around](crate::planned::Planned::around) a case.
    pub fn following(policy: Policy) -> impl Fn(&Self, bool) -> Result<(), Error> {
        move |bed, on| bed.set_policy(if on { policy } else { Policy::default() })
    }

    /// Waits until every bonded host has an entry with all live members of every other, and all hosts reach the first.
    pub fn meet(&self) -> Result<(), Error> {
        self.meet_within(SETTLE_LIMIT)
    }

    /// The same, with another limit than the usual one.
    pub fn meet_within(&self, limit: Duration) -> Result<(), Error> {
        let links = |name: &str| -> Result<Vec<Option<u32>>, Error> {
            Ok(self.host(name)?.spec().links.iter().map(|link| link.rate_mbit).collect())
        };
        for name in &self.bonded {
            let host = self.host(name)?;
            let others = self.bonded.iter().filter(|other| *other != name);
            let wanted = others.map(|other| links(other)).collect::<Result<Vec<_>, _>>()?;
            wait_for(limit, &format!("host '{name}' to know all members of its peers"), || {
                let peers = peers(host).map_err(|e| e.to_string())?;
                if known(&peers, &wanted) { Ok(()) } else { Err(format!("{peers:?}")) }
            })?;
        }
        let first = self.lab.hosts().next().map_or("", |host| host.ipv4());
        for host in self.lab.hosts().skip(1) {
            host.wait_ping(first, limit)?;
        }
        Ok(())
    }

    /// Takes the carrier from a link, or gives it back, and waits until the host's bond has seen it.
    pub fn set_carrier(&self, name: &str, link: usize, up: bool) -> Result<(), Error> {
        let host = self.host(name)?;
        host.link(link)?.carrier(up)?;
        if !self.is_bonded(name) {
            return Ok(());
        }
        let nic = format!("eth{link}");
        wait_for(SETTLE_LIMIT, &format!("member '{nic}' of host '{name}' to follow its carrier"), || {
            let bonds: Vec<BondRecord> = host.ask(&format!("show {BOND}")).map_err(|e| e.to_string())?;
            let members = bonds.iter().flat_map(|bond| &bond.members);
            match members.into_iter().find(|member| member.interface == nic) {
                Some(member) if member.live == up => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
    }
}

/// The table of a host, as `linkbraid peers` shows it.
pub(crate) fn peers(host: Host<'_>) -> Result<Vec<PeerRecord>, Error> {
    host.ask(&format!("peers {BOND}"))
}

/// Whether the peers are alive with members of these rates (any rate where none was set).
fn known(peers: &[PeerRecord], wanted: &[Vec<Option<u32>>]) -> bool {
    let alive = peers.iter().filter(|peer| peer.state == PeerState::Alive);
    let weights = |peer: &PeerRecord| {
        peer.members.iter().filter(|member| member.live).map(|member| member.weight_mbit).collect()
    };
    let have = sorted(alive.map(weights).collect());
    let want = sorted(wanted.to_vec());
    let same = |(have, want): (&Vec<Option<u32>>, &Vec<Option<u32>>)| {
        have.len() == want.len() && have.iter().zip(want).all(|(h, w)| w.is_none() || h == w)
    };
    have.len() == want.len() && have.iter().zip(&want).all(same)
}

fn sorted(mut hosts: Vec<Vec<Option<u32>>>) -> Vec<Vec<Option<u32>>> {
    hosts.iter_mut().for_each(|members| members.sort_unstable());
    hosts.sort();
    hosts
}

impl Drop for Bed {
    fn drop(&mut self) {
        // A bond outlives its daemon, and control groups outlive the namespace: it is taken down by name.
        for name in &self.bonded {
            let removed = self.lab.host(name).and_then(|h| h.linkbraid(&format!("bond del {BOND}")));
            if let Err(error) = removed
                && !std::thread::panicking()
            {
                eprintln!("linkbraid: warning: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests;
