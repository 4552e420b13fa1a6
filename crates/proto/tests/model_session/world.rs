//! The state of the model, what can happen in it, and what must hold.

use linkbraid_proto::session::{
    Gate, Verdict, Window,
    link::{Effect, Known, Link, LinkInput, Own},
};
use linkbraid_wire::fabric::{Control, ControlKind, Header, Offer, RefuseReason, Tag};
use stateright::{Model, Property};
use std::{
    collections::BTreeSet,
    hash::{Hash, Hasher},
};

/// Cookies of one link that are looked at while two live nodes have one number: up, in doubt, and both found.
const COOKIES_MAX: u64 = 4;

/// How much may happen.
#[derive(Debug, Clone)]
pub struct Fabric {
    /// Nodes of the fabric.
    pub numbers: u16,
    /// Whether a second live node claims number 0.
    pub twins: bool,
    /// Crashes and stops, all nodes together; each may be followed by a start.
    pub ends: u8,
    /// Only nodes below this number crash or stop.
    pub enders: u16,
    /// Whether they say goodbye, too.
    pub stops: bool,
    /// Times that a peer is presumed failed whatever is true, all nodes together.
    pub expiries: u8,
    /// Times that a node draws a new cookie though nothing has happened, all nodes together.
    pub asks: u8,
    /// Frames that a start sends to each start of a peer, on each of its streams.
    pub frames: u32,
    /// Queues of a node, each with a stream of its own.
    pub streams: u16,
    /// Whether nodes take frames over the fast path, too.
    pub fast_path: bool,
    /// Whether somebody who sees nothing sends whatever he likes in everybody's name.
    pub forger: bool,
}

/// The start in whose name a forger speaks: he knows those of no node, and no cookie.
const FORGED_EPOCH: u64 = 7;
const GUESSED: u64 = 8;

/// UDP port of the fast path.
const PORT: u16 = 4789;

/// A message on its way, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// From a number and epoch to a number, for that epoch of it.
    Control { from: (u16, u64), to: (u16, u64), control: Control },
    /// A frame.
    Data(Header),
    /// A frame over the fast path, between two numbers. It carries the tag and nothing else; by which start it was sent, and for which, is
    /// known to the model alone.
    FastPath { from: (u16, u64), to: (u16, u64), tag: Tag },
}

/// A link, and what it has been.
#[derive(Debug, Clone)]
pub struct End {
    pub peer: u16,
    pub link: Link,
    /// Cookies drawn: each link has its own, so that what happens on one does not tell states of another apart.
    cookies: u64,
    /// Every epoch of the peer that was up, in this order.
    pub epochs: Vec<u64>,
    /// What it remembers of each stream of the peer.
    pub windows: Vec<Window>,
    /// Whether the peer has proven itself since the last look; for `settle`.
    pub proven: bool,
}

/// What tells two states apart.
type Essence<'a> = (u16, (u64, Option<Tag>), Option<&'a Known>, Option<&'a Known>, &'a [u64], &'a [Window]);

impl End {
    /// What tells two states apart: all but why the link is down and whether the peer is deaf, which is told and never acted on.
    fn essence(&self) -> Essence<'_> {
        let End { peer, link, epochs, windows, .. } = self;
        (*peer, (link.cookie(), link.tag()), link.peer(), link.rival(), epochs, windows)
    }
}

impl PartialEq for End {
    fn eq(&self, other: &End) -> bool {
        self.essence() == other.essence()
    }
}

impl Eq for End {}

impl Hash for End {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.essence().hash(state);
    }
}

/// A node from a start to its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    pub number: u16,
    pub own: Own,
    pub ends: Vec<End>,
}

/// What must never be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Broken {
    pub twice: bool,
    pub wrong_node: bool,
    pub old_epoch: bool,
    pub epoch_came_back: bool,
    pub false_duplicate: bool,
}

/// The state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub live: Vec<Node>,
    pub network: BTreeSet<Message>,
    pub delivered: BTreeSet<Header>,
    pub starts: Vec<u64>,
    pub ends: u8,
    pub asks: u8,
    pub expiries: u8,
    pub broken: Broken,
    pub duplicate_found: bool,
    /// A frame was taken over the fast path.
    pub cut_short: bool,
}

/// What can happen. Nodes by place in `live`, links by place in `ends`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    Start(u16),
    Crash(usize),
    Stop(usize),
    Expire(usize, usize),
    Doubt(usize, usize),
    Ask(usize, usize),
    Deliver(usize, usize, Message),
}

impl Fabric {
    fn offer(&self) -> Offer {
        Offer { nodes: self.numbers, mtu: 1500, interval_us: 100_000, multiplier: 4, queues: 1, features: 0 }
    }

    /// What a forger says: every kind of message from every node to every other one, with offers that fit and such that do not.
    pub fn forged(&self) -> Vec<Message> {
        let pairs = (0..self.numbers).flat_map(|from| (0..self.numbers).map(move |to| (from, to)));
        let pairs = pairs.filter(|(from, to)| self.forger && from != to);
        let forge = |(from, to)| {
            ControlKind::ALL.into_iter().flat_map(move |kind| {
                [self.offer(), Offer { mtu: 1400, ..self.offer() }].map(|offer| {
                    let reason = (kind == ControlKind::Refuse).then_some(RefuseReason::Taken);
                    let (cookie, echo) = (GUESSED, if kind == ControlKind::Hello { 0 } else { GUESSED });
                    let control = Control { kind, reason, offer, cookie, number: 1, echo, fast_path: None };
                    Message::Control { from: (from, FORGED_EPOCH), to: (to, 0), control }
                })
            })
        };
        pairs.flat_map(forge).collect()
    }
}

impl Node {
    fn new(fabric: &Fabric, number: u16, epoch: u64) -> Node {
        let offer = fabric.offer();
        let end = |peer| {
            let mut cookies = 0;
            let link = Link::new(&mut || draw(epoch, peer, &mut cookies));
            let windows = vec![Window::default(); fabric.streams.into()];
            End { peer, link, cookies, epochs: Vec::new(), windows, proven: false }
        };
        let ends = (0..fabric.numbers).filter(|peer| *peer != number).map(end).collect();
        Node { number, own: Own { epoch, offer, fast_path: fabric.fast_path.then_some(PORT) }, ends }
    }

    pub fn gate(&self, at: usize) -> Option<Gate> {
        let end = &self.ends[at];
        let peer_epoch = end.link.peer()?.epoch;
        Some(Gate { local: self.number, local_epoch: self.own.epoch, peer: end.peer, peer_epoch })
    }
}

/// The same number in both halves: tags are made of both, and none is drawn twice either.
fn draw(epoch: u64, peer: u16, cookies: &mut u64) -> u64 {
    *cookies += 1;
    let number = (epoch * 10 + u64::from(peer)) * 1000 + *cookies;
    number << 32 | number
}

impl World {
    pub fn start(&mut self, fabric: &Fabric, number: u16) {
        let starts = &mut self.starts[usize::from(number)];
        *starts += 1;
        // Later starts have lower epochs.
        let epoch = (u64::from(number) + 1) * 100 - *starts;
        self.live.push(Node::new(fabric, number, epoch));
        self.live.sort_by_key(|node| node.own.epoch);
    }

    /// Tells a link something; what it says goes into the network. Gives it what else it wants.
    pub fn drive(&mut self, twins: bool, node: usize, at: usize, input: LinkInput) {
        let Node { number, own, ends } = &mut self.live[node];
        let end = &mut ends[at];
        let mut effects = Vec::new();
        end.link.handle(own, input, &mut || draw(own.epoch, end.peer, &mut end.cookies), &mut effects);
        for effect in effects {
            match effect {
                Effect::Send(to, control) => {
                    let (from, to) = ((*number, own.epoch), (end.peer, to));
                    self.network.insert(Message::Control { from, to, control });
                }
                Effect::Verdict(Verdict::Up { epoch }) if end.epochs.last() != Some(&epoch) => {
                    self.broken.epoch_came_back |= end.epochs.contains(&epoch);
                    end.epochs.push(epoch);
                    end.windows.fill(Window::default());
                }
                Effect::Duplicate { .. } => {
                    self.duplicate_found = true;
                    self.broken.false_duplicate |= !twins;
                }
                Effect::Proof => end.proven = true,
                Effect::Verdict(_) | Effect::Sign | Effect::Doubt | Effect::Hurry | Effect::Count(_) => {}
            }
        }
    }

    pub fn deliver(&mut self, twins: bool, node: usize, at: usize, message: &Message) {
        match message {
            Message::Control { from, to, control } => {
                let input = LinkInput::Message { from: from.1, to: to.1, control: *control };
                self.drive(twins, node, at, input);
            }
            Message::Data(header) => self.frame(node, at, header),
            Message::FastPath { from, to, tag } => self.cut_short(node, at, from.1, to.1, *tag),
        }
    }

    /// A frame comes over the fast path. Unlike one of a queue it may come twice.
    fn cut_short(&mut self, node: usize, at: usize, from: u64, to: u64, tag: Tag) {
        let Node { own, ends, .. } = &self.live[node];
        let end = &ends[at];
        if end.link.tag() != Some(tag) {
            return;
        }
        self.cut_short = true;
        let up = end.link.peer().map(|peer| peer.epoch);
        self.broken.old_epoch |= to != own.epoch || up != Some(from);
    }

    /// A frame comes out of a queue.
    fn frame(&mut self, node: usize, at: usize, header: &Header) {
        let Some(gate) = self.live[node].gate(at) else { return };
        let Node { number, own, ends, .. } = &mut self.live[node];
        let end = &mut ends[at];
        let window = &mut end.windows[usize::from(header.stream)];
        if gate.admit(header).is_err() || window.take(header.sequence).is_err() {
            return;
        }
        self.broken.twice |= !self.delivered.insert(*header);
        self.broken.wrong_node |= header.receiver != *number || header.sender != end.peer;
        self.broken.old_epoch |=
            header.receiver_epoch != own.epoch || end.epochs.last() != Some(&header.sender_epoch);
    }

    /// Whether that is for this link.
    fn is_for(&self, node: usize, at: usize, message: &Message) -> bool {
        let node = &self.live[node];
        match message {
            Message::Control { from, to, .. } => to.0 == node.number && from.0 == node.ends[at].peer,
            // That the addresses are those of the two is looked at before the tag.
            Message::FastPath { from, to, .. } => to.0 == node.number && from.0 == node.ends[at].peer,
            // A frame may come out of any queue of any node.
            Message::Data(_) => true,
        }
    }

    /// Whether a control message would make a link another one.
    fn changes(&self, node: usize, at: usize, message: &Message) -> bool {
        let Message::Control { from, to, control } = message else { return false };
        if !self.is_for(node, at, message) {
            return false;
        }
        let Node { own, ends, .. } = &self.live[node];
        let (mut link, mut cookies) = (ends[at].link.clone(), ends[at].cookies);
        let input = LinkInput::Message { from: from.1, to: to.1, control: *control };
        link.handle(own, input, &mut || draw(own.epoch, ends[at].peer, &mut cookies), &mut Vec::new());
        (link.cookie(), link.peer(), link.rival())
            != (ends[at].link.cookie(), ends[at].link.peer(), ends[at].link.rival())
    }

    pub fn links(&self) -> Vec<(usize, usize)> {
        let links = |(place, node): (usize, &Node)| (0..node.ends.len()).map(move |at| (place, at));
        self.live.iter().enumerate().flat_map(links).collect()
    }

    /// Says everything that may be said now, and hears everything that changes no link. A message in the network may
    /// still never be heard, so that hides no course of events; but it leaves far fewer of them to tell apart. Frames
    /// are delivered as soon as they may be, and offered again in every later state.
    fn saturate(&mut self, fabric: &Fabric) {
        for (place, at) in self.links() {
            self.drive(fabric.twins, place, at, LinkInput::Resend);
            if let Some(gate) = self.live[place].gate(at) {
                let frames = |stream| (0..fabric.frames).map(move |number| gate.header(stream, number, 100));
                self.network.extend((0..fabric.streams).flat_map(frames).map(Message::Data));
                // Whether the peer has heard a question (7.7) or not: that can only send fewer.
                let peer = self.live[place].ends[at].link.peer();
                let fast_path = peer.and_then(|peer| peer.fast_path);
                let (from, to) = ((gate.local, gate.local_epoch), (gate.peer, gate.peer_epoch));
                self.network.extend(fast_path.map(|cut| Message::FastPath { from, to, tag: cut.tag }));
            }
        }
        // What is for a start that has ended is ignored for ever, and a HELLO of one only answered. Frames stay: that they
        // do no harm is what is to be shown.
        let live: Vec<u64> = self.live.iter().map(|node| node.own.epoch).collect();
        self.network.retain(|message| match message {
            Message::Control { from, .. } if from.1 == FORGED_EPOCH => true,
            Message::Control { from, to, .. } => live.contains(&if to.1 == 0 { from.1 } else { to.1 }),
            Message::Data(_) | Message::FastPath { .. } => true,
        });
        let mut heard = BTreeSet::new();
        while heard.len() < self.network.len() {
            let unheard: Vec<Message> = self.network.difference(&heard).copied().collect();
            for message in unheard {
                for (place, at) in self.links() {
                    let harmless = self.is_for(place, at, &message) && !self.changes(place, at, &message);
                    if harmless {
                        self.deliver(fabric.twins, place, at, &message);
                    }
                }
                heard.insert(message);
            }
        }
        self.live.iter_mut().flat_map(|node| &mut node.ends).for_each(|end| end.proven = false);
    }

    /// For every queue: live nodes that write it and are read, live nodes that read what one of them writes.
    fn one_owner(&self) -> bool {
        let gates = || self.live.iter().flat_map(|node| (0..node.ends.len()).filter_map(|at| node.gate(at)));
        gates().all(|mine| {
            let header = mine.header(0, 0, 100);
            // Who reads what we write: by number and by admission.
            let readers =
                gates().filter(|gate| gate.local == mine.peer && gate.admit(&header).is_ok()).count();
            let writes = |gate: &Gate| gate.local == mine.peer && mine.admit(&gate.header(0, 0, 100)).is_ok();
            let writers = gates().filter(writes).count();
            readers <= 1 && writers <= 1
        })
    }
}

impl Model for Fabric {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let mut world = World {
            live: Vec::new(),
            network: self.forged().into_iter().collect(),
            delivered: BTreeSet::new(),
            starts: vec![0; usize::from(self.numbers)],
            ends: self.ends,
            expiries: self.expiries,
            asks: self.asks,
            broken: Broken::default(),
            duplicate_found: false,
            cut_short: false,
        };
        if self.twins {
            world.start(self, 0);
        }
        (0..self.numbers).for_each(|number| world.start(self, number));
        world.saturate(self);
        vec![world]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        for number in 0..self.numbers {
            if world.live.iter().all(|node| node.number != number) {
                steps.push(Step::Start(number));
            }
        }
        for (place, node) in world.live.iter().enumerate() {
            if world.ends > 0 && node.number < self.enders {
                steps.push(Step::Crash(place));
                if self.stops {
                    steps.push(Step::Stop(place));
                }
            }
            for (at, end) in node.ends.iter().enumerate() {
                if end.link.peer().is_some() {
                    // A peer that has ended is found to have failed whatever the budget.
                    let ended = |epoch| world.live.iter().all(|other| other.own.epoch != epoch);
                    if world.expiries > 0 || end.link.peer().is_some_and(|peer| ended(peer.epoch)) {
                        steps.push(Step::Expire(place, at));
                    }
                    if end.link.rival().is_some() {
                        steps.push(Step::Doubt(place, at));
                    } else if world.asks > 0 {
                        steps.push(Step::Ask(place, at));
                    }
                }
                for message in &world.network {
                    if world.changes(place, at, message) {
                        steps.push(Step::Deliver(place, at, *message));
                    }
                }
            }
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        match step {
            Step::Start(number) => next.start(self, number),
            Step::Crash(place) => {
                next.ends -= 1;
                next.live.remove(place);
            }
            Step::Stop(place) => {
                next.ends -= 1;
                (0..next.live[place].ends.len())
                    .for_each(|at| next.drive(self.twins, place, at, LinkInput::Stop));
                next.live.remove(place);
            }
            Step::Expire(place, at) => {
                let epoch = world.live[place].ends[at].link.peer().map(|peer| peer.epoch);
                let lives = world.live.iter().any(|node| Some(node.own.epoch) == epoch);
                next.expiries -= u8::from(lives);
                next.drive(self.twins, place, at, LinkInput::Expired);
            }
            Step::Ask(place, at) => {
                next.asks -= 1;
                next.drive(self.twins, place, at, LinkInput::Ask { fresh: true });
            }
            Step::Doubt(place, at) => next.drive(self.twins, place, at, LinkInput::Doubted),
            Step::Deliver(place, at, message) => next.deliver(self.twins, place, at, &message),
        }
        next.saturate(self);
        (next != *world).then_some(next)
    }

    /// Two that live find each other again and again; the rest needs no bound.
    fn within_boundary(&self, world: &World) -> bool {
        !self.twins || world.live.iter().flat_map(|node| &node.ends).all(|end| end.cookies <= COOKIES_MAX)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::<Self>::always("a queue has one writer and one reader", |_, world| world.one_owner()),
            Property::<Self>::always("a frame comes once", |_, world| !world.broken.twice),
            Property::<Self>::always("to the right node", |_, world| !world.broken.wrong_node),
            Property::<Self>::always("and not from an old epoch", |_, world| !world.broken.old_epoch),
            Property::<Self>::always("an epoch that went does not come back", |_, world| {
                !world.broken.epoch_came_back
            }),
            Property::<Self>::always("nobody is found twice who is not", |_, world| {
                !world.broken.false_duplicate
            }),
            Property::<Self>::always("who lives connects", |fabric, world| world.settles(fabric)),
            Property::<Self>::sometimes("all are up", |_, world| world.all_up()),
        ];
        if self.frames > 0 {
            properties
                .push(Property::<Self>::sometimes("frames arrive", |_, world| !world.delivered.is_empty()));
        }
        if self.fast_path {
            properties.push(Property::<Self>::sometimes("frames arrive over the fast path", |_, world| {
                world.cut_short
            }));
        }
        if self.twins {
            properties.push(Property::<Self>::sometimes("two with one number are found", |_, world| {
                world.duplicate_found
            }));
        }
        properties
    }
}
