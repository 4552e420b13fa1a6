//! What the kernel needs to carry frames past the daemon: who is where, on which port, and how long packets may be.

use super::{port::path, socket::send_whole};
use crate::{Error, Join, Live, Result};
use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::Arc,
};

/// Bytes before a frame on its way through VXLAN: IP, UDP and VXLAN headers.
const HEAD_V4: usize = 20 + 8 + 8;
const HEAD_V6: usize = 40 + 8 + 8;

/// The port of VXLAN that IANA assigned.
const USUAL: u16 = 4789;

/// Where the kernels of the nodes meet.
#[derive(Debug, Clone)]
pub struct FastPath {
    ports: Vec<u16>,
    given: bool,
    mtu: Option<usize>,
    directory: Arc<Live>,
}

impl FastPath {
    pub(super) fn new(
        name: &str,
        directory: &Arc<Live>,
        join: &Join,
        port: u16,
        mtu: Option<usize>,
    ) -> Result<Self> {
        let plan = Self::on(directory, &[port], mtu);
        if let Some(node) = plan.node_at(port, join) {
            let cause = format!("UDP port {port} is already that of node {node}; VXLAN needs another one");
            let free = (USUAL..=u16::MAX).find(|port| plan.node_at(*port, join).is_none()).unwrap_or(USUAL);
            let named = name.replace(&format!("vxlan={port}"), &format!("vxlan={free}"));
            let error = Error::new(name, "cannot use this transport", cause);
            return Err(error.hint(format!("--transport {named}")));
        }
        Ok(Self { given: true, ..plan })
    }

    /// On the first of these ports that can be had, and that the other nodes can have, too.
    pub(super) fn usual(
        name: &str,
        directory: &Arc<Live>,
        join: &Join,
        ports: &[u16],
        mtu: Option<usize>,
    ) -> Result<Self> {
        let mut plan = Self::on(directory, ports, mtu);
        let refuse = |cause| Err(Error::new(name, "cannot use VXLAN", cause));
        // A port is one node's alone.
        let own = plan.own();
        let mut others = (0..join.nodes).filter(|node| *node != join.node);
        let known = plan.directory.directory();
        if let Some(node) = others.find(|node| known.address(*node).is_some_and(|other| other.ip() == own)) {
            return refuse(format!("node {node} has this node's address {own}, too"));
        }
        plan.ports = ports.iter().copied().filter(|port| plan.node_at(*port, join).is_none()).collect();
        if plan.ports.is_empty() { refuse("the queues have all of its UDP ports".into()) } else { Ok(plan) }
    }

    fn on(directory: &Arc<Live>, ports: &[u16], mtu: Option<usize>) -> Self {
        Self { ports: ports.to_vec(), given: false, mtu, directory: directory.clone() }
    }

    /// The node that has a port of this machine for a queue: it may be another one on this very machine.
    fn node_at(&self, port: u16, join: &Join) -> Option<u16> {
        let known = self.directory.directory();
        let has = |address: SocketAddr| {
            let ports = address.port()..=address.port() + (join.queues - 1);
            address.ip() == known.own.ip() && ports.contains(&port)
        };
        (0..join.nodes).find(|node| known.address(*node).is_some_and(has))
    }

    /// The UDP ports that VXLAN may have, best first, at least one: the same on all nodes.
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Whether the user has chosen the port.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.given
    }

    /// This node's own address.
    #[must_use]
    pub fn own(&self) -> IpAddr {
        self.directory.directory().own.ip()
    }

    /// The address of a node now; none if there is no such node, if its address is not known, or if a packet to it would need to know the interface, too.
    #[must_use]
    pub fn address(&self, node: u16) -> Option<IpAddr> {
        match self.directory.directory().address(node)?.ip() {
            IpAddr::V6(v6) if v6.is_unicast_link_local() => None,
            address => Some(address),
        }
    }

    /// A socket at this node's own address that sends nothing longer than the path takes, and waits for nothing.
    ///
    /// # Errors
    /// The address is not here, or the kernel has no descriptors left.
    pub fn socket(&self) -> std::io::Result<UdpSocket> {
        let socket = UdpSocket::bind((self.own(), 0))?;
        socket.set_nonblocking(true)?;
        send_whole(&socket, self.own().is_ipv6())?;
        Ok(socket)
    }

    /// The longest frame, with its Ethernet header, that the path to that port of a node takes now, as far as the kernel knows. Asks
    /// it.
    #[must_use]
    pub fn room(&self, node: u16, port: u16) -> usize {
        let known = self.directory.directory();
        let own = known.own;
        let Some(mut to) = known.address(node) else { return 0 };
        // What rules let pass to a port says nothing of another one.
        to.set_port(port);
        let head = if own.is_ipv6() { HEAD_V6 } else { HEAD_V4 };
        path(own, to, self.mtu).saturating_sub(head)
    }
}
