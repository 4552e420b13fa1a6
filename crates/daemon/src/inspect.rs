//! A bond and its inspector: what the members are like goes in, verdicts come out and into the tables.

use crate::{
    bond::{Bond, Member},
    clock::Clock,
    error::About as _,
    tables::{Alive, lane_index, peer_lanes},
};
use linkbraid_api::Error;
use linkbraid_link::ArpPlusSender;
use linkbraid_proto::{
    Time, answers,
    arp_plus::{self, OwnMember, Peer, PeerKey},
    inspector::{self, LaneId, LaneUse, MemberReport, PeerReport, Verdict},
    plan::PlanMember,
};

/// Rounds of questions and answers between the two protocols in one turn of the loop; more than two are not needed.
const ROUNDS_MAX: usize = 8;

impl Bond {
    /// Tells the protocols what the members are now.
    pub(crate) fn tell_members(&mut self, clock: Clock) {
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
        let members = self.members.iter().map(|member| OwnMember {
            slot: member.slot,
            mac: member.mac,
            up: member.alive && !member.leaving,
            sound: !member.joining && (proven(member.slot) || !any_proven),
            weight_mbit: member.weight_mbit(),
            class: 0,
        });
        let members = members.collect();
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

    /// Tells the inspector who the peers are.
    fn tell_peers(&mut self, clock: Clock) {
        let reports = match self.saved.probes {
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
            let (did_something, tables_differ) = self.take_actions(sender, clock);
            if tables_differ && let Err(error) = self.write_tables(clock) {
                tracing::error!(%error, "the data path is behind");
            }
            if !self.act_answers(sender) && !did_something {
                return;
            }
        }
    }

    /// Carries out what the protocols want; whether there was anything, and whether the tables must be written.
    fn take_actions(&mut self, sender: &mut ArpPlusSender, clock: Clock) -> (bool, bool) {
        let (mut did_something, mut tables_differ, mut peers_differ) = (false, false, false);
        while let Some(action) = self.inspector.poll_action() {
            did_something = true;
            match action {
                inspector::Action::Verdicts(inspector::Changed::All) => {
                    tables_differ = true;
                    self.follow_members(clock);
                }
                inspector::Action::Verdicts(inspector::Changed::Peers(_)) => tables_differ = true,
                inspector::Action::Send { slot, frame } => self.send(sender, slot, &frame),
                inspector::Action::Event(event) => self.told_by_inspector(&event),
            }
        }
        while let Some(action) = self.arp_plus.poll_action() {
            did_something = true;
            match action {
                arp_plus::Action::Send { slot, frame } => self.send(sender, slot, &frame),
                arp_plus::Action::Peers => {
                    (tables_differ, peers_differ) = (true, true);
                    self.plain.touch();
                }
                arp_plus::Action::Segments => {
                    tables_differ = true;
                    self.plain.touch();
                }
                arp_plus::Action::Event(event) => self.told_by_arp_plus(&event),
            }
        }
        if peers_differ {
            self.tell_peers(clock);
        }
        (did_something, tables_differ)
    }

    /// Tells the inspector which lanes the plans have now, and which of them carry data.
    pub(crate) fn tell_plan(&mut self, clock: Clock) {
        let own = self.own_members();
        let mut lanes = Vec::new();
        for peer in self.arp_plus.peers() {
            let busy = self.tables.plan_of(&peer.key).map(|number| self.activity.busy(number));
            for (i, lane) in peer_lanes(&own, peer, &self.inspector).iter().enumerate() {
                if let Some(index) = lane_index(peer, lane) {
                    let busy = busy.is_some_and(|lanes| lanes & 1 << i != 0);
                    lanes.push(LaneUse { lane: LaneId { peer: peer.key, slot: lane.slot, index }, busy });
                }
            }
        }
        lanes.extend(self.plain_lanes_in_use());
        self.inspector.handle(clock.now(), inspector::Input::Plan(lanes));
    }

    /// Looks which lanes carry data; whether that is another set.
    pub(crate) fn look_at_lanes(&mut self, clock: Clock) -> Result<(), Error> {
        let peers = self.arp_plus.peers().filter_map(|peer| self.tables.plan_of(&peer.key));
        let mut numbers: Vec<u32> = peers.collect();
        let plain = self.plain.probed().iter();
        numbers.extend(plain.map(|report| self.plan_of_plain(self.plain.find(report.mac)).0));
        numbers.sort_unstable();
        numbers.dedup();
        let path = &self.path;
        let changed = self
            .activity
            .look(&numbers, |number| path.lane_counts(number))
            .about(&self.saved.name, "cannot read counters")?;
        if changed {
            self.tell_plan(clock);
        }
        Ok(())
    }

    /// The members as plans see them.
    pub(crate) fn own_members(&self) -> Vec<PlanMember> {
        let plan_member = |member: &Member| PlanMember {
            slot: member.slot,
            weight_mbit: member.weight_mbit(),
            up: member.alive && !member.leaving,
        };
        self.members.iter().map(plan_member).collect()
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
