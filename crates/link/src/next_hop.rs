//! Where the kernel would send a packet: its route, and the hardware address that its frame gets.

use std::net::IpAddr;

use linkbraid_wire::MacAddr;
use nix::libc;

use crate::{
    NeighbourState, Netlink,
    address::{ip, octets},
    error::{Error, Kind, Result},
    netlink::Refusal,
    rtnl::{Builder, ROUTE_HEADER, Raw, attribute, number},
};

/// `RTA_VIA` (linux/rtnetlink.h): a next hop of another family, behind two bytes that name it.
const RTA_VIA: u16 = 18;
const VIA_FAMILY: usize = 2;
/// `RTA_IP_PROTO`, `RTA_SPORT` and `RTA_DPORT`: for rules and multipath routes that look at them.
const RTA_IP_PROTO: u16 = 27;
const RTA_SPORT: u16 = 28;
const RTA_DPORT: u16 = 29;

/// What the kernel looks at when it chooses a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The destination.
    pub to: IpAddr,
    /// The source, where it is one of this host's own; the kernel refuses any other one.
    pub from: Option<IpAddr>,
    /// The differentiated services codepoint, 0 to 63.
    pub dscp: u8,
    /// The firewall mark.
    pub mark: u32,
    /// The protocol's number, with source and destination port, of TCP and UDP.
    pub ports: Option<(u8, u16, u16)>,
}

impl Packet {
    /// One of which nothing is known but where it goes.
    pub const fn to(to: IpAddr) -> Self {
        Self { to, from: None, dscp: 0, mark: 0, ports: None }
    }
}

/// What a route does with packets (`RTN_*`, linux/rtnetlink.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteKind {
    /// It leads to one host.
    Unicast,
    /// The address is this host's own.
    Local,
    /// All hosts of a network.
    Broadcast,
    /// A group.
    Multicast,
    /// No route leads there, or one that drops packets.
    Unreachable,
}

/// Where a packet goes from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// What the route does.
    pub kind: RouteKind,
    /// The index of the interface by which the packet leaves; 0: none.
    pub interface: u32,
    /// The router that it goes to first; none: the destination is on the interface's own network.
    pub gateway: Option<IpAddr>,
    /// The source address that the kernel would choose.
    pub source: Option<IpAddr>,
    /// The hardware address of the next hop, while the kernel knows it; that of the group, or of everybody.
    pub mac: Option<MacAddr>,
    /// How certain the kernel is of it; none where it has not asked.
    pub state: Option<NeighbourState>,
}

impl NextHop {
    const NONE: Self = Self {
        kind: RouteKind::Unreachable,
        interface: 0,
        gateway: None,
        source: None,
        mac: None,
        state: None,
    };

    /// Without the hardware address.
    fn parse(raw: &Raw) -> Option<Self> {
        let message = &raw.payload;
        let header = message.get(..ROUTE_HEADER)?;
        let find = |kind| attribute(message, ROUTE_HEADER, kind);
        let kind = match header[7] {
            libc::RTN_UNICAST => RouteKind::Unicast,
            libc::RTN_LOCAL => RouteKind::Local,
            libc::RTN_BROADCAST => RouteKind::Broadcast,
            libc::RTN_MULTICAST => RouteKind::Multicast,
            _ => RouteKind::Unreachable,
        };
        let via = || find(RTA_VIA).and_then(|via| ip(via.get(VIA_FAMILY..)?));
        Some(Self {
            kind,
            interface: find(libc::RTA_OIF).and_then(number).unwrap_or(0),
            gateway: find(libc::RTA_GATEWAY).and_then(ip).or_else(via),
            source: find(libc::RTA_PREFSRC).and_then(ip),
            ..Self::NONE
        })
    }
}

/// The hardware address of a group (RFC 1112, section 6.4; RFC 2464, section 7).
#[must_use]
pub fn group_mac(group: IpAddr) -> MacAddr {
    match group {
        IpAddr::V4(group) => {
            let [_, b, c, d] = group.octets();
            MacAddr([1, 0, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(group) => {
            let [.., a, b, c, d] = group.octets();
            MacAddr([0x33, 0x33, a, b, c, d])
        }
    }
}

impl Netlink {
    /// Where the kernel would send a packet now. It is only asked: no neighbour is looked for.
    ///
    /// # Errors
    /// When the kernel refuses to look.
    pub async fn next_hop(&self, packet: &Packet) -> Result<NextHop> {
        let refused = |refusal: Refusal| refusal.about(packet.to.to_string(), "cannot look up its route");
        let found = match self.ask(libc::RTM_GETROUTE, 0, request(packet)).await {
            Ok(found) => found.iter().find_map(NextHop::parse).unwrap_or(NextHop::NONE),
            // No route, or one that drops packets: with EINVAL (`blackhole`) or EACCES (`prohibit`).
            Err(Refusal {
                kind: Kind::Unreachable | Kind::NotFound | Kind::BadValue | Kind::NotPermitted,
                ..
            }) => NextHop::NONE,
            Err(refusal) => return Err(refused(refusal)),
        };
        Ok(match found.kind {
            RouteKind::Unicast => {
                let hop = found.gateway.unwrap_or(packet.to);
                let (mac, state) = self.neighbour(found.interface, hop).await.map_err(|refusal| Error {
                    object: hop.to_string(),
                    ..refusal.about("", "cannot look up its hardware address")
                })?;
                NextHop { mac, state, ..found }
            }
            RouteKind::Broadcast => NextHop { mac: Some(MacAddr([0xff; 6])), ..found },
            RouteKind::Multicast => NextHop { mac: Some(group_mac(packet.to)), ..found },
            RouteKind::Local | RouteKind::Unreachable => found,
        })
    }
}

fn request(packet: &Packet) -> Vec<u8> {
    let to = octets(packet.to);
    let family = if packet.to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut header = vec![0; ROUTE_HEADER];
    (header[0], header[1]) = (family as u8, 8 * to.len() as u8);
    header[3] = packet.dscp << 2;
    let mut request = Builder::new(&[]);
    request = request.bytes(libc::RTA_DST, &to);
    if let Some(from) = packet.from {
        let from = octets(from);
        header[2] = 8 * from.len() as u8;
        request = request.bytes(libc::RTA_SRC, &from);
    }
    if packet.mark != 0 {
        request = request.u32(libc::RTA_MARK, packet.mark);
    }
    if let Some((protocol, source, destination)) = packet.ports {
        request = request
            .u8(RTA_IP_PROTO, protocol)
            .bytes(RTA_SPORT, &source.to_be_bytes())
            .bytes(RTA_DPORT, &destination.to_be_bytes());
    }
    header.extend(request.finish());
    header
}

#[cfg(test)]
mod tests {
    use super::group_mac;

    #[test]
    fn groups_have_their_macs() {
        let mac = |group: &str| group_mac(group.parse().unwrap()).to_string();
        assert_eq!(mac("239.129.2.3"), "01:00:5e:01:02:03");
        assert_eq!(mac("ff02::1:2"), "33:33:00:01:00:02");
    }
}
