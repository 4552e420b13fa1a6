//! The host that asks.

use crate::answer::{address_towards, sink, source};
use crate::burst::{self, Counter};
use crate::limits;
use crate::side::Side;
use crate::talk::{Reply, Request, Talk, VERSION};
use crate::verdict::{Direction, Examination, FlowTest, LaneTest, Watched, pairs};
use linkbraid_api::Error;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// Examines the bond together with a peer that answers; `describe` says what this host is now, `note` hears what is done.
///
/// # Errors
/// The peer does not answer, or one of the two hosts cannot do what is asked.
pub fn examine(
    peer: IpAddr,
    describe: &dyn Fn() -> Result<Side, Error>,
    note: &dyn Fn(&str),
) -> Result<Examination, Error> {
    let own = describe()?;
    let failed = |error: io::Error| {
        let (bond, why) = (&own.bond, cause(&error));
        let failed = Error::new(peer.to_string(), "cannot examine the bond together with it", why);
        match error.kind() {
            ErrorKind::ConnectionRefused => {
                let own = address_towards(peer).map_or_else(|_| "ADDRESS".into(), |own| own.to_string());
                failed.hint(format!("linkbraid doctor --answer {own}"))
            }
            _ => failed.hint(format!("linkbraid check {bond}")),
        }
    };
    let talk = Talk::to(SocketAddr::new(peer, limits::PORT)).map_err(failed)?;
    let mut asker = Asker { talk, peer };
    asker.all(describe, note).map_err(|error| match error {
        Problem::Here(error) => error,
        Problem::Between(error) => failed(error),
    })
}

pub(crate) fn cause(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "nobody answers there until this command runs on it".into(),
        // One that says more is told as it is.
        ErrorKind::WouldBlock | ErrorKind::TimedOut if error.get_ref().is_none() => {
            format!("no answer within {} s", limits::SILENCE.as_secs())
        }
        ErrorKind::UnexpectedEof => "it ended the connection".into(),
        _ => error.to_string(),
    }
}

enum Problem {
    Here(Error),
    Between(io::Error),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Between(error)
    }
}

struct Asker {
    talk: Talk,
    peer: IpAddr,
}

fn unexpected() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "an answer to another question")
}

fn ms(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

impl Asker {
    fn all(
        &mut self,
        describe: &dyn Fn() -> Result<Side, Error>,
        note: &dyn Fn(&str),
    ) -> Result<Examination, Problem> {
        self.talk.ask(&Request::Hello { version: VERSION })?;
        note("watching what the links carry now");
        let before = [describe().map_err(Problem::Here)?, self.describe()?];
        thread::sleep(limits::WATCH);
        let [own, other] = [describe().map_err(Problem::Here)?, self.describe()?];
        let watched = Watched::between(&before, &[&own, &other], limits::WATCH);
        let mut lanes = Vec::new();
        for (member, peer_member) in pairs(&own, &other).into_iter().take(limits::LANES_MAX) {
            note(&format!("{member} to {peer_member} of {}, alone, both ways", self.peer));
            lanes.push(self.lane(&own, &other, member, peer_member)?);
        }
        let mut flows = Vec::new();
        // Several first: where links do not tell their speed, the bond learns it from these.
        for number in [limits::FLOWS, 1] {
            note(&format!("all together: {number} of TCP, both ways"));
            flows.push(self.up(number)?);
            flows.push(self.down(number)?);
        }
        Ok(Examination { own, other, watched, lanes, flows })
    }

    fn describe(&mut self) -> io::Result<Side> {
        match self.talk.ask(&Request::Describe)? {
            Reply::Side(side) => Ok(*side),
            _ => Err(unexpected()),
        }
    }

    /// One lane in both directions.
    fn lane(
        &mut self,
        own: &Side,
        other: &Side,
        member: String,
        peer_member: String,
    ) -> io::Result<LaneTest> {
        let mac = |side: &Side, name: &str| {
            let member = side.members.iter().find(|member| member.name == name);
            member.map(|member| member.mac.clone()).ok_or_else(unexpected)
        };
        let (here, there) = (mac(own, &member)?, mac(other, &peer_member)?);
        let bytes = |mac: &str| mac.parse().map_err(|_| unexpected());

        let token = token()?;
        self.talk.ask(&Request::Count { member: peer_member.clone(), token })?;
        let sent_up = burst::blast(&member, bytes(&here)?, bytes(&there)?, own.mtu, token, limits::BURST)?;
        let Reply::Heard(up) = self.talk.ask(&Request::Counted)? else { return Err(unexpected()) };

        let token = self::token()?;
        let counter = Counter::start(&member, token)?;
        let blast = Request::Blast { member: peer_member.clone(), to: here, token, ms: ms(limits::BURST) };
        let Reply::Sent(sent_down) = self.talk.ask(&blast)? else { return Err(unexpected()) };
        let down = counter.end()?;
        Ok(LaneTest { member, peer_member, sent: [sent_up, sent_down], heard: [up, down] })
    }

    fn connect(&self, flows: u8) -> io::Result<Vec<TcpStream>> {
        let to = SocketAddr::new(self.peer, limits::PORT);
        (0..flows).map(|_| TcpStream::connect_timeout(&to, limits::SILENCE)).collect()
    }

    fn up(&mut self, flows: u8) -> io::Result<FlowTest> {
        self.talk.ask(&Request::Sink { flows, ms: ms(limits::FLOW) })?;
        let Reply::Sourced(sender, from) = source(&self.connect(flows)?, limits::FLOW)? else {
            return Err(unexpected());
        };
        match self.talk.reply()? {
            Reply::Sunk(mbit, to) => {
                Ok(FlowTest { way: Direction::Up, flows, mbit, sender, load: [from, to] })
            }
            _ => Err(unexpected()),
        }
    }

    fn down(&mut self, flows: u8) -> io::Result<FlowTest> {
        self.talk.ask(&Request::Source { flows, ms: ms(limits::FLOW) })?;
        let Reply::Sunk(mbit, to) = sink(&self.connect(flows)?, limits::FLOW)? else {
            return Err(unexpected());
        };
        match self.talk.reply()? {
            Reply::Sourced(sender, from) => {
                Ok(FlowTest { way: Direction::Down, flows, mbit, sender, load: [from, to] })
            }
            _ => Err(unexpected()),
        }
    }
}

/// What nobody can guess.
fn token() -> io::Result<u64> {
    getrandom::u64().map_err(|error| io::Error::other(error.to_string()))
}
