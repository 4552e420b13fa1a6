//! Who else manages interfaces here: NetworkManager, systemd-networkd, DHCP clients.
//!
//! They leave a file for each interface in `/run`, by index. The files stay when their owner ends, so the table of
//! processes is asked too; only processes of this network namespace count.

use super::helper;
use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read as _},
    path::{Path, PathBuf},
};

/// Processes that are looked at; a machine with more than that is looked at in part.
const PROCESSES_MAX: usize = 16_384;
/// Bytes of a command line, and of a manager's file, that are read.
const TEXT_BYTES_MAX: u64 = 16 * 1024;
/// Where systemd has the control groups of a machine's services. Those of containers are below groups of their own.
const SYSTEM: &str = "/system.slice/";
/// DHCP clients that are remembered.
const CLIENTS_MAX: usize = 256;

/// Where to look.
#[derive(Debug, Clone)]
pub(crate) struct Roots {
    pub run: PathBuf,
    pub proc: PathBuf,
    pub dev: PathBuf,
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { run: "/run".into(), proc: "/proc".into(), dev: "/dev".into(), sys: "/sys".into() }
    }
}

/// Somebody who manages an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Manager {
    /// NetworkManager.
    Nm,
    /// systemd-networkd, with a DHCP lease on it or without.
    Networkd { lease: bool },
    /// A DHCP client.
    Dhcp { client: String, pid: u32 },
}

impl Manager {
    /// The finding's name.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Nm => "network_manager",
            Self::Networkd { .. } => "networkd",
            Self::Dhcp { .. } => "dhcp_client",
        }
    }

    /// What people call it.
    pub(crate) fn title(&self) -> &str {
        match self {
            Self::Nm => "NetworkManager",
            Self::Networkd { .. } => "systemd-networkd",
            Self::Dhcp { client, .. } => client,
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Nm => {
                "NetworkManager manages it: it may give it addresses, or take it out of a bond".into()
            }
            Self::Networkd { lease: true } => {
                "systemd-networkd manages it and holds a DHCP lease on it: it gives the address back to it"
                    .into()
            }
            Self::Networkd { lease: false } => {
                "systemd-networkd manages it: it may give it addresses, or take it out of a bond".into()
            }
            Self::Dhcp { client, pid } => {
                format!(
                    "a DHCP client ({client}, process {pid}) runs on it: it gives it an address again and again"
                )
            }
        }
    }

    /// The command that keeps it away from the interface. From a member, udev's rule has it stay away as soon as it looks again.
    pub(crate) fn hint(&self, interface: &str, is_member: bool) -> String {
        match self {
            Self::Nm => format!("nmcli device set {interface} managed no"),
            Self::Networkd { .. } if is_member => format!("networkctl reconfigure {interface}"),
            Self::Networkd { .. } => format!(
                "printf '[Match]\\nName={interface}\\n[Link]\\nUnmanaged=yes\\n' > \
                 /etc/systemd/network/00-{interface}.network && networkctl reload"
            ),
            Self::Dhcp { client, .. } if client == "dhcpcd" => {
                format!("echo 'denyinterfaces {interface}' >> /etc/dhcpcd.conf && dhcpcd -x {interface}")
            }
            Self::Dhcp { pid, .. } => format!("kill {pid}"),
        }
    }
}

/// A running DHCP client.
#[derive(Debug, Clone)]
struct Client {
    name: String,
    pid: u32,
    /// The words of its command line, or of what it has put in its place.
    words: Vec<String>,
}

/// The managers that run in this network namespace.
#[derive(Debug, Clone)]
pub(crate) struct Managers {
    run: PathBuf,
    interfaces: Vec<String>,
    network_manager: bool,
    networkd: bool,
    clients: Vec<Client>,
}

impl Managers {
    /// Looks for them once. `interfaces` are the names of all interfaces.
    pub(crate) fn look(roots: &Roots, interfaces: Vec<String>) -> Self {
        let mut managers = Self {
            run: roots.run.clone(),
            interfaces,
            network_manager: false,
            networkd: false,
            clients: Vec::new(),
        };
        let here = fs::read_link(roots.proc.join("thread-self/ns/net")).ok();
        for entry in fs::read_dir(&roots.proc).into_iter().flatten().flatten().take(PROCESSES_MAX) {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let directory = entry.path();
            let name = read(&directory.join("comm"));
            let name = name.trim();
            // The kernel keeps 15 bytes of a name.
            if !["NetworkManager", "systemd-network", "dhclient", "dhcpcd", "udhcpc"].contains(&name)
                || !is_here(&namespace(&directory, pid), here.as_deref(), &read(&directory.join("cgroup")))
            {
                continue;
            }
            match name {
                "NetworkManager" => managers.network_manager = true,
                "systemd-network" => managers.networkd = true,
                _ if managers.clients.len() < CLIENTS_MAX => {
                    let line = read(&directory.join("cmdline"));
                    let words = line.split(|c: char| c == '\0' || c.is_whitespace()).map(str::to_owned);
                    managers.clients.push(Client { name: name.to_owned(), pid, words: words.collect() });
                }
                _ => {}
            }
        }
        // The oldest first: its helpers are its children.
        managers.clients.sort_by_key(|client| client.pid);
        managers
    }

    /// Those that manage an interface. `leased`: it has an address that somebody renews.
    pub(crate) fn of(&self, index: u32, name: &str, leased: bool) -> Vec<Manager> {
        let mut found = Vec::new();
        let file = |path: &str| read(&self.run.join(path).join(index.to_string()));
        if self.network_manager
            && file("NetworkManager/devices").lines().any(|line| line.trim() == "managed=true")
        {
            found.push(Manager::Nm);
        }
        let state = file("systemd/netif/links");
        let state = state.lines().find_map(|line| line.strip_prefix("ADMIN_STATE=")).map(str::trim);
        if self.networkd && state.is_some_and(|state| !["unmanaged", "linger", ""].contains(&state)) {
            let lease = self.run.join("systemd/netif/leases").join(index.to_string()).exists();
            found.push(Manager::Networkd { lease });
        }
        for client in &self.clients {
            let known = found
                .iter()
                .any(|other| matches!(other, Manager::Dhcp { client: c, .. } if *c == client.name));
            // A client that names no interface serves them all.
            let serves_all = !client.words.iter().any(|word| self.interfaces.contains(word));
            if !known && (client.words.iter().any(|word| word == name) || serves_all && leased) {
                found.push(Manager::Dhcp { client: client.name.clone(), pid: client.pid });
            }
        }
        // Managers run clients of their own; who manages the client is enough.
        if found.len() > 1 && found.contains(&Manager::Nm) {
            found.retain(|manager| !matches!(manager, Manager::Dhcp { .. }));
        }
        found
    }
}

/// The network namespace of a process. The kernel tells it only to those with all of its rights.
fn namespace(directory: &Path, pid: u32) -> io::Result<PathBuf> {
    match fs::read_link(directory.join("ns/net")) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => helper::namespace(pid),
        told => told,
    }
}

/// Whether a process is in our network namespace, `here`, by its own namespace and its control groups. The kernel does not tell a
/// namespace to everybody: a service of the machine that is in no container is in the machine's, as we are.
fn is_here(its: &io::Result<PathBuf>, here: Option<&Path>, groups: &str) -> bool {
    match its {
        Ok(its) => Some(its.as_path()) == here,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let mut groups = groups.lines().filter_map(|line| line.rsplit(':').next());
            groups.any(|group| group.starts_with(SYSTEM) && group.ends_with(".service"))
        }
        Err(_) => false,
    }
}

/// The beginning of a file; nothing where there is none.
fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // What was read before an error is as good as a shorter file.
        let _ = file.take(TEXT_BYTES_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
