//! Changes of interfaces, addresses and neighbours, as the kernel announces them.

use std::{collections::VecDeque, io, net::IpAddr};

use futures_util::FutureExt;
use linkbraid_wire::MacAddr;
use nix::libc;
use rtnetlink::{
    MulticastGroup,
    packet_core::{NetlinkMessage, NetlinkPayload},
    sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket, protocols::NETLINK_ROUTE},
};
use tokio::task::unconstrained;

use crate::{
    error::{Error, Result},
    link::{LinkInfo, PortFlags, can_forward, is_blocked, parse_port},
    neighbour::Entry,
    rtnl::{LINK_HEADER, Raw, attribute, number_at, text},
};

/// Receive buffer in bytes: room for a storm of changes (a message is about 2 KiB) while the daemon is busy.
const BUFFER_BYTES: usize = 1 << 20;

/// `IFLA_PROTINFO` (linux/if_link.h).
const PORT_SETTINGS: u16 = 12;

/// A change that the kernel reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// An interface appeared, or something about it changed; all of it.
    LinkChanged(Box<LinkInfo>),
    /// An interface was removed.
    LinkGone {
        /// The index that it had.
        index: u32,
        /// The last name that it had.
        name: String,
    },
    /// A bridge treats one of its ports in another way.
    PortChanged {
        /// The interface's index.
        index: u32,
        /// How.
        port: PortFlags,
        /// It could carry frames, and its bridge lets none pass.
        blocked: bool,
    },
    /// Addresses of an interface changed.
    AddressesChanged {
        /// The interface's index.
        index: u32,
    },
    /// A neighbour was learned or changed, or is no longer known; only from [`Watch::with_neighbours`]. The kernel
    /// also announces a mere change of state, so the same may be reported twice.
    NeighbourChanged {
        /// The interface's index.
        index: u32,
        /// The neighbour's IP address.
        ip: IpAddr,
        /// Its hardware address; none when it is not known or no longer.
        mac: Option<MacAddr>,
    },
    /// Changes were lost because they came faster than they were read: read everything again.
    Resync,
}

/// The stream of changes in the network namespace of the thread that made it.
pub struct Watch {
    socket: TokioSocket,
    /// Events of the datagram read last that nobody has taken yet.
    waiting: VecDeque<LinkEvent>,
}

impl Watch {
    /// Subscribes, on the current tokio runtime. Changes after this call are seen.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new() -> Result<Self> {
        Self::of(&[MulticastGroup::Link, MulticastGroup::Ipv4Ifaddr, MulticastGroup::Ipv6Ifaddr])
    }

    /// Subscribes to changes of neighbours, too: several events a host in use each minute.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn with_neighbours() -> Result<Self> {
        Self::of(&[
            MulticastGroup::Link,
            MulticastGroup::Ipv4Ifaddr,
            MulticastGroup::Ipv6Ifaddr,
            MulticastGroup::Neigh,
        ])
    }

    fn of(groups: &[MulticastGroup]) -> Result<Self> {
        let refused = |error: io::Error| Error::io("netlink", "cannot watch for changes", &error);
        let mut socket = TokioSocket::new(NETLINK_ROUTE).map_err(refused)?;
        let groups = groups.iter().fold(0, |groups, group| groups | 1 << (*group as u32 - 1));
        socket.socket_mut().set_rx_buf_sz(BUFFER_BYTES).map_err(refused)?;
        socket.socket_mut().bind(&SocketAddr::new(0, groups)).map_err(refused)?;
        Ok(Self { socket, waiting: VecDeque::new() })
    }

    /// The next change. Dropping the future loses none.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn next(&mut self) -> Result<LinkEvent> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(event);
            }
            match self.socket.recv_from_full().await {
                Ok((datagram, _)) => self.waiting.extend(events(&datagram)),
                Err(error) if overrun(&error) => {
                    self.drain()?;
                    return Ok(LinkEvent::Resync);
                }
                Err(error) => return Err(Error::io("netlink", "cannot watch for changes", &error)),
            }
        }
    }

    /// The next change, if it has been announced already.
    pub fn try_next(&mut self) -> Option<Result<LinkEvent>> {
        unconstrained(self.next()).now_or_never()
    }

    /// Empties the queue after an overrun. The kernel drops further changes without another word until the queue is
    /// empty (`netlink_overrun`, net/netlink/af_netlink.c), so only what is read after that is complete.
    fn drain(&self) -> Result<()> {
        while let Some(read) = unconstrained(self.socket.recv_from_full()).now_or_never() {
            match read {
                Ok(_) => {}
                Err(error) if overrun(&error) => {}
                Err(error) => return Err(Error::io("netlink", "cannot watch for changes", &error)),
            }
        }
        Ok(())
    }
}

fn overrun(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// The events of one datagram, which may hold several messages; broken ones end it.
fn events(mut datagram: &[u8]) -> Vec<LinkEvent> {
    let mut events = Vec::new();
    while let Ok(message) = NetlinkMessage::<Raw>::deserialize(datagram) {
        if let NetlinkPayload::InnerMessage(raw) = &message.payload {
            events.extend(event(raw));
        }
        let length = (message.header.length as usize).next_multiple_of(4);
        datagram = datagram.get(length.max(4)..).unwrap_or_default();
    }
    events
}

fn event(raw: &Raw) -> Option<LinkEvent> {
    match raw.kind {
        // Bridges announce their ports' settings with a family of their own and few attributes.
        libc::RTM_NEWLINK if raw.payload.first() == Some(&(libc::AF_BRIDGE as u8)) => {
            let port = attribute(&raw.payload, LINK_HEADER, PORT_SETTINGS)?;
            Some(LinkEvent::PortChanged {
                index: number_at(&raw.payload, 4),
                port: parse_port(port),
                blocked: can_forward(&raw.payload) && is_blocked(port),
            })
        }
        libc::RTM_NEWLINK | libc::RTM_DELLINK if raw.payload.first() != Some(&(libc::AF_UNSPEC as u8)) => {
            None
        }
        libc::RTM_NEWLINK => LinkInfo::parse(raw).map(|link| LinkEvent::LinkChanged(Box::new(link))),
        libc::RTM_DELLINK => Some(LinkEvent::LinkGone {
            index: number_at(&raw.payload, 4),
            name: attribute(&raw.payload, LINK_HEADER, libc::IFLA_IFNAME).map(text).unwrap_or_default(),
        }),
        libc::RTM_NEWADDR | libc::RTM_DELADDR => {
            Some(LinkEvent::AddressesChanged { index: number_at(&raw.payload, 4) })
        }
        libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => Entry::parse(raw)
            .map(|Entry { index, ip, mac, .. }| LinkEvent::NeighbourChanged { index, ip, mac }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_and_broken_messages_are_no_events() {
        assert_eq!(event(&Raw { kind: libc::RTM_NEWROUTE, payload: vec![0; 40] }), None);
        assert_eq!(event(&Raw { kind: libc::RTM_NEWLINK, payload: vec![0; 3] }), None);
        let mut from_bridge = vec![0; LINK_HEADER];
        from_bridge[0] = libc::AF_BRIDGE as u8;
        assert_eq!(event(&Raw { kind: libc::RTM_DELLINK, payload: from_bridge }), None);
        let gone = event(&Raw { kind: libc::RTM_DELLINK, payload: vec![0; LINK_HEADER] });
        assert_eq!(gone, Some(LinkEvent::LinkGone { index: 0, name: String::new() }));
    }
}
