//! The fast path of a fabric over UDP: the kernel's VXLAN carries frames past the daemon, where both ends want that
//! (`docs/fabric.md`, section 7).
//!
//! It is made and removed on threads that may wait ([`super::job`], [`retry`]); what opens and closes the paths is the session's
//! thread. A node that cannot have it works as without it, says why, and tries again.

mod device;
mod early;
mod on;
mod probe;
mod retry;

pub(crate) use device::sweep;

use super::saved::SavedFabric;
use linkbraid_api::Encrypt;
use linkbraid_dataplane::{self as dataplane, HookChoice, PATH_REASONS, PathCounts, PathIn, PathOut};
use linkbraid_fabric::{Address, Join, Live, engine::derive_mac};
use linkbraid_proto::{
    Time,
    session::{Session, next_port, usual_ports},
};
use linkbraid_wire::fabric::{FastPath as Announced, Tag};
use on::On;
use retry::{Retry, Wanted, taken};
use std::{net::IpAddr, sync::Arc, thread::JoinHandle, time::Duration};

/// An Ethernet header.
const ETHERNET: usize = 14;
/// How often a node is asked whether frames arrive, and whether they do is looked at...
const EVERY: Duration = Duration::from_secs(1);
/// ...and right after its link came up, for so long, whenever there is a look at all.
const SOON: Duration = Duration::ZERO;
const EARLY: Duration = Duration::from_secs(2);
/// Frames have come lately if one did in this time.
const LATELY: Duration = Duration::from_secs(3);
/// How often it is looked whether a port is free that another node has.
const MOVES: Duration = Duration::from_secs(1);

/// The fast path of one start of a node.
pub(crate) struct FastPath {
    /// The one that it has, had last, or wants; 0 where there can be none.
    port: u16,
    /// Whether the user has chosen it.
    given: bool,
    state: State,
    /// None where the wish itself makes no sense.
    retry: Option<Retry>,
    /// Removes what was there before it failed.
    ending: Option<JoinHandle<()>>,
    /// The MTU of the interface, and whether its address is the one that is derived for this node.
    mtu: u32,
    derived: bool,
    peers: Vec<Peer>,
    move_at: Time,
    before: Before,
}

enum State {
    On(Box<On>),
    /// Why not.
    Off(String),
}

/// What programs that are gone have counted.
#[derive(Debug, Clone, Default)]
struct Before {
    counts: Vec<PathCounts>,
    reasons: [u64; PATH_REASONS.len()],
}

/// What is held of one node.
#[derive(Debug, Clone, Copy, Default)]
struct Peer {
    /// What its frames must carry, as the kernel knows, and where they must come from.
    tag: Option<Tag>,
    address: Option<IpAddr>,
    /// The path to it, as the kernel knows.
    out: Option<PathOut>,
    /// The longest frame that the path takes.
    room: usize,
    /// Since when it has a tag.
    since: Time,
    /// What had come at the last look, and when something new had.
    came: u64,
    heard: Option<Time>,
    look_at: Time,
    probe_at: Time,
}

impl FastPath {
    /// Makes what the transport does not forbid; none where it does, or has none. Takes some milliseconds.
    pub(super) fn make(
        saved: &SavedFabric,
        (address, directory): (&Address, &Arc<Live>),
        tap: u32,
        hook: HookChoice,
    ) -> Option<Self> {
        let join = Join { node: saved.node, nodes: saved.nodes, queues: saved.queues };
        let off = |given, cause: String| Some(Self::with(saved, (0, given), State::Off(cause), None));
        let plan = match address.fast_path(directory, &join, &usual_ports(saved.number)) {
            Ok(plan) => plan?,
            Err(error) => return off(false, error.cause),
        };
        //= docs/fabric.md#9.8
        if saved.settings.encrypt == Encrypt::On {
            return off(plan.is_given(), "frames are encrypted, which VXLAN cannot do".into());
        }
        if plan.address(saved.node).is_none() {
            let cause = "link-local addresses (fe80::/10) cannot be used with VXLAN";
            return off(plan.is_given(), cause.into());
        }
        let (first, given) = (plan.ports()[0], plan.is_given());
        let (made, retry) = Retry::first(Wanted { saved: saved.clone(), plan, from: first, tap, hook });
        let port = made.as_ref().map_or(first, |on| on.port);
        let state = made.map_or_else(State::Off, |on| State::On(Box::new(on)));
        if let State::Off(cause) = &state {
            // A killed daemon may have left its program.
            let _ = dataplane::FastPath::clean(tap);
            if given {
                tracing::warn!(fabric = %saved.name, %cause, "frames do not use VXLAN");
            } else {
                tracing::info!(fabric = %saved.name, %cause, "frames do not use VXLAN");
            }
        }
        Some(Self::with(saved, (port, given), state, Some(retry)))
    }

    fn with(saved: &SavedFabric, (port, given): (u16, bool), state: State, retry: Option<Retry>) -> Self {
        let peers = vec![Peer::default(); saved.nodes.into()];
        let (before, move_at) = (Before::default(), Time::ZERO);
        let mut made =
            Self { port, given, state, retry, ending: None, mtu: 0, derived: true, peers, move_at, before };
        made.follow(saved);
        made
    }

    /// Its port, while it can be had.
    pub(super) fn port(&self) -> Option<u16> {
        matches!(self.state, State::On(_)).then_some(self.port)
    }

    /// Its port, whether it can be had or not.
    pub(super) fn wanted(&self) -> u16 {
        self.port
    }

    /// Why it cannot be had.
    pub(super) fn off(&self) -> Option<&str> {
        match &self.state {
            State::On(_) => None,
            State::Off(cause) => Some(cause),
        }
    }

    /// The same, if the user has asked for it.
    pub(super) fn refused(&self) -> Option<&str> {
        self.off().filter(|_| self.given)
    }

    /// The hook that its programs sit on.
    pub(super) fn hook(&self) -> Option<dataplane::Hook> {
        match &self.state {
            State::On(on) => Some(on.programs.hook()),
            State::Off(_) => None,
        }
    }

    /// The interface is another one.
    pub(super) fn follow(&mut self, saved: &SavedFabric) {
        self.mtu = saved.settings.mtu.0;
        self.derived = saved.mac == derive_mac(saved.number, saved.node);
        if let Some(retry) = &mut self.retry {
            retry.follow(saved);
        }
    }

    /// Opens and closes the paths of a node as the session wants it. Before a link that went down counts as down, and before a
    /// node hears of its tag.
    pub(super) fn fit(&mut self, session: &Session, node: u16, now: Time) {
        let mtu = self.mtu as usize;
        let (State::On(on), Some(peer)) = (&self.state, self.peers.get_mut(usize::from(node))) else {
            return;
        };
        let fitted = on.fit(peer, session, node, mtu, now);
        if let Err(error) = fitted {
            self.fail(format!("the kernel refuses a path: {error}"));
        }
    }

    /// Closes all paths.
    pub(super) fn close(&mut self) {
        if let State::On(on) = &self.state {
            for node in 0..self.peers.len() as u16 {
                // What cannot be closed goes with the programs.
                let _ = on.programs.set_out(node, None);
                let _ = on.programs.set_in(node, None);
            }
        }
        self.peers.fill(Peer::default());
    }

    /// It is over until an attempt to make it again succeeds.
    fn fail(&mut self, cause: String) {
        tracing::warn!(%cause, "frames no longer use VXLAN");
        self.end(cause);
    }

    /// Takes the port that other nodes have, if it is one of the fabric's and free; whether it does.
    fn moves(&mut self, session: &Session, now: Time) -> bool {
        let State::On(on) = &self.state else { return false };
        if self.move_at > now {
            return false;
        }
        self.move_at = now + MOVES;
        let nodes = 0..self.peers.len() as u16;
        let announced = nodes.filter_map(|node| Some(session.fast_path(node)?.port));
        let next = next_port(on.plan.ports(), on.port, announced, |port| taken(port).is_none());
        let Some(port) = next else { return false };
        tracing::info!(port, "VXLAN moves to the port of other nodes");
        self.end(format!("it moves to UDP port {port}, as other nodes have"));
        self.port = port;
        if let Some(retry) = &mut self.retry {
            retry.soon(port, now);
        }
        true
    }

    fn end(&mut self, cause: String) {
        let nodes = self.peers.len() as u16;
        let mut reasons = [0; PATH_REASONS.len()];
        for (last, (_, _, _, count)) in reasons.iter_mut().zip(self.reasons()) {
            *last = count;
        }
        self.before = Before { counts: (0..nodes).map(|node| self.counts(node)).collect(), reasons };
        self.close();
        let ended = std::mem::replace(&mut self.state, State::Off(cause));
        // The kernel takes its time, and the session has none.
        self.ending = std::thread::Builder::new().name("lb-vxlan".into()).spawn(move || drop(ended)).ok();
    }

    /// Looks whether frames come, and asks whether they arrive. For whom the first changed, and to what.
    pub(super) fn look(&mut self, session: &Session, now: Time) -> Vec<(u16, bool)> {
        let mtu = self.mtu as usize;
        let State::On(on) = &self.state else {
            self.try_again(now);
            return Vec::new();
        };
        if !on.device.is_there() {
            self.fail("its VXLAN device was deleted or set down; it is made again".into());
            return Vec::new();
        }
        if self.moves(session, now) {
            return Vec::new();
        }
        let State::On(on) = &self.state else { return Vec::new() };
        let (mut news, mut refused) = (Vec::new(), None);
        for (node, peer) in (0..).zip(&mut self.peers) {
            if peer.tag.is_some() && peer.look_at <= now {
                let before = peer.hears(now);
                peer.came = on.programs.counts(node).map_or(peer.came, |counts| peer.count(&counts, now));
                let heard = peer.hears(now);
                peer.look_at = now + if heard { EVERY } else { peer.patience(now) };
                if heard != before || heard != session.hears(node) {
                    news.push((node, heard));
                }
            }
            let theirs = session.fast_path(node).filter(|theirs| theirs.port == self.port);
            if let Some(theirs) = theirs.filter(|_| peer.tag.is_some() && peer.probe_at <= now) {
                peer.probe_at = now + if theirs.heard { EVERY } else { peer.patience(now) };
                peer.room = on.plan.room(node, on.port);
                if let Some(address) = on.plan.address(node) {
                    on.prober.ask((address, self.port), theirs.tag, peer.room.min(mtu + ETHERNET));
                }
                // The path may take less than it did.
                if let Err(error) = on.fit(peer, session, node, mtu, now) {
                    refused = Some(error);
                }
            }
        }
        if let Some(error) = refused {
            self.fail(format!("the kernel refuses a path: {error}"));
            return Vec::new();
        }
        news
    }

    /// Looks whether it can be had by now. What ends takes its place with it until the last of it is gone.
    fn try_again(&mut self, now: Time) {
        if self.ending.as_ref().is_some_and(|ending| !ending.is_finished()) {
            return;
        }
        match self.retry.as_mut().and_then(|retry| retry.look(now)) {
            None => {}
            Some(Ok(on)) => {
                self.port = on.port;
                tracing::info!(port = self.port, "VXLAN is available now");
                self.state = State::On(Box::new(on));
            }
            Some(Err(cause)) => self.state = State::Off(cause),
        }
    }

    /// What went by it to a node and came from it.
    pub(super) fn counts(&self, node: u16) -> PathCounts {
        let before = self.before.counts.get(usize::from(node)).copied().unwrap_or_default();
        match &self.state {
            State::On(on) => before.and(on.programs.counts(node).unwrap_or_default()),
            State::Off(_) => before,
        }
    }

    /// Name, whether it is a drop, a sentence, and how often.
    pub(super) fn reasons(&self) -> impl Iterator<Item = (&'static str, bool, &'static str, u64)> {
        let now = match &self.state {
            State::On(on) => on.programs.reasons().unwrap_or_default(),
            State::Off(_) => [0; PATH_REASONS.len()],
        };
        let counts = now.into_iter().zip(self.before.reasons).map(|(now, before)| now + before);
        PATH_REASONS
            .iter()
            .zip(counts)
            .map(|(reason, count)| (reason.name, reason.verdict == "drop", reason.sentence, count))
    }

    /// Whether frames to a node go by it, and if not, or not all, why.
    pub(super) fn says(&self, session: &Session, node: u16) -> (bool, String) {
        let (State::On(_), Some(peer)) = (&self.state, self.peers.get(usize::from(node))) else {
            return (false, String::new());
        };
        let frame = self.mtu as usize + ETHERNET;
        match session.fast_path(node) {
            _ if session.tag(node).is_none() => (false, String::new()),
            None => (false, "it accepts no frames over VXLAN".into()),
            Some(_) if !self.derived => {
                (false, "the interface has another MAC than the fabric gave it".into())
            }
            Some(theirs) if theirs.port != self.port => {
                (false, format!("its VXLAN has UDP port {}, this node's {}", theirs.port, self.port))
            }
            Some(theirs) if !theirs.heard => {
                (false, format!("no VXLAN frame arrives there (UDP port {})", self.port))
            }
            Some(_) if peer.room < frame => {
                let mtu = peer.room.saturating_sub(ETHERNET);
                (true, format!("only TCP; all frames with an MTU of {mtu}"))
            }
            Some(_) => (true, String::new()),
        }
    }
}

impl On {
    fn fit(
        &self,
        peer: &mut Peer,
        session: &Session,
        node: u16,
        mtu: usize,
        now: Time,
    ) -> dataplane::Result<()> {
        let address = self.plan.address(node);
        let tag = session.tag(node).filter(|_| address.is_some());
        //= docs/fabric.md#7.3
        if (tag, address) != (peer.tag, peer.address) {
            let path = |(tag, remote): (Tag, _)| PathIn { remote, tag: (tag.network(), tag.group()) };
            self.programs.set_in(node, tag.zip(address).map(path).as_ref())?;
            let came = self.programs.counts(node).map_or(0, |counts| counts.probes);
            let room = if tag.is_some() { self.plan.room(node, self.port) } else { 0 };
            let (out, since) = (peer.out, now);
            *peer = Peer { tag, address, out, room, since, came, look_at: now, probe_at: now, heard: None };
        }
        //= docs/fabric.md#7.5
        let theirs = session.fast_path(node);
        let open = |theirs: &Announced| theirs.heard && theirs.port == self.port;
        // Who accepts frames now may get them later: connections that begin are made ready for it.
        let path = |(theirs, remote): (Announced, _)| PathOut {
            remote,
            tag: open(&theirs).then_some((theirs.tag.network(), theirs.tag.group())),
            room: peer.room as u32,
            frame: (mtu + ETHERNET) as u32,
        };
        let out = theirs.filter(|_| tag.is_some()).zip(address).map(path);
        if out != peer.out {
            self.programs.set_out(node, out.as_ref())?;
            let is_open = |path: &Option<PathOut>| path.is_some_and(|path| path.tag.is_some());
            if is_open(&out) != is_open(&peer.out) {
                tracing::debug!(node, open = is_open(&out), "the path by VXLAN");
            }
            peer.out = out;
        }
        Ok(())
    }
}

impl Peer {
    /// Takes note of the questions that have come; how many. Other frames are shorter, and say less of the path.
    fn count(&mut self, counts: &PathCounts, now: Time) -> u64 {
        if counts.probes != self.came {
            self.heard = Some(now);
        }
        counts.probes
    }

    fn hears(&self, now: Time) -> bool {
        self.heard.is_some_and(|at| now.since(at) < LATELY)
    }

    fn patience(&self, now: Time) -> Duration {
        if now.since(self.since) < EARLY { SOON } else { EVERY }
    }
}
