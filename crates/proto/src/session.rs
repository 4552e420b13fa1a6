//! The session of a fabric: which nodes live, in which epoch, and that both ends agree before a frame flows.
//!
//! Job: keep `docs/fabric.md` with every peer. In: [`Input`], each with the time. Out: [`Action`], the next deadline, and a
//! [`Gate`] for each link that is up. It never reads a clock, opens a socket or logs.
//!
//! The contract with the loop around it:
//! 1. after every [`Session::handle`] and [`Session::set`], call [`Session::poll_action`] until it gives none and do what it
//!    says, in that order: what is sent after a link came up belongs to the link;
//! 2. then ask [`Session::poll_timeout`], and at that time hand in [`Input::Timeout`];
//! 3. time never goes back from one call to the next.
//!
//! Where a message goes: [`Session::handle`], `receive` (is it whole, is it from the peer it came from, is it for us),
//! [`link::Link::handle`] (which knows no time), `perform` (timers, verdicts, what is to be sent).

use crate::{Time, auth, limits, random::Random};
pub use linkbraid_wire::fabric::ControlBytes;
use linkbraid_wire::fabric::{Offer, emit_control, parse_control};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

mod authentic;
mod counter;
mod encryption;
mod event;
mod fast_path;
mod gate;
pub mod link;
mod pace;
mod peer;
mod queue;
mod snapshot;
mod timing;
mod window;

#[cfg(test)]
mod tests;

pub use crate::inspector::OutOfRange;
pub use crate::secret::Secret;
pub use counter::{Counter, Counters};
pub use encryption::FrameKeys;
pub use event::{Action, Down, Event, Input, Mismatch, Side, Verdict};
pub use fast_path::{USUAL_PORTS, next_port, usual_ports};
pub use gate::{Gate, NotAdmitted};
pub use queue::Queues;
pub use snapshot::{PeerSnapshot, Snapshot};
pub use timing::{Settings, Timing, detection};
pub use window::{Seen, WINDOW, Window};

use crate::secret::Numbers;
use link::{Effect, Link, LinkInput, Own};
use peer::{Due, Peer};

/// What a session is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Number of this node, below the number of nodes.
    pub node: u16,
    /// Not 0, and another one at each start of this node: a random number, or the clock in nanoseconds.
    pub epoch: u64,
    /// What can be changed later.
    pub settings: Settings,
}

impl Config {
    /// Whether everything is in its range.
    ///
    /// # Errors
    /// The first setting that is not.
    pub fn check(&self) -> Result<(), OutOfRange> {
        self.settings.check()?;
        //= docs/fabric.md#1.2
        if self.node >= self.settings.nodes {
            let allowed = format!("0 to {}", self.settings.nodes - 1);
            return Err(OutOfRange { setting: "node", value: self.node.to_string(), allowed });
        }
        //= docs/fabric.md#1.4
        if self.epoch == 0 {
            let allowed = "1 and above".to_owned();
            return Err(OutOfRange { setting: "epoch", value: "0".to_owned(), allowed });
        }
        Ok(())
    }
}

/// Whether a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Running,
    /// For good: another start is another epoch.
    Stopped,
}

/// The session of one node with all others.
#[derive(Debug)]
pub struct Session {
    node: u16,
    own: Own,
    settings: Settings,
    phase: Phase,
    peers: BTreeMap<u16, Peer>,
    /// Peers that are up.
    up: u32,
    random: Random,
    cookies: Numbers,
    auth: auth::Settings,
    /// The last other node that spoke with this node's number.
    own_number: Option<u64>,
    counters: Counters,
    actions: VecDeque<Action>,
}

impl Session {
    /// A session that does not run yet. `seed` makes its jitter, `secret` its cookies: both are other ones at each start, and
    /// nobody else knows the secret.
    ///
    /// # Errors
    /// The first setting that is out of its range.
    pub fn new(config: Config, seed: u64, secret: Secret) -> Result<Session, OutOfRange> {
        config.check()?;
        let mut session = Session {
            node: config.node,
            own: Own {
                epoch: config.epoch,
                offer: config.settings.offer(),
                fast_path: config.settings.fast_path,
            },
            settings: config.settings,
            phase: Phase::Idle,
            peers: BTreeMap::new(),
            up: 0,
            random: Random::new(seed),
            cookies: Numbers::new(secret),
            auth: auth::Settings::default(),
            own_number: None,
            counters: Counters::default(),
            actions: VecDeque::new(),
        };
        session.meet(Time::ZERO);
        Ok(session)
    }

    /// Takes one input. Poll actions and timeout afterwards.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        match (input, self.phase) {
            (Input::Start, Phase::Idle) => {
                self.phase = Phase::Running;
                self.peers.values_mut().for_each(|peer| peer.send_now(now));
                self.timeout(now);
            }
            (Input::Stop, Phase::Running) => {
                for node in self.nodes() {
                    self.drive(now, node, LinkInput::Stop);
                }
                self.peers.values_mut().for_each(Peer::stop);
                self.phase = Phase::Stopped;
            }
            (Input::Timeout, Phase::Running) => self.timeout(now),
            (Input::Message { node, bytes }, Phase::Running) => self.receive(now, node, bytes),
            (Input::Traffic { node, epoch }, Phase::Running) => {
                //= docs/fabric.md#5.7
                if self.frames_prove() {
                    self.drive(now, node, LinkInput::Traffic { epoch });
                }
            }
            (Input::Used { node }, Phase::Running) => self.used(now, node),
            (Input::Gone { node }, Phase::Running) => self.drive(now, node, LinkInput::Gone),
            (Input::Message { .. }, Phase::Idle | Phase::Stopped) => self.counters.one(Counter::RxStopped),
            (
                Input::Start
                | Input::Stop
                | Input::Timeout
                | Input::Traffic { .. }
                | Input::Used { .. }
                | Input::Gone { .. },
                Phase::Idle | Phase::Running | Phase::Stopped,
            ) => {}
        }
    }

    /// Changes what can be changed while it runs. The number of nodes can grow, not shrink.
    ///
    /// # Errors
    /// The first setting that is out of its range; nothing has changed then.
    pub fn set(&mut self, now: Time, settings: Settings) -> Result<(), OutOfRange> {
        settings.check()?;
        if settings.nodes < self.settings.nodes {
            let allowed = format!("{} to {}", self.settings.nodes, linkbraid_wire::fabric::NODES_MAX);
            return Err(OutOfRange { setting: "nodes", value: settings.nodes.to_string(), allowed });
        }
        let own = Own { offer: settings.offer(), fast_path: settings.fast_path, epoch: self.own.epoch };
        let before = std::mem::replace(&mut self.own, own);
        self.settings = settings;
        if self.own != before && self.phase == Phase::Running {
            for node in self.nodes() {
                self.drive(now, node, LinkInput::Changed);
            }
        }
        self.meet(now);
        if self.phase == Phase::Running {
            self.timeout(now);
        }
        Ok(())
    }

    /// When to hand in [`Input::Timeout`]; none while not running. Changes with every `handle` and `set`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.peers.values().filter_map(Peer::next).min()
    }

    /// What to do next; call it after every `handle` and `set` until it gives none.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Makes links to the peers there are none to yet.
    fn meet(&mut self, now: Time) {
        for node in (0..self.settings.nodes).filter(|node| *node != self.node) {
            let cookies = &mut self.cookies;
            let peer =
                self.peers.entry(node).or_insert_with(|| Peer::new(Link::new(&mut || cookies.next()), now));
            if self.phase == Phase::Running && peer.next().is_none() {
                peer.send_now(now);
            }
        }
    }

    fn nodes(&self) -> Vec<u16> {
        self.peers.keys().copied().collect()
    }

    fn timeout(&mut self, now: Time) {
        let late = self.poll_timeout().map_or(Duration::ZERO, |due| now.since(due));
        let interval = self.settings.interval();
        //= docs/fabric.md#5.10
        if late >= interval {
            self.counters.one(Counter::Late);
            self.peers.values_mut().for_each(|peer| peer.excuse(now + interval));
        }
        for node in self.nodes() {
            while let Some(due) = self.peers.get_mut(&node).and_then(|peer| peer.due(now)) {
                match due {
                    Due::Doubt => self.drive(now, node, LinkInput::Doubted),
                    Due::Expire => self.drive(now, node, LinkInput::Expired),
                    Due::Send => {
                        // It has said so, and when to speak next.
                        if self.fit_pace(now, node) {
                            continue;
                        }
                        let settings = &self.settings;
                        if let Some(fresh) =
                            self.peers.get_mut(&node).and_then(|peer| peer.asks(now, settings))
                        {
                            self.drive(now, node, LinkInput::Ask { fresh });
                        }
                        self.drive(now, node, LinkInput::Resend);
                        if let Some(peer) = self.peers.get_mut(&node) {
                            peer.said(now, &self.settings, &mut self.random);
                        }
                    }
                }
            }
        }
    }

    fn receive(&mut self, now: Time, node: u16, bytes: &[u8]) {
        //= docs/fabric.md#2.8
        let (header, control) = match parse_control(bytes) {
            Ok(read) => read,
            Err(refusal) => return self.counters.one(refusal.into()),
        };
        if !self.admit(now, (node, header.sender_epoch), bytes) {
            return;
        }
        //= docs/fabric.md#4.1
        if header.sender == self.node {
            return self.own_number(header.sender_epoch);
        }
        if header.receiver != self.node {
            return self.counters.one(Counter::OtherReceiver);
        }
        if header.sender != node {
            return self.counters.one(Counter::OtherSender);
        }
        let Some(peer) = self.peers.get_mut(&node) else {
            return self.counters.one(Counter::UnknownNode);
        };
        peer.heard = Some(now);
        let took = peer.answered(now, header.sender_epoch, &control);
        self.counters.one(Counter::received(control.kind));
        let message = LinkInput::Message { from: header.sender_epoch, to: header.receiver_epoch, control };
        self.drive(now, node, message);
        self.fit_pace(now, node);
        // It may have brought the link down: what it offers no longer fits.
        let up = self.verdict(node) == Some(Verdict::Up { epoch: header.sender_epoch });
        if let Some(took) = took.filter(|_| up) {
            self.act(Action::RoundTrip { node, took });
        }
    }

    /// Somebody speaks with our number: another node, or ourselves through a loop.
    fn own_number(&mut self, epoch: u64) {
        self.counters.one(Counter::OwnNumber);
        if epoch != self.own.epoch && self.own_number.replace(epoch) != Some(epoch) {
            self.act(Action::Event(Event::OwnNumber { epoch }));
        }
    }

    fn drive(&mut self, now: Time, node: u16, input: LinkInput) {
        let Some(peer) = self.peers.get_mut(&node) else {
            return self.counters.one(Counter::UnknownNode);
        };
        let mut old = peer.link.verdict();
        let mut effects = Vec::new();
        let cookies = &mut self.cookies;
        //= docs/fabric.md#4.4
        peer.link.handle(&peer.pace.own(&self.own), input, &mut || cookies.next(), &mut effects);
        for effect in effects {
            if let Some(peer) = self.peers.get_mut(&node) {
                peer.follow(now, &effect, &self.settings, &mut self.random);
            }
            self.perform(node, &mut old, effect);
        }
    }

    fn perform(&mut self, node: u16, old: &mut Verdict, effect: Effect) {
        match effect {
            Effect::Send(epoch, control) => {
                match emit_control((self.node, self.own.epoch), (node, epoch), &control) {
                    Ok(bytes) => {
                        if let Some(bytes) = self.seal(bytes) {
                            self.counters.one(Counter::sent(control.kind));
                            self.act(Action::Send { node, bytes });
                        }
                    }
                    // Settings are checked, so there is nothing that breaks a rule.
                    Err(_) => self.counters.one(Counter::TxFailed),
                }
            }
            Effect::Verdict(new) => {
                self.count_verdict(*old, new);
                self.up = self.up + u32::from(new.is_up()) - u32::from(old.is_up());
                self.act(Action::Link { node, old: *old, new });
                *old = new;
            }
            Effect::Duplicate { rival } => {
                self.counters.one(Counter::Duplicates);
                let Some(peer) = self.peers.get_mut(&node) else { return };
                let Some(epoch) = peer.link.peer().map(|known| known.epoch) else { return };
                if peer.told_rival.replace(rival) != Some(rival) {
                    self.act(Action::Event(Event::Duplicate { node, epoch, rival }));
                }
            }
            Effect::Count(counter) => self.counters.one(counter),
            Effect::Proof | Effect::Sign | Effect::Doubt | Effect::Hurry => {}
        }
    }

    fn count_verdict(&mut self, old: Verdict, new: Verdict) {
        let counter = match new {
            Verdict::Up { .. } => Counter::Ups,
            Verdict::Refused { .. } if old.is_up() => Counter::Disagreed,
            Verdict::Down(Down::Silent) => Counter::Silent,
            Verdict::Down(Down::Deaf) => Counter::Deaf,
            Verdict::Down(Down::Left) => Counter::Left,
            Verdict::Down(Down::Restarted) => Counter::Restarts,
            Verdict::Down(Down::Gone) => Counter::Gone,
            Verdict::Down(Down::Unheard | Down::Stopped) | Verdict::Refused { .. } => return,
        };
        self.counters.one(counter);
    }

    fn act(&mut self, action: Action) {
        if self.actions.len() >= limits::ACTIONS_MAX {
            return self.counters.one(Counter::LimitActions);
        }
        self.actions.push_back(action);
    }

    /// Number of this node.
    pub const fn node(&self) -> u16 {
        self.node
    }

    /// Its epoch.
    pub const fn epoch(&self) -> u64 {
        self.own.epoch
    }

    /// Whether it was started and not stopped.
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// What is held of a peer; none if there is no such peer.
    pub fn verdict(&self, node: u16) -> Option<Verdict> {
        self.peers.get(&node).map(|peer| peer.link.verdict())
    }

    /// What the data path needs of a link; none while it is not up.
    pub fn gate(&self, node: u16) -> Option<Gate> {
        let peer_epoch = self.peers.get(&node)?.link.peer()?.epoch;
        Some(Gate { local: self.node, local_epoch: self.own.epoch, peer: node, peer_epoch })
    }

    /// What a peer says of itself; none while it is not up.
    pub fn offer(&self, node: u16) -> Option<&Offer> {
        self.peers.get(&node)?.link.peer().map(|known| &known.offer)
    }

    /// Whether any peer is up: what the carrier of the interface follows.
    pub fn any_up(&self) -> bool {
        //= docs/fabric.md#6.5
        self.up > 0
    }

    /// All counters.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}
