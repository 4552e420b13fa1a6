//! Hosts with an inspector each on switches and cables that fail in every way, on a fake clock. One seed, one course
//! of events. Each host makes its plans with the real `plan`, fed as the daemon feeds it.

use super::{
    fault::Fault,
    hosts::{id, mac},
    network::{Network, Weather, millis},
};
use linkbraid_proto::{
    Time,
    arp_plus::PeerKey,
    inspector::*,
    plan::{PlanMember, PlanPeerMember, plan},
};
use linkbraid_wire::{MacAddr, ProbeKind, parse_probe};
use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

/// Numbers from here on are plain hosts.
pub const PLAIN: usize = 1000;

/// A lane as a host plans it: peer, own slot, peer's index.
pub type Planned = (usize, u8, u8);

pub struct Host {
    pub inspector: Inspector,
    pub reports: Vec<MemberReport>,
    pub switches: BTreeMap<u8, u8>,
    /// Hosts that it knows.
    knows: Vec<usize>,
    pub planned: BTreeSet<Planned>,
    /// When each lane came into or went out of the plan last.
    pub changed: BTreeMap<Planned, Time>,
    pub events: Vec<(Time, Event)>,
    /// How its plans use their lanes.
    pub usage: Usage,
    pub running: bool,
    /// Whether the peers it knows speak probes.
    pub probes: bool,
    epoch: u64,
    wake: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    Wake(usize),
    Deliver { host: usize, slot: u8, frame: Rc<[u8]> },
}

pub struct World {
    pub network: Network<Due>,
    pub hosts: Vec<Host>,
    pub faults: BTreeSet<Fault>,
    /// What frames meet that leave by that port of that host, where it is not the weather of all.
    pub queues: BTreeMap<(usize, u8), Weather>,
    /// Ports that pass no frame longer than 1514 bytes.
    pub short: BTreeSet<(usize, u8)>,
    /// Frames sent, by host and kind.
    pub sent: BTreeMap<(usize, ProbeKind), u64>,
    /// Plain hosts by number: the switch that each is on; none while it has failed.
    pub plain: BTreeMap<usize, Option<u8>>,
    /// They have IPv6 only, not IPv4 only.
    pub ipv6: bool,
    /// Probes of plain hosts sent: when, by which member, and to whom.
    pub asked: Vec<(Time, u8, usize)>,
}

pub fn key(host: usize) -> PeerKey {
    if host >= PLAIN {
        return PeerKey::Plain(mac(host, 0));
    }
    PeerKey::Host(id(host))
}

impl Host {
    /// ARP+ will tell of that host.
    pub fn knows_of(&mut self, other: usize) {
        self.knows.push(other);
    }
}

impl World {
    pub fn new(seed: u64) -> World {
        World {
            network: Network::new(seed, Weather::new(0, 0, [20, 200])),
            hosts: Vec::new(),
            faults: BTreeSet::new(),
            queues: BTreeMap::new(),
            short: BTreeSet::new(),
            sent: BTreeMap::new(),
            plain: BTreeMap::new(),
            ipv6: false,
            asked: Vec::new(),
        }
    }

    /// Two hosts that know each other, with a member on each of these switches, after they had time to settle.
    pub fn pair(seed: u64, one: &[u8], other: &[u8]) -> World {
        let mut world = World::new(seed);
        world.add(one);
        world.add(other);
        world.meet(0, 1);
        world.run(millis(2000));
        world
    }

    pub fn now(&self) -> Time {
        self.network.now
    }

    pub fn random(&mut self, limit: u64) -> u64 {
        self.network.random(limit)
    }

    pub fn add(&mut self, switches: &[u8]) -> usize {
        let host = self.hosts.len();
        let report = |slot| MemberReport {
            slot,
            mac: mac(host, slot),
            admin_up: true,
            carrier: true,
            speed_mbit: Some(1000),
            full_duplex: Some(true),
        };
        let reports: Vec<MemberReport> = (0..switches.len() as u8).map(report).collect();
        let seed = self.random(u64::MAX);
        self.hosts.push(Host {
            inspector: machine(host, 1, seed),
            reports: reports.clone(),
            switches: (0..).zip(switches.iter().copied()).collect(),
            knows: Vec::new(),
            planned: BTreeSet::new(),
            changed: BTreeMap::new(),
            events: Vec::new(),
            usage: Usage::Busy,
            running: true,
            probes: true,
            epoch: 1,
            wake: None,
        });
        self.input(host, Input::Members(reports));
        host
    }

    /// ARP+ tells two hosts of each other.
    pub fn meet(&mut self, one: usize, other: usize) {
        self.hosts[one].knows_of(other);
        self.hosts[other].knows_of(one);
        self.report_peers(one);
        self.report_peers(other);
    }

    /// What ARP+ would say now: members and carriers of every known host, and who hears whom.
    pub fn report_peers(&mut self, at: usize) {
        let report = |other: &usize| {
            let host = &self.hosts[*other];
            let member = |member: &MemberReport| PeerMemberReport {
                index: member.slot,
                mac: member.mac,
                up: host.inspector.member_alive(member.slot) == Verdict::Alive,
                heard: self.hearers(at, *other, member.slot),
            };
            PeerReport {
                key: key(*other),
                epoch: Some(host.epoch),
                probes: self.hosts[at].probes,
                long_probes: true,
                members: host.reports.iter().map(member).collect(),
            }
        };
        let reports = self.hosts[at].knows.iter().map(report).collect();
        self.input(at, Input::Peers(reports));
        self.replan(at, None);
    }

    fn hearers(&self, at: usize, other: usize, index: u8) -> Vec<u8> {
        let switch = self.hosts[other].switches[&index];
        let ports = self.hosts[at].switches.iter().filter(|(_, there)| **there == switch);
        ports.map(|(slot, _)| *slot).collect()
    }

    /// A member's carrier comes or goes; CHANGE tells everyone who knows the host.
    pub fn carrier(&mut self, host: usize, slot: u8, carrier: bool) {
        self.hosts[host].reports.iter_mut().filter(|report| report.slot == slot).for_each(|report| {
            report.carrier = carrier;
        });
        let reports = self.hosts[host].reports.clone();
        self.input(host, Input::Members(reports));
    }

    /// The daemon dies and starts again at once; the data path goes on with what was planned.
    pub fn restart(&mut self, host: usize) {
        let seed = self.random(u64::MAX);
        self.hosts[host].running = true;
        self.hosts[host].epoch += 1;
        self.hosts[host].inspector = machine(host, self.hosts[host].epoch, seed);
        self.hosts[host].wake = None;
        let reports = self.hosts[host].reports.clone();
        self.input(host, Input::Members(reports));
        self.report_peers(host);
    }

    pub fn input(&mut self, host: usize, input: Input<'_>) {
        if !self.hosts[host].running {
            return;
        }
        let sound =
            |world: &World| (0..16).map(|slot| world.hosts[host].inspector.member_sound(slot)).collect();
        let before: Vec<Verdict> = sound(self);
        self.hosts[host].inspector.handle(self.network.now, input);
        let mut told = false;
        let mut unsaid = before != sound(self);
        while let Some(action) = self.hosts[host].inspector.poll_action() {
            assert!(!unsaid || action == Action::Verdicts(Changed::All), "another answer must be told first");
            unsaid = false;
            match action {
                Action::Verdicts(Changed::All) => self.replan(host, None),
                Action::Verdicts(Changed::Peers(peers)) => self.replan(host, Some(&peers)),
                Action::Send { slot, frame } => self.carry(host, slot, &frame.into()),
                Action::Proven { .. } => {}
                Action::Event(event) => {
                    told |= matches!(event, Event::Member { .. });
                    self.hosts[host].events.push((self.network.now, event));
                }
            }
        }
        assert!(!unsaid, "a member became sound or unsound and nobody was told");
        let wake = self.hosts[host].inspector.poll_timeout();
        if wake != self.hosts[host].wake {
            self.hosts[host].wake = wake;
            if let Some(at) = wake {
                self.network.at(at.max(self.now()), Due::Wake(host));
            }
        }
        if told {
            self.hosts[host].knows.clone().into_iter().for_each(|other| self.report_peers(other));
        }
    }

    /// Plans as the daemon does and tells the inspector which lanes are used.
    pub fn replan(&mut self, at: usize, of: Option<&[PeerKey]>) {
        let host = &self.hosts[at];
        let own: Vec<PlanMember> = host
            .reports
            .iter()
            .map(|report| PlanMember {
                slot: report.slot,
                weight_mbit: report.speed_mbit.unwrap_or(1),
                up: host.inspector.member_alive(report.slot) == Verdict::Alive,
            })
            .collect();
        let mut planned = BTreeSet::new();
        for other in &host.knows {
            if of.is_some_and(|peers| !peers.contains(&key(*other))) {
                planned.extend(host.planned.range((*other, 0, 0)..(*other + 1, 0, 0)));
                continue;
            }
            let theirs: Vec<PlanPeerMember> = self.hosts[*other]
                .reports
                .iter()
                .map(|report| PlanPeerMember {
                    index: report.slot,
                    mac: report.mac,
                    weight_mbit: 1000,
                    up: self.hosts[*other].inspector.member_alive(report.slot) == Verdict::Alive,
                })
                .collect();
            let lanes = plan(&own, Some(&theirs), |slot, index| {
                let heard = self.hearers(at, *other, index).contains(&slot);
                host.inspector.lane_alive(&key(*other), slot, index).usable(heard)
            });
            planned.extend(lanes.iter().map(|lane| {
                let MacAddr([.., index]) = lane.peer_mac.expect("a peer");
                (*other, lane.slot, index)
            }));
        }
        planned.extend(self.plan_plain(at));
        let host = &mut self.hosts[at];
        for lane in planned.symmetric_difference(&host.planned) {
            host.changed.insert(*lane, self.network.now);
        }
        if planned == host.planned {
            return;
        }
        host.planned = planned;
        self.report_plan(at);
    }

    /// Tells the inspector of the lanes in use, and whether they carry data.
    pub fn report_plan(&mut self, at: usize) {
        let (planned, usage) = (&self.hosts[at].planned, self.hosts[at].usage);
        let used = planned.iter().map(|(other, slot, index)| LaneUse {
            lane: LaneId { peer: key(*other), slot: *slot, index: *index },
            usage,
        });
        let used = used.collect();
        self.input(at, Input::Plan(used));
    }

    fn carry(&mut self, from: usize, slot: u8, bytes: &Rc<[u8]>) {
        if !linkbraid_wire::is_probe(bytes) {
            return self.carry_plain_probe(from, slot, bytes);
        }
        let frame = parse_probe(bytes).expect("a machine sends good frames");
        *self.sent.entry((from, frame.probe.kind)).or_default() += 1;
        assert_eq!(frame.src, mac(from, slot), "a member speaks for itself");
        let MacAddr([_, _, _, high, low, port]) = frame.dst;
        let to = usize::from(u16::from_be_bytes([high, low]));
        let switch = self.hosts[from].switches[&slot];
        let reached = self.hosts[to].switches.get(&port) == Some(&switch);
        let up = |host: usize, slot: u8| {
            self.hosts[host].reports.iter().any(|report| report.slot == slot && report.carrier)
        };
        let stopped = [Fault::From(from, slot), Fault::To(to, port), Fault::Switch(switch)]
            .iter()
            .any(|fault| self.faults.contains(fault));
        let fits =
            bytes.len() <= 1514 || ![(from, slot), (to, port)].iter().any(|port| self.short.contains(port));
        let live = fits && up(from, slot) && up(to, port) && self.hosts[to].running;
        if reached && !stopped && live {
            let usual = self.network.weather;
            self.network.weather = self.queues.get(&(from, slot)).copied().unwrap_or(usual);
            self.network.carry(Duration::ZERO, &Due::Deliver { host: to, slot: port, frame: bytes.clone() });
            self.network.weather = usual;
        }
    }

    /// Lets everything happen that is due until then.
    pub fn run(&mut self, duration: Duration) {
        let end = self.now() + duration;
        while let Some(due) = self.network.next(end) {
            match due {
                Due::Wake(host) if self.hosts[host].wake.is_some_and(|wake| wake <= self.now()) => {
                    self.hosts[host].wake = None;
                    self.input(host, Input::Timeout);
                }
                Due::Deliver { host, slot, frame } => {
                    self.input(host, Input::Frame { slot, bytes: &frame });
                }
                Due::Wake(_) => {}
            }
        }
    }

    /// Runs until it holds; how long it took.
    pub fn until(&mut self, deadline: Duration, holds: impl Fn(&World) -> bool) -> Duration {
        let began = self.network.now;
        while !holds(self) {
            assert!(self.network.now.since(began) < deadline, "not after {deadline:?}: {}", self.describe());
            self.run(Duration::from_micros(100));
        }
        self.network.now.since(began)
    }
}

fn machine(host: usize, epoch: u64, seed: u64) -> Inspector {
    Inspector::new(Config::new(id(host), epoch), seed)
}
