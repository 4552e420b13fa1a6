//! Filters of the host that keep frames of guests.

use crate::{
    io::manager::Roots,
    operations::check::{FILTERS, filters},
    world::World,
};
use linkbraid_link::{ForwardChain, forward_drops};

/// Reads which chains drop what guests send and get: `br_netfilter` has frames from one port of a bridge to another one pass the chains
/// for forwarded packets. Nobody says when those change, so it is read where it is shown.
pub(in crate::operations) async fn forward_chains(world: &mut World) {
    let on = filters(&Roots::default());
    let links = match on.is_empty() {
        true => Vec::new(),
        false => world.netlink.links().await.unwrap_or_default(),
    };
    let is_handed = |chain: &ForwardChain| {
        let passes = |ipv6| chain.has(ipv6) && on.contains(&FILTERS[usize::from(ipv6)]);
        passes(false) || passes(true)
    };
    for bond in world.bonds.values_mut() {
        let interface = bond.driven().interface.clone();
        let members = bond.members();
        let is_own = |index| index == bond.port() || members.iter().any(|member| member.ifindex == index);
        let mut ports = links.iter().filter(|link| link.controller == Some(bond.ifindex));
        bond.found.forward = match ports.any(|port| !is_own(port.index)) {
            true => forward_drops(&interface)
                .await
                .inspect_err(|error| tracing::debug!(%error, "filters not read"))
                .unwrap_or_default(),
            false => Vec::new(),
        };
        bond.found.forward.retain(is_handed);
    }
}
