//! The steps that make a lab: namespaces, links, switch ports.

use crate::lab::Lab;
use crate::netns::Netns;
use crate::port::{PortConf, Ports};
use crate::queue::BUCKET;
use crate::spec::{End, LinkSpec, Options, Topology};
use crate::tool;
use linkbraid_api::Error;
use std::process::Command;

/// Written before any interface exists, so that all inherit it: no duplicate-address detection (an address works at
/// once), no router solicitations. A bond is a bridge too, and a stock host has no `br_netfilter` unless something such
/// as Docker loads it: where it is built in, it is turned off.
const HOST_SYSCTLS: [(&str, &str); 6] = [
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    ("net/bridge/bridge-nf-call-iptables", "0"),
    ("net/bridge/bridge-nf-call-ip6tables", "0"),
    ("net/bridge/bridge-nf-call-arptables", "0"),
];

/// TCP's congestion control where a program names none, the first of these that a namespace may have: only what the first
/// namespace has as its default, or allows to all, is open to others. Not bbr, should that be the default: a socket that was
/// bbr's once goes on pacing itself, with a timer for each buffer, when a program (iperf3, after it has connected) chooses
/// cubic (net/ipv4/tcp_bbr.c, `sk_pacing_status`).
const CONGESTION_CONTROLS: [&str; 2] = ["cubic", "reno"];

/// A switch says nothing of its own, and looks at nothing above Ethernet: where `br_netfilter` is in the kernel, a bridge
/// would hand every packet to the IP hooks.
const SWITCH_SYSCTLS: [(&str, &str); 4] = [
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    ("net/bridge/bridge-nf-call-iptables", "0"),
    ("net/bridge/bridge-nf-call-ip6tables", "0"),
    ("net/bridge/bridge-nf-call-arptables", "0"),
];

/// Whether any link is a cable.
pub(crate) fn has_cables(topology: &Topology) -> bool {
    topology.hosts.iter().flat_map(|h| &h.links).any(|l| matches!(l.end, End::Cable { .. }))
}

/// The interface at the switch's end of a link.
pub(crate) fn port_name(host: &str, link: usize) -> String {
    format!("{host}-eth{link}")
}

/// The MAC of a NIC, from its place: locally administered, the same in every run.
pub fn mac(host: usize, link: usize) -> String {
    format!("02:4c:42:{:02x}:{:02x}:{link:02x}", host >> 8, host & 0xff)
}

/// The switch whose namespace holds a link's far end; all cables share the one past the last switch.
pub(crate) fn switch_of(topology: &Topology, link: &LinkSpec) -> usize {
    match link.end {
        End::Switch(index) => index,
        End::Cable { .. } => topology.switches.len(),
    }
}

/// Every link: host, its number, link, its number.
fn all_links(topology: &Topology) -> impl Iterator<Item = (usize, usize, &LinkSpec)> {
    topology
        .hosts
        .iter()
        .enumerate()
        .flat_map(|(h, host)| host.links.iter().enumerate().map(move |(l, link)| (h, l, link)))
}

pub(crate) fn namespaces(lab: &mut Lab) -> Result<(), Error> {
    for name in lab.host_names() {
        let host = create(&name, &HOST_SYSCTLS)?;
        host.run(|| choose_congestion_control(&name))??;
        lab.hosts.push(host);
    }
    for name in lab.switch_names() {
        lab.switches.push(create(&name, &SWITCH_SYSCTLS)?);
    }
    Ok(())
}

fn create(name: &str, sysctls: &[(&str, &str)]) -> Result<Netns, Error> {
    let netns = Netns::create(name)?;
    netns.run(|| {
        for (key, value) in sysctls {
            // A kernel without IPv6 or br_netfilter has not got them, and needs none.
            let path = std::path::Path::new("/proc/sys").join(key);
            if path.exists() {
                std::fs::write(&path, value)
                    .map_err(|e| Error::new(name, format!("cannot set '{key}'"), e.to_string()))?;
            }
        }
        Ok(())
    })??;
    Ok(netns)
}

fn choose_congestion_control(name: &str) -> Result<(), Error> {
    let mut last = Ok(());
    for control in CONGESTION_CONTROLS {
        last = std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", control);
        if last.is_ok() {
            break;
        }
    }
    last.map_err(|e| Error::new(name, "cannot choose TCP's congestion control", e.to_string()))
}

pub(crate) fn links(lab: &mut Lab) -> Result<(), Error> {
    let topology = lab.topology().clone();
    for (s, _) in topology.switches.iter().enumerate() {
        // An unmanaged switch: no spanning tree, no multicast snooping, MACs forgotten after 300 s.
        let bridge = "link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0";
        tool::ip_batch(lab.switches[s].name(), &[bridge.into()])?;
    }
    for (h, host) in topology.hosts.iter().enumerate() {
        let lines: Vec<String> = host
            .links
            .iter()
            .enumerate()
            .map(|(l, link)| {
                let (mac, mtu, port) = (mac(h, l), link.mtu, port_name(&host.name, l));
                let far = lab.switches[switch_of(&topology, link)].name();
                format!(
                    "link add eth{l} mtu {mtu} address {mac} type veth peer name {port} mtu {mtu} netns {far}"
                )
            })
            .collect();
        tool::ip_batch(lab.hosts[h].name(), &lines)?;
    }
    for (s, switch) in lab.switches.iter().enumerate() {
        let (mut ip, mut tc) = (Vec::new(), Vec::new());
        for (h, l, link) in all_links(&topology).filter(|(.., link)| switch_of(&topology, link) == s) {
            let port = port_name(&topology.hosts[h].name, l);
            let master = if s < topology.switches.len() { " master br0" } else { "" };
            ip.push(format!("link set {port}{master} up"));
            if let Some(rate) = link.rate_mbit {
                let bucket = topology.options.port_bucket(rate, link.mtu);
                tc.push(format!("qdisc replace dev {port} root handle {BUCKET} {bucket}"));
            }
        }
        if s < topology.switches.len() {
            ip.push("link set br0 up".into());
        }
        tool::tc_batch(switch.name(), &tc)?;
        tool::ip_batch(switch.name(), &ip)?;
    }
    hosts_side(lab, &topology)
}

fn hosts_side(lab: &Lab, topology: &Topology) -> Result<(), Error> {
    for (netns, host) in lab.hosts.iter().zip(&topology.hosts) {
        let (mut ip, mut tc) = (Vec::new(), Vec::new());
        for (l, link) in host.links.iter().enumerate() {
            let nic = format!("eth{l}");
            if let Some(rate) = link.rate_mbit {
                let bucket = topology.options.nic_bucket(rate, link.mtu);
                tc.push(format!("qdisc replace dev {nic} root handle {BUCKET} {bucket}"));
            }
            offloads(netns, &nic, &topology.options)?;
            ip.push(format!("link set {nic} up"));
        }
        ip.extend(host.addresses.iter().map(|address| format!("address add {address} dev eth0")));
        tool::tc_batch(netns.name(), &tc)?;
        tool::ip_batch(netns.name(), &ip)?;
    }
    Ok(())
}

fn offloads(netns: &Netns, nic: &str, options: &Options) -> Result<(), Error> {
    let mut words = Vec::new();
    if options.segment {
        words.extend(["tso", "off", "gso", "off", "tx-udp-segmentation", "off"]);
    }
    if options.gro {
        words.extend(["gro", "on"]);
    }
    if words.is_empty() {
        return Ok(());
    }
    tool::run(netns.command("ethtool").args(["-K", nic]).args(words)).map(drop)
}

pub(crate) fn ports(lab: &mut Lab) -> Result<(), Error> {
    let topology = lab.topology().clone();
    for (s, switch) in lab.switches.iter().enumerate() {
        let mut list = Vec::new();
        for (h, l, link) in all_links(&topology).filter(|(.., link)| switch_of(&topology, link) == s) {
            let name = port_name(&topology.hosts[h].name, l);
            let cable = match &link.end {
                End::Cable { host, link } => index_of(switch, &port_name(host, *link))?.cast_unsigned(),
                End::Switch(_) => 0,
            };
            let sticky = topology.switches.get(s).is_some_and(|switch| switch.sticky);
            if sticky {
                let mac = mac(h, l);
                let words = ["fdb", "replace", &mac, "dev", &name, "master", "sticky", "dynamic"];
                tool::run(Command::new("bridge").args(["-n", switch.name()]).args(words))?;
            }
            let conf = PortConf {
                loss_in_ppm: link.loss_ppm,
                loss_out_ppm: link.loss_ppm,
                mark_out_ppm: link.mark_ppm,
                cable,
                sticky,
                keep_socket: topology.options.back_pressure,
                ..PortConf::default()
            };
            list.push((index_of(switch, &name)?, conf));
        }
        lab.ports.push(Ports::attach(switch, &list)?);
    }
    Ok(())
}

/// The index of an interface in a namespace.
pub(crate) fn index_of(netns: &Netns, interface: &str) -> Result<i32, Error> {
    let index = netns.run(|| nix::net::if_::if_nametoindex(interface))?;
    let cannot = |cause: &str| Error::new(netns.name(), format!("no interface '{interface}'"), cause);
    let index = index.map_err(|errno| cannot(errno.desc()))?;
    i32::try_from(index).map_err(|e| cannot(&e.to_string()))
}
