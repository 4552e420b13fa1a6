//! Which member each host gets: the least loaded one of its segment, and as few moves as balance needs.

use super::{Answers, Counter, Host, Member};
use linkbraid_wire::MacAddr;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

/// Hosts of a member, and its weight.
type Load = (u64, u64);

/// Hosts by the members they may have.
type Groups = BTreeMap<(u8, Vec<u8>), Vec<MacAddr>>;

/// Usable members by slot, each with its load.
struct Loads(BTreeMap<u8, Load>);

impl Loads {
    fn of(members: &[Member], hosts: &BTreeMap<MacAddr, Host>) -> Loads {
        let usable = members.iter().filter(|member| member.usable);
        let mut loads: BTreeMap<u8, Load> =
            usable.map(|member| (member.slot, (0, u64::from(member.weight_mbit.max(1))))).collect();
        for slot in hosts.values().filter_map(|host| host.slot) {
            if let Some((count, _)) = loads.get_mut(&slot) {
                *count += 1;
            }
        }
        Loads(loads)
    }

    /// The one among these that is loaded least with one host more; of equals the lowest.
    fn least(&self, slots: &[u8]) -> Option<u8> {
        slots
            .iter()
            .copied()
            .min_by(|one, other| compare(self.with_one_more(*one), self.with_one_more(*other)))
    }

    fn get(&self, slot: u8) -> Load {
        self.0.get(&slot).copied().unwrap_or((0, 1))
    }

    fn with_one_more(&self, slot: u8) -> Load {
        let (count, weight) = self.get(slot);
        (count + 1, weight)
    }

    fn add(&mut self, slot: u8, count: u64) {
        if let Some(load) = self.0.get_mut(&slot) {
            load.0 += count;
        }
    }

    fn take(&mut self, slot: u8) {
        if let Some(load) = self.0.get_mut(&slot) {
            load.0 = load.0.saturating_sub(1);
        }
    }

    /// The move that helps most: from the member loaded most, to the one loaded least, if the latter is then loaded
    /// less than the former was.
    fn best_move(&self, groups: &Groups) -> Option<((u8, Vec<u8>), u8)> {
        let moves = groups.iter().filter_map(|(group, hosts)| {
            let to = self.least(&group.1).filter(|_| !hosts.is_empty())?;
            (compare(self.with_one_more(to), self.get(group.0)) == Ordering::Less)
                .then(|| (group.clone(), to))
        });
        moves.max_by(|one, other| compare(self.get(one.0.0), self.get(other.0.0)))
    }
}

/// Compares hosts for each unit of weight.
fn compare(one: Load, other: Load) -> Ordering {
    (one.0 * other.1).cmp(&(other.0 * one.1))
}

/// Which members are on the host's segment: with the one it was heard on; while that has failed, and so alone in its segment,
/// with those that were on it before.
fn update_reach(host: &mut Host, members: &[Member]) {
    let usable = || members.iter().filter(|member| member.usable);
    let heard = usable().find(|member| Some(member.slot) == host.heard_slot);
    let segments: BTreeSet<u32> = match heard {
        Some(member) => BTreeSet::from([member.segment]),
        None => {
            usable().filter(|member| host.reach.contains(&member.slot)).map(|member| member.segment).collect()
        }
    };
    if !segments.is_empty() {
        let near = members.iter().filter(|member| segments.contains(&member.segment));
        host.reach = near.map(|member| member.slot).collect();
    }
}

/// The members that a host may have. Empty: nobody knows on which of several segments it is.
fn candidates(host: &Host, members: &[Member]) -> Vec<u8> {
    let usable = || members.iter().filter(|member| member.usable);
    let near: Vec<u8> = usable().map(|member| member.slot).filter(|slot| host.reach.contains(slot)).collect();
    if !near.is_empty() {
        return near;
    }
    let segments: BTreeSet<u32> = usable().map(|member| member.segment).collect();
    // Where it was heard no member is left, or there is one segment: any may reach it, and no other can.
    if !host.reach.is_empty() || segments.len() == 1 {
        return usable().map(|member| member.slot).collect();
    }
    host.slot.filter(|slot| usable().any(|member| member.slot == *slot)).into_iter().collect()
}

impl Answers {
    /// Gives every host a member; `rebalance`: even if it has one that is usable.
    pub(super) fn assign(&mut self, rebalance: bool) {
        let mut homeless = Vec::new();
        for (mac, host) in &mut self.hosts {
            update_reach(host, &self.members);
            let may = candidates(host, &self.members);
            if host.slot.is_none_or(|slot| !may.contains(&slot)) {
                homeless.push((*mac, may));
            }
        }
        let mut moves: BTreeMap<MacAddr, Option<u8>> = BTreeMap::new();
        let mut loads = Loads::of(&self.members, &self.hosts);
        for (mac, _) in &homeless {
            if let Some(slot) = self.hosts.get(mac).and_then(|host| host.slot) {
                loads.take(slot);
            }
        }
        for (mac, may) in homeless {
            let slot = loads.least(&may);
            slot.into_iter().for_each(|slot| loads.add(slot, 1));
            moves.insert(mac, slot);
        }
        if rebalance {
            self.rebalance(&mut loads, &mut moves);
        }
        moves.into_iter().for_each(|(mac, slot)| self.give(mac, slot));
        self.tell_names();
    }

    fn rebalance(&self, loads: &mut Loads, moves: &mut BTreeMap<MacAddr, Option<u8>>) {
        let mut groups = Groups::new();
        for (mac, host) in &self.hosts {
            if let Some(slot) = moves.get(mac).copied().unwrap_or(host.slot) {
                groups.entry((slot, candidates(host, &self.members))).or_default().push(*mac);
            }
        }
        while let Some((group, to)) = loads.best_move(&groups) {
            let Some(mac) = groups.get_mut(&group).and_then(Vec::pop) else { return };
            loads.take(group.0);
            loads.add(to, 1);
            moves.insert(mac, Some(to));
            groups.entry((to, group.1)).or_default().push(mac);
        }
    }

    fn give(&mut self, mac: MacAddr, slot: Option<u8>) {
        let Some(host) = self.hosts.get_mut(&mac).filter(|host| host.slot != slot) else { return };
        self.counters.one(if host.slot.is_none() { Counter::HostAssigned } else { Counter::HostMoved });
        if slot.is_none() && host.left > 0 {
            // What waits does not leave any more.
            host.named = None;
        }
        host.slot = slot;
        self.assigned.insert(mac, slot);
    }
}
