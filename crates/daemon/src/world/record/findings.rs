//! What of a bond is not as it is to be, each with a command that helps: for `show`, and for `check`, which looks at more.

use crate::world::{
    bond::{Bond, found::Kept},
    driven::Driven,
    member::Member,
    record::keys,
};
use linkbraid_api::{Error, FindingRecord, Severity};
use linkbraid_link::{BridgeSwitches, ForwardChain};
use linkbraid_proto::{
    Time,
    arp_plus::{Conflict, OpenConflict, Peer, PeerKey, State},
    host::Host,
};
use std::{collections::BTreeMap, time::Duration};

/// MTUs that nearly all links carry, and any link that carries IPv6.
const USUAL_MTUS: [u32; 2] = [1500, 1280];
/// A peer is heard every second, or said that it speaks more seldom.
const HEARD_LATELY: Duration = Duration::from_secs(3);
/// Lanes to a peer that was just met, or has just failed, get so long to be proven.
const UNPROVEN_LONG: Duration = Duration::from_secs(3);
/// What makes a port of the bridge a member's.
const MEMBER: &str = "isolated on learning off flood off mcast_flood off bcast_flood off neigh_suppress off locked off state forwarding";

/// A finding about an interface or a bond.
fn finding(severity: Severity, object: &str, name: &str, text: String, hint: String) -> FindingRecord {
    FindingRecord { severity, object: object.to_owned(), name: name.to_owned(), text, hint: Some(hint) }
}

/// All that the daemon has found about a bond.
pub(super) fn findings(bond: &Bond, driven: &Driven, now: Time) -> Vec<FindingRecord> {
    let mut all = of_interface(bond, &driven.interface);
    all.extend(filtered(bond, driven));
    all.extend(keys::of_keys(bond, &driven.host, now));
    all.extend(same_id(&bond.saved.name, &driven.host));
    all.extend(left(bond, driven));
    all.extend(driven.members.iter().flat_map(|member| of_member(bond, member)));
    all.extend(short(bond, driven));
    all.extend(unproven(bond, driven, now));
    all.extend(bond.found.not_joined.iter().map(|(member, error)| not_joined(member, error)));
    all
}

/// What of the host's filters keeps frames of guests.
pub(crate) fn filtered(bond: &Bond, driven: &Driven) -> Vec<FindingRecord> {
    let (name, interface) = (&bond.saved.name, &driven.interface);
    bond.found.forward.iter().map(|chain| forward(name, interface, chain)).collect()
}

/// A chain drops what guests send and get.
pub(crate) fn forward(bond: &str, interface: &str, chain: &ForwardChain) -> FindingRecord {
    let ForwardChain { family, table, name } = chain;
    let text = format!(
        "br_netfilter has packets of its guests pass the chain '{name}' of '{family} {table}', which drops all that no rule admits"
    );
    let hint = match (*family, table.as_str(), name.as_str()) {
        ("ip", "filter", "FORWARD") => format!("iptables -I FORWARD -i {interface} -o {interface} -j ACCEPT"),
        ("ip6", "filter", "FORWARD") => {
            format!("ip6tables -I FORWARD -i {interface} -o {interface} -j ACCEPT")
        }
        _ => {
            format!("nft insert rule {family} {table} {name} iifname {interface} oifname {interface} accept")
        }
    };
    finding(Severity::Warning, bond, "guests_filtered", text, hint)
}

/// Hosts that have one host id, as machines made from the image of a running one do.
fn same_id(name: &str, host: &Host) -> Vec<FindingRecord> {
    let mut all = Vec::new();
    for OpenConflict { conflict, .. } in host.arp_plus().conflicts() {
        let (which, hint) = match &conflict {
            Conflict::OwnHostId { .. } => {
                ("this host or the other one", format!("linkbraid bond del {name}"))
            }
            Conflict::PeerHostId { owner, address, .. } if owner != address => {
                ("one of them", format!("linkbraid peers {name}"))
            }
            _ => continue,
        };
        let text = format!("{conflict}, one link only until {which} has made its bond again");
        all.push(finding(Severity::Warning, name, "same_id", text, hint));
    }
    all
}

/// Whether this host has left its peers (`leave`).
fn left(bond: &Bond, driven: &Driven) -> Option<FindingRecord> {
    let name = &bond.saved.name;
    (driven.host.arp_plus().state() == State::S0 && !is_down(bond)).then(|| {
        let text = "this host has left its peers, one link only to each".to_owned();
        finding(Severity::Warning, name, "left", text, format!("linkbraid leave {name} --undo"))
    })
}

/// Whether somebody has set the bond's interface down.
pub(crate) fn is_down(bond: &Bond) -> bool {
    bond.found.interface.is_some_and(|interface| !interface.up)
}

/// About the bond's own interface, whatever it is called now.
fn of_interface(bond: &Bond, interface: &str) -> Vec<FindingRecord> {
    let name = &bond.saved.name;
    let mut all = Vec::new();
    let Some(found) = bond.found.interface else { return all };
    if is_down(bond) {
        let text = "its interface is set down, so it carries no traffic".to_owned();
        let hint = format!("ip link set {interface} up");
        all.push(finding(Severity::Error, name, "set_down", text, hint));
    }
    if let Some(cause) = bond.found.refusal(Kept::Port) {
        let text = format!("nothing leaves by it, because its internal port cannot be made: {cause}");
        all.push(finding(Severity::Error, name, "port", text, format!("ip -d link show master {interface}")));
    }
    if found.switches != BridgeSwitches::BOND {
        let text = "its bridge has a spanning tree, a VLAN filter or snooping, and keeps frames to itself"
            .to_owned();
        let hint =
            format!("ip link set {interface} type bridge stp_state 0 vlan_filtering 0 mcast_snooping 0");
        all.push(finding(Severity::Error, name, "bridge", text, hint));
    }
    if found.mac != bond.mac {
        let text = format!("its interface has the MAC {} instead of {}", found.mac, bond.mac);
        let hint = format!("ip link set {interface} address {}", bond.mac);
        all.push(finding(Severity::Error, name, "mac", text, hint));
    }
    if found.mtu != bond.saved.mtu && bond.mtu_meanwhile.is_none() {
        let cause = bond.found.refusal(Kept::Mtu).map(|cause| format!(" ({cause})")).unwrap_or_default();
        let text = format!("its interface has MTU {}, its members {}{cause}", found.mtu, bond.saved.mtu);
        let hint = format!("linkbraid bond set {name} --mtu {}", bond.saved.mtu);
        all.push(finding(Severity::Error, name, "mtu", text, hint));
    }
    all
}

fn of_member(bond: &Bond, member: &Member) -> Vec<FindingRecord> {
    let (name, of) = (&member.name, bond.saved.name.as_str());
    let mut all = Vec::new();
    // What somebody has taken out may be in use for something else.
    if !member.ours {
        return all;
    }
    if !member.fits() {
        all.push(mtu(name, of, member.mtu, bond.saved.mtu, bond.found.refusal(Kept::Member(member.ifindex))));
    }
    if bond.found.waits(Kept::Flags(member.ifindex)) {
        let text = "the bridge does not treat it as a member".to_owned();
        let hint = format!("bridge link set dev {name} {MEMBER}");
        all.push(finding(Severity::Error, name, "flags", text, hint));
    }
    let addresses = bond.found.addresses.get(&member.ifindex).map_or(&[][..], Vec::as_slice);
    all.extend(own_addresses(name, of, addresses));
    for ipv6 in [false, true] {
        if bond.found.default_routes.contains(&(member.ifindex, ipv6)) {
            all.push(own_default_route(name, of, ipv6));
        }
    }
    all
}

/// Members that do not carry packets as long as the bond's MTU allows, each with those of a peer's MACs where they get lost.
fn short(bond: &Bond, driven: &Driven) -> Vec<FindingRecord> {
    let mut to: BTreeMap<(u8, PeerKey), Vec<String>> = BTreeMap::new();
    for lane in driven.host.inspector().short_lanes() {
        let Some(peer) = driven.host.arp_plus().peer(&lane.peer) else { continue };
        let theirs = peer.members.iter().filter(|member| member.index == lane.index);
        to.entry((lane.slot, lane.peer)).or_default().extend(theirs.map(|member| member.mac.to_string()));
    }
    let (name, mtu) = (&bond.saved.name, driven.settings.mtu);
    let less = USUAL_MTUS.into_iter().find(|usual| *usual < mtu);
    let hint = match less {
        Some(less) => format!("linkbraid bond set {name} --mtu {less}"),
        None => format!("linkbraid lanes {name}"),
    };
    let finding = |((slot, key), macs): ((u8, PeerKey), Vec<String>)| {
        let peer = driven.host.arp_plus().peer(&key)?;
        let to = peer.address().map_or_else(|| peer.mac().to_string(), |address| address.to_string());
        let text = format!(
            "packets of {mtu} bytes sent by it do not reach {to} ({}), shorter ones do: a link on the way \
             has a smaller MTU",
            macs.join(", ")
        );
        Some(finding(Severity::Warning, &driven.name_of(slot), "short", text, hint.clone()))
    };
    to.into_iter().filter_map(finding).collect()
}

/// Peers that are heard, and nothing shows that they hear this host.
fn unproven(bond: &Bond, driven: &Driven, now: Time) -> Vec<FindingRecord> {
    let host = &driven.host;
    let is_so = |peer: &&Peer| {
        let unproven = host.inspector().unproven_since(&peer.key);
        // A host that speaks only the published part answers no probes.
        peer.epoch.is_some()
            && now.since(peer.last_heard) < HEARD_LATELY * (1 << peer.doublings)
            && unproven.is_some_and(|since| now.since(since) >= UNPROVEN_LONG)
    };
    let (name, peers) = (&bond.saved.name, host.arp_plus().peers().filter(is_so));
    let found = peers.map(|peer| {
        let to = peer.address().map_or_else(|| peer.mac().to_string(), |address| address.to_string());
        let text = format!("{to} is heard, but answers no probe: frames to it may be lost");
        finding(Severity::Warning, name, "unproven", text, format!("linkbraid lanes {name}"))
    });
    found.collect()
}

/// A member's interface is there, and does not join again.
fn not_joined(member: &str, error: &Error) -> FindingRecord {
    let Error { what, cause, hint, .. } = error;
    let hint = hint.clone().unwrap_or_else(|| format!("linkbraid check {member}"));
    let text = format!("it is there, and does not join: {what}: {cause}");
    finding(Severity::Error, member, "not_joined", text, hint)
}

/// A member has less than the bond's MTU; why it has, if the kernel refused more.
pub(crate) fn mtu(member: &str, bond: &str, has: u32, wanted: u32, refusal: Option<&str>) -> FindingRecord {
    let cause = refusal.map(|cause| format!(": {cause}")).unwrap_or_default();
    let text = format!("MTU {has}, less than the {wanted} of '{bond}', so it carries no traffic{cause}");
    let hint = format!("linkbraid bond set {bond} --mtu {has}");
    finding(Severity::Error, member, "mtu", text, hint)
}

/// A member has addresses of its own, which should be the bond's.
pub(crate) fn own_addresses(member: &str, bond: &str, addresses: &[String]) -> Option<FindingRecord> {
    let first = addresses.first()?;
    let all = addresses.join(", ");
    let text = format!("it has {all} of its own: what leaves from there bypasses '{bond}'");
    let hint = format!("ip address del {first} dev {member}");
    Some(finding(Severity::Warning, member, "address", text, hint))
}

/// A default route leads through a member, and not through the bond.
pub(crate) fn own_default_route(member: &str, bond: &str, ipv6: bool) -> FindingRecord {
    let text = format!("a default route leads through it and bypasses '{bond}'");
    let hint = format!("ip {}route del default dev {member}", if ipv6 { "-6 " } else { "" });
    finding(Severity::Warning, member, "default_route", text, hint)
}
