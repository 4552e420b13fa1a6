//! Traffic of our own, looked at closely: when what arrived, to a fraction of a millisecond.
//!
//! iperf3 tells a mean of 100 ms at best; a failover is over by then. Sockets are made inside the hosts' namespaces and
//! served by threads of this process, so that what they see and what is done to the links has one clock.

mod messages;
mod quic;
mod rounds;
mod tcp;

pub use linkbraid_lab::flow::{Count, DatagramRecord, Datagrams, End, Pace, Progress, Task, Way};
pub use messages::{
    BYTES_MAX, BYTES_MIN, MessageFlow, Messages, Over, Trip, TripCount, Trips, answered, ms, us,
};
pub use quic::QuicFlow;
pub use rounds::{Window, rounds};
pub use tcp::{TcpFlow, TcpRecord};

use linkbraid_api::Error;
use linkbraid_lab::Host;
use linkbraid_lab::flow::{LOOK, enlarge, is_wait};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// How long a connection may take to be made, also over links that are full.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// A connection from one host to an address of another: what listens, the client's end, and the server's. `ready` makes the
/// listening socket ready, whose settings the server's end inherits.
fn connect(
    (from, to): (Host<'_>, Host<'_>),
    address: &str,
    ready: impl Fn(&TcpListener) -> io::Result<()> + Sync,
) -> Result<(TcpListener, TcpStream, TcpStream), Error> {
    let listener = to.make("listen", || {
        let listener = TcpListener::bind((address, 0))?;
        ready(&listener).map(|()| listener)
    })?;
    let at = listener.local_addr().map_err(|e| failed(to, "listen", &e))?;
    let what = format!("connect to {at}");
    let client = from.make(&what, || TcpStream::connect_timeout(&at, CONNECT_LIMIT))?;
    let (server, _) = listener.accept().map_err(|e| failed(to, "accept", &e))?;
    Ok((listener, client, server))
}

fn failed(host: Host<'_>, what: &str, error: &io::Error) -> Error {
    Error::new(format!("host {}", host.name()), format!("cannot {what}"), error.to_string())
}
