//! One peer of many, named by whoever asks for it.

use crate::{io::identity::hex, world::bond::Bond};
use linkbraid_api::Error;
use linkbraid_proto::arp_plus::{Peer, PeerKey};
use std::net::IpAddr;

/// Whether a peer has that address, MAC or host id.
pub(super) fn is_peer(peer: &Peer, wanted: &str) -> bool {
    let is_id = |id: &[u8]| hex(id).eq_ignore_ascii_case(wanted);
    let is_address = wanted.parse().is_ok_and(|address: IpAddr| peer.addresses.contains(&address));
    let is_mac = || wanted.parse().is_ok_and(|mac| peer.members.iter().any(|member| member.mac == mac));
    is_address || is_mac() || matches!(&peer.key, PeerKey::Host(host) if is_id(&host.0))
}

/// Bonds have no such peer.
pub(super) fn no_peer(bonds: &[&Bond], wanted: &str) -> Error {
    let (object, hint) = match bonds {
        [bond] => (bond.saved.name.to_string(), format!("linkbraid peers {}", bond.saved.name)),
        _ => ("peers".to_owned(), "linkbraid peers".to_owned()),
    };
    let cause = "none of its peers has that address, MAC or host id; it may be a plain host";
    Error::new(object, format!("no peer '{wanted}'"), cause).hint(hint)
}
