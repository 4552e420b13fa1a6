//! Nodes of a fabric over a network that loses, delays, reorders and duplicates, on a fake clock. One seed, one course of
//! events. Frames flow over every link that is up, and each one that is delivered is checked.

mod hostile;

use super::network::{Network, Weather, millis};
use hostile::Hostile;
use linkbraid_proto::{Time, auth, session::*};
use linkbraid_wire::fabric::Header;
use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

pub const FAIR: Weather = Weather::new(0, 0, [5, 50]);
pub const BAD: Weather = Weather::new(20, 10, [5, 30_000]);

/// One start of a node.
pub struct Node {
    pub number: u16,
    pub session: Session,
    pub started: Time,
    /// When a frame of each peer was first delivered.
    pub first_frame: BTreeMap<u16, Time>,
    pub links: Vec<(Time, u16, Verdict)>,
    pub events: Vec<Event>,
    wake: Option<Time>,
    sequence: BTreeMap<u16, u32>,
    /// What came of each peer: the epoch, and its sequences.
    windows: BTreeMap<u16, (u64, Window)>,
    delivered: BTreeSet<(u64, u32)>,
    past: BTreeMap<u16, Vec<u64>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    /// A timer of a start.
    Wake(u64),
    /// A start sends a frame to every peer.
    Frames(u64),
    Control {
        from: u16,
        to: u16,
        bytes: Rc<[u8]>,
    },
    Frame {
        to: u16,
        header: Header,
    },
    /// Somebody who has no key sends something.
    Attack,
}

pub struct World {
    pub network: Network<Due>,
    /// Live starts by epoch.
    pub live: BTreeMap<u64, Node>,
    pub settings: Settings,
    /// The keys of nodes that start from now on.
    auth: auth::Settings,
    pub hostile: Option<Hostile>,
    /// Pairs (from, to) between which nothing passes.
    pub cut: BTreeSet<(u16, u16)>,
    /// Control messages sent, frames sent and delivered.
    pub said: u64,
    pub sent: u64,
    pub taken: u64,
    epochs: u64,
}

impl World {
    pub fn new(seed: u64, weather: Weather, settings: Settings) -> World {
        World {
            network: Network::new(seed, weather),
            live: BTreeMap::new(),
            settings,
            auth: auth::Settings::default(),
            hostile: None,
            cut: BTreeSet::new(),
            said: 0,
            sent: 0,
            taken: 0,
            // Epochs get smaller: clocks go back.
            epochs: 1 << 40,
        }
    }

    pub fn now(&self) -> Time {
        self.network.now
    }

    pub fn random(&mut self, limit: u64) -> u64 {
        self.network.random(limit)
    }

    /// Starts a node; its epoch.
    pub fn start(&mut self, number: u16) -> u64 {
        self.epochs -= 1 + self.random(100);
        let epoch = self.epochs;
        let config = Config { node: number, epoch, settings: self.settings };
        let seed = self.random(u64::MAX);
        let secret = Secret::new(u128::from(epoch ^ seed).to_be_bytes());
        let mut session = Session::new(config, epoch ^ seed, secret).expect("good settings");
        session.set_auth(self.network.now, self.auth.clone());
        let node = Node {
            number,
            session,
            started: self.network.now,
            first_frame: BTreeMap::new(),
            links: Vec::new(),
            events: Vec::new(),
            wake: None,
            sequence: BTreeMap::new(),
            windows: BTreeMap::new(),
            delivered: BTreeSet::new(),
            past: BTreeMap::new(),
        };
        self.live.insert(epoch, node);
        self.input(epoch, Input::Start);
        self.network.after(Duration::ZERO, Due::Frames(epoch));
        epoch
    }

    pub fn kill(&mut self, epoch: u64) {
        self.live.remove(&epoch);
    }

    pub fn stop(&mut self, epoch: u64) {
        self.input(epoch, Input::Stop);
        self.live.remove(&epoch);
    }

    /// The epochs of the live starts of a number.
    pub fn of(&self, number: u16) -> Vec<u64> {
        let of = |(epoch, node): (&u64, &Node)| (node.number == number).then_some(*epoch);
        self.live.iter().filter_map(of).collect()
    }

    pub fn input(&mut self, epoch: u64, input: Input<'_>) {
        let Some(node) = self.live.get_mut(&epoch) else { return };
        node.session.handle(self.network.now, input);
        self.drain(epoch);
    }

    pub fn set(&mut self, epoch: u64, settings: Settings) {
        let now = self.network.now;
        let node = self.live.get_mut(&epoch).expect("it lives");
        node.session.set(now, settings).expect("good settings");
        self.drain(epoch);
    }

    fn drain(&mut self, epoch: u64) {
        let now = self.network.now;
        let node = self.live.get_mut(&epoch).expect("it lives");
        let from = node.number;
        let mut out = Vec::new();
        while let Some(action) = node.session.poll_action() {
            match action {
                Action::Send { node: to, bytes } => out.push((to, bytes)),
                Action::Link { node: peer, old: _, new } => {
                    node.links.push((now, peer, new));
                    if let Verdict::Up { epoch } = new {
                        let past = node.past.entry(peer).or_default();
                        assert!(past.last() == Some(&epoch) || !past.contains(&epoch), "an epoch came back");
                        past.push(epoch);
                    }
                }
                Action::RoundTrip { took, .. } => assert!(!took.is_zero(), "nothing is quicker than light"),
                Action::Event(event) => node.events.push(event),
            }
        }
        let wake = node.session.poll_timeout();
        // A message may come at the very time of a timer, which runs out next.
        assert!(wake.is_none_or(|at| at > now) || wake == node.wake, "what is due is done");
        if wake != node.wake {
            node.wake = wake;
            if let Some(at) = wake {
                self.network.at(at, Due::Wake(epoch));
            }
        }
        for (to, bytes) in out {
            self.said += 1;
            let bytes: Rc<[u8]> = bytes[..].into();
            self.record(from, to, &bytes);
            self.carry(from, to, Due::Control { from, to, bytes });
        }
    }

    fn carry(&mut self, from: u16, to: u16, due: Due) {
        if !self.cut.contains(&(from, to)) {
            self.network.carry(Duration::ZERO, &due);
        }
    }

    /// A frame to every peer that is up, and again in 10 ms.
    fn frames(&mut self, epoch: u64) {
        let Some(node) = self.live.get_mut(&epoch) else { return };
        let mut out = Vec::new();
        for peer in 0..self.settings.nodes {
            let Some(gate) = node.session.gate(peer) else { continue };
            let sequence = node.sequence.entry(peer).or_default();
            *sequence = sequence.wrapping_add(1);
            out.push((peer, gate.header(0, *sequence, 100)));
        }
        let from = node.number;
        for (to, header) in out {
            self.sent += 1;
            self.carry(from, to, Due::Frame { to, header });
        }
        self.network.after(millis(10), Due::Frames(epoch));
    }

    fn frame(&mut self, epoch: u64, header: &Header) {
        let now = self.network.now;
        let Some(node) = self.live.get_mut(&epoch) else { return };
        let Some(gate) = node.session.gate(header.sender) else { return };
        if gate.admit(header).is_err() {
            return;
        }
        let (known, window) =
            node.windows.entry(header.sender).or_insert_with(|| (gate.peer_epoch, Window::default()));
        if *known != gate.peer_epoch {
            (*known, *window) = (gate.peer_epoch, Window::default());
        }
        if window.take(header.sequence).is_err() {
            return;
        }
        assert!(node.delivered.insert((header.sender_epoch, header.sequence)), "a frame came twice");
        assert_eq!(header.receiver_epoch, epoch, "for another start");
        assert_eq!(header.receiver, node.number, "for another node");
        let last = node.past[&header.sender].last();
        assert_eq!(last, Some(&header.sender_epoch), "of an old epoch");
        node.first_frame.entry(header.sender).or_insert(now);
        self.taken += 1;
    }

    /// Lets everything happen that is due until then.
    pub fn run(&mut self, duration: Duration) {
        let end = self.now() + duration;
        while let Some(due) = self.network.next(end) {
            match due {
                Due::Wake(epoch) => {
                    let now = self.now();
                    if let Some(node) = self.live.get_mut(&epoch).filter(|node| node.wake == Some(now)) {
                        node.wake = None;
                        self.input(epoch, Input::Timeout);
                    }
                }
                Due::Frames(epoch) => self.frames(epoch),
                Due::Attack => self.attack(),
                Due::Control { from, to, bytes } => {
                    for epoch in self.of(to) {
                        self.input(epoch, Input::Message { node: from, bytes: &bytes });
                    }
                }
                Due::Frame { to, header } => {
                    self.of(to).into_iter().for_each(|epoch| self.frame(epoch, &header));
                }
            }
        }
    }

    /// Whether every live pair is up, and nobody else.
    pub fn check(&self) -> Result<(), String> {
        for node in self.live.values() {
            for peer in (0..self.settings.nodes).filter(|peer| *peer != node.number) {
                let is = node.session.gate(peer).map(|gate| gate.peer_epoch);
                if is != self.of(peer).first().copied() {
                    let verdict = node.session.verdict(peer);
                    return Err(format!(
                        "{} has of {peer}: {verdict:?}, lives {:?}",
                        node.number,
                        self.of(peer)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Runs until all links are true; how long it took.
    pub fn run_until_true(&mut self, deadline: Duration) -> Duration {
        let began = self.network.now;
        while let Err(wrong) = self.check() {
            assert!(
                self.network.now.since(began) < deadline,
                "after {:?}: {wrong}",
                self.network.now.since(began)
            );
            self.run(millis(1));
        }
        self.network.now.since(began)
    }
}
