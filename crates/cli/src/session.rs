//! The SSH session in which a command is typed, and what would cut it off.

use linkbraid_api::Request;
use linkbraid_terminal::report;
use nix::ifaddrs::getifaddrs;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// What sshd tells its children: the addresses and ports of client and server.
const VARIABLE: &str = "SSH_CONNECTION";
/// The most processes between this one and sshd's child, which sudo(8) and the like do not hand the variable on to.
const PARENTS_MAX: usize = 16;

/// Whether there is one.
pub fn is_there() -> bool {
    addresses().is_some()
}

/// Warns before changes of an interface by which the session goes.
pub fn warn<'r>(requests: impl IntoIterator<Item = &'r Request>) {
    let mut is_tentative = true;
    let mut touched = BTreeSet::new();
    for request in requests {
        let (names, confirm) = touches(request);
        is_tentative &= confirm || names.is_empty();
        touched.extend(names);
    }
    let Some((client, server)) = addresses().filter(|_| !touched.is_empty()) else { return };
    let Some(name) = interfaces(client, server).into_iter().find(|name| touched.contains(name)) else {
        return;
    };
    let help = match is_tentative {
        true => "",
        false => "; with '--confirm 60s' the change is undone unless you confirm it",
    };
    report::warn(&format!(
        "your SSH session from {client} goes by '{name}', which this changes: it may end{help}"
    ));
}

/// The interfaces whose addresses or connection a request changes, and whether it is undone unless it is confirmed.
fn touches(request: &Request) -> (Vec<String>, bool) {
    let names = match request {
        Request::Tentative(tentative) => return (touches(&tentative.request).0, true),
        Request::BondAdd(add) => add.members.iter().map(ToString::to_string).collect(),
        Request::BondSet(set) if set.addresses.is_some() || set.options.mtu.is_some() => {
            vec![set.name.to_string()]
        }
        Request::BondDel(del) => vec![del.name.to_string()],
        Request::MemberAdd(add) => vec![add.interface.to_string()],
        _ => Vec::new(),
    };
    (names, false)
}

/// The addresses of client and server.
fn addresses() -> Option<(IpAddr, IpAddr)> {
    if let Ok(text) = env::var(VARIABLE) {
        return read(&text);
    }
    let mut pid = std::process::id();
    for _ in 0..PARENTS_MAX {
        pid = parent(pid)?;
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let prefix = format!("{VARIABLE}=");
        let mut entries = environment.split(|byte| *byte == 0);
        if let Some(found) = entries.find_map(|entry| entry.strip_prefix(prefix.as_bytes())) {
            return read(&String::from_utf8_lossy(found));
        }
    }
    None
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let pid = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    pid.trim().parse().ok().filter(|pid| *pid > 0)
}

/// `CLIENT PORT SERVER PORT`
fn read(text: &str) -> Option<(IpAddr, IpAddr)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    // A link-local address has its interface behind it.
    let address = |at: usize| words.get(at)?.split('%').next()?.parse::<IpAddr>().ok();
    Some((address(0)?, address(2)?))
}

/// The interfaces that have the session's address here, and the one by which answers leave.
fn interfaces(client: IpAddr, server: IpAddr) -> BTreeSet<String> {
    let mut addresses = BTreeSet::from([server]);
    // Nothing is sent: the kernel looks for its route, and for the address that this has here.
    let any: IpAddr = if client.is_ipv4() { [0, 0, 0, 0].into() } else { [0u16; 8].into() };
    let route = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(SocketAddr::new(client, 9))?;
        socket.local_addr()
    });
    addresses.extend(route.map(|own| own.ip()));
    let found = getifaddrs().into_iter().flatten().filter(|one| {
        let own = one.address.as_ref().and_then(|address| {
            let ipv4 = address.as_sockaddr_in().map(|own| IpAddr::from(own.ip()));
            ipv4.or_else(|| address.as_sockaddr_in6().map(|own| IpAddr::from(own.ip())))
        });
        own.is_some_and(|own| addresses.contains(&own))
    });
    found.map(|one| one.interface_name).collect()
}

#[cfg(test)]
mod tests;
