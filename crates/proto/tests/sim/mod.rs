//! Hosts on switches that lose, delay and duplicate, on a fake clock. One seed, one course of events.

use super::events::{Queue, millis};
use linkbraid_proto::{Time, arp_plus::*};
use linkbraid_wire::{Class, HostId, Kind, MacAddr, parse_frame};
use std::{collections::BTreeMap, net::IpAddr, rc::Rc, time::Duration};

/// What the cables and switches do to a frame on its way to one receiver.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// Percent that get lost.
    pub loss: u64,
    /// Percent that come twice.
    pub duplicates: u64,
    /// Delays lie between 5 us and this; frames overtake each other within it.
    pub delay_max: Duration,
}

impl Weather {
    pub const FAIR: Weather = Weather { loss: 0, duplicates: 0, delay_max: Duration::from_micros(50) };
    pub const BAD: Weather = Weather { loss: 20, duplicates: 5, delay_max: Duration::from_millis(30) };
}

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
    wake: Option<Time>,
    pub events: Vec<Event>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Wake(usize),
    Deliver { host: usize, slot: u8, frame: Rc<[u8]> },
}

pub struct World {
    queue: Queue<Due>,
    pub hosts: Vec<Host>,
    pub weather: Weather,
    /// Switches that forward nothing.
    pub dead: Vec<u8>,
    /// Frames sent by kind.
    pub sent: BTreeMap<Kind, u64>,
    /// A hash of everything that was sent, by whom and when.
    pub trace: u64,
}

pub fn mac(host: usize, slot: u8) -> MacAddr {
    let [.., high, low] = (host as u32).to_be_bytes();
    MacAddr([2, 0, 0, high, low, slot])
}

pub fn key(host: usize) -> PeerKey {
    let mut id = [0xB0; 16];
    id[..8].copy_from_slice(&(host as u64).to_be_bytes());
    PeerKey::Host(HostId(id))
}

impl World {
    pub fn new(seed: u64, weather: Weather) -> World {
        World {
            queue: Queue::new(seed),
            hosts: Vec::new(),
            weather,
            dead: Vec::new(),
            sent: BTreeMap::new(),
            trace: 0,
        }
    }

    pub fn now(&self) -> Time {
        self.queue.now
    }

    /// A number below `limit`.
    pub fn random(&mut self, limit: u64) -> u64 {
        self.queue.random(limit)
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
        let [.., high, low] = (number as u32 + 1).to_be_bytes();
        let mut host = Host {
            arp: machine(number, 1, self.random(u64::MAX)),
            epoch: 1,
            members: (0..switches.len() as u8).map(member).collect(),
            addresses: vec![IpAddr::from([198, 18, high, low])],
            classes: Vec::new(),
            features: 0,
            switches: (0..).zip(switches.iter().copied()).collect(),
            running: false,
            wake: None,
            events: Vec::new(),
        };
        host.arp.handle(self.queue.now, Input::Members(host.members.clone()));
        host.arp.handle(self.queue.now, Input::Addresses(host.addresses.clone()));
        self.hosts.push(host);
        number
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
        let dead = &mut self.hosts[host];
        dead.running = false;
        dead.wake = None;
        dead.epoch += 1;
        dead.arp = machine(host, dead.epoch, seed);
        dead.arp.handle(self.queue.now, Input::Classes(dead.classes.clone()));
        dead.arp.handle(self.queue.now, Input::Features(dead.features));
        dead.arp.handle(self.queue.now, Input::Members(dead.members.clone()));
        dead.arp.handle(self.queue.now, Input::Addresses(dead.addresses.clone()));
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
        self.hosts[host].arp.handle(self.queue.now, input);
        while let Some(action) = self.hosts[host].arp.poll_action() {
            match action {
                Action::Send { slot, frame } => self.carry(host, slot, &frame.into()),
                Action::Event(event) => self.hosts[host].events.push(event),
                Action::Peers(_) | Action::Segments => {}
            }
        }
        let wake = self.hosts[host].arp.poll_timeout();
        if wake != self.hosts[host].wake {
            self.hosts[host].wake = wake;
            if let Some(at) = wake {
                self.queue.at(at, Due::Wake(host));
            }
        }
    }

    /// A switch: to the owner of the MAC, or to every port but the one it came from.
    fn carry(&mut self, from: usize, slot: u8, bytes: &Rc<[u8]>) {
        let frame = parse_frame(bytes).expect("a machine sends good frames");
        *self.sent.entry(frame.parsed.message.kind).or_default() += 1;
        for byte in bytes.iter().chain(&self.queue.now.0.to_be_bytes()).chain(&[from as u8, slot]) {
            self.trace = (self.trace ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let switch = self.hosts[from].switches[&slot];
        if self.dead.contains(&switch) {
            return;
        }
        for to in 0..self.hosts.len() {
            for (port, at) in self.hosts[to].switches.clone() {
                let there = at == switch && (to, port) != (from, slot);
                let wanted = frame.dst.is_multicast() || frame.dst == mac(to, port);
                let owns = self.hosts[to].members.iter().any(|member| member.slot == port && member.up);
                if there && wanted && owns && self.hosts[to].running {
                    self.cable(to, port, bytes);
                }
            }
        }
    }

    fn cable(&mut self, host: usize, slot: u8, bytes: &Rc<[u8]>) {
        let weather = self.weather;
        let copies = match self.random(100) {
            roll if roll < weather.loss => 0,
            roll if roll < weather.loss + weather.duplicates => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let delay = 5_000 + self.random(weather.delay_max.as_nanos() as u64);
            let due = Due::Deliver { host, slot, frame: bytes.clone() };
            self.queue.after(Duration::from_nanos(delay), due);
        }
    }

    /// Lets everything happen that is due until then.
    pub fn run(&mut self, duration: Duration) {
        let end = self.now() + duration;
        while let Some(due) = self.queue.next(end) {
            match due {
                Due::Wake(host) if self.hosts[host].wake == Some(self.now()) => {
                    self.hosts[host].wake = None;
                    self.input(host, Input::Timeout);
                }
                Due::Deliver { host, slot, frame } if self.hosts[host].running => {
                    self.input(host, Input::Frame { slot, bytes: &frame });
                }
                Due::Wake(_) | Due::Deliver { .. } => {}
            }
        }
    }

    /// Runs until all tables are true; how long it took.
    pub fn run_until_true(&mut self, deadline: Duration) -> Duration {
        let began = self.queue.now;
        while let Err(wrong) = self.check() {
            assert!(
                self.queue.now.since(began) < deadline,
                "after {:?}: {wrong}",
                self.queue.now.since(began)
            );
            self.run(millis(50));
        }
        self.queue.now.since(began)
    }

    /// Whether every running host knows every other one as it is, and nobody else.
    pub fn check(&self) -> Result<(), String> {
        let running: Vec<usize> = (0..self.hosts.len()).filter(|host| self.hosts[*host].running).collect();
        for at in &running {
            for other in running.iter().filter(|other| *other != at) {
                let truth = &self.hosts[*other];
                let peer =
                    self.hosts[*at].arp.peer(&key(*other)).ok_or_else(|| format!("{at} misses {other}"))?;
                let told: Vec<_> = peer
                    .members
                    .iter()
                    .map(|member| (member.index, member.mac, member.up, member.class))
                    .collect();
                let members: Vec<_> = truth
                    .members
                    .iter()
                    .map(|member| (member.slot, member.mac, member.up, member.class))
                    .collect();
                let same = peer.state == PeerState::Alive
                    && peer.epoch == Some(truth.epoch)
                    && told == members
                    && peer.addresses == truth.addresses
                    && peer.classes == truth.classes
                    && peer.features == truth.features;
                if !same {
                    return Err(format!("{at} has of {other}: {peer:?}, true is {members:?}"));
                }
            }
            let (have, want) = (self.hosts[*at].arp.peers().len(), running.len() - 1);
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

fn machine(host: usize, epoch: u64, seed: u64) -> ArpPlus {
    let PeerKey::Host(id) = key(host) else { unreachable!("keys of hosts are host ids") };
    ArpPlus::new(Config::new(id, epoch), seed)
}
