//! Hosts that share a machine, with a daemon each, and networks between them that come and go.

use super::subject::{Kind, MTU, Subject};
use crate::experiments::prelude::*;
use linkbraid_api::FabricRecord;
use linkbraid_lab::{tool, wait_for};
use std::path::{Path, PathBuf};

pub(super) const FABRIC: &str = "fab0";
/// The pair of veth that joins two hosts without anything between.
const PAIR: &str = "lnk0";
/// Bytes that the pair lets through at once when it has a rate: two of the kernel's longest frames.
const BURST: u32 = 128 << 10;
/// The first port of a node of `udp:` and `ofi:`.
const PORT: u16 = 7000;
/// The key of an encrypted fabric, in the lab's folder.
const KEY_FILE: &str = "fabric.key";
/// How long hosts may take to reach each other.
const REACH_LIMIT: Duration = Duration::from_secs(20);

const SHARED: &str = "/dev/shm";

/// Hosts with a daemon each. Two of them have a pair of veth between them.
pub(super) struct Testbed {
    pub bed: Bed,
    pub names: Vec<String>,
    /// What failed and is not tried again.
    pub given_up: Vec<String>,
    memory: PathBuf,
}

impl Testbed {
    /// Brings hosts up, with daemons that have nothing to do.
    pub fn up(run: &mut Run<'_>, name: &str, hosts: usize) -> Result<Self, Error> {
        let mut bed = run.bare(name, Topology::symmetric(hosts, 1, None))?;
        let names: Vec<String> = bed.lab().hosts().map(|host| host.name().to_owned()).collect();
        for name in &names {
            bed.start_daemon(name)?;
        }
        let memory = Path::new(SHARED).join(format!("linkbraid-bench-{}", bed.lab().id()));
        let testbed = Self { bed, names, given_up: Vec::new(), memory };
        if hosts == 2 {
            testbed.join_pair()?;
        }
        Ok(testbed)
    }

    pub fn host(&self, node: usize) -> Result<Host<'_>, Error> {
        self.bed.host(&self.names[node])
    }

    fn join_pair(&self) -> Result<(), Error> {
        let (a, b) = (self.host(0)?, self.host(1)?);
        let far = b.netns().name();
        a.sh(&format!("ip link add {PAIR} type veth peer name {PAIR} netns {far}"))?;
        for (node, host) in [a, b].into_iter().enumerate() {
            host.sh(&format!("ip addr add {}/24 dev {PAIR}", pair_address(node)))?;
            host.sh(&format!("ip link set {PAIR} up"))?;
        }
        a.wait_ping(&pair_address(1), REACH_LIMIT)
    }

    /// Gives both ends of the pair a rate in Mbit/s, or takes it away again.
    pub fn limit(&self, rate: Option<u32>) -> Result<(), Error> {
        for node in 0..2 {
            let line = match rate {
                // Bytes of a queue of 8 ms, as a switch has.
                Some(rate) => {
                    format!("replace dev {PAIR} root tbf rate {rate}mbit burst {BURST} limit {}", rate * 1000)
                }
                None => format!("del dev {PAIR} root"),
            };
            self.host(node)?.sh(&format!("tc qdisc {line}"))?;
        }
        Ok(())
    }

    pub fn address(&self, subject: Subject, node: usize) -> String {
        match subject.kind {
            Kind::Veth { .. } => pair_address(node),
            Kind::Vxlan | Kind::Fabric { .. } => format!("198.19.0.{}", node + 1),
        }
    }

    pub fn memory(&self) -> &Path {
        &self.memory
    }

    /// Does something while a subject is up between all hosts; it is given what was typed on the first.
    pub fn with<T>(
        &mut self,
        subject: Subject,
        work: impl FnOnce(&mut Self, &str) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let done = self.add(subject).and_then(|typed| work(self, &typed.join("; ")));
        // A daemon that was killed and not started again could not take its fabric away.
        let dead: Vec<&String> = self.names.iter().filter(|name| !self.bed.has_daemon(name)).collect();
        let alive = dead.into_iter().try_for_each(|name| self.bed.start_daemon(name));
        self.del(subject);
        done.and_then(|done| alive.map(|()| done))
    }

    fn add(&self, subject: Subject) -> Result<Vec<String>, Error> {
        let mut typed = Vec::new();
        for node in 0..self.names.len() {
            let host = self.host(node)?;
            let address = self.address(subject, node);
            match subject.kind {
                Kind::Veth { mtu, .. } => self.lengthen(host, mtu)?,
                Kind::Vxlan => {
                    let ends = [node, 1 - node].map(pair_address);
                    let lines = [
                        format!(
                            "ip link add vx0 type vxlan id 7 local {} remote {} dstport 4789 dev {PAIR}",
                            ends[0], ends[1]
                        ),
                        format!("ip addr add {address}/24 dev vx0"),
                        "ip link set vx0 up".to_owned(),
                    ];
                    for line in lines {
                        host.sh(&line)?;
                        typed.push(line);
                    }
                }
                Kind::Fabric { transport, more, mtu, poll, encrypt } => {
                    let nodes = self.names.len();
                    let keys = if encrypt { self.keys(node)? } else { String::new() };
                    let line = format!(
                        "fabric add {FABRIC} --node {node} --nodes {nodes} --transport {transport}{}{more} --mtu {mtu} --poll {poll}{keys}",
                        self.place(transport)?.display()
                    );
                    host.linkbraid(&line)?;
                    host.sh(&format!("ip addr add {address}/24 dev {FABRIC}"))?;
                    typed.push(format!("linkbraid {line}"));
                }
            }
        }
        if let Kind::Veth { rate: Some(rate), .. } = subject.kind {
            self.limit(Some(rate))?;
        }
        let first = self.host(0)?;
        for node in 1..self.names.len() {
            first.wait_ping(&self.address(subject, node), REACH_LIMIT)?;
        }
        if subject.is_fast() {
            (0..self.names.len()).try_for_each(|node| self.wait_vxlan(node))?;
        }
        typed.truncate(typed.len() / self.names.len());
        Ok(typed)
    }

    /// Waits until frames of a node go by VXLAN: those by the queues are not what is measured.
    fn wait_vxlan(&self, node: usize) -> Result<(), Error> {
        wait_for(REACH_LIMIT, "frames by VXLAN", || {
            let record = self.record(node).map_err(|error| error.to_string())?;
            let ways = record.peers.into_iter().filter_map(|peer| peer.vxlan);
            let closed = ways.filter(|way| !way.taken).map(|way| way.reason);
            let off = record.vxlan.map(|vxlan| vxlan.reason).filter(|reason| !reason.is_empty());
            match off.into_iter().chain(closed).next() {
                Some(reason) => Err(reason),
                None => Ok(()),
            }
        })
    }

    /// The memory, or the file with all addresses.
    fn place(&self, transport: &str) -> Result<PathBuf, Error> {
        if transport == "shm:" {
            return Ok(self.memory.clone());
        }
        let file = self.bed.lab().folder().join("nodes");
        let mut text = String::new();
        for node in 0..self.names.len() {
            let host = self.host(node)?;
            let address = if self.names.len() == 2 { pair_address(node) } else { host.ipv4().to_owned() };
            text += &format!("{node} {address}:{PORT}\n");
        }
        std::fs::write(&file, text)
            .map_err(|e| Error::new(file.display().to_string(), "cannot write", e.to_string()))?;
        Ok(file)
    }

    /// The options that have frames encrypted, with a new key for the first node.
    fn keys(&self, node: usize) -> Result<String, Error> {
        let file = self.bed.lab().folder().join(KEY_FILE);
        if node == 0 {
            let _ = std::fs::remove_file(&file);
            self.host(0)?.linkbraid(&format!("key new {}", file.display()))?;
        }
        Ok(format!(" --key {} --auth require --encrypt on", file.display()))
    }

    /// Takes a subject down. What is not there is fine.
    fn del(&self, subject: Subject) {
        for host in self.bed.lab().hosts() {
            // Half of one may be up.
            let _ = match subject.kind {
                Kind::Veth { .. } => self.lengthen(host, MTU).map(|()| String::new()),
                Kind::Vxlan => host.sh("ip link del vx0"),
                Kind::Fabric { .. } => host.linkbraid(&format!("fabric del {FABRIC}")),
            };
        }
        if let Kind::Veth { rate: Some(_), .. } = subject.kind {
            let _ = self.limit(None);
        }
        let _ = std::fs::remove_file(&self.memory);
    }

    /// Gives a host's end of the pair an MTU.
    fn lengthen(&self, host: Host<'_>, mtu: u32) -> Result<(), Error> {
        // Only the first two have one.
        if self.names.len() > 2 {
            return Ok(());
        }
        host.sh(&format!("ip link set {PAIR} mtu {mtu}")).map(drop)
    }

    /// Gives each host the others' MACs for good, so that the kernel's search for neighbours, which pauses for a second
    /// after a failure, is not what is measured.
    pub fn fix_neighbours(&self, subject: Subject) -> Result<(), Error> {
        let macs = (0..self.names.len()).map(|node| Ok(self.record(node)?.mac));
        let macs = macs.collect::<Result<Vec<_>, Error>>()?;
        for (node, name) in self.names.iter().enumerate() {
            let others = macs.iter().enumerate().filter(|(other, _)| *other != node);
            let line = |(other, mac): (usize, &String)| {
                let address = self.address(subject, other);
                format!("neigh replace {address} lladdr {mac} dev {FABRIC} nud permanent")
            };
            tool::ip_batch(self.bed.host(name)?.netns().name(), &others.map(line).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    pub fn record(&self, node: usize) -> Result<FabricRecord, Error> {
        let host = self.host(node)?;
        let mut all: Vec<FabricRecord> = host.ask(&format!("fabric show {FABRIC}"))?;
        let none = || Error::new(format!("host {}", host.name()), "cannot read its fabric", "there is none");
        all.pop().ok_or_else(none)
    }

    pub fn addressed(&self, subject: Subject) -> Result<Vec<(Host<'_>, String)>, Error> {
        (0..self.names.len()).map(|node| Ok((self.host(node)?, self.address(subject, node)))).collect()
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // A daemon that is killed with the lab leaves the memory behind.
        let _ = std::fs::remove_file(&self.memory);
    }
}

fn pair_address(node: usize) -> String {
    format!("198.18.1.{}", node + 1)
}
