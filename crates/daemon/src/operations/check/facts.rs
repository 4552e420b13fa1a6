//! What is, gathered from the daemon and from the kernel, without a judgement.

use super::{
    device::Device,
    interface::{Interface, Nic},
    machine::Machine,
};
use crate::{
    io::{
        manager::{Managers, Roots},
        state::SavedBond,
    },
    world::{bond, record::findings::filtered},
};
use linkbraid_api::{FindingRecord, Weight};
use linkbraid_dataplane::{Hook, PREFERENCE, row_before};
use linkbraid_link::{LinkInfo, MacAddr, Netlink, Result, Route, bus, driver, eee, offloads, speed};
use linkbraid_proto::arp_plus::{Conflict, PeerMember, Segment};
use std::collections::BTreeMap;

/// Interfaces on the way from one to the one at the bottom of its stack; a longer way is no way.
const STACK_MAX: usize = 8;

/// Everything that findings are made of.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub machine: Machine,
    pub interfaces: Vec<Interface>,
    pub bonds: Vec<Bond>,
}

/// One bond.
#[derive(Debug, Clone)]
pub(super) struct Bond {
    pub name: String,
    pub index: u32,
    pub mtu: u32,
    /// The hook that its programs are on.
    pub hook: Option<Hook>,
    pub members: Vec<Member>,
    /// Members of two segments that hear one and the same member of a peer, with the peer's name.
    pub split: Vec<(String, String, String)>,
    /// MACs of ours that another host claims, with the source of its frames.
    pub claimed: Vec<(MacAddr, MacAddr)>,
    /// What of the host's filters keeps frames of its guests.
    pub filtered: Vec<FindingRecord>,
}

/// One member.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub name: String,
    pub index: u32,
    /// Which members hear each other: those with the same number. None for one that carries no traffic.
    pub segment: Option<u32>,
    /// Its weight was set by the user.
    pub weighted: bool,
}

/// A bond as the daemon knows it.
pub(super) fn bond(bond: &bond::Bond) -> Bond {
    let driven = bond.driven();
    let segments = driven.host.arp_plus().segments();
    let members: BTreeMap<u8, Member> = driven
        .members
        .iter()
        .map(|member| {
            let weighted = matches!(member.settings.weight, Weight::Mbit(_));
            let segment = segment_of(segments, member.slot);
            let (name, index) = (member.name.clone(), member.ifindex);
            (member.slot, Member { name, index, segment, weighted })
        })
        .collect();
    let claimed = driven.host.arp_plus().conflicts().into_iter().filter_map(|open| match open.conflict {
        Conflict::OwnMac { mac, by } => Some((mac, by)),
        _ => None,
    });
    let heard = driven.host.arp_plus().peers().flat_map(|peer| {
        let name = peer.address().map_or_else(|| peer.mac().to_string(), |address| address.to_string());
        let slots = |theirs: &PeerMember| theirs.heard.iter().map(|(slot, _)| *slot).collect();
        peer.members.iter().map(move |theirs| (name.clone(), slots(theirs)))
    });
    Bond {
        name: bond.saved.name.to_string(),
        index: bond.ifindex,
        mtu: bond.saved.mtu,
        hook: bond.path.hook(),
        split: split(heard, &members),
        claimed: claimed.collect(),
        filtered: filtered(bond, &driven),
        members: members.into_values().collect(),
    }
}

/// A bond that an earlier daemon left, as its file says.
pub(super) fn left(bond: &SavedBond) -> Bond {
    let members = bond.members.iter().map(|member| {
        let link = &member.before.link;
        let weighted = matches!(member.settings.weight, Weight::Mbit(_));
        Member { name: link.name.clone(), index: link.index, segment: None, weighted }
    });
    Bond {
        name: bond.name.to_string(),
        index: bond.ifindex.unwrap_or_default(),
        mtu: bond.mtu,
        hook: None,
        members: members.collect(),
        split: Vec::new(),
        claimed: Vec::new(),
        filtered: Vec::new(),
    }
}

/// A failed member is alone in a segment that elects nobody.
fn segment_of(segments: &[Segment], slot: u8) -> Option<u32> {
    let of = segments.iter().find(|segment| segment.slots.contains(&slot));
    of.filter(|segment| segment.elected.is_some()).map(|segment| segment.number)
}

/// Pairs of members that do not hear each other though they hear the same member of a peer: frames reach both from
/// there, so they are on one network, and something in it keeps them apart. Each pair once. `heard` has the name of a
/// peer, and the slots that hear one of its members.
pub(super) fn split(
    heard: impl Iterator<Item = (String, Vec<u8>)>,
    members: &BTreeMap<u8, Member>,
) -> Vec<(String, String, String)> {
    let mut pairs = BTreeMap::new();
    for (peer, mut slots) in heard {
        slots.sort_unstable();
        // What a failed member heard is of the past.
        let hearing: Vec<&Member> = slots
            .iter()
            .filter_map(|slot| members.get(slot))
            .filter(|member| member.segment.is_some())
            .collect();
        for (i, one) in hearing.iter().enumerate() {
            for other in hearing[i + 1..].iter().filter(|other| other.segment != one.segment) {
                pairs.entry((one.name.clone(), other.name.clone())).or_insert_with(|| peer.clone());
            }
        }
    }
    pairs.into_iter().map(|((one, other), peer)| (one, other, peer)).collect()
}

/// The interfaces to look at, as they are. A bond stands for its members; without names the members of all bonds are
/// taken, and without bonds every Ethernet interface that could be a member.
pub(super) async fn interfaces(
    netlink: &Netlink,
    bonds: &[Bond],
    named: Vec<String>,
    roots: &Roots,
) -> Result<Vec<Interface>> {
    let links = netlink.links().await?;
    let names = chosen(&links, bonds, named);
    let managers = Managers::look(roots, links.iter().map(|link| link.name.clone()).collect());
    let mut interfaces = Vec::new();
    for name in names {
        let bond = bonds.iter().find(|bond| bond.members.iter().any(|member| member.name == name));
        let nic = match links.iter().find(|link| link.name == name) {
            Some(link) => {
                let device = bus(&link.name).map(|place| Device::at(&place, roots));
                Some(nic(netlink, link, &links, bond, &managers, device).await?)
            }
            None => None,
        };
        interfaces.push(Interface { name, bond: bond.map(|bond| bond.name.clone()), nic });
    }
    Ok(interfaces)
}

/// The names, each once, in the order in which they were given.
pub(super) fn chosen(links: &[LinkInfo], bonds: &[Bond], named: Vec<String>) -> Vec<String> {
    let members = |bond: &Bond| bond.members.iter().map(|member| member.name.clone()).collect::<Vec<_>>();
    let all: Vec<String> = match (named.is_empty(), bonds.is_empty()) {
        (true, true) => {
            // A veth that is a port is the far end of a container's, on no wire.
            let could = |link: &&LinkInfo| match link.kind.as_deref() {
                None => true,
                Some("veth") => link.controller.is_none(),
                Some(_) => false,
            };
            let usable = |link: &&LinkInfo| link.ethernet && !link.loopback && !link.wireless;
            links.iter().filter(usable).filter(could).map(|link| link.name.clone()).collect()
        }
        (true, false) => bonds.iter().flat_map(members).collect(),
        (false, _) => named
            .into_iter()
            .flat_map(|name| match bonds.iter().find(|bond| bond.name == name) {
                Some(bond) => members(bond),
                None => vec![name],
            })
            .collect(),
    };
    let mut once: Vec<String> = Vec::new();
    for name in all {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

async fn nic(
    netlink: &Netlink,
    link: &LinkInfo,
    links: &[LinkInfo],
    bond: Option<&Bond>,
    managers: &Managers,
    device: Option<Device>,
) -> Result<Nic> {
    let addresses = netlink.addresses(link.index).await?;
    let leased = addresses.iter().any(linkbraid_link::Address::is_leased);
    let mut elsewhere = Vec::new();
    for index in [Some(link.index), bond.map(|bond| bond.index)].into_iter().flatten() {
        let neighbours = netlink.neighbours(index).await?;
        let same = neighbours.iter().filter(|neighbour| neighbour.mac == link.mac);
        elsewhere.extend(same.map(|neighbour| neighbour.ip.to_string()));
    }
    let claims = bond.into_iter().flat_map(|bond| &bond.claimed).filter(|(mac, _)| *mac == link.mac);
    elsewhere.extend(claims.map(|(_, by)| format!("a host that sends from {by}")));
    elsewhere.sort_unstable();
    elsewhere.dedup();
    let holder = link.controller.filter(|index| bond.is_none_or(|bond| bond.index != *index));
    let of = |index| links.iter().find(|link| link.index == index).map(|link| link.name.clone());
    let member = bond.and_then(|bond| bond.members.iter().find(|member| member.index == link.index));
    Ok(Nic {
        speed: speed(&link.name),
        eee: eee(&link.name),
        driver: driver(&link.name),
        offloads: offloads(&link.name),
        device,
        weighted: member.is_some_and(|member| member.weighted),
        held_by: holder.map(|index| of(index).unwrap_or_else(|| format!("interface {index}"))),
        addresses: addresses
            .iter()
            .filter(|address| !address.automatic)
            .map(|address| format!("{}/{}", address.ip, address.prefix))
            .collect(),
        leased,
        default_route: netlink.routes_via(link.index).await?.iter().any(Route::is_default),
        managers: managers.of(link.index, &link.name, leased),
        before: before(netlink, link, bond.and_then(|bond| bond.hook)).await,
        same_mac: same_mac(link, links),
        elsewhere,
        link: link.clone(),
    })
}

/// The sides of a member where programs of others come before ours, each with the command that lists them; none where that cannot be
/// read.
async fn before(netlink: &Netlink, link: &LinkInfo, hook: Option<Hook>) -> Vec<(&'static str, String)> {
    let LinkInfo { index, name, .. } = link;
    let sides = match hook {
        // Those of the tcx hook come before all filters.
        Some(Hook::Tcx) => row_before(*index).unwrap_or_default(),
        Some(Hook::Clsact) => netlink.filters_before(*index, PREFERENCE).await.unwrap_or_default(),
        None => Vec::new(),
    };
    let with_hint = |side| match hook {
        Some(Hook::Clsact) => (side, format!("tc filter show dev {name} {side}")),
        _ => (side, format!("bpftool net show dev {name}")),
    };
    sides.into_iter().map(with_hint).collect()
}

/// Other interfaces here with its MAC, but for those that have it because they stand on it or it stands on them.
pub(super) fn same_mac(link: &LinkInfo, links: &[LinkInfo]) -> Vec<String> {
    let below = |top: &LinkInfo| {
        let mut way = vec![top.index];
        let mut at = Some(top);
        while let Some(next) = at.and_then(|link| link.lower)
            && way.len() < STACK_MAX
        {
            way.push(next);
            at = links.iter().find(|link| link.index == next);
        }
        way
    };
    let own = below(link);
    let related = |other: &LinkInfo| {
        own.contains(&other.index)
            || link.controller == Some(other.index)
            || below(other).iter().any(|index| *index == link.index || link.controller == Some(*index))
    };
    links
        .iter()
        .filter(|other| link.mac.is_host() && other.mac == link.mac && !related(other))
        .map(|other| other.name.clone())
        .collect()
}

#[cfg(test)]
mod tests;
