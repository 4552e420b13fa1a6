//! The host whose administrator agreed to answer.

use crate::burst::{self, Counter};
use crate::load::Look;
use crate::side::Side;
use crate::talk::{Reply, Request, Talk, VERSION};
use crate::{ask, flow, limits};
use linkbraid_api::Error;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

/// What says what a host is now, as often as it is asked in one examination.
pub type Describe<'a> = Box<dyn Fn() -> Result<Side, Error> + 'a>;

/// Answers one host for so long, over the interface address that reaches it. `describe` makes what describes this host, anew for each
/// examination; `note` hears of each. Nobody else is answered.
///
/// # Errors
/// No way to that host, or the port is taken.
pub fn answer<'a>(
    peer: IpAddr,
    lasts: Duration,
    describe: &dyn Fn() -> Result<Describe<'a>, Error>,
    note: &dyn Fn(&str),
) -> Result<(), Error> {
    let failed = |error: io::Error| {
        Error::new(peer.to_string(), "cannot wait for its examination", error.to_string())
            .hint(format!("ss -tlnp 'sport = :{}'", limits::PORT))
    };
    let listener = listen(peer).map_err(failed)?;
    let until = Instant::now() + lasts;
    while let Some(stream) =
        accept(&listener, peer, until.saturating_duration_since(Instant::now())).map_err(failed)?
    {
        note(&format!("{peer} examines the bond"));
        let describe =
            describe().map_err(|error| io::Error::other(format!("{}: {}", error.what, error.cause)));
        match describe.and_then(|describe| serve(&listener, peer, stream, &*describe, until)) {
            Ok(()) => note(&format!("{peer} has finished")),
            Err(error) => note(&format!("{peer} was given up: {}", ask::cause(&error))),
        }
    }
    Ok(())
}

/// The address from which this host speaks to that one.
pub(crate) fn address_towards(peer: IpAddr) -> io::Result<IpAddr> {
    let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let way = UdpSocket::bind(any)?;
    way.connect((peer, limits::PORT))?;
    Ok(way.local_addr()?.ip())
}

fn listen(peer: IpAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((address_towards(peer)?, limits::PORT))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The next connection of that host within that time.
fn accept(listener: &TcpListener, peer: IpAddr, within: Duration) -> io::Result<Option<TcpStream>> {
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let mut ready = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        poll(&mut ready, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX))?;
        match listener.accept() {
            Ok((stream, from)) if from.ip() == peer => {
                stream.set_nonblocking(false)?;
                return Ok(Some(stream));
            }
            // A stranger's is closed.
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Does what one examination asks for.
fn serve(
    listener: &TcpListener,
    peer: IpAddr,
    stream: TcpStream,
    describe: &dyn Fn() -> Result<Side, Error>,
    until: Instant,
) -> io::Result<()> {
    let mut talk = Talk::over(stream)?;
    match talk.hear()? {
        Some(Request::Hello { version: VERSION }) => talk.say(&Reply::Ready)?,
        Some(_) => return talk.say(&Reply::Refused(format!("this host speaks version {VERSION}"))),
        None => return Ok(()),
    }
    let mut counter: Option<Counter> = None;
    for _ in 0..limits::REQUESTS_MAX {
        let Some(request) = talk.hear()? else { return Ok(()) };
        if Instant::now() > until {
            return talk.say(&Reply::Refused("the time is over in which this host answers".into()));
        }
        let reply = match request {
            Request::Hello { .. } => Reply::Ready,
            Request::Describe => match describe() {
                Ok(side) => Reply::Side(Box::new(side)),
                Err(error) => Reply::Refused(format!("{}: {}: {}", error.object, error.what, error.cause)),
            },
            Request::Count { member, token } => match is_member(&member, describe)? {
                false => refuse_member(&member),
                true => {
                    counter = Some(Counter::start(&member, token)?);
                    Reply::Ready
                }
            },
            Request::Counted => match counter.take() {
                Some(counter) => Reply::Heard(counter.end()?),
                None => Reply::Refused("nothing is counted".into()),
            },
            Request::Blast { member, to, token, ms } => blast(&member, &to, token, millis(ms), describe)?,
            Request::Sink { flows, ms } => {
                talk.say(&Reply::Ready)?;
                sink(&connections(listener, peer, flows)?, millis(ms))?
            }
            Request::Source { flows, ms } => {
                talk.say(&Reply::Ready)?;
                source(&connections(listener, peer, flows)?, millis(ms))?
            }
        };
        talk.say(&reply)?;
    }
    Ok(())
}

fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

fn described(describe: &dyn Fn() -> Result<Side, Error>) -> io::Result<Side> {
    describe().map_err(|error| io::Error::other(format!("{}: {}", error.what, error.cause)))
}

fn is_member(name: &str, describe: &dyn Fn() -> Result<Side, Error>) -> io::Result<bool> {
    Ok(described(describe)?.members.iter().any(|member| member.name == name))
}

fn refuse_member(name: &str) -> Reply {
    Reply::Refused(format!("'{name}' is no member of the bond"))
}

/// Sends frames by a member to a MAC that the daemon knows as one of the peer's: whoever asks cannot have them sent to others.
fn blast(
    member: &str,
    to: &str,
    token: u64,
    lasts: Duration,
    describe: &dyn Fn() -> Result<Side, Error>,
) -> io::Result<Reply> {
    let side = described(describe)?;
    let Some(from) = side.members.iter().find(|known| known.name == member) else {
        return Ok(refuse_member(member));
    };
    if !side.lanes.iter().any(|lane| lane.peer_mac == to) {
        return Ok(Reply::Refused(format!("no lane leads to {to}")));
    }
    let (Ok(source), Ok(target)) = (from.mac.parse(), to.parse()) else {
        return Ok(Reply::Refused(format!("{to} is no MAC")));
    };
    Ok(Reply::Sent(burst::blast(member, source, target, side.mtu, token, lasts)?))
}

fn connections(listener: &TcpListener, peer: IpAddr, flows: u8) -> io::Result<Vec<TcpStream>> {
    let flows = flows.min(limits::FLOWS_MAX);
    let next = |number| {
        let late = || {
            let cause = format!(
                "{number} of {flows} flows came, and no other within {} s",
                limits::SILENCE.as_secs()
            );
            io::Error::new(ErrorKind::TimedOut, cause)
        };
        accept(listener, peer, limits::SILENCE)?.ok_or_else(late)
    };
    (0..flows).map(next).collect()
}

/// Reads flows; what they brought.
pub(crate) fn sink(flows: &[TcpStream], lasts: Duration) -> io::Result<Reply> {
    let look = Look::take();
    let windows = each(flows, |flow| flow::receive_for(flow, lasts))?;
    Ok(Reply::Sunk(flow::mbit(&windows), look.load()))
}

/// Sends by flows; what they were kept back by.
pub(crate) fn source(flows: &[TcpStream], lasts: Duration) -> io::Result<Reply> {
    let look = Look::take();
    let senders = each(flows, |flow| flow::send_for(flow, lasts))?;
    let all = senders.into_iter().fold(flow::Sender::default(), flow::Sender::plus);
    Ok(Reply::Sourced(all, look.load()))
}

/// Does it for each flow, all at once.
fn each<T: Send>(
    flows: &[TcpStream],
    work: impl Fn(&TcpStream) -> io::Result<T> + Sync,
) -> io::Result<Vec<T>> {
    thread::scope(|scope| {
        let threads: Vec<_> = flows.iter().map(|flow| scope.spawn(|| work(flow))).collect();
        let panicked = |_| io::Error::other("a thread of a flow has panicked");
        threads.into_iter().map(|thread| thread.join().map_err(panicked)?).collect()
    })
}
