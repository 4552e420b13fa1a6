//! What can be seen of a world.

use super::{Fault, Machine, Port, URGENT, World, key, mac};
use linkbraid_proto::{host::Member, inspector::Verdict};
use linkbraid_wire::MacAddr;

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
                daemon.inspector().lane_alive(&key(to), ours.slot, theirs.slot) == Verdict::Alive
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

    pub fn describe(&self) -> String {
        let host = |(number, machine): (usize, &Machine)| {
            let rows = &machine.path.rows;
            let lanes = machine.daemon.as_ref().map(|daemon| {
                let lanes = daemon.inspector().snapshot(self.now()).lanes.into_iter();
                lanes.map(|lane| format!("{} {:?}", lane.lane, lane.state)).collect::<Vec<_>>()
            });
            format!(
                "{number}: {:?} {:?} {:?} {:?} {:?} {lanes:?}",
                rows.bond, rows.members, rows.plans, rows.class_plans, rows.peer_macs
            )
        };
        let hosts: Vec<String> = self.machines.iter().enumerate().map(host).collect();
        format!(
            "faults {:?}, unplugged {:?}, cables {:?}\n{}",
            self.faults,
            self.unplugged,
            self.cables,
            hosts.join("\n")
        )
    }
}
