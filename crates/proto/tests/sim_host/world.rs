//! Whole hosts on switches that learn, fail and forget, on a fake clock: daemons that speak, die and start again, and
//! frames that the tables they wrote forward. One seed, one course of events.

mod accept;
mod daemons;
mod guests;
mod hostile;
mod look;
mod plain;

use super::{
    answer::answer,
    fault::Fault,
    hosts::{id, mac},
    network::{Network, Weather, millis},
    path::Path,
};
use accept::{Excuse, Intake};
use daemons::member;
pub use daemons::{OwnClass, URGENT};
use linkbraid_proto::{Time, auth::Mode, host::*};
use linkbraid_wire::{HostId, MacAddr, is_arp, is_ipv6, is_probe};
use plain::PlainNeighbour;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv6Addr},
    rc::Rc,
    time::Duration,
};

/// Hosts and how they are connected.
pub struct Setup {
    /// Of each host with a daemon: the switch of each member, and its class.
    pub hosts: Vec<(Vec<u8>, Option<OwnClass>)>,
    /// The switch of each plain host.
    pub plain: Vec<u8>,
    /// The host with a daemon that each guest is behind.
    pub guests: Vec<usize>,
    /// Somebody on the switches forges and repeats what daemons say, and whether they have a key and require it (`Require`), or none
    /// (`Off`).
    pub hostile: Option<Mode>,
}

/// A port: host and slot.
pub type Port = (usize, u8);

/// One host.
pub struct Machine {
    pub daemon: Option<Host>,
    pub path: Path,
    pub members: Vec<Member>,
    pub class: Option<OwnClass>,
    pub mac: MacAddr,
    /// The daemon dies after so many more rows.
    pub rows_left: Option<u64>,
    /// A copy of another machine has that one's.
    pub host_id: HostId,
    pub epoch: u64,
    wake: Option<Time>,
    /// It takes in nothing and does nothing...
    asleep: bool,
    /// ...and its clock is behind by what it has slept.
    slept: Duration,
    /// How many changes of guests the daemon has read.
    guests_read: u64,
}

/// A frame on the wire.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Frame {
    /// For a daemon.
    Daemon(Rc<[u8]>),
    /// An application's, with its number.
    Data { number: u64, source: MacAddr, destination: MacAddr },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    Wake(usize),
    Deliver(Port, Frame),
    /// Counters are read.
    Look(usize),
    /// The carrier poll sees what is there.
    Carrier(Port),
    /// Somebody on the switches forges or repeats a frame.
    Attack,
}

/// An application's frame.
#[derive(Debug, Clone, Copy)]
struct Sent {
    from: usize,
    /// None: a broadcast.
    to: Option<usize>,
    /// What in the tables of the sender, as they were then, allows it to come twice.
    excuse: Option<Excuse>,
    /// The member that it left by last.
    slot: Option<u8>,
}

pub struct World {
    pub network: Network<Due>,
    pub machines: Vec<Machine>,
    /// Plain hosts; their numbers follow those of the machines.
    plain: Vec<PlainNeighbour>,
    /// The host of each guest; their numbers follow those of the plain hosts.
    guests: Vec<usize>,
    /// Frames of and for guests that left over lanes of peers' plans.
    pub striped: u64,
    /// The switch of each port.
    pub cables: BTreeMap<Port, u8>,
    /// Where each switch has learned a MAC.
    learned: BTreeMap<(u8, MacAddr), Port>,
    pub faults: BTreeSet<Fault>,
    /// Ports without carrier.
    pub unplugged: BTreeSet<Port>,
    sent: Vec<Sent>,
    /// What the lanes of each host's plans have carried, where counters count; else every lane carries something always.
    pub carried: Option<BTreeMap<(usize, u32), Vec<u64>>>,
    /// The plans of each host that something left by since counters were last read.
    used: BTreeMap<usize, BTreeSet<u32>>,
    /// Which frames have come to whom, and how that host took in frames then.
    delivered: BTreeMap<(u64, usize), Intake>,
    /// Since when a host could know that two segments are one, and does not.
    hearable: BTreeMap<usize, Time>,
    /// The last fault and change are long enough ago: no frame may come twice.
    pub settled: bool,
    /// How many frames came twice, by what excuses them.
    pub twice: BTreeMap<Excuse, u64>,
    /// How many frames of guests came back to their hosts.
    pub returned: u64,
    /// Who is on the switches beside them.
    hostile: Option<hostile::Hostile>,
}

const LOOK: Duration = millis(100);

/// How long after its last look a daemon counts as alive where guests are concerned.
const GUESTS_UNTIL: Duration = millis(5000);

/// How long frames take from port to port, in microseconds.
const DELAYS: [u64; 2] = [20, 200];

/// What a daemon gets of a PROBE, in bytes (10.4).
const PROBE_HEAD: usize = 248;

/// The addresses of a host with a daemon; a plain one has either.
fn addresses(host: usize) -> impl Iterator<Item = IpAddr> {
    let number = host as u8 + 1;
    let ipv6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number.into());
    [IpAddr::from([198, 18, 0, number]), IpAddr::V6(ipv6)].into_iter()
}

impl World {
    /// Daemons start within the first 100 ms.
    pub fn new(seed: u64, setup: &Setup) -> World {
        let mut world = World {
            network: Network::new(seed, Weather::new(0, 0, DELAYS)),
            machines: Vec::new(),
            plain: Vec::new(),
            guests: setup.guests.clone(),
            striped: 0,
            cables: BTreeMap::new(),
            learned: BTreeMap::new(),
            faults: BTreeSet::new(),
            unplugged: BTreeSet::new(),
            sent: Vec::new(),
            carried: None,
            used: BTreeMap::new(),
            delivered: BTreeMap::new(),
            hearable: BTreeMap::new(),
            settled: false,
            twice: BTreeMap::new(),
            returned: 0,
            hostile: setup.hostile.map(|auth| hostile::Hostile::new(seed, auth)),
        };
        for (host, (switches, class)) in setup.hosts.iter().enumerate() {
            let slots = 0..switches.len() as u8;
            world.cables.extend(slots.clone().zip(switches).map(|(slot, switch)| ((host, slot), *switch)));
            world.machines.push(Machine {
                daemon: None,
                path: Path::default(),
                members: slots.map(|slot| member(host, slot, class.as_ref())).collect(),
                class: class.clone(),
                mac: mac(host, 0),
                rows_left: None,
                host_id: id(host),
                epoch: 0,
                wake: None,
                asleep: false,
                slept: Duration::ZERO,
                guests_read: 0,
            });
        }
        setup.plain.iter().for_each(|switch| world.add_plain(*switch));
        let hosts = setup.hosts.len();
        for host in 0..hosts {
            world.start(host);
            world.network.after(LOOK, Due::Look(host));
            let pause = world.random(100 / hosts as u64);
            world.run(millis(pause));
        }
        if setup.hostile.is_some() {
            world.network.after(LOOK, Due::Attack);
        }
        world
    }

    /// How many hosts there are, with and without a daemon.
    pub fn hosts(&self) -> usize {
        self.machines.len() + self.plain.len()
    }

    pub fn now(&self) -> Time {
        self.network.now
    }

    /// What the clock of a host with a daemon says.
    pub fn clock(&self, host: usize) -> Time {
        self.now().minus(self.machines[host].slept)
    }

    /// A host sleeps, without a word before.
    pub fn sleep(&mut self, host: usize, duration: Duration) {
        self.machines[host].asleep = true;
        self.run(duration);
        let machine = &mut self.machines[host];
        (machine.asleep, machine.wake) = (false, None);
        machine.slept += duration;
        self.input(host, Input::Woke);
    }

    pub fn random(&mut self, limit: u64) -> u64 {
        self.network.random(limit)
    }

    /// A cable is pulled or put in again; the daemon sees it within 10 ms.
    pub fn plug(&mut self, port: Port, plugged: bool) {
        match plugged {
            true => self.unplugged.remove(&port),
            false => self.unplugged.insert(port),
        };
        if !plugged {
            // Switches forget what they learned on a port that is down.
            self.learned.retain(|_, at| *at != port);
        }
        let delay = self.random(10);
        self.network.after(millis(delay), Due::Carrier(port));
    }

    /// A switch forgets what it learned, and floods.
    pub fn forget(&mut self, switch: u8) {
        self.learned.retain(|(at, _), _| *at != switch);
    }

    pub fn fail(&mut self, fault: Fault) {
        self.faults.insert(fault);
    }

    pub fn repair(&mut self) {
        self.faults.clear();
        for port in self.unplugged.clone() {
            self.plug(port, true);
        }
    }

    fn is_cut(&self, port: Port, fault: Fault) -> bool {
        self.unplugged.contains(&port) || self.faults.contains(&fault)
    }

    /// A frame leaves by a port, and its switch forwards it.
    fn carry(&mut self, from: Port, frame: Frame) {
        let (source, destination) = match &frame {
            Frame::Daemon(bytes) => {
                let at = |at: usize| MacAddr(bytes[at..at + 6].try_into().expect("six bytes"));
                (at(6), at(0))
            }
            Frame::Data { source, destination, .. } => (*source, *destination),
        };
        let Some(switch) = self.cables.get(&from).copied() else { return };
        if self.is_cut(from, Fault::From(from.0, from.1)) || self.faults.contains(&Fault::Switch(switch)) {
            return;
        }
        self.learned.insert((switch, source), from);
        let learned = self.learned.get(&(switch, destination)).copied();
        self.record(switch, &frame);
        let ports = match learned.filter(|_| !destination.is_multicast()) {
            Some(port) => vec![port],
            None => self.cables.iter().filter(|(_, at)| **at == switch).map(|(port, _)| *port).collect(),
        };
        for to in ports.into_iter().filter(|to| *to != from) {
            let due = Due::Deliver(to, frame.clone());
            match frame {
                Frame::Data { .. } => self.network.deliver(Duration::ZERO, due),
                Frame::Daemon(_) => self.network.carry(Duration::ZERO, &due),
            }
        }
    }

    /// An application's frame to a host or guest, or to all. `class`: the sender's, if it has that one; 0: of no class.
    pub fn send(&mut self, from: usize, to: Option<usize>, class: u8) {
        self.note_hearable();
        let excuse = self.excuse_at_sender(from, to);
        let number = self.sent.len() as u64;
        self.sent.push(Sent { from, to, excuse, slot: None });
        let choice = self.random(u64::MAX);
        let host = self.home(from);
        if host >= self.machines.len() {
            return self.send_from_plain(from, to, number);
        }
        let destination = to.map_or(MacAddr::BROADCAST, |to| self.mac_of(to));
        let (now, addresses) = (self.clock(host), self.addresses_of(number));
        let path = &mut self.machines[host].path;
        let to_mac = (destination, addresses);
        let frames = match from == host {
            true => path.steer(now, to_mac, class, choice),
            false => path.steer_guest(now, mac(from, 0), to_mac, class, choice),
        };
        for (slot, source, destination) in frames {
            // Plans that an earlier daemon wrote stay as they are until their peers speak.
            let machine = &self.machines[host];
            let plan = to.and_then(|to| machine.path.rows.peer_macs.get(&self.mac_of(to)));
            let is_ours =
                |daemon: &&Host| plan.is_none_or(|row| daemon.image().plans.contains_key(&row.plan));
            if let Some(daemon) = machine.daemon.as_ref().filter(is_ours) {
                let known = daemon.member(slot);
                assert!(
                    known.is_some_and(|member| member.alive),
                    "host {host} sends by member {slot}, which it knows to have failed, at {:?}",
                    self.now()
                );
            }
            self.sent[number as usize].slot = Some(slot);
            let is_of_guest = from != host || to.is_some_and(|to| to >= self.hosts());
            self.striped += u64::from(is_of_guest && source != mac(from, 0));
            self.note_carried(host, to, (slot, destination));
            self.carry((host, slot), Frame::Data { number, source, destination });
        }
    }

    /// A frame of no class left over that lane of a peer's plan: as long as a short one is.
    fn note_carried(&mut self, host: usize, to: Option<usize>, (slot, mac): (u8, MacAddr)) {
        let to = to.map(|to| self.mac_of(to));
        let rows = &self.machines[host].path.rows;
        let number = to.and_then(|to| rows.peer_macs.get(&to)).map(|row| row.plan);
        let Some((number, plan)) = number.and_then(|number| rows.plans.get_key_value(&number)) else {
            return;
        };
        let place = plan.lanes.iter().position(|lane| (lane.slot, lane.peer_mac) == (slot, Some(mac)));
        if let (Some(carried), Some(place)) = (&mut self.carried, place) {
            let bytes = carried.entry((host, *number)).or_default();
            bytes.resize(plan.lanes.len().max(bytes.len()), 0);
            bytes[place] += 70;
            self.used.entry(host).or_default().insert(*number);
        }
    }

    fn deliver(&mut self, (host, slot): Port, frame: Frame) {
        let switch = self.cables[&(host, slot)];
        let cut =
            self.is_cut((host, slot), Fault::To(host, slot)) || self.faults.contains(&Fault::Switch(switch));
        if cut {
            return;
        }
        if host >= self.machines.len() {
            return self.deliver_to_plain(host, frame);
        }
        if !self.machines[host].members.iter().any(|member| member.slot == slot) {
            return;
        }
        match frame {
            Frame::Daemon(bytes) if is_arp(&bytes) || is_ipv6(&bytes) => {
                self.deliver_plain_answer(host, slot, &bytes);
            }
            Frame::Daemon(bytes) => {
                // The data path hands on the head of a padded PROBE.
                let handed = if is_probe(&bytes) { bytes.len().min(PROBE_HEAD) } else { bytes.len() };
                self.input(host, Input::Frame { slot, bytes: &bytes[..handed], heard_again: false });
            }
            Frame::Data { number, source, destination } => {
                self.take(number, (host, slot), source, destination);
            }
        }
    }

    /// Lets everything happen that is due until then.
    pub fn run(&mut self, duration: Duration) {
        let end = self.now() + duration;
        while let Some(due) = self.network.next(end) {
            match due {
                Due::Wake(host) if self.machines[host].wake.is_some_and(|at| at <= self.clock(host)) => {
                    self.machines[host].wake = None;
                    self.input(host, Input::Timeout);
                }
                Due::Wake(_) => {}
                Due::Deliver(port, frame) => self.deliver(port, frame),
                Due::Attack => self.attack(),
                Due::Look(host) => {
                    self.network.after(LOOK, Due::Look(host));
                    self.look(host);
                }
                Due::Carrier((host, slot)) => {
                    let carrier = !self.unplugged.contains(&(host, slot));
                    let members = &mut self.machines[host].members;
                    members.iter_mut().filter(|member| member.slot == slot).for_each(|member| {
                        member.carrier = carrier;
                    });
                    self.input(host, Input::Members(self.machines[host].members.clone()));
                }
            }
        }
    }

    /// Counters are read.
    fn look(&mut self, host: usize) {
        let now = self.now().0 / 1000;
        let Some(daemon) = &mut self.machines[host].daemon else { return };
        let used: Vec<u32> = match &self.carried {
            None => daemon.image().plans.keys().copied().collect(),
            Some(_) => self.used.remove(&host).unwrap_or_default().into_iter().collect(),
        };
        let plans = daemon.plans_to_read(&used);
        let lanes = |number: u32| daemon.image().plans.get(&number).map_or(0, |plan| plan.lanes.len());
        let bytes = |number: u32| match &self.carried {
            None => vec![now; lanes(number)],
            Some(carried) => {
                let mut bytes = carried.get(&(host, number)).cloned().unwrap_or_default();
                bytes.resize(lanes(number), 0);
                bytes
            }
        };
        let counts = |bytes| LaneCount { bytes, ..LaneCount::default() };
        let lanes = |number| bytes(number).into_iter().map(counts).collect();
        let plans = plans.into_iter().map(|number| (number, lanes(number))).collect();
        self.input(host, Input::LaneCounts(plans));
        self.look_at_guests(host);
    }

    /// What the data path has noted of guests is read when it has changed, or is wanted.
    fn look_at_guests(&mut self, host: usize) {
        let now = self.clock(host);
        let machine = &mut self.machines[host];
        let Some(daemon) = &machine.daemon else { return };
        machine.path.notes.until = now + GUESTS_UNTIL;
        let changes = machine.path.notes.changes;
        let differ = std::mem::replace(&mut machine.guests_read, changes) != changes;
        if differ || daemon.wants_guests(now) {
            let seen = machine.path.notes.seen();
            self.input(host, Input::Guests(&seen));
        }
    }
}
