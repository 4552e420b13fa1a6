//! A bond and its inspector: what the members are like goes in, verdicts come out and into the tables.

use crate::{
    bond::{Bond, Member},
    clock::Clock,
    error::About as _,
    tables::{Alive, LaneAt, OwnSide, Ready},
};
use linkbraid_api::Error;
use linkbraid_link::ArpPlusSender;
use linkbraid_proto::{
    Time, answers,
    arp_plus::{self, Changed, OwnMember, Peer, PeerKey},
    inspector::{self, LaneId, LaneUse, MemberReport, PeerReport, Verdict},
};
use std::collections::{BTreeMap, BTreeSet};

/// Rounds of questions and answers between the two protocols in one turn of the loop; more than two are not needed.
const ROUNDS_MAX: usize = 8;

/// What of the tables is to be written.
#[derive(Debug, Default)]
struct Differ {
    all: bool,
    peers: BTreeSet<PeerKey>,
}

impl Bond {
    /// Tells the protocols what the members are now.
    pub(crate) fn tell_members(&mut self, clock: Clock) {
        let former = self.tables.take_former_segments(&self.members);
        if !former.is_empty() {
            self.arp_plus.handle(clock.now(), arp_plus::Input::Segments(former));
        }
        let reports = self.members.iter().map(report).collect();
        self.inspector.handle(clock.now(), inspector::Input::Members(reports));
        self.follow_members(clock);
    }

    /// Takes the inspector's word on the members, and tells ARP+, so that peers stop sending to those that are down.
    fn follow_members(&mut self, clock: Clock) {
        let (dead, live) = (self.dead_slots(), self.live_slots());
        let sound = |slot| self.inspector.member_sound(slot) != Verdict::Dead;
        let any_sound = self
            .members
            .iter()
            .any(|member| self.inspector.member_alive(member.slot) == Verdict::Alive && sound(member.slot));
        for member in &mut self.members {
            member.alive = self.inspector.member_alive(member.slot) == Verdict::Alive;
            // The last ones are never given up on suspicion.
            member.sound = sound(member.slot) || !any_sound;
            self.names.insert(member.slot, member.name.clone());
        }
        // Before anything else: the plans, one for each peer, follow.
        if self.dead_slots() != dead
            && let Err(error) = self.path.set_dead_slots(self.dead_slots())
        {
            tracing::error!(bond = %self.saved.name, %error, "the data path is behind");
        }
        self.stripe_stale |= self.live_slots() != live;
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
            weight_mbit: member.weight_mbit(),
            class: member.class,
        });
        let members = members.collect();
        // Names before those who go by them.
        self.arp_plus.handle(clock.now(), arp_plus::Input::Features(linkbraid_wire::FEATURE_MIRROR));
        self.arp_plus.handle(clock.now(), arp_plus::Input::Classes(self.told_classes()));
        self.arp_plus.handle(clock.now(), arp_plus::Input::Members(members));
    }

    /// Members that no frame is to leave by, a bit a slot.
    pub(crate) fn dead_slots(&self) -> u32 {
        let dead = self.members.iter().filter(|member| !member.alive);
        dead.fold(0, |mask, member| mask | 1 << member.slot)
    }

    fn live_slots(&self) -> u32 {
        let live = self.members.iter().filter(|member| member.live());
        live.fold(0, |mask, member| mask | 1 << member.slot)
    }

    /// Tells the inspector what these peers are now.
    fn tell_changed(&mut self, clock: Clock, peers: &[PeerKey]) {
        for key in peers {
            let peer = self.arp_plus.peer(key);
            if peer.is_some() != self.tables.plan_of(key).is_some() {
                // Who is a peer is no plain host.
                self.plain.touch();
            }
            let report = peer.filter(|_| self.saved.settings.inspector.probes).map(PeerReport::from);
            self.inspector.handle(clock.now(), inspector::Input::Peer(*key, report));
        }
    }

    /// Tells the inspector who the peers are.
    fn tell_peers(&mut self, clock: Clock) {
        let reports = match self.saved.settings.inspector.probes {
            true => self.arp_plus.peers().map(PeerReport::from).collect(),
            false => Vec::new(),
        };
        self.inspector.handle(clock.now(), inspector::Input::Peers(reports));
    }

    /// Takes over settings that were changed.
    pub(crate) fn tell_timing(&mut self, clock: Clock) {
        self.inspector.handle(clock.now(), inspector::Input::Timing(self.saved.timing()));
        self.tell_peers(clock);
    }

    /// Hands a frame from the data path to the protocol that it belongs to.
    pub(crate) fn frame(&mut self, now: Time, slot: u8, frame: &[u8]) {
        if linkbraid_wire::is_probe(frame) || linkbraid_wire::is_arp_reply_to_probe(frame) {
            self.inspector.handle(now, inspector::Input::Frame { slot, bytes: frame });
        } else {
            self.arp_plus.handle(now, arp_plus::Input::Frame { slot, bytes: frame });
        }
    }

    /// A deadline may have come.
    pub(crate) fn timeout(&mut self, now: Time) {
        self.inspector.handle(now, inspector::Input::Timeout);
        self.arp_plus.handle(now, arp_plus::Input::Timeout);
        self.answers.handle(now, answers::Input::Timeout);
    }

    /// When a protocol wants to be woken next.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let times =
            [self.arp_plus.poll_timeout(), self.inspector.poll_timeout(), self.answers.poll_timeout()];
        times.into_iter().flatten().min()
    }

    /// Carries out what the protocols want, and brings the tables up to date.
    pub(crate) fn act(&mut self, sender: &mut ArpPlusSender, clock: Clock) {
        for _ in 0..ROUNDS_MAX {
            let (did_something, differ) = self.take_actions(sender, clock);
            let written = match differ.all {
                true => self.write_tables(clock),
                false => self.write_peers(clock, differ.peers),
            };
            if let Err(error) = written {
                tracing::error!(%error, "the data path is behind");
            }
            if !self.act_answers(sender) && !did_something {
                return;
            }
        }
    }

    /// Carries out what the protocols want; whether there was anything, and what of the tables must be written.
    fn take_actions(&mut self, sender: &mut ArpPlusSender, clock: Clock) -> (bool, Differ) {
        let (mut did_something, mut differ) = (false, Differ::default());
        while let Some(action) = self.inspector.poll_action() {
            did_something = true;
            match action {
                inspector::Action::Verdicts(Changed::All) => {
                    differ.all = true;
                    self.follow_members(clock);
                }
                inspector::Action::Verdicts(Changed::Peers(peers)) => differ.peers.extend(peers),
                inspector::Action::Send { slot, frame } => self.send(sender, slot, &frame),
                inspector::Action::Event(event) => self.told_by_inspector(&event),
            }
        }
        while let Some(action) = self.arp_plus.poll_action() {
            did_something = true;
            match action {
                arp_plus::Action::Send { slot, frame } => self.send(sender, slot, &frame),
                arp_plus::Action::Peers(Changed::All) => {
                    differ.all = true;
                    self.plain.touch();
                    self.tell_peers(clock);
                }
                arp_plus::Action::Peers(Changed::Peers(peers)) => {
                    self.tell_changed(clock, &peers);
                    differ.peers.extend(peers);
                }
                arp_plus::Action::Segments => {
                    differ.all = true;
                    self.plain.touch();
                }
                arp_plus::Action::Event(event) => self.told_by_arp_plus(&event),
            }
        }
        (did_something, differ)
    }

    /// Writes what the data path follows of these peers.
    fn write_peers(&mut self, clock: Clock, peers: BTreeSet<PeerKey>) -> Result<(), Error> {
        if peers.is_empty() {
            return Ok(());
        }
        let ready = Ready { members: &self.members, own: &self.own_side(), alive: &self.inspector };
        let written = self.tables.write_peers(&self.path, &ready, &self.arp_plus, peers.iter().copied());
        for peer in peers {
            self.tell_plan_of(clock, peer);
        }
        written.about(&self.saved.name, "cannot write the data path's tables")
    }

    /// Tells the inspector which lanes the plans have now, and which of them carry data.
    pub(crate) fn tell_plan(&mut self, clock: Clock) {
        let peers = self.arp_plus.peers().flat_map(|peer| self.lanes_in_use(peer.key));
        let lanes = peers.chain(self.plain_lanes_in_use()).collect();
        self.inspector.handle(clock.now(), inspector::Input::Plan(lanes));
    }

    /// The same of one peer or plain host.
    fn tell_plan_of(&mut self, clock: Clock, peer: PeerKey) {
        let lanes = match peer {
            PeerKey::Plain(_) => {
                self.plain_lanes_in_use().into_iter().filter(|used| used.lane.peer == peer).collect()
            }
            PeerKey::Host(_) | PeerKey::Address(_) => self.lanes_in_use(peer),
        };
        self.inspector.handle(clock.now(), inspector::Input::PlanOf(peer, lanes));
    }

    /// The lanes of a peer's plan.
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

    /// Looks which lanes carry data, and tells the inspector where that is another set.
    pub(crate) fn look_at_lanes(&mut self, clock: Clock) -> Result<(), Error> {
        let mut numbers: Vec<u32> = self.tables.numbers().collect();
        let plain = self.plain.probed().iter();
        numbers.extend(plain.flat_map(|report| {
            let base = self.plan_of_plain(self.plain.find(report.mac)).0;
            let classes = self.tables.class_plans_of(base).map(|(_, number, _)| number);
            std::iter::once(base).chain(classes)
        }));
        numbers.sort_unstable();
        numbers.dedup();
        let path = &self.path;
        let changed = self
            .activity
            .look(&numbers, |number| path.lane_counts(number))
            .about(&self.saved.name, "cannot read counters")?;
        let plain = || self.plain.probed().iter().map(|report| PeerKey::Plain(report.mac));
        let peers: BTreeSet<PeerKey> = changed
            .into_iter()
            .flat_map(|number| match self.tables.peer_of(number) {
                Some(peer) => vec![peer],
                None => plain().collect(),
            })
            .collect();
        for peer in peers {
            self.tell_plan_of(clock, peer);
        }
        Ok(())
    }

    /// The members and classes as plans see them.
    pub(crate) fn own_side(&self) -> OwnSide {
        OwnSide::new(&self.members, &self.saved.classes, self.saved.settings.policy)
    }

    /// Whether some lane through the member is proven.
    pub(crate) fn is_proven(&self, slot: u8) -> bool {
        self.any_proven(|at| at == slot)
    }

    /// Whether some lane through another member is proven: then there is somebody to try this one with.
    pub(crate) fn has_witness(&self, slot: u8) -> bool {
        self.any_proven(|at| at != slot)
    }

    fn any_proven(&self, wanted: impl Fn(u8) -> bool) -> bool {
        let slots: Vec<u8> =
            self.members.iter().map(|member| member.slot).filter(|slot| wanted(*slot)).collect();
        let proven = |key: &PeerKey, index| {
            slots.iter().any(|slot| self.inspector.lane_alive(key, *slot, index) == Verdict::Alive)
        };
        self.arp_plus.peers().any(|peer| peer.members.iter().any(|member| proven(&peer.key, member.index)))
            || self.plain.probed().iter().any(|report| proven(&PeerKey::Plain(report.mac), 0))
    }
}

fn report(member: &Member) -> MemberReport {
    MemberReport {
        slot: member.slot,
        mac: member.mac,
        admin_up: member.admin_up && member.ours,
        carrier: member.polled.unwrap_or(member.carrier),
        speed_mbit: member.speed_mbit,
        full_duplex: member.full_duplex,
    }
}

impl Alive for inspector::Inspector {
    fn usable(&self, peer: &Peer, slot: u8, index: u8) -> bool {
        self.lane_alive(&peer.key, slot, index).usable(peer.heard(slot, index))
    }
}
