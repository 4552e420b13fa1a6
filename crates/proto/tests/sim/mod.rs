//! Hosts on switches that lose, delay and duplicate, on a fake clock. One seed, one course of events.

pub use super::network::Weather;
use super::{
    hosts::{id, mac},
    network::{Network, millis},
};
use linkbraid_proto::{Time, arp_plus::*};
use linkbraid_wire::{Class, FEATURE_INTERVALS, Frame, Kind, MacAddr, emit_frame, parse_frame};
use std::{collections::BTreeMap, net::IpAddr, rc::Rc, time::Duration};

pub const FAIR: Weather = Weather::new(0, 0, [5, 50]);
pub const BAD: Weather = Weather::new(20, 5, [5, 30_000]);

/// Numbers of hosts that one stands for are so far apart: no more hosts are there.
const STRIDE: usize = 256;
/// What the next one says is said so much later.
const COPY_LATER: Duration = Duration::from_micros(300);

/// One host and what is true of it.
pub struct Host {
    pub arp: ArpPlus,
    pub epoch: u64,
    pub members: Vec<OwnMember>,
    pub addresses: Vec<IpAddr>,
    pub classes: Vec<Class>,
    pub features: u32,
    /// The switch of each slot.
    switches: BTreeMap<u8, u8>,
    pub running: bool,
    /// How many hosts it stands for ([`World::stand_for`]).
    copies: usize,
    wake: Option<Time>,
    /// When each MAC was heard.
    heard: BTreeMap<MacAddr, Time>,
    pub events: Vec<Event>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    Wake(usize),
    Deliver { host: usize, slot: u8, frame: Rc<[u8]> },
}

pub struct World {
    pub network: Network<Due>,
    pub hosts: Vec<Host>,
    /// Frames that hosts heard from others.
    pub heard: u64,
    /// Frames sent by kind.
    pub sent: BTreeMap<Kind, u64>,
}

impl World {
    pub fn new(seed: u64, weather: Weather) -> World {
        World { network: Network::new(seed, weather), hosts: Vec::new(), heard: 0, sent: BTreeMap::new() }
    }

    pub fn now(&self) -> Time {
        self.network.now
    }

    /// A number below `limit`.
    pub fn random(&mut self, limit: u64) -> u64 {
        self.network.random(limit)
    }

    /// A host that does not run yet, with a member on each of these switches.
    pub fn add(&mut self, switches: &[u8]) -> usize {
        let number = self.hosts.len();
        let member = |slot| OwnMember {
            slot,
            mac: mac(number, slot),
            up: true,
            sound: true,
            joining: false,
            weight_mbit: 100,
            class: 0,
        };
        let mut host = Host {
            arp: machine(number, 1, self.random(u64::MAX)),
            epoch: 1,
            members: (0..switches.len() as u8).map(member).collect(),
            addresses: vec![address(number)],
            classes: Vec::new(),
            features: 0,
            switches: (0..).zip(switches.iter().copied()).collect(),
            running: false,
            copies: 1,
            wake: None,
            heard: BTreeMap::new(),
            events: Vec::new(),
        };
        host.arp.handle(self.network.now, Input::Members(host.members.clone()));
        host.arp.handle(self.network.now, Input::Addresses(host.addresses.clone()));
        self.hosts.push(host);
        number
    }

    /// From now on this host stands for so many: the others say what it says, as hosts of their own, a little later each. So
    /// each machine has the company of a large network, and only a part of that network's machines is there.
    pub fn stand_for(&mut self, host: usize, copies: usize) {
        assert!(copies == 1 || host < STRIDE && STRIDE * copies < usize::from(u16::MAX));
        self.hosts[host].copies = copies;
    }

    /// Puts the cables of a host into these switches, without any loss of carrier.
    pub fn plug(&mut self, host: usize, switches: &[u8]) {
        self.hosts[host].switches = (0..).zip(switches.iter().copied()).collect();
    }

    pub fn start(&mut self, host: usize) {
        self.hosts[host].running = true;
        self.input(host, Input::Start);
    }

    pub fn stop(&mut self, host: usize) {
        self.hosts[host].running = false;
        self.input(host, Input::Stop);
    }

    /// Dies without a word.
    pub fn kill(&mut self, host: usize) {
        let seed = self.random(u64::MAX);
        let old = &mut self.hosts[host];
        old.running = false;
        old.wake = None;
        old.epoch += 1;
        old.arp = machine(host, old.epoch, seed);
        old.arp.handle(self.network.now, Input::Classes(old.classes.clone()));
        old.arp.handle(self.network.now, Input::Features(old.features));
        old.arp.handle(self.network.now, Input::Members(old.members.clone()));
        old.arp.handle(self.network.now, Input::Addresses(old.addresses.clone()));
    }

    pub fn set_members(&mut self, host: usize, members: Vec<OwnMember>) {
        self.hosts[host].members.clone_from(&members);
        self.input(host, Input::Members(members));
    }

    pub fn set_addresses(&mut self, host: usize, addresses: Vec<IpAddr>) {
        self.hosts[host].addresses.clone_from(&addresses);
        self.input(host, Input::Addresses(addresses));
    }

    /// Classes and features from now on.
    pub fn set_classes(&mut self, host: usize, mut classes: Vec<Class>, features: u32) {
        classes.sort();
        self.hosts[host].classes.clone_from(&classes);
        self.hosts[host].features = features;
        self.input(host, Input::Classes(classes));
        self.input(host, Input::Features(features));
    }

    fn input(&mut self, host: usize, input: Input<'_>) {
        self.hosts[host].arp.handle(self.network.now, input);
        while let Some(action) = self.hosts[host].arp.poll_action() {
            match action {
                Action::Send { slot, frame } => self.carry(host, slot, &frame.into()),
                Action::Event(event) => self.hosts[host].events.push(event),
                Action::Peers(_) | Action::Segments | Action::Guests | Action::Challenge(_) => {}
            }
        }
        let wake = self.hosts[host].arp.poll_timeout();
        if wake != self.hosts[host].wake {
            self.hosts[host].wake = wake;
            if let Some(at) = wake {
                self.network.at(at, Due::Wake(host));
            }
        }
    }

    /// A switch: to the owner of the MAC, or to every port but the one it came from.
    fn carry(&mut self, from: usize, slot: u8, bytes: &Rc<[u8]>) {
        let frame = parse_frame(bytes).expect("a machine sends good frames");
        *self.sent.entry(frame.parsed.message.kind).or_default() += 1;
        let World { network, hosts, heard, .. } = self;
        let switch = hosts[from].switches[&slot];
        for copy in 0..hosts[from].copies {
            let bytes = if copy == 0 { bytes.clone() } else { said_by(&frame, from + copy * STRIDE) };
            let mut reach = |to: usize, host: &Host, port: u8| {
                let there = host.switches.get(&port) == Some(&switch) && (to, port) != (from, slot);
                let owns = host.members.iter().any(|member| member.slot == port && member.up);
                if there && owns && host.running {
                    *heard += u64::from(to != from || copy > 0);
                    let due = Due::Deliver { host: to, slot: port, frame: bytes.clone() };
                    network.carry(COPY_LATER * copy as u32, &due);
                }
            };
            if !frame.dst.is_multicast() {
                let (to, port) = owner(frame.dst).expect("a host's");
                // What is said to others than the hosts that there are is said, and nobody hears it.
                if to < hosts.len() && (copy == 0 || to != from) {
                    reach(to, &hosts[to], port);
                }
                continue;
            }
            for (to, host) in hosts.iter().enumerate() {
                host.switches.keys().for_each(|port| reach(to, host, *port));
            }
        }
    }

    /// Whether the data path has heard the sender before (7.13); only of interest where there are hundreds of hosts.
    fn is_heard_again(&mut self, host: usize, src: MacAddr) -> bool {
        if self.hosts[host].features & FEATURE_INTERVALS == 0 {
            return false;
        }
        let (now, before) = (self.now(), self.hosts[host].heard.get(&src).copied());
        let age = before.map(|before| now.since(before));
        if age.is_none_or(|age| age >= millis(67)) {
            self.hosts[host].heard.insert(src, now);
        }
        age.is_some_and(|age| age >= millis(67) && age <= millis(2500))
    }

    /// Who may announce itself seldom is probed, too: its first message is as good as proven.
    fn prove(&mut self, host: usize, src: MacAddr) {
        if self.hosts[host].features & FEATURE_INTERVALS == 0 {
            return;
        }
        let (sender, _) = owner(src).expect("a host's");
        let key = PeerKey::Host(id(sender));
        if self.hosts[host].arp.peer(&key).is_some_and(|peer| !peer.answers) {
            self.input(host, Input::Proven { peer: key, mac: src, asked: self.now() });
        }
    }

    /// Lets everything happen that is due until then.
    pub fn run(&mut self, duration: Duration) {
        let end = self.now() + duration;
        while let Some(due) = self.network.next(end) {
            match due {
                Due::Wake(host) if self.hosts[host].wake == Some(self.now()) => {
                    self.hosts[host].wake = None;
                    self.input(host, Input::Timeout);
                }
                Due::Deliver { host, slot, frame } if self.hosts[host].running => {
                    let src = MacAddr(*frame[6..].first_chunk().expect("a whole frame"));
                    let heard_again = self.is_heard_again(host, src);
                    self.input(host, Input::Frame { slot, bytes: &frame, heard_again });
                    self.prove(host, src);
                }
                Due::Wake(_) | Due::Deliver { .. } => {}
            }
        }
    }

    /// Runs until all tables are true; how long it took.
    pub fn run_until_true(&mut self, deadline: Duration) -> Duration {
        let began = self.network.now;
        while let Err(wrong) = self.check() {
            assert!(
                self.network.now.since(began) < deadline,
                "after {:?}: {wrong}",
                self.network.now.since(began)
            );
            self.run(millis(50));
        }
        self.network.now.since(began)
    }

    /// Whether every running host knows every other one as it is, and nobody else.
    pub fn check(&self) -> Result<(), String> {
        let running: Vec<usize> = (0..self.hosts.len()).filter(|host| self.hosts[*host].running).collect();
        let copies = |host: usize| (0..self.hosts[host].copies).map(move |copy| (host, host + copy * STRIDE));
        let all: Vec<(usize, usize)> = running.iter().flat_map(|host| copies(*host)).collect();
        for at in &running {
            for (like, other) in all.iter().filter(|(_, other)| other != at) {
                let truth = &self.hosts[*like];
                let peer = self.hosts[*at]
                    .arp
                    .peer(&PeerKey::Host(id(*other)))
                    .ok_or_else(|| format!("{at} misses {other}"))?;
                let told: Vec<_> = peer
                    .members
                    .iter()
                    .map(|member| (member.index, member.mac, member.up, member.class))
                    .collect();
                let members: Vec<_> = truth
                    .members
                    .iter()
                    .map(|member| (member.slot, copied(member.mac, *other), member.up, member.class))
                    .collect();
                let same = peer.state == PeerState::Alive
                    && peer.epoch == Some(truth.epoch)
                    && told == members
                    && (like != other && peer.addresses == [address(*other)]
                        || peer.addresses == truth.addresses)
                    && peer.classes == truth.classes
                    && peer.features == truth.features;
                if !same {
                    return Err(format!("{at} has of {other}: {peer:?}, true is {members:?}"));
                }
            }
            let (have, want) = (self.hosts[*at].arp.peers().len(), all.len() - 1);
            if have != want {
                return Err(format!("{at} has {have} hosts instead of {want}"));
            }
        }
        Ok(())
    }

    pub fn total_sent(&self) -> u64 {
        self.sent.values().sum()
    }
}

/// That MAC as the host of that number has it.
fn copied(address: MacAddr, number: usize) -> MacAddr {
    let (_, slot) = owner(address).expect("a host's");
    mac(number, slot)
}

fn address(number: usize) -> IpAddr {
    let [.., high, low] = (number as u32 + 1).to_be_bytes();
    IpAddr::from([198, 18, high, low])
}

/// What a host says, as another one of that number would.
fn said_by(frame: &Frame, number: usize) -> Rc<[u8]> {
    let mut message = frame.parsed.message.clone();
    message.address = Some(address(number));
    message.hardware.iter_mut().for_each(|hardware| *hardware = copied(*hardware, number));
    message.extension.as_mut().expect("a host of ours").host = id(number);
    emit_frame(frame.dst, copied(frame.src, number), &message).expect("a good message").into()
}

fn machine(host: usize, epoch: u64, seed: u64) -> ArpPlus {
    ArpPlus::new(Config::new(id(host), epoch), seed)
}

/// Whose MAC it is, and of which slot; none: of no host.
fn owner(address: MacAddr) -> Option<(usize, u8)> {
    let MacAddr([_, _, _, high, low, slot]) = address;
    let host = u16::from_be_bytes([high, low]).into();
    (mac(host, slot) == address).then_some((host, slot))
}
