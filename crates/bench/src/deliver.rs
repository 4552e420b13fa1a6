//! Sends numbered datagrams to all, and counts at each listener what came once, more than once, or never.

use crate::bed::{BOND, Bed};
use crate::flow::enlarge;
use linkbraid_api::Error;
use linkbraid_lab::{Host, wait_until};
use serde::Serialize;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The port of the discard service: nothing else listens there.
const PORT: u16 = 9;
/// For documentation (RFC 6676, section 2).
const GROUP: Ipv4Addr = Ipv4Addr::new(233, 252, 0, 1);
/// For documentation (RFC 6676, section 3), on the link.
const GROUP_IPV6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xdb8, 0, 1);
/// Datagrams sent at once, and the pause before the next ones: about 10,000 a second, which no listener is too slow for.
const BURST: u32 = 10;
const PAUSE: Duration = Duration::from_millis(1);
/// How long a listener waits for copies that are still on their way.
const QUIET: Duration = Duration::from_millis(500);
/// Payload bytes: the number, and as much again as a small datagram has.
const BYTES: usize = 64;

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

/// Sends from one host; what each listener got.
pub fn send(bed: &Bed, kind: Kind, from: &str, to: &[&str], datagrams: u32) -> Result<Vec<Delivery>, Error> {
    let sockets = to
        .iter()
        .map(|name| socket(bed, name, "listen", |address, index| listener(kind, address, index)))
        .collect::<Result<Vec<_>, _>>()?;
    let sender = bed.host(from)?;
    let target = target(kind, sender, interface(bed, from)?)?;
    let socket = socket(bed, from, "send", |address, _| sending(kind, address))?;
    let sent_all = AtomicBool::new(false);
    let (sent, counts) = std::thread::scope(|scope| {
        let listeners: Vec<_> =
            sockets.iter().map(|s| scope.spawn(|| listen(s, datagrams, &sent_all))).collect();
        let sent = burst(&socket, target, datagrams);
        sent_all.store(true, Ordering::Release);
        let counts: Vec<_> = listeners.into_iter().map(|l| l.join().unwrap_or_default()).collect();
        (sent, counts)
    });
    sent.map_err(|e| Error::new(format!("host {from}"), format!("cannot send to {target}"), e.to_string()))?;
    let deliveries = to.iter().zip(counts).map(|(to, seen)| {
        let once = seen.iter().filter(|times| **times == 1).count() as u64;
        let more = seen.iter().filter(|times| **times > 1).count() as u64;
        Delivery {
            kind: kind.name(),
            from: from.into(),
            to: (*to).into(),
            sent: u64::from(datagrams),
            once,
            more,
            never: u64::from(datagrams).saturating_sub(once + more),
        }
    });
    Ok(deliveries.collect())
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
    socket.set_read_timeout(Some(QUIET))?;
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

fn burst(socket: &UdpSocket, target: SocketAddr, datagrams: u32) -> io::Result<()> {
    let mut payload = [0_u8; BYTES];
    for number in 0..datagrams {
        payload[..4].copy_from_slice(&number.to_be_bytes());
        socket.send_to(&payload, target)?;
        if number % BURST == BURST - 1 {
            let due = Instant::now() + PAUSE;
            // Reaching the time is the point.
            let _ = wait_until(PAUSE, "the next datagrams", || Instant::now() >= due, |due| *due);
        }
    }
    Ok(())
}

/// How often each datagram came, until it has been quiet for a while after the last was sent.
fn listen(socket: &UdpSocket, datagrams: u32, sent_all: &AtomicBool) -> Vec<u32> {
    let mut seen = vec![0; datagrams as usize];
    let mut payload = [0; BYTES];
    loop {
        let over = sent_all.load(Ordering::Acquire);
        match socket.recv(&mut payload) {
            Ok(_) => {
                let number = u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]]);
                if let Some(times) = seen.get_mut(number as usize) {
                    *times += 1;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if over {
                    return seen;
                }
            }
            // Anything else would show as datagrams that never came.
            Err(_) => return seen,
        }
    }
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
