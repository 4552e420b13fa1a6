//! `explain`: what would become of one frame of a flow, and why. The kernel is asked where its packet goes, and the loaded data path
//! what it does with the frame ([`frame`]); what both say is put into [`words`]. Nothing is sent and nothing changes.

mod frame;
mod words;

use crate::{
    io::error::About as _,
    world::{World, bond::Bond},
};
use frame::Ends;
use linkbraid_api::{Error, Explain, ExplainRecord, Flow, FlowProtocol};
use linkbraid_dataplane::Beside;
use linkbraid_link::{NeighbourState, NextHop, Packet, RouteKind, group_mac};
use linkbraid_proto::{arp_plus::Peer, host::Host};
use linkbraid_wire::{Guest, MacAddr};
use std::net::IpAddr;
use words::{From, Told};

/// Explains what becomes of a frame.
///
/// # Errors
/// No frame of this flow leaves by the bond, the MAC of its next hop is not known yet, or the kernel does not answer.
pub(super) async fn run(world: &World, explain: &Explain) -> Result<ExplainRecord, Error> {
    let bond = world.bonds.get(&explain.bond).ok_or_else(|| world.no_bond(&explain.bond))?;
    let name = &bond.saved.name;
    if bond.path.waits() {
        let cause = "the programs of an earlier daemon still carry its frames, for some seconds";
        return Err(cannot(bond, &explain.flow, cause.to_owned(), format!("linkbraid show {name}")));
    }
    let (from, hop) = way(world, bond, explain).await?;
    let (source, vlan) = match &from {
        From::Host => (bond.mac, 0),
        From::Guest(guest) => (guest.mac, guest.vlan),
    };
    let Some(destination) = hop.mac else { return Err(no_mac(bond, &explain.flow, &hop)) };
    let ends = Ends { source, destination, vlan };
    let sent = frame::of(&explain.flow, explain.dscp.unwrap_or(0), ends);
    let beside = Beside {
        priority: explain.priority.unwrap_or(0),
        mark: explain.fwmark.unwrap_or(0),
        ..Beside::default()
    };
    let what = "cannot run a frame through the data path";
    let explained = bond.path.explain(&sent, bond.port(), beside).about(name, what)?;
    let now = explained.plan.map(|number| bond.path.lanes_now(number)).transpose().about(name, what)?;
    Ok(Told { bond, flow: explain.flow, from, hop, ends, explained, now: now.unwrap_or_default() }.record())
}

/// Who sends it, and where it goes first.
async fn way(world: &World, bond: &Bond, explain: &Explain) -> Result<(From, NextHop), Error> {
    let Flow { source, destination, .. } = explain.flow;
    let name = &bond.saved.name;
    let what = "cannot look up the way of a frame";
    let (own, to) = (
        world.netlink.next_hop(&Packet::to(source)).await.about(name, what)?,
        world.netlink.next_hop(&Packet::to(destination)).await.about(name, what)?,
    );
    let refused = |cause: String, hint: String| Err(cannot(bond, &explain.flow, cause, hint));
    let show = || format!("linkbraid show {name}");
    if to.kind == RouteKind::Local {
        let cause = format!("{destination} is an address of this host, so no frame leaves for it");
        return refused(cause, format!("ip route get {destination}"));
    }
    if own.kind == RouteKind::Local {
        let hop = world.netlink.next_hop(&packet(explain)).await.about(name, what)?;
        if hop.kind == RouteKind::Unreachable {
            let routes = if destination.is_ipv4() { "ip route" } else { "ip -6 route" };
            let cause = format!("this host has no route from {source} to {destination}");
            return refused(cause, routes.to_owned());
        }
        if hop.interface != bond.ifindex {
            let by = world.netlink.link_by_index(hop.interface).await;
            let by = by.map_or_else(|_| "another interface".to_owned(), |link| format!("'{}'", link.name));
            let cause = format!("its route leads through {by}, not through the bond");
            return refused(cause, format!("ip route get {destination} from {source}"));
        }
        return Ok((From::Host, hop));
    }
    let driven = bond.driven();
    let guests = driven.host.arp_plus().guests_here();
    let of = |address: IpAddr| guests.iter().find(|guest| guest.addresses.contains(&address));
    let Some(guest) = of(source) else {
        let cause =
            format!("{source} is neither an address of this host nor of a guest that the bond has seen");
        return refused(cause, show());
    };
    if of(destination).is_some() {
        let cause = format!("{destination} is a guest of the bond, too, so its frames stay on this host");
        return refused(cause, show());
    }
    if destination.is_multicast() {
        let group = NextHop { kind: RouteKind::Multicast, mac: Some(group_mac(destination)), ..to };
        return Ok((From::Guest(guest.clone()), group));
    }
    // The guest's own routes and neighbours are not known here.
    let known = known_mac(&driven.host, guest, destination);
    let seen = to.mac.filter(|_| to.interface == bond.ifindex && to.gateway.is_none());
    let state = to.state.filter(|_| known.is_none() && seen.is_some());
    Ok((From::Guest(guest.clone()), NextHop { gateway: None, mac: known.or(seen), state, ..to }))
}

/// The MAC that a peer, or a guest behind one in the VLAN of `guest`, has announced for an address.
fn known_mac(host: &Host, guest: &Guest, address: IpAddr) -> Option<MacAddr> {
    let peers = host.arp_plus();
    let there = peers.peers().flat_map(|peer| &peer.guests);
    let there =
        there.into_iter().find(|other| other.vlan == guest.vlan && other.addresses.contains(&address));
    let peer = || peers.peer_by_address(address).map(Peer::mac);
    there.map(|other| other.mac).or_else(peer)
}

/// What the kernel's choice of a route depends on.
fn packet(explain: &Explain) -> Packet {
    let Flow { protocol, source, source_port, destination, destination_port } = explain.flow;
    let number = match protocol {
        FlowProtocol::Tcp => Some(frame::TCP),
        FlowProtocol::Udp => Some(frame::UDP),
        FlowProtocol::Icmp => None,
    };
    Packet {
        to: destination,
        from: Some(source),
        dscp: explain.dscp.unwrap_or(0),
        mark: explain.fwmark.unwrap_or(0),
        ports: number.map(|number| (number, source_port, destination_port)),
    }
}

fn cannot(bond: &Bond, flow: &Flow, cause: String, hint: String) -> Error {
    Error::new(&bond.saved.name, format!("cannot explain '{flow}'"), cause).hint(hint)
}

fn no_mac(bond: &Bond, flow: &Flow, hop: &NextHop) -> Error {
    let to = hop.gateway.unwrap_or(flow.destination);
    let cause = match hop.state {
        Some(NeighbourState::Failed) => {
            format!("{to} did not answer when it was asked for its MAC")
        }
        _ => format!("the MAC of {to} is not known yet"),
    };
    cannot(bond, flow, cause, format!("ping -c 1 {to}"))
}
