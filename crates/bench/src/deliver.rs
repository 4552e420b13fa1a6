//! Sends numbered datagrams to all, and counts at each listener what came once, more than once, or never.

use crate::bed::{BOND, Bed};
use crate::flow::{Count, Datagrams, End, Pace};
use linkbraid_api::Error;
use linkbraid_lab::{Host, wait_until};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::Duration;

/// The port of the discard service: nothing else listens there.
const PORT: u16 = 9;
/// For documentation (RFC 6676, section 2).
const GROUP: Ipv4Addr = Ipv4Addr::new(233, 252, 0, 1);
/// For documentation (RFC 6676, section 3), on the link.
const GROUP_IPV6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xdb8, 0, 1);
/// Datagrams sent at once, and from one time to the next: 10,000 a second, which no listener is too slow for.
const BURST: u64 = 10;
const PERIOD: Duration = Duration::from_millis(1);
const SEND_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Broadcast,
    Multicast,
    MulticastIpv6,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Multicast => "multicast",
            Self::MulticastIpv6 => "multicast ipv6",
        }
    }
}

/// Sends datagrams, a multiple of [`BURST`], from one host; what became of them at each listener.
pub fn send(bed: &Bed, kind: Kind, from: &str, to: &[&str], datagrams: u64) -> Result<Vec<Count>, Error> {
    let sender = bed.host(from)?;
    let index = interface(bed, from)?;
    let target = target(kind, sender, index)?;
    let sending = || End::new(sending(kind, address(sender))?)?.to(0, target);
    let sending = sender.make(&format!("send to {target}"), sending)?;
    // The sender is the first of all, and its datagrams are for every other one.
    let mut ends = vec![sending];
    for name in to {
        let (host, index) = (bed.host(name)?, interface(bed, name)?);
        ends.push(host.make("listen", || End::new(listener(kind, address(host), index)?))?);
    }
    let flow = Datagrams::start(ends, Pace { last: datagrams, ..Pace::new(BURST, PERIOD) });
    wait_until(SEND_LIMIT, "all datagrams to be sent", || flow.mark()[0], |sent| *sent >= datagrams)?;
    let record = flow.stop()?;
    let refused = record.way(0, 0).count(|_| true).refused;
    if refused > 0 {
        let cause = format!("the kernel refused {refused} datagrams");
        return Err(Error::new(format!("host {from}"), format!("cannot send to {target}"), cause));
    }
    Ok((1..=to.len()).map(|place| record.way(0, place).count(|_| true)).collect())
}

/// The interface that has a host's addresses.
fn interface(bed: &Bed, name: &str) -> Result<u32, Error> {
    let interface = if bed.is_bonded(name) { BOND } else { "eth0" };
    let find = || nix::net::if_::if_nametoindex(interface).map_err(Into::into);
    bed.host(name)?.make(&format!("find '{interface}'"), find)
}

fn address(host: Host<'_>) -> Ipv4Addr {
    host.ipv4().parse().unwrap_or(Ipv4Addr::UNSPECIFIED)
}

fn listener(kind: Kind, address: Ipv4Addr, index: u32) -> io::Result<UdpSocket> {
    let any: IpAddr = match kind {
        Kind::Broadcast | Kind::Multicast => Ipv4Addr::UNSPECIFIED.into(),
        Kind::MulticastIpv6 => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, PORT))?;
    match kind {
        Kind::Broadcast => {}
        Kind::Multicast => socket.join_multicast_v4(&GROUP, &address)?,
        Kind::MulticastIpv6 => socket.join_multicast_v6(&GROUP_IPV6, index)?,
    }
    Ok(socket)
}

fn sending(kind: Kind, address: Ipv4Addr) -> io::Result<UdpSocket> {
    // A multicast from a bound address leaves by the interface that has it.
    let from: IpAddr = match kind {
        Kind::Broadcast | Kind::Multicast => address.into(),
        Kind::MulticastIpv6 => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((from, 0))?;
    socket.set_broadcast(kind == Kind::Broadcast)?;
    Ok(socket)
}

fn target(kind: Kind, sender: Host<'_>, index: u32) -> Result<SocketAddr, Error> {
    Ok(match kind {
        Kind::Broadcast => {
            let address = sender.spec().addresses.iter().find_map(|text| broadcast_of(text));
            let missing =
                || Error::new(format!("host {}", sender.name()), "cannot send", "it has no IPv4 address");
            (address.ok_or_else(missing)?, PORT).into()
        }
        Kind::Multicast => (GROUP, PORT).into(),
        Kind::MulticastIpv6 => SocketAddrV6::new(GROUP_IPV6, PORT, 0, index).into(),
    })
}

/// The broadcast address of an `ADDRESS/PREFIX` of IPv4.
fn broadcast_of(text: &str) -> Option<Ipv4Addr> {
    let (address, prefix) = text.split_once('/')?;
    let (address, prefix): (Ipv4Addr, u32) = (address.parse().ok()?, prefix.parse().ok()?);
    let host_bits = u32::MAX.checked_shr(prefix).unwrap_or(0);
    Some((u32::from(address) | host_bits).into())
}

#[cfg(test)]
mod tests;
