//! Sends numbered datagrams to all, and counts at each listener what came once, more than once, or never.

use crate::bed::{BOND, Bed};
use crate::flow::{self, LOOK, enlarge};
use linkbraid_api::Error;
use linkbraid_lab::Host;
use serde::Serialize;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The port of the discard service: nothing else listens there.
const PORT: u16 = 9;
/// For documentation (RFC 6676, section 2).
const GROUP: Ipv4Addr = Ipv4Addr::new(233, 252, 0, 1);
/// For documentation (RFC 6676, section 3), on the link.
const GROUP_IPV6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xdb8, 0, 1);
/// Datagrams sent at once, a millisecond from one time to the next: 10,000 a second, which no listener is too slow for.
const BURST: u32 = 10;
/// How long a listener waits for copies that are still on their way.
const QUIET: Duration = Duration::from_millis(500);
/// One way of reaching many: who got what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delivery {
    /// `broadcast`, `multicast` or `multicast ipv6`.
    pub kind: &'static str,
    /// The host that sent.
    pub from: String,
    /// The host that listened.
    pub to: String,
    /// Datagrams sent.
    pub sent: u64,
    /// Of these, those that arrived exactly once.
    pub once: u64,
    /// Those that arrived more than once.
    pub more: u64,
    /// Those that never arrived.
    pub never: u64,
}

/// A way of reaching many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// To all hosts of the IPv4 network.
    Broadcast,
    /// To an IPv4 group.
    Multicast,
    /// To an IPv6 group.
    MulticastIpv6,
}

impl Kind {
    /// For names of cases.
    pub fn word(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Multicast => "multicast",
            Self::MulticastIpv6 => "multicast-ipv6",
        }
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::MulticastIpv6 => "multicast ipv6",
            _ => self.word(),
        }
    }
}

/// Sends datagrams, a multiple of [`BURST`], from one host; what each listener got.
pub fn send(bed: &Bed, kind: Kind, from: &str, to: &[&str], datagrams: u32) -> Result<Vec<Delivery>, Error> {
    let sockets = to
        .iter()
        .map(|name| socket(bed, name, "listen", |address, index| listener(kind, address, index)))
        .collect::<Result<Vec<_>, _>>()?;
    let sender = bed.host(from)?;
    let target = target(kind, sender, interface(bed, from)?)?;
    let cannot =
        |cause: String| Error::new(format!("host {from}"), format!("cannot send to {target}"), cause);
    let sending = socket(bed, from, "send", |address, _| sending(kind, address))?;
    sending.connect(target).map_err(|e| cannot(e.to_string()))?;
    let (zero, over) = (Instant::now(), AtomicBool::new(false));
    let bursts = (datagrams / BURST) as usize;
    let (sent, heard) = std::thread::scope(|scope| {
        let listeners: Vec<_> =
            sockets.iter().map(|socket| scope.spawn(|| flow::receive(socket, zero, &over))).collect();
        let sent = flow::send(&sending, zero, u64::from(BURST), |sent| sent >= bursts);
        // Copies may still be on their way.
        std::thread::sleep(QUIET);
        over.store(true, Ordering::Release);
        let gone = || Err(io::Error::other("its thread ended early"));
        let heard: Vec<_> =
            listeners.into_iter().map(|listener| listener.join().unwrap_or_else(|_| gone())).collect();
        (sent, heard)
    });
    if sent.refused > 0 {
        return Err(cannot(format!("the kernel refused {} datagrams", sent.refused)));
    }
    let delivery = |(to, heard): (&&str, io::Result<_>)| {
        let failed = |e: io::Error| Error::new(format!("host {to}"), "cannot listen", e.to_string());
        let (_, heard): (_, flow::Datagrams) = heard.map_err(failed)?;
        let count = heard.count(0..u64::from(BURST) * bursts as u64);
        let kind = kind.name();
        let once = count.sent - count.lost - count.duplicated;
        let (from, to) = (from.into(), (*to).into());
        Ok(Delivery { kind, from, to, sent: count.sent, once, more: count.duplicated, never: count.lost })
    };
    to.iter().zip(heard).map(delivery).collect()
}

/// The interface that has a host's addresses.
fn interface(bed: &Bed, name: &str) -> Result<u32, Error> {
    let interface = if bed.is_bonded(name) { BOND } else { "eth0" };
    let index = bed.host(name)?.run(|| nix::net::if_::if_nametoindex(interface))?;
    index.map_err(|e| Error::new(format!("host {name}"), format!("no interface '{interface}'"), e.desc()))
}

/// A socket made inside a host; it stays there.
fn socket(
    bed: &Bed,
    name: &str,
    what: &str,
    make: impl FnOnce(Ipv4Addr, u32) -> io::Result<UdpSocket> + Send,
) -> Result<UdpSocket, Error> {
    let index = interface(bed, name)?;
    let host = bed.host(name)?;
    let address = host.ipv4().parse().unwrap_or(Ipv4Addr::UNSPECIFIED);
    let made = host.run(|| make(address, index))?;
    made.map_err(|e| Error::new(format!("host {name}"), format!("cannot {what}"), e.to_string()))
}

fn listener(kind: Kind, address: Ipv4Addr, index: u32) -> io::Result<UdpSocket> {
    let socket = match kind {
        Kind::Broadcast | Kind::Multicast => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?,
        Kind::MulticastIpv6 => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, PORT))?,
    };
    match kind {
        Kind::Broadcast => {}
        Kind::Multicast => socket.join_multicast_v4(&GROUP, &address)?,
        Kind::MulticastIpv6 => socket.join_multicast_v6(&GROUP_IPV6, index)?,
    }
    enlarge(&socket)?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

fn sending(kind: Kind, address: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = match kind {
        // A multicast from a bound address leaves by the interface that has it.
        Kind::Broadcast | Kind::Multicast => UdpSocket::bind((address, 0))?,
        Kind::MulticastIpv6 => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
    };
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
mod tests {
    use super::*;

    #[test]
    fn the_broadcast_address_has_all_host_bits_set() {
        assert_eq!(broadcast_of("198.18.0.1/24"), Some(Ipv4Addr::new(198, 18, 0, 255)));
        assert_eq!(broadcast_of("198.18.3.1/15"), Some(Ipv4Addr::new(198, 19, 255, 255)));
        assert_eq!(broadcast_of("198.18.0.1/32"), Some(Ipv4Addr::new(198, 18, 0, 1)));
        assert_eq!(broadcast_of("2001:db8::1/64"), None);
    }
}
