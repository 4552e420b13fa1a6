//! One host: the machines of one bond together, and the tables that its data path is to hold.
//!
//! Job: say which machine ([`ArpPlus`], [`Inspector`], [`Answers`], plain hosts, plans) is fed what, and in which order. In:
//! [`Input`], each with the time. Out: [`Action`], the next deadline, and a [`TableImage`] with the difference from what
//! the data path holds. It never reads a clock, opens a socket or logs.
//!
//! The contract with the loop around it:
//! 1. after every [`Host::handle`], or after several at once, call [`Host::poll_action`] until it gives none and do what it
//!    says, in that order: plans are made there, so that many inputs cost no more than one;
//! 2. then ask [`Host::poll_timeout`], and at that time hand in [`Input::Timeout`];
//! 3. time never goes back from one call to the next;
//! 4. a few times a second read the counters of [`Host::plans_to_read`] and hand them in ([`Input::LaneBytes`]).
//!
//! How a member that fails gets out of all plans: [`Input::Members`] or a timeout reaches the inspector, `follow_members`
//! puts the verdicts into the members ([`Action::DeadSlots`], which works at once) and ARP+ announces them; then
//! `remake` makes every plan anew ([`Action::Tables`]) and says to the inspector which lanes they use.

use crate::{
    Time,
    answers::{self, Answers},
    arp_plus::{self, ArpPlus, Changed, OwnMember, Peer, PeerKey},
    inspector::{self, Inspector, LaneId, LaneUse, PeerReport, Verdict},
    plan::ClassTerms,
};
use linkbraid_wire::{HostId, MacAddr};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
};

mod activity;
mod image;
mod lanes;
mod member;
mod numbers;
mod plain;
mod tables;
mod told;
mod view;
mod written;

pub use image::{
    Answer, BondRow, ClassRow, MemberRow, PLAIN_PLAN, PLAIN_PLAN_FIRST, PeerMac, Plan, Policy, TableImage,
    plain_plan,
};
pub use lanes::{DEFAULT_CLASS, OwnSide, lane_index};
pub use member::Member;
pub use plain::{Neighbour, PlainHost};
pub use tables::Usable;
pub use written::Write;

use activity::Activity;
use plain::PlainHosts;
use tables::{LaneAt, Sources, Tables};

/// Rounds of questions and answers between the machines after one input; more than two are not needed.
const ROUNDS_MAX: usize = 8;

/// What a host is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Identity of this host: the same after every start, another one on every other host.
    pub host_id: HostId,
    /// Grows with every start.
    pub epoch: u64,
    /// Makes jitter and nonces: another one on each host.
    pub seed: u64,
}

/// An own class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its name, by which peers know it.
    pub name: String,
    /// Where its frames may go.
    pub terms: ClassTerms,
    /// How they spread.
    pub policy: Policy,
}

/// What the user may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whether lanes are probed.
    pub probes: bool,
    /// When.
    pub timing: inspector::Timing,
    /// Whether duplicate ACKs are damped where a flow is striped.
    pub damping: bool,
    /// How traffic of no class spreads.
    pub policy: Policy,
    /// The classes.
    pub classes: Vec<Class>,
}

/// What the host can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<'a> {
    /// Join: from here on the host speaks.
    Start,
    /// Leave. Drain the actions afterwards.
    Stop,
    /// The settings now.
    Settings(Settings),
    /// The own members now, all of them, the primary one first.
    Members(Vec<Member>),
    /// What this host is to others.
    Own(answers::Own),
    /// A frame for the daemon came in on a member.
    Frame {
        /// The member.
        slot: u8,
        /// Whole, with its Ethernet header.
        bytes: &'a [u8],
    },
    /// The neighbour table has changed.
    NeighboursChanged,
    /// The neighbour table that was asked for ([`Action::AskNeighbours`]); none: it could not be read.
    Neighbours(Option<Vec<Neighbour>>, Vec<(MacAddr, u8)>),
    /// Bytes that each lane of some plans has carried ([`Host::plans_to_read`]), by plan.
    LaneBytes(Vec<(u32, Vec<u64>)>),
    /// The kernel has told everyone the bond's MAC, or the daemon has.
    Broadcast,
    /// Peers of an earlier daemon that have not spoken are plain hosts from now on.
    DropInherited,
    /// The time that `poll_timeout` named has come. Too early or once too often does no harm.
    Timeout,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes, a whole Ethernet frame, out of that member as they are.
    Send {
        /// The member.
        slot: u8,
        /// The frame.
        frame: Vec<u8>,
    },
    /// No frame is to leave by these members, a bit a slot: one row, before all plans, which follow.
    DeadSlots(u32),
    /// The tables are other ones: write the difference ([`Host::write`]).
    Tables,
    /// Read the kernel's neighbour table ([`Input::Neighbours`]), and, with several segments, where plain hosts were heard.
    AskNeighbours,
    /// Other members carry traffic than before.
    LiveMembers,
    /// There are more plans than numbers: some classes go where all other traffic goes. Once.
    PlansShort,
    /// Something of the inspector worth telling people.
    Inspector(inspector::Event),
    /// Something of ARP+ worth telling people.
    ArpPlus(arp_plus::Event),
}

/// What of the tables is to be made anew.
#[derive(Debug, Default)]
struct Differ {
    all: bool,
    peers: BTreeSet<PeerKey>,
}

/// The machines of one bond.
#[derive(Debug)]
pub struct Host {
    now: Time,
    settings: Settings,
    own: answers::Own,
    members: Vec<Member>,
    arp_plus: ArpPlus,
    inspector: Inspector,
    answers: Answers,
    plain: PlainHosts,
    activity: Activity,
    tables: Tables,
    differ: Differ,
    actions: VecDeque<Action>,
    rounds: usize,
}

impl Host {
    /// A host without members that does not speak yet. `left` is what an earlier daemon left in the data path; what its plans
    /// hold may be missing.
    pub fn new(config: Config, settings: Settings, left: TableImage) -> Host {
        let Config { host_id, epoch, seed } = config;
        let probing = inspector::Config { host_id, epoch, timing: settings.timing };
        let mut random = crate::random::Random::new(seed);
        Host {
            now: Time::ZERO,
            arp_plus: ArpPlus::new(arp_plus::Config::new(host_id, epoch), random.next()),
            inspector: Inspector::new(probing, random.next()),
            answers: Answers::default(),
            own: answers::Own { mac: MacAddr::ZERO, addresses: Vec::new(), router: false },
            members: Vec::new(),
            plain: PlainHosts::default(),
            activity: Activity::default(),
            tables: Tables::adopt(left),
            settings,
            differ: Differ::default(),
            actions: VecDeque::new(),
            rounds: 0,
        }
    }

    /// Takes one input. Poll actions and timeout afterwards.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.now = now;
        self.rounds = 0;
        match input {
            Input::Start => self.arp_plus.handle(now, arp_plus::Input::Start),
            Input::Stop => self.arp_plus.handle(now, arp_plus::Input::Stop),
            Input::Settings(settings) => self.set_settings(settings),
            Input::Members(members) => self.set_members(members),
            Input::Own(own) => self.set_own(own),
            Input::Frame { slot, bytes } => self.frame(slot, bytes),
            Input::NeighboursChanged => self.plain.stale = true,
            Input::Neighbours(Some(neighbours), heard) => self.take_neighbours(&neighbours, &heard),
            Input::Neighbours(None, _) => self.plain.not_read(),
            Input::LaneBytes(plans) => self.take_lane_bytes(plans),
            Input::Broadcast => self.answers.handle(now, answers::Input::Broadcast),
            Input::DropInherited => {
                self.tables.drop_inherited();
                self.follow_members();
                self.differ.all = true;
            }
            Input::Timeout => {
                self.inspector.handle(now, inspector::Input::Timeout);
                self.arp_plus.handle(now, arp_plus::Input::Timeout);
                self.answers.handle(now, answers::Input::Timeout);
            }
        }
        if self.plain.ask(now) {
            self.actions.push_back(Action::AskNeighbours);
        }
    }

    /// When to hand in [`Input::Timeout`]. Changes with every `handle`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let machines =
            [self.arp_plus.poll_timeout(), self.inspector.poll_timeout(), self.answers.poll_timeout()];
        machines.into_iter().chain([self.plain.next_ask()]).flatten().min()
    }

    /// What to do next; call it after every `handle` until it gives none.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            if !self.step() {
                return None;
            }
        }
    }

    /// Brings the tables up to date without doing anything else; the actions wait.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    /// Writes what differs from what the data path holds, in an order in which no row points at one that is not there. One
    /// row that is refused keeps no other out, and is tried again with the next difference; the first error.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write<E>(&mut self, write: impl FnMut(Write<'_>) -> Result<(), E>) -> Result<(), E> {
        let written = self.tables.write(write);
        // Peers and classes for which there was no number get one now.
        self.differ.all |= self.tables.free_numbers();
        written
    }

    /// One step further between the machines and the tables; whether there was anything to do.
    fn step(&mut self) -> bool {
        if self.take_actions() {
            return true;
        }
        if self.rounds < ROUNDS_MAX && (self.differ.all || !self.differ.peers.is_empty()) {
            self.rounds += 1;
            self.remake();
            return true;
        }
        self.take_answers()
    }

    fn set_settings(&mut self, settings: Settings) {
        let now = self.now;
        let old = std::mem::replace(&mut self.settings, settings);
        if old == self.settings {
            return;
        }
        if old.timing != self.settings.timing {
            self.inspector.handle(now, inspector::Input::Timing(self.settings.timing));
        }
        if old.probes != self.settings.probes {
            self.report_peers();
        }
        self.announce_classes();
        self.differ.all = true;
    }

    fn set_own(&mut self, own: answers::Own) {
        let now = self.now;
        let mut ips: Vec<IpAddr> = own.addresses.iter().map(|(ip, _)| *ip).collect();
        // The one that others list us by: IPv4 first, then global IPv6, then link-local.
        ips.sort_by_key(|ip| match ip {
            IpAddr::V4(_) => 0,
            IpAddr::V6(ip) if !ip.is_unicast_link_local() => 1,
            IpAddr::V6(_) => 2,
        });
        self.inspector.handle(now, inspector::Input::Address(ips.first().copied()));
        self.arp_plus.handle(now, arp_plus::Input::Addresses(ips));
        self.differ.all |= own.mac != self.own.mac;
        self.own = own;
        self.answers.handle(now, answers::Input::Own(self.own.clone()));
    }

    fn set_members(&mut self, members: Vec<Member>) {
        let former = self.tables.take_former_segments(&members);
        if !former.is_empty() {
            self.arp_plus.handle(self.now, arp_plus::Input::Segments(former));
        }
        let (live, dead) = (self.live_slots(), self.dead_slots());
        let judged = |member: Member| {
            let same = |old: &&Member| (old.slot, old.ifindex) == (member.slot, member.ifindex);
            let old = self.members.iter().find(same);
            let (alive, sound) = old.map_or((false, true), |old| (old.alive, old.sound));
            Member { alive, sound, ..member }
        };
        let members: Vec<Member> = members.into_iter().map(judged).collect();
        if members != self.members {
            self.members = members;
            self.differ.all = true;
        }
        let reports = self.members.iter().map(Member::report).collect();
        self.inspector.handle(self.now, inspector::Input::Members(reports));
        self.judge_members(live, dead);
    }

    /// Takes the inspector's word on the members, and says it to ARP+, so that peers stop sending to those that are down.
    fn follow_members(&mut self) {
        self.judge_members(self.live_slots(), self.dead_slots());
    }

    /// The same; `live` carried traffic before, and `dead` were known to be dead.
    fn judge_members(&mut self, live: u32, dead: u32) {
        let alive = |slot| self.inspector.member_alive(slot) == Verdict::Alive;
        let sound = |slot| self.inspector.member_sound(slot) != Verdict::Dead;
        let any_sound = self.members.iter().any(|member| alive(member.slot) && sound(member.slot));
        for member in &mut self.members {
            member.alive = alive(member.slot);
            // The last ones are never given up on suspicion.
            member.sound = sound(member.slot) || !any_sound;
        }
        // Before anything else: the plans, one for each peer, follow.
        if self.dead_slots() != dead {
            self.actions.push_back(Action::DeadSlots(self.dead_slots()));
        }
        if self.live_slots() != live {
            self.actions.push_back(Action::LiveMembers);
        }
        self.announce_members();
    }

    fn announce_members(&mut self) {
        let sound = |slot| self.inspector.member_sound(slot) != Verdict::Dead;
        // Broadcasts come in on a member that is proven, if any is: what nobody knows of may be deaf.
        let proven = |slot| self.inspector.member_sound(slot) == Verdict::Alive;
        let any_proven = self.members.iter().any(|member| member.alive && proven(member.slot));
        // After a restart they go on coming in where they did, until that is found wrong or the others had their time.
        let former = self.tables.former_elected();
        let keeps = |slot| match former.is_empty() {
            true => !any_proven,
            false => former.contains(&slot) && sound(slot),
        };
        let members = self.members.iter().map(|member| OwnMember {
            slot: member.slot,
            mac: member.mac,
            up: member.alive && !member.leaving,
            sound: !member.joining && (proven(member.slot) || keeps(member.slot)),
            joining: member.joining,
            weight_mbit: member.weight_mbit,
            class: member.class,
        });
        let members = members.collect();
        // Names before those who go by them.
        self.announce_classes();
        self.arp_plus.handle(self.now, arp_plus::Input::Members(members));
    }

    fn announce_classes(&mut self) {
        let class = |class: &Class| linkbraid_wire::Class {
            number: class.terms.number,
            may_borrow: class.terms.lends,
            name: class.name.clone(),
        };
        let classes = self.settings.classes.iter().map(class).collect();
        self.arp_plus.handle(self.now, arp_plus::Input::Features(linkbraid_wire::FEATURE_MIRROR));
        self.arp_plus.handle(self.now, arp_plus::Input::Classes(classes));
    }

    /// Hands a frame from the data path to the machine that it belongs to.
    fn frame(&mut self, slot: u8, bytes: &[u8]) {
        if linkbraid_wire::is_probe(bytes) || linkbraid_wire::is_arp_reply_to_probe(bytes) {
            self.inspector.handle(self.now, inspector::Input::Frame { slot, bytes });
        } else {
            self.arp_plus.handle(self.now, arp_plus::Input::Frame { slot, bytes });
        }
    }

    /// Takes the neighbour table: who the plain hosts are, and whom to probe.
    fn take_neighbours(&mut self, neighbours: &[Neighbour], heard: &[(MacAddr, u8)]) {
        if self.plain.take(neighbours, heard, &self.arp_plus, self.settings.probes) {
            let probed = self.plain.probed().to_vec();
            self.inspector.handle(self.now, inspector::Input::Plain(probed));
            self.report_plans();
        }
        self.report_answering_members();
        self.report_plain_hosts();
        self.set_answers();
    }

    /// Takes counters of lanes, and says to the inspector where other lanes carry data than before.
    fn take_lane_bytes(&mut self, plans: Vec<(u32, Vec<u64>)>) {
        let changed = plans.into_iter().filter(|(number, bytes)| self.activity.take(*number, bytes));
        let changed: Vec<u32> = changed.map(|(number, _)| number).collect();
        let plain = || self.plain.probed().iter().map(|report| PeerKey::Plain(report.mac));
        let peers = changed.into_iter().flat_map(|number| match self.tables.peer_of(number) {
            Some(peer) => vec![peer],
            None => plain().collect(),
        });
        peers.collect::<BTreeSet<_>>().into_iter().for_each(|peer| self.report_plan_of(peer));
    }

    /// Takes what the machines want; whether there was anything.
    fn take_actions(&mut self) -> bool {
        let mut did_something = false;
        while let Some(action) = self.inspector.poll_action() {
            did_something = true;
            match action {
                inspector::Action::Verdicts(Changed::All) => {
                    self.differ.all = true;
                    self.follow_members();
                }
                inspector::Action::Verdicts(Changed::Peers(peers)) => self.differ.peers.extend(peers),
                inspector::Action::Send { slot, frame } => {
                    self.actions.push_back(Action::Send { slot, frame })
                }
                inspector::Action::Event(event) => self.actions.push_back(Action::Inspector(event)),
            }
        }
        while let Some(action) = self.arp_plus.poll_action() {
            did_something = true;
            match action {
                arp_plus::Action::Send { slot, frame } => {
                    self.actions.push_back(Action::Send { slot, frame })
                }
                arp_plus::Action::Peers(Changed::All) => {
                    self.differ.all = true;
                    self.plain.stale = true;
                    self.report_peers();
                }
                arp_plus::Action::Peers(Changed::Peers(peers)) => {
                    self.report_changed(&peers);
                    self.differ.peers.extend(peers);
                }
                arp_plus::Action::Segments => {
                    self.differ.all = true;
                    self.plain.stale = true;
                }
                arp_plus::Action::Event(event) => self.actions.push_back(Action::ArpPlus(event)),
            }
        }
        did_something
    }

    /// Makes anew what differs of the tables, and says to the inspector which lanes are used.
    fn remake(&mut self) {
        let own = self.own_side();
        let sources =
            Sources { members: &self.members, own: &own, arp_plus: &self.arp_plus, usable: &self.inspector };
        let Differ { all, peers } = std::mem::take(&mut self.differ);
        if all {
            let striped = own.spreads(&self.members).iter().any(|weights| weights.len() > 1);
            let bond = BondRow {
                mac: self.own.mac,
                damping: self.settings.damping && striped,
                elected: Vec::new(),
                dead_slots: self.dead_slots(),
            };
            self.tables.remake(bond, &sources);
            self.report_plans();
            self.report_answering_members();
        } else {
            self.tables.update(&sources, peers.iter().copied());
            peers.into_iter().for_each(|peer| self.report_plan_of(peer));
        }
        self.written_or_not();
    }

    /// Says what there is to say after the tables changed.
    fn written_or_not(&mut self) {
        if self.tables.is_behind() {
            self.actions.push_back(Action::Tables);
        }
        if self.tables.take_short() {
            self.actions.push_back(Action::PlansShort);
        }
    }

    /// Takes what the machine that answers plain hosts wants; whether there was anything.
    fn take_answers(&mut self) -> bool {
        let mut did_something = false;
        while let Some(action) = self.answers.poll_action() {
            did_something = true;
            match action {
                answers::Action::Assign(_) => self.set_answers(),
                answers::Action::Send { slot, frame } => self.actions.push_back(Action::Send { slot, frame }),
            }
        }
        did_something
    }

    /// Who is told what, and whose replies to probes are wanted.
    fn set_answers(&mut self) {
        let row = |(mac, slot)| (mac, Answer { slot, probed: false });
        let mut rows: BTreeMap<MacAddr, Answer> = self.answers.table().map(row).collect();
        let bond = self.members.iter().find(|member| member.mac == self.own.mac).map(|member| member.slot);
        for report in self.plain.probed() {
            if let Some(row) = rows.get_mut(&report.mac) {
                row.probed = true;
            } else if let Some(slot) = bond {
                rows.insert(report.mac, Answer { slot, probed: true });
            }
        }
        self.tables.set_answers(rows);
        self.written_or_not();
    }

    /// Says to the inspector what these peers are now.
    fn report_changed(&mut self, peers: &[PeerKey]) {
        for key in peers {
            let peer = self.arp_plus.peer(key);
            // Who is a peer is no plain host.
            self.plain.stale |= peer.is_some() != self.tables.plan_of(key).is_some();
            let report = peer.filter(|_| self.settings.probes).map(PeerReport::from);
            self.inspector.handle(self.now, inspector::Input::Peer(*key, report));
        }
    }

    /// Says to the inspector who the peers are.
    fn report_peers(&mut self) {
        let reports = match self.settings.probes {
            true => self.arp_plus.peers().map(PeerReport::from).collect(),
            false => Vec::new(),
        };
        self.inspector.handle(self.now, inspector::Input::Peers(reports));
    }

    /// Says to the inspector which lanes the plans have now, and which of them carry data.
    fn report_plans(&mut self) {
        let peers = self.arp_plus.peers().flat_map(|peer| self.lanes_in_use(peer.key));
        let lanes = peers.chain(self.plain_lanes_in_use()).collect();
        self.inspector.handle(self.now, inspector::Input::Plan(lanes));
    }

    /// The same of one peer or plain host.
    fn report_plan_of(&mut self, peer: PeerKey) {
        let lanes = match peer {
            PeerKey::Plain(_) => {
                self.plain_lanes_in_use().into_iter().filter(|used| used.lane.peer == peer).collect()
            }
            PeerKey::Host(_) | PeerKey::Address(_) => self.lanes_in_use(peer),
        };
        self.inspector.handle(self.now, inspector::Input::PlanOf(peer, lanes));
    }

    /// Says which members plain hosts may be told of.
    fn report_answering_members(&mut self) {
        let members = told::told(&self.members, self.arp_plus.segments());
        self.answers.handle(self.now, answers::Input::Members(members));
    }

    /// Says who the plain hosts are.
    fn report_plain_hosts(&mut self) {
        let members = told::told(&self.members, self.arp_plus.segments());
        let hosts = self.plain.hosts().iter().map(|host| answers::PlainHost {
            mac: host.mac,
            ips: host.ips.clone(),
            heard_slot: host.heard_slot.map(|slot| told::in_place_of(slot, &members)),
        });
        let hosts = hosts.collect();
        self.answers.handle(self.now, answers::Input::Hosts(hosts));
    }

    /// The lanes of a peer's plans.
    fn lanes_in_use(&self, peer: PeerKey) -> Vec<LaneUse> {
        let Some((number, lanes)) = self.tables.lanes_of(&peer) else { return Vec::new() };
        // Classes may share lanes: one is busy if it is in any plan.
        let mut used: BTreeMap<LaneAt, bool> = BTreeMap::new();
        let classes = self.tables.class_plans_of(number).map(|(_, number, lanes)| (number, lanes));
        for (number, lanes) in std::iter::once((number, lanes)).chain(classes) {
            let busy = self.activity.busy(number);
            for (i, at) in lanes.iter().enumerate() {
                *used.entry(*at).or_default() |= busy & 1 << i != 0;
            }
        }
        let lane = |((slot, index), busy): (LaneAt, bool)| {
            Some(LaneUse { lane: LaneId { peer, slot, index: index? }, busy })
        };
        used.into_iter().filter_map(lane).collect()
    }

    /// The lanes that plain hosts' plans use, for those that are probed.
    fn plain_lanes_in_use(&self) -> Vec<LaneUse> {
        let mut lanes = Vec::new();
        for report in self.plain.probed() {
            let base = self.plan_of_plain(report.mac);
            let plan = self.tables.image().plans.get(&base);
            let mut used: BTreeMap<u8, bool> = BTreeMap::new();
            let mut add = |number: u32, slots: &mut dyn Iterator<Item = u8>| {
                let busy = self.activity.busy(number);
                for (i, slot) in slots.enumerate() {
                    *used.entry(slot).or_default() |= busy & 1 << i != 0;
                }
            };
            add(base, &mut plan.into_iter().flat_map(|plan| &plan.lanes).map(|lane| lane.slot));
            for (_, number, lanes) in self.tables.class_plans_of(base) {
                add(number, &mut lanes.iter().map(|(slot, _)| *slot));
            }
            lanes.extend(used.into_iter().map(|(slot, busy)| LaneUse {
                lane: LaneId { peer: PeerKey::Plain(report.mac), slot, index: 0 },
                busy,
            }));
        }
        lanes
    }

    /// The number of the plan that frames to a plain host follow.
    fn plan_of_plain(&self, mac: MacAddr) -> u32 {
        let segments = self.arp_plus.segments();
        let slot = self.plain.find(mac).and_then(|host| host.heard_slot).filter(|_| segments.len() > 1);
        let segment = slot.and_then(|slot| segments.iter().find(|segment| segment.slots.contains(&slot)));
        segment.and_then(|segment| segment.elected).map_or(PLAIN_PLAN, plain_plan)
    }
}

impl Usable for Inspector {
    fn usable(&self, peer: &Peer, slot: u8, index: u8) -> bool {
        self.lane_alive(&peer.key, slot, index).usable(peer.heard(slot, index))
    }
}
