//! Traffic of our own, looked at closely: sockets that are made inside hosts and served by threads of this process, so that
//! what they see and what is done to the links has one clock.

mod datagrams;
mod flood;
mod progress;
mod task;

pub use datagrams::{Count, DatagramRecord, Datagrams, End, Pace, Way};
pub use flood::{Flood, Flooded};
pub use progress::Progress;
pub use task::Task;

use nix::sys::socket::{setsockopt, sockopt};
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::time::Duration;

/// How long a socket blocks before its thread looks whether the flow is over.
pub const LOOK: Duration = Duration::from_millis(50);

/// What the socket of datagrams may hold each way, in bytes.
const BUFFER: usize = 8 << 20;

/// Makes room in a socket, so that a thread without a CPU for some milliseconds is not taken for a loss.
pub fn enlarge(socket: &UdpSocket) -> io::Result<()> {
    setsockopt(socket, sockopt::RcvBufForce, &BUFFER)?;
    setsockopt(socket, sockopt::SndBufForce, &BUFFER)?;
    Ok(())
}

/// Whether nothing happened for as long as a socket blocks.
pub fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
