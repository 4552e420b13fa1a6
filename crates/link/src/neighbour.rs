//! Neighbours: which IP address is at which hardware address, as the kernel has learned it (ARP, neighbour discovery).

use std::net::IpAddr;

use linkbraid_wire::MacAddr;
use nix::libc;
use serde::{Deserialize, Serialize};

use crate::{
    Netlink,
    address::{ip, octets},
    error::{Kind, Result},
    netlink::Refusal,
    rtnl::{Builder, NEIGHBOUR_HEADER, Raw, attribute, number, number_at},
};

/// The most neighbours that one list has. The kernel keeps 1024 for each family by default (`gc_thresh3`); of a
/// longer list the others are left out.
pub const NEIGHBOURS_MAX: usize = 16_384;

/// How sure the kernel is of a neighbour (`NUD_*`, linux/neighbour.h; RFC 4861, section 7.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeighbourState {
    /// A request was sent and not answered yet.
    Incomplete,
    /// The neighbour was heard recently.
    Reachable,
    /// Not heard for a while; will be asked when it is needed.
    Stale,
    /// In use, and about to be asked.
    Delay,
    /// The kernel is probing it.
    Probe,
    /// It did not answer.
    Failed,
    /// The interface needs no resolution.
    NoArp,
    /// Set by the administrator.
    Permanent,
}

impl NeighbourState {
    fn of(value: u32) -> Option<Self> {
        Some(match u16::try_from(value).ok()? {
            libc::NUD_INCOMPLETE => Self::Incomplete,
            libc::NUD_REACHABLE => Self::Reachable,
            libc::NUD_STALE => Self::Stale,
            libc::NUD_DELAY => Self::Delay,
            libc::NUD_PROBE => Self::Probe,
            libc::NUD_FAILED => Self::Failed,
            libc::NUD_NOARP => Self::NoArp,
            libc::NUD_PERMANENT => Self::Permanent,
            _ => return None,
        })
    }
}

/// One neighbour whose hardware address is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its IP address.
    pub ip: IpAddr,
    /// Its hardware address.
    pub mac: MacAddr,
    /// How certain the entry is.
    pub state: NeighbourState,
    /// Whether a default route leads to it.
    pub gateway: bool,
}

/// What a neighbour message is about: the interface, the address, and the hardware address while it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub index: u32,
    pub ip: IpAddr,
    pub mac: Option<MacAddr>,
    state: Option<NeighbourState>,
}

impl Entry {
    /// Reads a message; none for one of another family (a bridge's table of addresses comes the same way), and for
    /// the groups that the kernel lists beside the hosts.
    pub(crate) fn parse(raw: &Raw) -> Option<Self> {
        let message = &raw.payload;
        let family = libc::c_int::from(*message.first()?);
        let ip = ip(attribute(message, NEIGHBOUR_HEADER, libc::NDA_DST)?)?;
        let fits = if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let mac = attribute(message, NEIGHBOUR_HEADER, libc::NDA_LLADDR)
            .and_then(|mac| mac.try_into().ok())
            .map(MacAddr);
        if family != fits || ip.is_multicast() || mac.is_some_and(MacAddr::is_multicast) {
            return None;
        }
        Some(Self {
            index: number_at(message, 4),
            ip,
            mac: mac.filter(|mac| mac.is_host() && raw.kind == libc::RTM_NEWNEIGH),
            state: message.get(8..10).and_then(number).and_then(NeighbourState::of),
        })
    }
}

impl Netlink {
    /// The hardware address of a neighbour, while the kernel knows it and may use it, with how certain it is; the state alone, or
    /// nothing, where it does not.
    pub(crate) async fn neighbour(
        &self,
        index: u32,
        address: IpAddr,
    ) -> Result<(Option<MacAddr>, Option<NeighbourState>), Refusal> {
        let mut header = vec![0; NEIGHBOUR_HEADER];
        header[0] = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u8;
        header[4..8].copy_from_slice(&index.to_ne_bytes());
        let request = Builder::new(&header).bytes(libc::NDA_DST, &octets(address)).finish();
        let found = match self.ask(libc::RTM_GETNEIGH, 0, request).await {
            Ok(found) => found.iter().find_map(Entry::parse),
            Err(Refusal { kind: Kind::NotFound, .. }) => None,
            Err(refusal) => return Err(refusal),
        };
        let state = found.and_then(|entry| entry.state);
        let is_usable = !matches!(state, Some(NeighbourState::Incomplete | NeighbourState::Failed));
        Ok((found.and_then(|entry| entry.mac).filter(|_| is_usable), state))
    }

    /// The neighbours on an interface whose hardware address is known, both families; at most [`NEIGHBOURS_MAX`].
    ///
    /// # Errors
    /// When the kernel refuses the list, or to look for a default route.
    pub async fn neighbours(&self, index: u32) -> Result<Vec<Neighbour>> {
        let request = Builder::new(&[0; NEIGHBOUR_HEADER]).u32(libc::NDA_IFINDEX, index).finish();
        let list = self
            .dump_some(libc::RTM_GETNEIGH, request, NEIGHBOURS_MAX)
            .await
            .map_err(|refusal| refusal.about("netlink", "cannot list the neighbours"))?;
        let mut gateways = Vec::new();
        for ipv6 in [false, true] {
            match self.default_route(index, ipv6).await {
                Ok(route) => gateways.extend(route.and_then(|route| route.gateway)),
                // It has no neighbours either.
                Err(error) if error.kind == Kind::NoDevice => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        let entries = list.iter().filter_map(Entry::parse).filter(|entry| entry.index == index);
        Ok(entries
            .filter_map(|entry| {
                let gateway = gateways.contains(&entry.ip);
                Some(Neighbour { ip: entry.ip, mac: entry.mac?, state: entry.state?, gateway })
            })
            .collect())
    }
}

mod reader;
pub use reader::NeighbourReader;
#[cfg(test)]
mod tests;
