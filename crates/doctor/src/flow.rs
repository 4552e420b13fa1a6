//! TCP over the whole bond, and what the kernel says kept it back.

use crate::{limits, socket};
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// What one call writes or reads.
const PIECE: usize = 128 << 10;
/// What arrives is counted for each of these.
const WINDOW: Duration = Duration::from_millis(100);
/// `struct tcp_info` up to `tcpi_sndbuf_limited` (include/uapi/linux/tcp.h).
const INFO: usize = 192;

/// What the senders of a test were kept back by, all flows together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sender {
    /// Segments sent, again or not.
    pub segments: u64,
    /// Segments sent again.
    pub again: u64,
    /// Microseconds in which there was something to send or to be acknowledged;
    pub busy_us: u64,
    /// of these, in which the receiver's window was full,
    pub window_us: u64,
    /// and in which the own send buffer was.
    pub buffer_us: u64,
    /// Microseconds from a segment to its acknowledgement, as it was last smoothed, of the flow where that takes longest.
    #[serde(default)]
    pub round_trip_us: u64,
}

impl Sender {
    /// Two flows as one.
    pub fn plus(self, other: Self) -> Self {
        Self {
            segments: self.segments + other.segments,
            again: self.again + other.again,
            busy_us: self.busy_us + other.busy_us,
            window_us: self.window_us + other.window_us,
            buffer_us: self.buffer_us + other.buffer_us,
            round_trip_us: self.round_trip_us.max(other.round_trip_us),
        }
    }

    /// From what the kernel says of a socket.
    fn of(info: &[u8; INFO]) -> Self {
        let four =
            |at: usize| u64::from(u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]));
        let eight = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&info[at..at + 8]);
            u64::from_ne_bytes(bytes)
        };
        // tcpi_rtt, tcpi_total_retrans, tcpi_data_segs_out, tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited
        Self {
            round_trip_us: four(68),
            again: four(100),
            segments: four(156),
            busy_us: eight(168),
            window_us: eight(176),
            buffer_us: eight(184),
        }
    }
}

/// Sends for so long, or until the reader has enough; what is still queued then need not arrive. A flow that stands still is a
/// result like any other, and no error.
pub fn send_for(mut stream: &TcpStream, lasts: Duration) -> io::Result<Sender> {
    let (piece, until) = (vec![0; PIECE], Instant::now() + lasts.min(limits::FLOW_MAX));
    while let Some(left) = left(until) {
        stream.set_write_timeout(Some(left))?;
        match stream.write(&piece) {
            Ok(_) => {}
            Err(error) if is_timeout(&error) || ended(&error) => break,
            Err(error) => return Err(error),
        }
    }
    let info = socket::option::<INFO>(stream, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    match stream.shutdown(Shutdown::Write) {
        Err(error) if !ended(&error) => Err(error),
        _ => Ok(Sender::of(&info)),
    }
}

/// The time until then; none: it is over.
fn left(until: Instant) -> Option<Duration> {
    Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

/// Nothing found room or came within the time that was set.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The reader has closed the connection.
fn ended(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected)
}

/// Reads for so long from the first byte on, or until the sender ends, and counts what comes after the beginning
/// ([`limits::FLOW_BEGINS`]): bytes of each [`WINDOW`]. The first byte is waited for as long: where links lose much, a flow may
/// stand still, and has brought nothing then. A sender's buffer may hold more than slow links carry in a while, so
/// the caller closes the connection then, and does not wait for the rest. It closes with a reset: the sender's kernel would
/// remember what one of several flows had for the next one to this host (its slow-start threshold, net/ipv4/tcp_metrics.c).
pub fn receive_for(mut stream: &TcpStream, lasts: Duration) -> io::Result<Vec<u64>> {
    let lasts = lasts.min(limits::FLOW_MAX);
    let (mut piece, mut began, mut until) = (vec![0; PIECE], None, Instant::now() + lasts);
    let counted = lasts.saturating_sub(limits::FLOW_BEGINS);
    let mut windows = vec![0; (counted.as_millis() / WINDOW.as_millis()) as usize];
    setsockopt(&stream, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 })?;
    while let Some(left) = left(until) {
        stream.set_read_timeout(Some(left))?;
        let got = match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if is_timeout(&error) => break,
            Err(error) => return Err(error),
        };
        let now = Instant::now();
        let began = *began.get_or_insert(now);
        until = began + lasts;
        let Some(counted) = now.duration_since(began).checked_sub(limits::FLOW_BEGINS) else { continue };
        if let Some(window) = windows.get_mut((counted.as_millis() / WINDOW.as_millis()) as usize) {
            *window += got as u64;
        }
    }
    Ok(windows)
}

/// The rate of several flows together, in Mbit/s: that of the middle window, so that a machine which stands still for a
/// moment changes nothing.
pub fn mbit(flows: &[Vec<u64>]) -> f64 {
    let windows = flows.iter().map(Vec::len).max().unwrap_or(0);
    let at = |at: usize| flows.iter().filter_map(|flow| flow.get(at)).sum::<u64>();
    let mut sums: Vec<u64> = (0..windows).map(at).collect();
    sums.sort_unstable();
    let middle = sums.get(windows / 2).copied().unwrap_or(0);
    middle as f64 * 8.0 / WINDOW.as_micros() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn a_flow_is_counted_at_both_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = listener.local_addr().expect("bound");
        let lasts = limits::FLOW_BEGINS + Duration::from_millis(300);
        let sender = thread::spawn(move || send_for(&TcpStream::connect(address).expect("connects"), lasts));
        let (stream, _) = listener.accept().expect("somebody connects");
        let windows = receive_for(&stream, lasts).expect("receives");
        let sent = sender.join().expect("no panic").expect("sends");
        assert!(windows.len() == 3 && mbit(std::slice::from_ref(&windows)) > 10.0, "{windows:?}");
        assert!(sent.segments > 10 && sent.busy_us > 100_000, "{sent:?}");
        assert!(sent.window_us + sent.buffer_us <= sent.busy_us, "{sent:?}");
    }

    #[test]
    fn what_the_sender_has_queued_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = listener.local_addr().expect("bound");
        let lasts = limits::FLOW_BEGINS + Duration::from_millis(100);
        // It would send ten times as long.
        let sender =
            thread::spawn(move || send_for(&TcpStream::connect(address).expect("connects"), lasts * 10));
        let (stream, _) = listener.accept().expect("somebody connects");
        let windows = receive_for(&stream, lasts).expect("receives");
        assert!(windows.len() == 1 && windows[0] > 0, "{windows:?}");
        drop(stream);
        assert!(sender.join().expect("no panic").expect("its reader has enough").segments > 10);
    }

    #[test]
    fn a_flow_that_stands_still_has_brought_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let lasts = limits::FLOW_BEGINS + Duration::from_millis(100);
        let silent = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (stream, _) = listener.accept().expect("somebody connects");
        assert_eq!(receive_for(&stream, lasts).expect("nothing comes"), [0]);
        // Nobody reads: it sends until the buffers are full.
        assert!(send_for(&silent, lasts).expect("stands still").segments > 0);
    }

    #[test]
    fn the_rate_is_that_of_the_middle_window_of_all_flows() {
        let flows = [vec![1_000_000, 0, 1_250_000], vec![250_000, 0, 0, 0]];
        assert!((mbit(&flows[..1]) - 80.0).abs() < 1e-9, "{}", mbit(&flows[..1]));
        assert!((mbit(&flows) - 100.0).abs() < 1e-9, "{}", mbit(&flows));
        assert_eq!(mbit(&[]), 0.0);
    }
}
