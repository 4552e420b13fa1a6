//! Brings a topology up as namespaces, and takes it away.

use crate::build;
use crate::host::Host;
use crate::netns::{self, Netns};
use crate::port::Ports;
use crate::spec::{Topology, check_name};
use crate::state;
use crate::tool;
use linkbraid_api::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where sockets, logs and the state of labs that stay are kept.
pub const FOLDER: &str = "/run/linkbraid/lab";

/// What every lab needs.
pub const PROGRAMS: [&str; 4] = ["ip", "tc", "bridge", "ethtool"];

/// A lab that is up. Dropping it kills what runs inside and removes everything, also while panicking.
#[derive(Debug)]
pub struct Lab {
    topology: Topology,
    id: String,
    pub(crate) hosts: Vec<Netns>,
    /// One a switch, then the one that holds all cables, if there are any.
    pub(crate) switches: Vec<Netns>,
    pub(crate) ports: Vec<Ports>,
    stays: bool,
}

impl Lab {
    /// Brings a lab up for as long as the value lives, under a name that no other lab has.
    pub fn up(topology: Topology) -> Result<Self, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        tool::require(&PROGRAMS)?;
        sweep();
        let id = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self::build(topology, id)
    }

    /// Brings a lab up that stays after this process, until [`crate::down`].
    pub fn up_to_stay(topology: Topology) -> Result<Self, Error> {
        tool::require(&PROGRAMS)?;
        topology.check()?;
        let id = topology.name.clone();
        if !netns::names(&prefix(&id)).is_empty() {
            return Err(Error::new(format!("lab {id}"), "cannot bring it up", "a lab of this name is up")
                .hint(format!("linkbraid lab down {id}")));
        }
        let mut lab = Self::build(topology, id)?;
        state::save(&lab)?;
        lab.stays = true;
        Ok(lab)
    }

    /// A lab that an earlier process left up.
    pub fn open(name: &str) -> Result<Self, Error> {
        check_name("lab", name)?;
        let saved = state::load(name)?;
        let mut lab = Self::new(saved.topology, name.into());
        lab.stays = true;
        lab.hosts = lab.host_names().iter().map(|n| Netns::open(n)).collect::<Result<_, _>>()?;
        lab.switches = lab.switch_names().iter().map(|n| Netns::open(n)).collect::<Result<_, _>>()?;
        lab.ports = saved.maps.into_iter().map(Ports::from_ids).collect::<Result<_, _>>()?;
        Ok(lab)
    }

    fn new(topology: Topology, id: String) -> Self {
        Self { topology, id, hosts: Vec::new(), switches: Vec::new(), ports: Vec::new(), stays: false }
    }

    fn build(topology: Topology, id: String) -> Result<Self, Error> {
        topology.check()?;
        // From here on a failure drops the value, and that removes what was made.
        let mut lab = Self::new(topology, id);
        let folder = lab.folder();
        std::fs::create_dir_all(&folder)
            .map_err(|e| Error::new(folder.display().to_string(), "cannot make the folder", e.to_string()))?;
        build::namespaces(&mut lab)?;
        build::links(&mut lab)?;
        build::ports(&mut lab)?;
        Ok(lab)
    }

    /// What it was built from.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// What its namespaces and files are named by: the lab's name if it stays, process and number if not.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A host by name.
    pub fn host(&self, name: &str) -> Result<Host<'_>, Error> {
        match self.topology.hosts.iter().position(|h| h.name == name) {
            Some(index) => Ok(Host::new(self, index)),
            None => {
                let names: Vec<&str> = self.topology.hosts.iter().map(|h| h.name.as_str()).collect();
                let cause = format!("no such host; there are {}", names.join(", "));
                Err(Error::new(format!("lab {}", self.topology.name), format!("host '{name}'"), cause))
            }
        }
    }

    /// All hosts, in the topology's order.
    pub fn hosts(&self) -> impl Iterator<Item = Host<'_>> {
        (0..self.hosts.len()).map(|index| Host::new(self, index))
    }

    /// The namespace of a switch; one past the last switch is the one of the cables.
    pub fn switch(&self, index: usize) -> Option<&Netns> {
        self.switches.get(index)
    }

    /// Where this lab keeps its sockets and logs.
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(FOLDER).join(&self.id)
    }

    /// The names of the hosts' namespaces.
    pub fn host_names(&self) -> Vec<String> {
        self.topology.hosts.iter().map(|h| format!("{}{}", prefix(&self.id), h.name)).collect()
    }

    /// The names of the switches' namespaces, and of the cables'.
    pub fn switch_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            (0..self.topology.switches.len()).map(|i| format!("{}SW{i}", prefix(&self.id))).collect();
        if build::has_cables(&self.topology) {
            names.push(format!("{}CABLES", prefix(&self.id)));
        }
        names
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !self.stays
            && let Err(error) = remove(&self.id)
        {
            eprintln!("linkbraid: warning: {error}");
        }
    }
}

/// Takes a lab that stays down; also after a crash that left only a part of it.
pub fn down(name: &str) -> Result<(), Error> {
    check_name("lab", name)?;
    tool::require(&PROGRAMS)?;
    if netns::names(&prefix(name)).is_empty() && !state::exists(name) {
        return Err(Error::new(format!("lab {name}"), "cannot take it down", "no lab of this name is up")
            .hint("linkbraid lab up"));
    }
    remove(name)
}

fn prefix(id: &str) -> String {
    format!("lb-{id}-")
}

fn remove(id: &str) -> Result<(), Error> {
    let mut first_error = Ok(());
    for name in netns::names(&prefix(id)) {
        let removed = netns::remove(&name);
        if first_error.is_ok() {
            first_error = removed;
        }
    }
    state::forget(id);
    // A lab that failed early has no folder.
    let _ = std::fs::remove_dir_all(PathBuf::from(FOLDER).join(id));
    first_error
}

/// Removes labs whose process was killed before it could.
fn sweep() {
    for name in netns::names("lb-") {
        let Some((id, pid)) = owner(&name) else { continue };
        if !std::path::Path::new("/proc").join(pid).exists() {
            // Another process may be sweeping the same one.
            let _ = remove(id);
        }
    }
}

/// The lab and the process in the name of a namespace `lb-PID-NUMBER-HOST`.
fn owner(namespace: &str) -> Option<(&str, &str)> {
    let rest = namespace.strip_prefix("lb-")?;
    let (id, _) = rest.rsplit_once('-')?;
    let (pid, number) = id.split_once('-')?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    (digits(pid) && digits(number)).then_some((id, pid))
}

#[cfg(test)]
mod tests;
