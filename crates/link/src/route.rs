//! Routes, kept as the kernel's own messages so that they go back as they were.

use std::net::IpAddr;

use nix::libc;
use serde::{Deserialize, Serialize};

use crate::{
    Netlink,
    address::{Address, gone_is_fine, ip},
    error::{Error, Kind, Result},
    netlink::{APPEND, CREATE, EXCL, Refusal},
    rtnl::{Builder, ROUTE_HEADER, Raw, attribute, attributes, number, number_at},
};

/// `RTA_NH_ID` (linux/rtnetlink.h): the route points to a nexthop object instead of an interface.
const RTA_NH_ID: u16 = 30;
/// `RTPROT_RA`: learned from a router's announcement.
const RTPROT_RA: u8 = 9;
/// `RTN_UNICAST`: a route that leads somewhere.
const UNICAST: u8 = 1;
/// Of `rtm_flags` and `rtnh_flags` only `RTNH_F_ONLINK` is a setting; the others report a state.
const ONLINK: u32 = 4;
/// `RTM_F_FIB_MATCH` (linux/rtnetlink.h): the answer is the route itself, not what a packet would take.
const FIB_MATCH: u32 = 0x2000;
/// Addresses that no network has (RFC 1112, section 4; RFC 3701): only a default route leads there.
const NOBODY_V4: [u8; 4] = [240, 0, 0, 1];
const NOBODY_V6: [u8; 16] = [0x3f, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// Length of `struct rtnexthop`.
const NEXTHOP_HEADER: usize = 8;

/// A route of the kernel's tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Destination network; none for a default route.
    pub destination: Option<IpAddr>,
    /// Length of the destination's prefix, in bits.
    pub prefix: u8,
    /// The next hop, where it is one in the same family.
    pub gateway: Option<IpAddr>,
    /// Routing table (main is 254, local 255).
    pub table: u32,
    /// Metric: the lower is preferred.
    pub priority: Option<u32>,
    /// Who made it (`RTPROT_*`).
    pub protocol: u8,
    /// Its type (`RTN_*`; 1 leads somewhere).
    pub kind: u8,
    /// The interfaces it leads through; several for a multipath route.
    pub interfaces: Vec<u32>,
    /// IPv6, which the other fields do not contain for a default route without gateway.
    pub ipv6: bool,
    nexthop_object: bool,
    message: Vec<u8>,
}

impl Route {
    pub(crate) fn parse(raw: &Raw) -> Option<Self> {
        let message = &raw.payload;
        let header = message.get(..ROUTE_HEADER)?;
        if number_at(message, 8) & libc::RTM_F_CLONED != 0 {
            return None;
        }
        let find = |kind| attribute(message, ROUTE_HEADER, kind);
        let mut interfaces: Vec<u32> = find(libc::RTA_OIF).and_then(number).into_iter().collect();
        for hop in hops(find(libc::RTA_MULTIPATH).unwrap_or_default()) {
            interfaces.push(number_at(hop, 4));
        }
        Some(Self {
            destination: find(libc::RTA_DST).and_then(ip),
            prefix: header[1],
            gateway: find(libc::RTA_GATEWAY).and_then(ip),
            table: find(libc::RTA_TABLE).and_then(number).unwrap_or_else(|| u32::from(header[4])),
            priority: find(libc::RTA_PRIORITY).and_then(number),
            protocol: header[5],
            kind: header[7],
            interfaces,
            ipv6: libc::c_int::from(header[0]) == libc::AF_INET6,
            nexthop_object: find(RTA_NH_ID).is_some(),
            message: message.clone(),
        })
    }

    /// Made by the kernel itself, with an address or from a router's announcement: comes and goes by itself. With an address it makes
    /// networks only: a route through a gateway is somebody's, whatever its protocol (ifupdown2 says `proto kernel` of all its routes).
    #[must_use]
    pub fn automatic(&self) -> bool {
        let is_network = self.gateway.is_none() && self.prefix > 0;
        self.protocol == libc::RTPROT_KERNEL && is_network || self.protocol == RTPROT_RA
    }

    /// The route of an address for which the kernel was told to make none: NetworkManager makes it in its place, and says that the
    /// kernel has.
    fn is_left_out(&self, address: &Address) -> bool {
        let net = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
        self.kind == UNICAST
            && address.flags & libc::IFA_F_NOPREFIXROUTE != 0
            && address.ip.is_ipv6() == self.ipv6
            && address.prefix == self.prefix
            && self.destination.is_some_and(|to| net(to) == net(address.ip) & mask)
    }

    /// A default route that leads somewhere.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.prefix == 0 && self.kind == UNICAST
    }

    /// The same route through interface `new` instead of `old`: for a record that another interface inherits.
    pub fn rebind(&mut self, old: u32, new: u32) {
        self.message = self.request(old, new);
        for index in self.interfaces.iter_mut().filter(|index| **index == old) {
            *index = new;
        }
    }

    /// As `ip route` names it.
    pub(crate) fn name(&self) -> String {
        match self.destination {
            Some(destination) => format!("{destination}/{}", self.prefix),
            None => "default".into(),
        }
    }

    /// Its attributes without those that change by themselves.
    pub(crate) fn stable_attributes(&self) -> Vec<(u16, &[u8])> {
        attributes(&self.message, ROUTE_HEADER).filter(|(kind, _)| *kind != libc::RTA_CACHEINFO).collect()
    }

    /// The message that adds or removes it, with interface `old` replaced by `new` wherever it leads through it.
    fn request(&self, old: u32, new: u32) -> Vec<u8> {
        let mut header = self.message[..ROUTE_HEADER].to_vec();
        header[8..12].copy_from_slice(&(number_at(&self.message, 8) & ONLINK).to_ne_bytes());
        let swap = |index: u32| if index == old { new } else { index };
        let mut request = Builder::new(&header);
        for (kind, value) in attributes(&self.message, ROUTE_HEADER) {
            request = match kind {
                libc::RTA_CACHEINFO => match expires(value) {
                    Some(seconds) => request.u32(libc::RTA_EXPIRES, seconds),
                    None => request,
                },
                libc::RTA_OIF => request.u32(kind, swap(number(value).unwrap_or(0))),
                libc::RTA_MULTIPATH => {
                    let mut list = Vec::new();
                    for hop in hops(value) {
                        let mut hop = hop.to_vec();
                        hop[2] &= ONLINK as u8;
                        let index = swap(number_at(&hop, 4));
                        hop[4..8].copy_from_slice(&index.to_ne_bytes());
                        hop.resize(hop.len().next_multiple_of(4), 0);
                        list.extend(hop);
                    }
                    request.bytes(kind, &list)
                }
                // Only its low bits are a type; nested attributes (metrics) keep their flag off, as dumped.
                _ => request.bytes(kind, value),
            };
        }
        request.finish()
    }
}

/// Seconds until an IPv6 route ends (`rta_expires` of `struct rta_cacheinfo`, in hundredths of a second).
fn expires(cacheinfo: &[u8]) -> Option<u32> {
    let ticks = number_at(cacheinfo, 8).cast_signed();
    (ticks > 0).then(|| ticks.unsigned_abs().div_ceil(100))
}

/// The next hops of a multipath route: each a `struct rtnexthop` with its attributes behind it.
fn hops(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(0..2)?.try_into().ok()?));
        let hop = rest.get(..length).filter(|hop| hop.len() >= NEXTHOP_HEADER)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(hop)
    })
}

impl Netlink {
    /// The routes that lead through an interface, of all tables and both families.
    ///
    /// # Errors
    /// When the kernel refuses the list.
    pub async fn routes_via(&self, index: u32) -> Result<Vec<Route>> {
        Ok(self.all_routes().await?.into_iter().filter(|route| route.interfaces.contains(&index)).collect())
    }

    pub(crate) async fn all_routes(&self) -> Result<Vec<Route>> {
        let mut routes = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut header = vec![0; ROUTE_HEADER];
            header[0] = family as u8;
            match self.dump(libc::RTM_GETROUTE, header).await {
                Ok(list) => routes.extend(list.iter().filter_map(Route::parse)),
                // A kernel without IPv6.
                Err(refusal) if refusal.kind == Kind::Unsupported => {}
                Err(refusal) => return Err(refusal.about("netlink", "cannot list the routes")),
            }
        }
        Ok(routes)
    }

    /// Whether a default route, in any table, leads through the interface.
    ///
    /// # Errors
    /// When the kernel refuses the list.
    pub async fn carries_default_route(&self, index: u32) -> Result<bool> {
        Ok(self.routes_via(index).await?.iter().any(Route::is_default))
    }

    /// Whether packets to an address that no narrower route names would leave by the interface if they had to: whether it has a
    /// default route of a family, where the kernel looks routes up for packets. One route is asked for, however many there are.
    ///
    /// # Errors
    /// When the kernel refuses to look.
    pub async fn has_default_route(&self, index: u32, ipv6: bool) -> Result<bool> {
        Ok(self.default_route(index, ipv6).await?.is_some())
    }

    /// That route. One is asked for, however many there are.
    pub(crate) async fn default_route(&self, index: u32, ipv6: bool) -> Result<Option<Route>> {
        let (family, address) =
            if ipv6 { (libc::AF_INET6, &NOBODY_V6[..]) } else { (libc::AF_INET, &NOBODY_V4[..]) };
        let mut header = vec![0; ROUTE_HEADER];
        (header[0], header[1]) = (family as u8, 8 * address.len() as u8);
        header[8..12].copy_from_slice(&FIB_MATCH.to_ne_bytes());
        let request = Builder::new(&header).bytes(libc::RTA_DST, address).u32(libc::RTA_OIF, index).finish();
        match self.ask(libc::RTM_GETROUTE, 0, request).await {
            Ok(found) => Ok(found
                .iter()
                .filter_map(Route::parse)
                .find(|route| route.is_default() && route.interfaces.contains(&index))),
            Err(Refusal { kind: Kind::Unreachable | Kind::NotFound | Kind::Unsupported, .. }) => Ok(None),
            Err(refusal) => Err(refusal.about(self.name_of(index).await, "cannot look for a default route")),
        }
    }

    /// Adds recorded routes, those through `old` now through `new`; routes that are there already are no error.
    /// Routes whose gateway only another one makes reachable are tried again after it.
    pub(crate) async fn put_routes(&self, routes: &[Route], old: u32, new: u32) -> Result<()> {
        let mut waiting: Vec<&Route> = routes.iter().collect();
        while !waiting.is_empty() {
            let mut next = Vec::new();
            let mut refused = None;
            for route in &waiting {
                // IPv4 accepts two routes that differ only in their next hop with APPEND, IPv6 refuses doubles
                // by EXCL and takes APPEND for "one more path".
                let flags = if route.ipv6 { CREATE | EXCL } else { CREATE | APPEND };
                match self.ask(libc::RTM_NEWROUTE, flags, route.request(old, new)).await {
                    Ok(_) => {}
                    Err(refusal) if refusal.kind == Kind::Exists => {}
                    Err(refusal) => {
                        next.push(*route);
                        refused.get_or_insert_with(|| (refusal, route.name()));
                    }
                }
            }
            if next.len() == waiting.len()
                && let Some((refusal, name)) = refused
            {
                return Err(refusal.about(self.name_of(new).await, format!("cannot add the route '{name}'")));
            }
            waiting = next;
        }
        Ok(())
    }

    /// Removes recorded routes, where those through `old` lead through `new` now; gone already is no error.
    pub(crate) async fn remove_routes(&self, routes: &[Route], old: u32, new: u32) -> Result<()> {
        for route in routes {
            let what = format!("cannot remove the route '{}'", route.name());
            let asked = self.ask(libc::RTM_DELROUTE, 0, route.request(old, new));
            gone_is_fine(self.about_link(new, &what, asked).await)?;
        }
        Ok(())
    }

    /// The routes through `index` that have to be carried by hand when its addresses move.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] for a route with a nexthop object, which may be shared with other routes.
    pub(crate) async fn movable_routes(&self, index: u32) -> Result<Vec<Route>> {
        let addresses = self.addresses(index).await?;
        let by_hand =
            |route: &Route| !route.automatic() || addresses.iter().any(|one| route.is_left_out(one));
        let routes: Vec<_> = self.routes_via(index).await?.into_iter().filter(by_hand).collect();
        if let Some(route) = routes.iter().find(|route| route.nexthop_object) {
            let what = format!("cannot move the route '{}', which uses a nexthop object", route.name());
            return Err(Error::new(self.name_of(index).await, what, Kind::Unsupported));
        }
        Ok(routes)
    }
}
