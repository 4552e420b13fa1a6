//! What can be seen of a world.

use super::{Fault, Machine, Port, URGENT, World, addresses, mac};
use crate::hosts::id;
use linkbraid_proto::{
    arp_plus::{PeerKey, PeerState},
    host::Member,
    inspector::{LaneId, LaneSnapshot, LaneState, Verdict},
};
use linkbraid_wire::MacAddr;
use std::collections::BTreeSet;

impl World {
    /// Whether a frame of that number has come to that host.
    pub fn has_come(&self, number: u64, host: usize) -> bool {
        self.delivered.contains_key(&(number, host))
    }

    pub fn last_sent(&self) -> u64 {
        self.sent.len() as u64 - 1
    }

    /// Whether the last frame, one of that class to one peer, left by a member that is not meant for it though one that is has
    /// a proven lane to the peer. A lane that flapped is proven late (11.2).
    pub fn left_by_wrong_class(&self, from: usize, to: usize, class: u8) -> bool {
        let Machine { daemon: Some(daemon), class: Some(own), .. } = &self.machines[from] else {
            return false;
        };
        let proven = |wanted: &dyn Fn(&Member, &Member) -> bool| {
            let ends = |ours| self.machines[to].members.iter().map(move |theirs| (ours, theirs));
            let mut pairs = self.machines[from].members.iter().flat_map(ends);
            let alive = |ours: &Member, theirs: &Member| {
                daemon.inspector().lane_alive(&PeerKey::Host(id(to)), ours.slot, theirs.slot)
                    == Verdict::Alive
            };
            pairs.any(|(ours, theirs)| wanted(ours, theirs) && alive(ours, theirs))
        };
        let slot = self.sent.last().and_then(|sent| sent.slot);
        let is_urgent = slot.is_some_and(|slot| own.slots.contains(&slot));
        match class {
            0 => is_urgent && !own.lends && proven(&|ours, theirs| ours.class + theirs.class == 0),
            _ => !is_urgent && proven(&|ours, _| ours.class == URGENT),
        }
    }

    /// The MAC that others reach a host by.
    pub(super) fn mac_of(&self, host: usize) -> MacAddr {
        self.machines.get(host).map_or_else(|| mac(host, 0), |machine| machine.mac)
    }

    /// Whether two stations have ports on one switch that forward both ways.
    pub fn have_sound_lane(&self, one: usize, other: usize) -> bool {
        let is_member = |(host, slot): Port| {
            let Some(machine) = self.machines.get(host) else { return self.plain_lives(host) };
            machine.members.iter().any(|m| m.slot == slot && !m.leaving)
        };
        let sound = |port: Port, switch: u8| {
            !self.is_cut(port, Fault::From(port.0, port.1))
                && !self.is_cut(port, Fault::To(port.0, port.1))
                && !self.faults.contains(&Fault::Switch(switch))
                && is_member(port)
        };
        let there = self.ports(other);
        self.ports(one).into_iter().any(|here| {
            let switch = self.cables[&here];
            there
                .iter()
                .any(|there| self.cables[there] == switch && sound(here, switch) && sound(*there, switch))
        })
    }

    /// Whether each host with a daemon has proven the lanes that exist, and no other, takes none for short, and knows each
    /// other host as it is.
    pub fn check_known(&self) -> Result<(), String> {
        for (host, machine) in self.machines.iter().enumerate() {
            let daemon = machine.daemon.as_ref().ok_or_else(|| format!("{host} has no daemon"))?;
            let up = |lane: &LaneSnapshot| lane.state == LaneState::Up;
            let proven = daemon.inspector().snapshot(self.now()).lanes.into_iter().filter(up);
            let proven: BTreeSet<LaneId> = proven.map(|lane| lane.lane).collect();
            let exist = self.lanes_of(host);
            if proven != exist {
                let missing: Vec<_> = exist.difference(&proven).map(ToString::to_string).collect();
                let invented: Vec<_> = proven.difference(&exist).map(ToString::to_string).collect();
                return Err(format!("{host} has not proven {missing:?}, and has proven {invented:?}"));
            }
            if let Some(lane) = daemon.inspector().short_lanes().next() {
                return Err(format!("{host} takes {lane} for short"));
            }
            let is_dead = |slot: &u8| daemon.inspector().member_sound(*slot) != Verdict::Alive;
            if let Some(slot) = exist.iter().map(|lane| lane.slot).find(is_dead) {
                return Err(format!("{host} does not take member {slot} for sound"));
            }
            let is_near = |other: &usize| exist.iter().any(|lane| lane.peer == PeerKey::Host(id(*other)));
            for other in (0..self.machines.len()).filter(is_near) {
                let peer = daemon.arp_plus().peer(&PeerKey::Host(id(other)));
                let peer = peer.ok_or_else(|| format!("{host} does not know {other}"))?;
                let truth = &self.machines[other];
                let known =
                    peer.members.iter().map(|member| (member.index, member.mac, member.up, member.class));
                let members =
                    truth.members.iter().map(|member| (member.slot, member.mac, true, member.class));
                let is_known = peer.state == PeerState::Alive
                    && peer.epoch == Some(truth.epoch)
                    && addresses(other).eq(peer.addresses.iter().copied())
                    && peer.classes.len() == usize::from(truth.class.is_some())
                    && known.collect::<BTreeSet<_>>() == members.collect();
                if !is_known {
                    return Err(format!("{host} has of {other}: {peer:?}"));
                }
            }
        }
        Ok(())
    }

    /// Whether each member of a host is proven, or was and is no longer.
    pub fn has_judged_members(&self, host: usize) -> bool {
        let Machine { daemon: Some(daemon), members, .. } = &self.machines[host] else { return false };
        members.iter().all(|member| daemon.inspector().member_sound(member.slot) != Verdict::Unknown)
    }

    /// All pairs of a host's members and other hosts' on one switch.
    fn lanes_of(&self, host: usize) -> BTreeSet<LaneId> {
        let mut lanes = BTreeSet::new();
        for slot in self.machines[host].members.iter().map(|member| member.slot) {
            for ((other, index), switch) in &self.cables {
                let peer = match self.machines.get(*other) {
                    Some(machine) if machine.members.iter().any(|member| member.slot == *index) => {
                        PeerKey::Host(id(*other))
                    }
                    Some(_) => continue,
                    None => PeerKey::Plain(mac(*other, 0)),
                };
                if *other != host && *switch == self.cables[&(host, slot)] {
                    lanes.insert(LaneId { peer, slot, index: *index });
                }
            }
        }
        lanes
    }

    pub fn describe(&self) -> String {
        let host = |(number, machine): (usize, &Machine)| {
            let rows = &machine.path.rows;
            let lanes = machine.daemon.as_ref().map(|daemon| {
                let lanes = daemon.inspector().snapshot(self.now()).lanes.into_iter();
                let lanes = lanes.map(|lane| format!("{} {:?}", lane.lane, lane.state)).collect::<Vec<_>>();
                let sound = machine.members.iter().map(|member| daemon.inspector().member_sound(member.slot));
                let guests = daemon.arp_plus().announced_guests().iter().map(|guest| guest.mac);
                let located = &daemon.arp_plus().located_guests().macs;
                (sound.collect::<Vec<_>>(), lanes, guests.collect::<Vec<_>>(), located.clone())
            });
            format!(
                "{number}: {:?} {:?} {:?} {:?} {:?} {:?} {lanes:?}",
                rows.bond, rows.members, rows.plans, rows.class_plans, rows.peer_macs, rows.guest_pairs
            )
        };
        let hosts: Vec<String> = self.machines.iter().enumerate().map(host).collect();
        format!(
            "faults {:?}, unplugged {:?}, cables {:?}, guests {:?}\n{}",
            self.faults,
            self.unplugged,
            self.cables,
            self.guests,
            hosts.join("\n")
        )
    }
}
