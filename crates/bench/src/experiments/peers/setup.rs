//! The commands that make each system, as an administrator would type them.

use super::system::{Kind, TeamWatch};
use crate::experiments::prelude::*;
use linkbraid_lab::wait_for;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU32, Ordering};

const BOND: &str = "bond0";
/// How long links may take until all of them are used: LACP, at its fast rate, needs some seconds.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How often teamd asks by ARP, in milliseconds, and how many answers may be missing.
const TEAM_ARP: (u32, u32) = (100, 3);
const HOSTS: [&str; 2] = ["a", "b"];

/// Sets a lab up; the system is ready when this returns.
pub(super) fn join(mut bed: Bed, kind: Kind) -> Result<Bed, Error> {
    for (host, other) in [("a", "b"), ("b", "a")] {
        for line in lines(&bed, kind, host, other)? {
            bed.set_up(host, &line)?;
        }
    }
    ready(&bed, kind)?;
    Ok(bed)
}

fn lines(bed: &Bed, kind: Kind, host: &str, other: &str) -> Result<Vec<String>, Error> {
    let (host, other) = (bed.host(host)?, bed.host(other)?);
    let links = host.spec().links.len();
    Ok(match kind {
        Kind::Linkbraid => Vec::new(),
        Kind::Bond(words) => bond(host, words),
        Kind::BondArp(words) => bond(host, &format!("{words} arp_ip_target {}", other.ipv4())),
        Kind::Team(runner, watch) => team(host, other, runner, watch),
        Kind::Mptcp => mptcp(host.index() + 1, links),
    })
}

fn bond(host: Host<'_>, words: &str) -> Vec<String> {
    let mut lines = vec![format!("ip link add {BOND} type bond {words}")];
    for nic in nics(host) {
        lines.push(format!("ip link set {nic} down"));
        lines.push(format!("ip link set {nic} master {BOND}"));
    }
    lines.push(format!("ip link set {BOND} up"));
    lines.extend(addresses(host, BOND));
    lines
}

/// Interfaces of a lab are the lab's alone, but teamd keeps its files under the interface's name.
fn team(host: Host<'_>, other: Host<'_>, runner: &str, watch: TeamWatch) -> Vec<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("t{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let ports: Map<String, Value> = nics(host).map(|nic| (nic, json!({}))).collect();
    let (interval, missed) = TEAM_ARP;
    let watch = match watch {
        TeamWatch::Carrier => json!({ "name": "ethtool" }),
        TeamWatch::Arp => json!({
            "name": "arp_ping", "interval": interval, "missed_max": missed,
            "source_host": host.ipv4(), "target_host": other.ipv4(),
        }),
    };
    // Without a space, since lines are split there.
    let config = json!({ "device": name, "runner": { "name": runner }, "link_watch": watch, "ports": ports });
    let mut lines: Vec<String> = nics(host).map(|nic| format!("ip link set {nic} down")).collect();
    lines.push(format!("teamd -d -p /run/{name}.pid -c {config}"));
    lines.push(format!("ip link set {name} up"));
    lines.extend(addresses(host, &name));
    lines
}

/// A subnet for each link after the first one, which has its address already. Every host answers ARP for what an
/// interface has on that interface alone: otherwise all of it would cross one link.
fn mptcp(number: usize, links: usize) -> Vec<String> {
    let mut lines = vec![
        "sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2".to_owned(),
        format!("ip mptcp limits set subflow {} add_addr_accepted {0}", links.saturating_sub(1).min(8)),
    ];
    for link in 1..links {
        lines.push(format!("ip address add {}/24 dev eth{link}", address(link, number)));
        // The server advertises its addresses, and the client makes a subflow to each.
        if number == 2 {
            lines.push(format!("ip mptcp endpoint add {} dev eth{link} signal", address(link, number)));
        }
    }
    lines
}

fn address(link: usize, number: usize) -> String {
    format!("198.18.{link}.{number}")
}

fn nics(host: Host<'_>) -> impl Iterator<Item = String> {
    (0..host.spec().links.len()).map(|link| format!("eth{link}"))
}

fn addresses(host: Host<'_>, to: &str) -> Vec<String> {
    let own = host.spec().addresses.iter().map(|address| format!("ip address add {address} dev {to}"));
    ["ip address flush dev eth0".to_owned()].into_iter().chain(own).collect()
}

/// Waits until all links are in use and both hosts reach each other.
fn ready(bed: &Bed, kind: Kind) -> Result<(), Error> {
    let [a, b] = HOSTS.map(|name| bed.host(name));
    let (a, b) = (a?, b?);
    let links = a.spec().links.len();
    if matches!(kind, Kind::Bond(_) | Kind::BondArp(_)) {
        for host in [a, b] {
            wait_for(READY_LIMIT, &format!("the bond of host '{}'", host.name()), || {
                let text = host.proc_net(&format!("bonding/{BOND}")).map_err(|e| e.to_string())?;
                if bond_is_ready(&text, links) { Ok(()) } else { Err(text) }
            })?;
        }
    }
    a.wait_ping(b.ipv4(), READY_LIMIT)?;
    b.wait_ping(a.ipv4(), READY_LIMIT)?;
    if kind == Kind::Mptcp {
        (1..links).try_for_each(|link| a.wait_ping(&address(link, 2), READY_LIMIT))?;
    }
    Ok(())
}

/// Whether bonding's own report says that all members are up and, with LACP, that all of them are in one aggregate.
fn bond_is_ready(text: &str, links: usize) -> bool {
    // The bond's own line comes first.
    let up = text.lines().filter(|line| line.trim() == "MII Status: up").count();
    let lacp = text.contains("802.3ad info");
    let ports = text.lines().find_map(|line| line.trim().strip_prefix("Number of ports: "));
    let partner = text.lines().find_map(|line| line.trim().strip_prefix("Partner Mac Address: "));
    let joined = ports.and_then(|n| n.trim().parse().ok()) == Some(links)
        && partner.is_some_and(|mac| mac.trim() != "00:00:00:00:00:00");
    up == links + 1 && (!lacp || joined)
}

#[cfg(test)]
mod tests;
