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
//! 4. a few times a second read the counters of [`Host::plans_to_read`] and hand them in ([`Input::LaneCounts`]), and
//!    then what plain hosts have sent ([`Input::PlainFrames`]).
//!
//! How a member that fails gets out of all plans: [`Input::Members`] or a timeout reaches the inspector, `follow_members`
//! puts the verdicts into the members ([`Action::FailedSlots`], which works at once) and ARP+ announces them; then
//! `remake` makes every plan again ([`Action::Tables`]) and says to the inspector which lanes they use.

use crate::{
    Time,
    answers::{self, Answers},
    arp_plus::{self, ArpPlus, Changed, Peer, PeerKey},
    auth::Auth,
    inspector::{self, Inspector, Verdict},
};
use linkbraid_wire::MacAddr;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
};

mod activity;
mod answering;
mod authentic;
mod corrections;
mod guests;
mod image;
mod interface;
mod lanes;
mod member;
mod numbers;
mod plain;
mod rates;
mod reports;
mod stall;
mod tables;
#[cfg(test)]
mod tests;
mod verdicts;
mod view;
mod written;

pub use image::{
    Answer, BondRow, ClassRow, GuestPair, MacKind, MemberRow, PLAIN_PLAN, PLAIN_PLAN_FIRST, PeerMac, Plan,
    TableImage, plain_plan,
};
pub use interface::{Action, Class, Config, Input, Settings};
pub use lanes::{DEFAULT_CLASS, OwnSide, lane_index};
pub use linkbraid_api::Policy;
pub use member::Member;
pub use plain::{Neighbour, PlainHost};
pub use rates::{LaneCount, LaneRates, StripeBasis};
pub use tables::Usable;
pub use written::Write;

use activity::Activity;
use corrections::Learned;
use guests::GuestTimes;
use plain::PlainHosts;
use rates::Rates;
use stall::Stall;
use tables::{Sources, Tables};

/// Rounds of questions and answers between the machines after one input; more than two are not needed.
const ROUNDS_MAX: usize = 8;

/// What of the tables is to be made again.
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
    auth: Auth,
    arp_plus: ArpPlus,
    inspector: Inspector,
    answers: Answers,
    plain: PlainHosts,
    activity: Activity,
    stall: Stall,
    rates: Rates,
    learned: Learned,
    tables: Tables,
    guest_times: GuestTimes,
    differ: Differ,
    actions: VecDeque<Action>,
    rounds: usize,
}

impl Host {
    /// A host without members that does not speak yet. `left` is what an earlier daemon left in the data path; what its plans
    /// hold may be missing.
    pub fn new(config: Config, settings: Settings, left: TableImage) -> Host {
        let Config { host_id, epoch, secret } = config;
        let probing = inspector::Config { host_id, epoch, timing: settings.timing };
        let mut numbers = crate::secret::Numbers::new(secret);
        let tables = Tables::adopt(left);
        let mut arp_plus = ArpPlus::new(arp_plus::Config::new(host_id, epoch), numbers.secret());
        arp_plus.handle(Time::ZERO, arp_plus::Input::PublishedOnly(settings.published_only));
        arp_plus.handle(Time::ZERO, arp_plus::Input::FormerGuests(tables.former_guests()));
        let mut inspector = Inspector::new(probing, numbers.secret());
        inspector.handle(Time::ZERO, inspector::Input::Mtu(settings.mtu));
        let mut host = Host {
            now: Time::ZERO,
            auth: Auth::new(host_id, epoch, numbers.secret()),
            arp_plus,
            inspector,
            answers: Answers::default(),
            own: answers::Own { mac: MacAddr::ZERO, addresses: Vec::new(), router: false },
            members: Vec::new(),
            plain: PlainHosts::default(),
            activity: Activity::default(),
            stall: Stall::default(),
            rates: Rates::default(),
            learned: Learned::default(),
            tables,
            guest_times: GuestTimes::default(),
            settings,
            differ: Differ::default(),
            actions: VecDeque::new(),
            rounds: 0,
        };
        host.set_auth();
        host
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
            Input::Frame { slot, bytes, heard_again } => self.frame(slot, bytes, heard_again),
            Input::NeighboursChanged => self.plain.stale = true,
            Input::Guests(seen) => self.see_guests(seen),
            Input::Neighbours(Some(neighbours), heard) => self.take_neighbours(&neighbours, &heard),
            Input::Neighbours(None, _) => self.plain.not_read(),
            Input::LaneCounts(plans) => self.take_lane_counts(&plans),
            Input::PlainFrames(frames) => {
                if self.stall.take(now, frames) {
                    self.inspector.handle(now, inspector::Input::PlainStalled);
                }
            }
            Input::Broadcast => self.answers.handle(now, answers::Input::Broadcast),
            Input::DropInherited => {
                self.tables.drop_inherited();
                self.follow_members();
                self.differ.all = true;
            }
            Input::Reset(slot) => self.inspector.handle(now, inspector::Input::Reset(slot)),
            Input::Woke => {
                self.inspector.handle(now, inspector::Input::Woke);
                self.arp_plus.handle(now, arp_plus::Input::Woke);
            }
            Input::Timeout => {
                self.inspector.handle(now, inspector::Input::Timeout);
                if self.arp_plus.follows_probes(now) {
                    self.arp_plus.handle(now, arp_plus::Input::Probed(self.inspector.probed()));
                }
                self.arp_plus.handle(now, arp_plus::Input::Timeout);
                self.answers.handle(now, answers::Input::Timeout);
                self.remind_switches();
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
        machines.into_iter().chain([self.plain.next_ask(), self.next_reminder()]).flatten().min()
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
        self.inspector.handle(now, inspector::Input::Mtu(self.settings.mtu));
        if old.probes != self.settings.probes {
            self.report_peers();
        }
        self.arp_plus.handle(now, arp_plus::Input::PublishedOnly(self.settings.published_only));
        self.set_auth();
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

    /// Hands a frame from the data path to the machine that it belongs to.
    fn frame(&mut self, slot: u8, bytes: &[u8], heard_again: bool) {
        if !self.admits(slot, bytes) {
            return;
        }
        if linkbraid_wire::is_probe(bytes) || linkbraid_wire::is_plain_answer(bytes) {
            self.inspector.handle(self.now, inspector::Input::Frame { slot, bytes });
        } else {
            self.arp_plus.handle(self.now, arp_plus::Input::Frame { slot, bytes, heard_again });
        }
    }

    /// Takes the neighbour table: who the plain hosts are, and whom to probe.
    fn take_neighbours(&mut self, neighbours: &[Neighbour], heard: &[(MacAddr, u8)]) {
        let gateways = neighbours.iter().filter(|neighbour| neighbour.gateway).map(|neighbour| neighbour.mac);
        self.arp_plus.handle(self.now, arp_plus::Input::Gateways(gateways.collect()));
        if self.plain.take(neighbours, heard, &self.arp_plus, self.settings.probes) {
            let probed = self.plain.probed().to_vec();
            self.inspector.handle(self.now, inspector::Input::Plain(probed));
            self.report_plans();
        }
        self.report_taken();
        self.report_answering_members();
        self.report_plain_hosts();
        self.set_answers();
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
                inspector::Action::Verdicts(Changed::Peers(peers)) => {
                    if peers.iter().any(|peer| matches!(peer, PeerKey::Plain(_))) {
                        self.report_taken();
                    }
                    self.differ.peers.extend(peers);
                }
                inspector::Action::Send { slot, frame } => self.send(slot, frame),
                inspector::Action::Proven { peer, mac, asked } => {
                    self.arp_plus.handle(self.now, arp_plus::Input::Proven { peer, mac, asked });
                }
                inspector::Action::Event(event) => self.actions.push_back(Action::Inspector(event)),
            }
        }
        while let Some(action) = self.arp_plus.poll_action() {
            did_something = true;
            match action {
                arp_plus::Action::Send { slot, frame } => self.send(slot, frame),
                arp_plus::Action::Peers(Changed::All) => {
                    self.differ.all = true;
                    self.plain.stale = true;
                    self.report_peers();
                }
                arp_plus::Action::Peers(Changed::Peers(peers)) => {
                    self.report_changed(&peers);
                    self.differ.peers.extend(peers);
                }
                arp_plus::Action::Guests => self.take_own_guests(),
                arp_plus::Action::Segments => {
                    self.differ.all = true;
                    self.plain.stale = true;
                }
                arp_plus::Action::Challenge(peer) => {
                    if !self.inspector.challenge(self.now, peer) {
                        self.arp_plus.handle(self.now, arp_plus::Input::NobodyObjects(peer));
                    }
                }
                arp_plus::Action::Event(event) => self.actions.push_back(Action::ArpPlus(event)),
            }
        }
        did_something
    }

    /// Makes again what differs of the tables, and says to the inspector which lanes are used.
    fn remake(&mut self) {
        let own = self.own_side();
        let sources =
            Sources { members: &self.members, own: &own, arp_plus: &self.arp_plus, usable: &self.inspector };
        let Differ { all, peers } = std::mem::take(&mut self.differ);
        if all {
            let mut spreads = own.spreads(&self.members).into_iter();
            let striped = spreads.any(|(policy, weights)| policy == Policy::Spread && weights.len() > 1);
            let bond = BondRow {
                mac: self.own.mac,
                damping: self.settings.damping && striped,
                elected: Vec::new(),
                failed_slots: self.failed_slots(),
            };
            self.tables.remake(bond, &sources);
            self.report_plans();
            self.report_answering_members();
        } else {
            self.tables.update(&sources, peers.iter().copied());
            peers.into_iter().for_each(|peer| self.report_plan_of(peer));
        }
        // Plans are made by weights. One with other lanes is spread by what is known of them from the start.
        for number in self.rates.in_use().collect::<Vec<_>>() {
            if let Some(plan) = self.tables.image().plans.get(&number) {
                self.rates.follow(number, &plan.lanes, |slot| own.is_fixed(slot));
            }
            self.tables.set_rates(number, &self.rates);
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

    /// Who is to send where, and whose replies to probes are wanted.
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
}

impl Usable for Inspector {
    fn usable(&self, peer: &Peer, slot: u8, index: u8) -> bool {
        self.lane_alive(&peer.key, slot, index).usable(peer.heard(slot, index))
    }
}
