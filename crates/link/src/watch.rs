//! Changes of interfaces and addresses, as the kernel announces them.

use futures_util::StreamExt;
use nix::libc;
use rtnetlink::{
    MulticastGroup,
    packet_core::NetlinkPayload,
    proto::ConnectionHandle,
    sys::{AsyncSocket, SocketAddr, protocols::NETLINK_ROUTE},
};

use crate::{
    error::{Error, Kind, Result},
    link::LinkInfo,
    rtnl::{LINK_HEADER, Raw, attribute, number_at, text},
};

/// Receive buffer in bytes: room for a storm of changes (a message is about 2 KiB) while the daemon is busy.
const BUFFER_BYTES: usize = 1 << 20;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// An interface appeared, or something about it changed; all of it.
    LinkChanged(Box<LinkInfo>),
    /// An interface was removed.
    LinkGone {
        /// Its index.
        index: u32,
        /// Its last name.
        name: String,
    },
    /// Addresses of an interface changed.
    AddressesChanged {
        /// The interface's index.
        index: u32,
    },
    /// Changes were lost because they came faster than they were read: read everything again.
    Resync,
}

/// The stream of changes in the network namespace of the thread that made it.
pub struct Watch {
    messages: Messages,
    /// Keeps the connection's task alive.
    _handle: ConnectionHandle<Raw>,
}

type Messages =
    futures_util::stream::BoxStream<'static, (rtnetlink::packet_core::NetlinkMessage<Raw>, SocketAddr)>;

impl Watch {
    /// Subscribes, and spawns the connection's task on the current tokio runtime. Changes after this call are seen.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new() -> Result<Self> {
        let refused = |error: &std::io::Error| Error::io("netlink", "cannot watch for changes", error);
        let (mut connection, handle, messages) =
            rtnetlink::proto::new_connection::<Raw>(NETLINK_ROUTE).map_err(|error| refused(&error))?;
        let groups = [MulticastGroup::Link, MulticastGroup::Ipv4Ifaddr, MulticastGroup::Ipv6Ifaddr]
            .iter()
            .fold(0, |groups, group| groups | 1 << (*group as u32 - 1));
        let socket = connection.socket_mut().socket_mut();
        socket.set_rx_buf_sz(BUFFER_BYTES).map_err(|error| refused(&error))?;
        socket.bind(&SocketAddr::new(0, groups)).map_err(|error| refused(&error))?;
        tokio::spawn(connection);
        Ok(Self { messages: messages.boxed(), _handle: handle })
    }

    /// The next change. Dropping the future loses none.
    ///
    /// # Errors
    /// When the connection ended; it does not come back.
    pub async fn next(&mut self) -> Result<LinkEvent> {
        while let Some((message, _)) = self.messages.next().await {
            match message.payload {
                NetlinkPayload::Overrun(_) => return Ok(LinkEvent::Resync),
                NetlinkPayload::InnerMessage(raw) => {
                    if let Some(event) = event(&raw) {
                        return Ok(event);
                    }
                }
                _ => {}
            }
        }
        Err(Error::new("netlink", "cannot watch for changes", Kind::Connection))
    }
}

fn event(raw: &Raw) -> Option<LinkEvent> {
    match raw.kind {
        // Bridges announce their ports' settings with a family of their own and few attributes.
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
