//! Guests as `show` and `peers` report them.

use linkbraid_api::GuestRecord;
use linkbraid_proto::{arp_plus::Peer, host::Host};
use linkbraid_wire::{Guest, MacAddr};

/// Those behind the own bond; `members` names those that speak for a MAC.
pub(super) fn here(host: &Host, members: impl Fn(MacAddr) -> Vec<String>) -> Vec<GuestRecord> {
    let announced = host.arp_plus().announced_guests();
    let why = |guest: &Guest| match announced.contains(guest) {
        true => "",
        false => "peers are told of no more guests",
    };
    let one = |guest: &Guest| GuestRecord { members: members(guest.mac), ..record(guest, why(guest)) };
    host.arp_plus().guests_here().iter().map(one).collect()
}

/// Those that a peer announces.
pub(super) fn of_peer(host: &Host, peer: &Peer) -> Vec<GuestRecord> {
    let located = host.arp_plus().located_guests();
    let why = |guest: &Guest| match located.macs.get(&guest.mac) {
        Some(key) if *key == peer.key => "",
        Some(_) => "behind another host",
        None if !peer.takes_guests() => "the peer gives guests' frames no MACs back",
        None => "another host has its MAC or its addresses, or announces it, too",
    };
    peer.guests.iter().map(|guest| record(guest, why(guest))).collect()
}

fn record(guest: &Guest, reason: &str) -> GuestRecord {
    GuestRecord {
        mac: guest.mac.to_string(),
        vlan: guest.vlan,
        addresses: guest.addresses.iter().map(|address| address.to_string()).collect(),
        striped: reason.is_empty(),
        reason: reason.to_owned(),
        members: Vec::new(),
    }
}
