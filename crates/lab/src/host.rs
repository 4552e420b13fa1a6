//! One host of a lab: run things on it.

use crate::child::Running;
use crate::counters::{self, NicCount};
use crate::lab::Lab;
use crate::link::Link;
use crate::netns::Netns;
use crate::spec::HostSpec;
use crate::tool;
use linkbraid_api::Error;
use std::ffi::OsStr;
use std::io;
use std::process::Command;

/// A host of a lab that is up.
#[derive(Debug, Clone, Copy)]
pub struct Host<'lab> {
    pub(crate) lab: &'lab Lab,
    index: usize,
}

impl<'lab> Host<'lab> {
    pub(crate) fn new(lab: &'lab Lab, index: usize) -> Self {
        Self { lab, index }
    }

    /// What it was built from.
    pub fn spec(&self) -> &'lab HostSpec {
        &self.lab.topology().hosts[self.index]
    }

    /// Its name in the lab.
    pub fn name(&self) -> &'lab str {
        &self.spec().name
    }

    /// Its place in the topology.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its namespace.
    pub fn netns(&self) -> &'lab Netns {
        &self.lab.hosts[self.index]
    }

    /// Its first IPv4 address, without the prefix length, or an empty string.
    pub fn ipv4(&self) -> &'lab str {
        self.address('.')
    }

    /// Its first IPv6 address, without the prefix length, or an empty string.
    pub fn ipv6(&self) -> &'lab str {
        self.address(':')
    }

    fn address(&self, mark: char) -> &'lab str {
        let found = self.spec().addresses.iter().find(|a| a.contains(mark));
        found.and_then(|a| a.split_once('/')).map_or("", |(address, _)| address)
    }

    /// The MAC of `eth{link}`.
    pub fn mac(&self, link: usize) -> String {
        crate::build::mac(self.index, link)
    }

    /// One of its links.
    pub fn link(&self, index: usize) -> Result<Link<'lab>, Error> {
        Link::find(self.lab, self.index, index)
    }

    /// All its links.
    pub fn links(&self) -> Result<Vec<Link<'lab>>, Error> {
        (0..self.spec().links.len()).map(|index| self.link(index)).collect()
    }

    /// A command that will run on it; see [`Netns::command`].
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.netns().command(program)
    }

    /// Runs a command line (split at spaces) to its end; its standard output.
    pub fn sh(&self, line: &str) -> Result<String, Error> {
        let mut words = line.split_whitespace();
        let mut command = self.command(words.next().unwrap_or("true"));
        tool::run(command.args(words))
    }

    /// The longest buffer that TCP builds for an interface, in bytes, with room for headers (`gso_max_size`).
    pub fn gso_max_size(&self, interface: &str) -> Result<u64, Error> {
        let line = format!("ip -d -j link show {interface}");
        let links: Result<serde_json::Value, _> = serde_json::from_str(&self.sh(&line)?);
        let size = links.ok().and_then(|links| links[0]["gso_max_size"].as_u64());
        size.ok_or_else(|| {
            Error::new(format!("host {}", self.name()), format!("'{line}' failed"), "it has no gso_max_size")
        })
    }

    /// Runs `work` inside; see [`Netns::run`].
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        self.netns().run(work)
    }

    /// Makes something inside that takes system calls, such as a socket, which stays there; an error says that the host
    /// cannot do `what`.
    pub fn make<T: Send>(&self, what: &str, make: impl FnOnce() -> io::Result<T> + Send) -> Result<T, Error> {
        let object = || format!("host {}", self.name());
        self.run(make)?.map_err(|e| Error::new(object(), format!("cannot {what}"), e.to_string()))
    }

    /// What is typed on it to make a bond over all its links.
    pub fn bond_lines(&self, bond: &str) -> Vec<String> {
        let links = &self.spec().links;
        let members: Vec<String> = (0..links.len()).map(|link| format!("eth{link}")).collect();
        let mut lines = vec![format!("bond add {bond} --member {}", members.join(","))];
        // A veth claims 10 Gbit/s whatever its token bucket lets through; a real NIC reports its speed itself.
        let rates = members.iter().zip(links).filter_map(|(nic, link)| Some((nic, link.rate_mbit?)));
        lines.extend(rates.map(|(nic, rate)| format!("member set {bond} {nic} --weight {rate}")));
        lines
    }

    /// Starts a command (made by [`Host::command`]) that ends with the value returned.
    pub fn spawn(&self, command: Command) -> Result<Running, Error> {
        Running::start(command)
    }

    /// Reads a file below `/proc/net` as the host sees it.
    pub fn proc_net(&self, file: &str) -> Result<String, Error> {
        let path = format!("/proc/thread-self/net/{file}");
        let read = self.run(|| std::fs::read_to_string(&path))?;
        read.map_err(|e| Error::new(self.netns().name(), format!("cannot read '{path}'"), e.to_string()))
    }

    /// Whether a TCP socket of it listens on `port` (state 0A in `/proc/net/tcp`).
    pub fn listens(&self, port: u16) -> bool {
        self.has_socket(["tcp", "tcp6"], port, Some("0A"))
    }

    /// Whether a UDP socket of it is bound to `port`.
    pub fn receives(&self, port: u16) -> bool {
        self.has_socket(["udp", "udp6"], port, None)
    }

    fn has_socket(&self, files: [&str; 2], port: u16, state: Option<&str>) -> bool {
        let wanted = format!(":{port:04X}");
        files.iter().filter_map(|file| self.proc_net(file).ok()).any(|text| {
            text.lines().any(|line| {
                let mut words = line.split_whitespace().skip(1);
                words.next().is_some_and(|local| local.ends_with(&wanted))
                    && state.is_none_or(|state| words.nth(1) == Some(state))
            })
        })
    }

    /// The counters of its links, by link number.
    pub fn nic_counts(&self) -> Result<Vec<NicCount>, Error> {
        let text = self.proc_net("dev")?;
        let one = |l| counters::parse_dev(&text, &format!("eth{l}")).unwrap_or_default();
        Ok((0..self.spec().links.len()).map(one).collect())
    }

    /// TCP segments sent and sent again since the host came up.
    pub fn tcp_segments(&self) -> Result<(u64, u64), Error> {
        let text = self.proc_net("snmp")?;
        let value = |name| counters::parse_snmp(&text, "Tcp", name).unwrap_or(0);
        Ok((value("OutSegs"), value("RetransSegs")))
    }

    /// Waits until an answer to one ping of `address` has come.
    pub fn wait_ping(&self, address: &str, limit: std::time::Duration) -> Result<(), Error> {
        crate::wait::wait_for(limit, &format!("{} to reach {address}", self.name()), || {
            self.sh(&format!("ping -c 1 -W 1 {address}")).map_err(|error| error.cause)
        })
        .map(drop)
    }
}
