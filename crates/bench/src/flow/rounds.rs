//! Messages that go to and fro over TCP, one at a time, by programs that block: what NetPIPE does.

use super::{Task, connect, failed};
use crate::percentiles::Percentiles;
use linkbraid_api::Error;
use linkbraid_lab::Host;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Rounds before those that count: TCP's window has to open, and routes and neighbours to be found.
const WARM_UP: u32 = 50;
/// A round that takes longer never ends.
const ROUND_LIMIT: Duration = Duration::from_secs(10);

/// When rounds count.
#[derive(Debug, Clone, Copy)]
pub enum Window {
    /// For this long after the first ones.
    Warm(Duration),
    /// From this instant on for this long: where several are under way, all count the same time.
    At(Instant, Duration),
}

/// Sends messages of `bytes` bytes from one host to an address of another and back: half of each round trip. The last one is
/// that which goes past the end; it does not count where several are under way.
pub fn rounds(
    from: Host<'_>,
    to: Host<'_>,
    address: &str,
    bytes: usize,
    window: Window,
) -> Result<Percentiles, Error> {
    let (_, client, server) = connect((from, to), address, |_| Ok(()))?;
    for socket in [&client, &server] {
        let ready = socket.set_nodelay(true).and_then(|()| socket.set_read_timeout(Some(ROUND_LIMIT)));
        ready.map_err(|e| failed(from, "set up a connection", &e))?;
    }
    let bytes = bytes.max(1);
    let echo = Task::start(move |_| serve(server, bytes));
    let half = drive(client, bytes, window)?;
    let served = echo.join().unwrap_or_else(Err);
    served.map_err(|e| failed(to, "send messages back", &e))?;
    half.map_err(|e| failed(from, "send messages", &e))
}

/// The end that answers, until the other one closes.
fn serve(mut socket: TcpStream, bytes: usize) -> io::Result<()> {
    let mut message = vec![0; bytes];
    loop {
        match socket.read_exact(&mut message) {
            Ok(()) => socket.write_all(&message)?,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn drive(mut socket: TcpStream, bytes: usize, window: Window) -> Result<io::Result<Percentiles>, Error> {
    let mut half = Percentiles::new()?;
    let mut message = vec![0x5a; bytes];
    let mut round = || -> io::Result<Duration> {
        let begin = Instant::now();
        socket.write_all(&message)?;
        socket.read_exact(&mut message)?;
        Ok(begin.elapsed() / 2)
    };
    let mut all = || -> io::Result<()> {
        let end = match window {
            Window::Warm(time) => {
                (0..WARM_UP).try_for_each(|_| round().map(drop))?;
                Instant::now() + time
            }
            Window::At(begin, time) => {
                while Instant::now() < begin {
                    round()?;
                }
                begin + time
            }
        };
        let mut over = false;
        while !over {
            let took = round()?;
            over = Instant::now() > end;
            if !over || matches!(window, Window::Warm(_)) {
                half.add(took);
            }
        }
        Ok(())
    };
    Ok(all().map(|()| half))
}

#[cfg(test)]
mod tests;
