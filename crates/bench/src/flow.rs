//! Traffic of our own, looked at closely: when what arrived, to a fraction of a millisecond.
//!
//! iperf3 tells a mean of 100 ms at best; a failover is over by then. Sockets are made inside the hosts' namespaces and
//! served by threads of this process, so that what they see and what is done to the links has one clock.

mod datagrams;
mod mesh;
mod messages;
mod mptcp;
mod progress;
mod rounds;
mod steady;
mod tcp;
mod udp;

pub(crate) use datagrams::Datagrams;
pub use mesh::{Mesh, MeshRecord};
pub use messages::{BYTES_MAX, BYTES_MIN, MessageFlow, Messages, Over, Trip, Trips};
pub use progress::Progress;
pub use rounds::rounds;
pub use steady::SteadyFlow;
pub use tcp::{TcpFlow, TcpRecord};
pub use udp::{UdpFlow, UdpRecord};
pub(crate) use udp::{receive, send};

use linkbraid_api::Error;
use linkbraid_lab::Host;
use nix::sys::socket::{setsockopt, sockopt};
use std::io;
use std::net::UdpSocket;

/// How long a connection may take to be made.
const CONNECT_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);
/// How long a socket blocks before its thread looks whether the flow is over.
pub(crate) const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// What the socket of datagrams may hold each way, in bytes.
const BUFFER: usize = 8 << 20;

/// Makes room in a socket, so that a thread without a CPU for some milliseconds is not taken for a loss.
pub(crate) fn enlarge(socket: &UdpSocket) -> io::Result<()> {
    setsockopt(socket, sockopt::RcvBufForce, &BUFFER)?;
    setsockopt(socket, sockopt::SndBufForce, &BUFFER)?;
    Ok(())
}

fn failed(host: Host<'_>, what: &str, error: &io::Error) -> Error {
    Error::new(format!("host {}", host.name()), format!("cannot {what}"), error.to_string())
}

/// A thread of this process that panicked has printed why.
fn panicked() -> io::Error {
    io::Error::other("its thread ended early")
}
