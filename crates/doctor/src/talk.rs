//! What the two hosts say: one JSON value a line.

use crate::{
    burst::{Heard, Sent},
    flow::Sender,
    limits,
    load::Load,
    side::Side,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// A host that speaks another one is refused.
pub const VERSION: u32 = 1;

/// What the host that asks says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// First of all.
    Hello {
        /// [`VERSION`]
        version: u32,
    },
    /// What are you now?
    Describe,
    /// Count the frames of this burst that arrive on that member.
    Count {
        /// The member.
        member: String,
        /// What tells the burst from others.
        token: u64,
    },
    /// They have left: what has come?
    Counted,
    /// Send frames yourself.
    Blast {
        /// By that member,
        member: String,
        /// to that MAC, which is a member's of the host that asks,
        to: String,
        /// with that token,
        token: u64,
        /// for so many milliseconds.
        ms: u32,
    },
    /// So many flows come: read them.
    Sink {
        /// How many.
        flows: u8,
        /// What is counted of them, in milliseconds.
        ms: u32,
    },
    /// So many flows come: send.
    Source {
        /// How many.
        flows: u8,
        /// For so many milliseconds.
        ms: u32,
    },
}

/// What the other one says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// Go on.
    Ready,
    /// What it is.
    Side(Box<Side>),
    /// These have left.
    Sent(Sent),
    /// These have arrived.
    Heard(Heard),
    /// What flows brought, in Mbit/s, and how busy the processors were.
    Sunk(f64, Load),
    /// What flows were kept back by, and how busy the processors were.
    Sourced(Sender, Load),
    /// Why not.
    Refused(String),
}

/// One end of the connection.
#[derive(Debug)]
pub struct Talk {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Talk {
    /// Over a connection.
    pub fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_write_timeout(Some(limits::SILENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { reader: BufReader::new(stream.try_clone()?), writer: stream })
    }

    /// To a host that answers.
    pub fn to(host: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(host), Type::STREAM, Some(Protocol::TCP))?;
        // Both ends keep to the lower of their limits.
        socket.set_tcp_mss(limits::SEGMENT_MAX)?;
        socket.connect_timeout(&host.into(), limits::SILENCE)?;
        Self::over(socket.into())
    }

    /// Says something.
    pub fn say(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.writer.write_all(&line)
    }

    /// What the other end says next, all of it within [`limits::SILENCE`]; none: it has ended the connection.
    pub fn hear<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let (mut line, until) = (Vec::new(), Instant::now() + limits::SILENCE);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.reader.get_ref().set_read_timeout(Some(left))?;
            let piece = self.reader.fill_buf()?;
            if piece.is_empty() && line.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(piece.len(), |end| end + 1);
            line.extend_from_slice(&piece[..taken]);
            self.reader.consume(taken);
            if taken == 0 || line.len() > limits::MESSAGE_MAX {
                return Err(io::Error::new(ErrorKind::InvalidData, "a message that does not end"));
            }
            if end.is_some() {
                return Ok(Some(serde_json::from_slice(&line)?));
            }
        }
    }

    /// Asks, and waits for the answer.
    pub fn ask(&mut self, request: &Request) -> io::Result<Reply> {
        self.say(request)?;
        self.reply()
    }

    /// The answer, which may come later than what was asked.
    pub fn reply(&mut self) -> io::Result<Reply> {
        match self.hear()? {
            Some(Reply::Refused(why)) => Err(io::Error::other(format!("it refuses: {}", one_line(&why)))),
            Some(reply) => Ok(reply),
            None => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Text of the other host, fit for a terminal.
pub fn one_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn pair() -> (Talk, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let one = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        (Talk::over(listener.accept().expect("accepts").0).expect("a talk"), one)
    }

    #[test]
    fn messages_are_bounded_and_whole() {
        let (mut talk, mut other) = pair();
        other.write_all(b"\"Describe\"\n{\"Hello\":{\"version\":1}}\n\"Wipe\"\n\"Coun").expect("writes");
        drop(other);
        assert_eq!(talk.hear::<Request>().expect("a message"), Some(Request::Describe));
        assert_eq!(talk.hear::<Request>().expect("a message"), Some(Request::Hello { version: 1 }));
        assert!(talk.hear::<Request>().is_err(), "an unknown one");
        assert!(talk.hear::<Request>().is_err(), "one that does not end");
        assert_eq!(talk.hear::<Request>().expect("the end"), None);

        let (mut talk, mut other) = pair();
        let writes = std::thread::spawn(move || other.write_all(&vec![b'['; limits::MESSAGE_MAX + 100]));
        assert!(talk.hear::<Request>().is_err(), "one that is too long");
        drop(talk);
        let _ = writes.join();
    }

    #[test]
    fn what_another_host_says_stays_on_one_line() {
        assert_eq!(one_line("a\n\u{1b}[31mb"), "a  [31mb");
        assert_eq!(one_line(&"x".repeat(1000)).len(), 400);
    }
}
