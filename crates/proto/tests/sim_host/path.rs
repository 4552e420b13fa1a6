//! What the programs of the data path do with a table image (`crates/dataplane/src/bpf/steer.bpf.h` and `take.bpf.h`), as
//! far as it decides where a frame goes.

use linkbraid_proto::{Time, arp_plus::alias_of, host::*, plan::Lane};
use linkbraid_wire::MacAddr;
use std::collections::BTreeMap;

#[path = "pairs.rs"]
mod pairs;

pub use pairs::{Addresses, Notes};

/// The tables as they were written, row by row, and what the programs note themselves.
#[derive(Debug, Default, Clone)]
pub struct Path {
    pub rows: TableImage,
    pub failed_slots: u32,
    /// The slot that each plain host was heard on (`lb_plain_hosts`).
    heard: BTreeMap<MacAddr, u8>,
    /// Of guests here (`lb_guests`, `lb_guests_seen`).
    pub notes: Notes,
}

/// What becomes of a frame that came in on a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The bond has it.
    Accepted,
    /// It may be for the guest with that MAC behind the bond.
    Guest(MacAddr),
    /// Its source is the bond's own.
    Own,
    Dropped,
}

fn is_member(row: &PeerMac) -> bool {
    matches!(row.kind, MacKind::Member { .. })
}

impl Path {
    /// Does what `DataPath` does with one row.
    pub fn write(&mut self, write: &Write<'_>) {
        fn set<K: Ord, R: Clone>(rows: &mut BTreeMap<K, R>, key: K, row: Option<&R>) {
            match row {
                Some(row) => _ = rows.insert(key, row.clone()),
                None => _ = rows.remove(&key),
            }
        }
        let rows = &mut self.rows;
        match *write {
            Write::Bond(bond) => {
                rows.bond = bond.clone();
                self.failed_slots = bond.failed_slots;
            }
            Write::Member(slot, row) => {
                set(&mut rows.members, slot, row);
                if row.is_none() {
                    self.heard.retain(|_, heard| *heard != slot);
                }
            }
            Write::Class(number, row) => _ = rows.classes.insert(number, *row),
            Write::Plan(number, plan) => set(&mut rows.plans, number, plan),
            Write::ClassPlan(base, class, number) => {
                set(&mut rows.class_plans, (base, class), number.as_ref());
            }
            Write::PeerMac(mac, row) => set(&mut rows.peer_macs, mac, row),
            Write::GuestPair(at, row) => set(&mut rows.guest_pairs, at, row),
            Write::Answer(mac, row) => set(&mut rows.answers, mac, row),
        }
        self.check();
    }

    /// No row points at one that is not there, at any instant, unless what is there is known to have failed.
    fn check(&self) {
        let rows = &self.rows;
        let elected = rows.bond.elected.iter().filter(|_| rows.bond.elected.len() > 1);
        let used = rows.peer_macs.values().map(|row| row.plan).chain(rows.class_plans.values().copied());
        let used = used.chain(elected.map(|slot| plain_plan(*slot))).chain([PLAIN_PLAN]);
        for (number, plan) in used.filter_map(|number| rows.plans.get_key_value(&number)) {
            let is_there = |slot: u8| rows.members.contains_key(&slot) || self.is_dead(slot);
            let gone = plan.lanes.iter().find(|lane| !is_there(lane.slot));
            assert!(gone.is_none(), "plan {number} names a member that is not there: {gone:?}");
        }
        for (mac, row) in &rows.peer_macs {
            assert!(
                rows.plans.contains_key(&row.plan),
                "{mac} leads to plan {}, which is not there",
                row.plan
            );
        }
        for (at, pair) in &rows.guest_pairs {
            assert!(
                rows.plans.contains_key(&pair.plan),
                "{at:?} leads to plan {}, which is not there",
                pair.plan
            );
        }
        for (at, number) in &rows.class_plans {
            assert!(rows.plans.contains_key(number), "{at:?} leads to plan {number}, which is not there");
        }
    }

    /// Whether the bond has such a member and it carries traffic.
    pub fn lives(&self, mac: MacAddr) -> bool {
        let owner = self.rows.members.iter().find(|(_, row)| row.mac == mac);
        owner.is_some_and(|(slot, row)| row.live && !self.is_dead(*slot))
    }

    fn is_dead(&self, slot: u8) -> bool {
        self.failed_slots >> slot & 1 != 0
    }

    /// Where each plain host was heard, as the daemon reads it.
    pub fn heard(&self) -> Vec<(MacAddr, u8)> {
        self.heard.iter().map(|(mac, slot)| (*mac, *slot)).collect()
    }

    /// `class_plan()`
    fn class_plan(&self, base: u32, class: u8) -> u32 {
        let number = self.rows.class_plans.get(&(base, class)).copied();
        let fits = |number: &u32| {
            let plan = self.rows.plans.get(number);
            plan.is_some_and(|plan| !plan.shares || plan.lanes.iter().any(|lane| !self.is_dead(lane.slot)))
        };
        number.filter(|_| class != 0).filter(fits).unwrap_or(base)
    }

    /// `steer()`: the frames that leave, each with the member, its source and its destination. `choice` stands for hashes
    /// and for what lanes carried before.
    pub fn steer(
        &self,
        now: Time,
        (to, addresses): (MacAddr, Addresses),
        class: u8,
        choice: u64,
    ) -> Vec<(u8, MacAddr, MacAddr)> {
        let bond = &self.rows.bond;
        let several = bond.elected.len() > 1;
        let mut number = PLAIN_PLAN;
        if to.is_multicast() {
            if bond.elected.is_empty() || several {
                return self.to_segments(to);
            }
        } else if let Some((plan, by_alias)) = self.plan_to_peer(now, to, None, addresses) {
            return self.by_plan(plan, (to, by_alias), class, choice);
        } else if several {
            // As a switch does with an address that it has not learned.
            let Some(elected) = self.segment_of(to) else { return self.to_segments(to) };
            let plan = self.rows.plans.get(&plain_plan(elected));
            number = plan.filter(|plan| !plan.lanes.is_empty()).map_or(PLAIN_PLAN, |_| plain_plan(elected));
        }
        self.by_plan(number, (to, false), class, choice)
    }

    /// `send_by_plan()`
    fn by_plan(
        &self,
        number: u32,
        (to, by_alias): (MacAddr, bool),
        class: u8,
        choice: u64,
    ) -> Vec<(u8, MacAddr, MacAddr)> {
        let number = self.class_plan(number, class);
        let lanes = self.rows.plans.get(&number).map_or(&[][..], |plan| &plan.lanes[..]);
        if lanes.is_empty() {
            return Vec::new();
        }
        let lane = self.next_live_lane(lanes, choice as usize % lanes.len());
        let to = lane.peer_mac.unwrap_or(to);
        let member = self.rows.members.get(&lane.slot);
        let source = |mac| if by_alias { alias_of(mac) } else { mac };
        member.map(|member| (lane.slot, source(member.mac), to)).into_iter().collect()
    }

    /// The lane itself, or the next one whose member lives; itself again if none does.
    fn next_live_lane<'a>(&self, lanes: &'a [Lane], start: usize) -> &'a Lane {
        let turn = || (0..lanes.len()).map(|i| &lanes[(start + i) % lanes.len()]);
        turn().find(|lane| lanes.len() > 1 && !self.is_dead(lane.slot)).unwrap_or(&lanes[start])
    }

    /// `guest_slot()`: the member that a guest behind the bond speaks by, with its own MAC.
    pub fn guest_slot(&self, guest: MacAddr) -> Option<u8> {
        let lanes = &self.rows.plans.get(&PLAIN_PLAN)?.lanes[..];
        let hash = guest.0[2..].iter().fold(0, |hash, byte| hash * 31 + usize::from(*byte));
        (!lanes.is_empty()).then(|| self.next_live_lane(lanes, hash % lanes.len()).slot)
    }

    /// `steer_guest()`: over a lane where both ends know whose addresses these are; else the frame keeps both MACs, or the
    /// switch would see one on two ports.
    pub fn steer_guest(
        &mut self,
        now: Time,
        guest: MacAddr,
        (to, addresses): (MacAddr, Addresses),
        class: u8,
        choice: u64,
    ) -> Vec<(u8, MacAddr, MacAddr)> {
        self.notes.note(now, guest, addresses);
        if let Some((plan, by_alias)) = self.plan_to_peer(now, to, Some(guest), addresses) {
            return self.by_plan(plan, (to, by_alias), class, choice);
        }
        let slot = self.guest_slot(guest).filter(|slot| self.rows.members.contains_key(slot));
        slot.map(|slot| (slot, guest, to)).into_iter().collect()
    }

    fn to_segments(&self, to: MacAddr) -> Vec<(u8, MacAddr, MacAddr)> {
        let members = self.rows.bond.elected.iter().filter_map(|slot| {
            let member = self.rows.members.get(slot)?;
            Some((*slot, member.mac, to))
        });
        members.collect()
    }

    fn segment_of(&self, host: MacAddr) -> Option<u8> {
        self.rows.members.get(self.heard.get(&host)?)?.elected
    }

    /// `take()`, and the source that the frame has then.
    pub fn take(
        &mut self,
        now: Time,
        slot: u8,
        (source, destination): (MacAddr, MacAddr),
        addresses: Option<Addresses>,
    ) -> (Taken, MacAddr) {
        let taken = self.take_frame(slot, source, destination);
        if destination.is_multicast() {
            self.notes.hear(now, source);
            let peer = self.rows.peer_macs.get(&source).filter(|row| is_member(row));
            return (taken, peer.map_or(source, |row| row.primary));
        }
        match (taken, addresses) {
            (Taken::Accepted, Some(addresses)) => {
                let (other, source) = self.take_by_address(source, addresses);
                (other.unwrap_or(taken), source)
            }
            _ => (taken, source),
        }
    }

    fn take_frame(&mut self, slot: u8, source: MacAddr, destination: MacAddr) -> Taken {
        let rows = &self.rows;
        let Some(member) = rows.members.get(&slot).copied() else { return Taken::Dropped };
        // A peer's guest that speaks by its own MAC does so as a plain host.
        let peer = rows.peer_macs.get(&source).copied();
        let is_lane = peer.is_some_and(|peer| peer.kind != MacKind::Guest);
        let peer = peer.filter(is_member);
        let owner = |mac: MacAddr| rows.members.iter().find(|(_, row)| row.mac == mac);
        if !is_lane && owner(source).is_some() {
            return Taken::Own;
        }
        if destination.is_multicast() {
            let accepts = peer.map_or(member.elected, |peer| peer.broadcast_slot);
            self.hear(is_lane, source, slot, member);
            return if accepts == Some(slot) { Taken::Accepted } else { Taken::Dropped };
        }
        let taken = match owner(destination) {
            None if self.guest_slot(destination) == Some(slot) => Taken::Guest(destination),
            None => Taken::Dropped,
            Some((at, _)) if *at == slot => Taken::Accepted,
            Some((at, owner)) => {
                // `is_flooded()`
                let lives = owner.live && !self.is_dead(*at);
                match member.elected != Some(slot) || owner.elected == member.elected && lives {
                    true => Taken::Dropped,
                    false => Taken::Accepted,
                }
            }
        };
        self.hear(is_lane, source, slot, member);
        taken
    }

    /// `hear_plain_host()`
    fn hear(&mut self, is_peer: bool, source: MacAddr, slot: u8, member: MemberRow) {
        if is_peer || self.rows.bond.elected.len() < 2 {
            return;
        }
        let there = self.heard.get(&source).and_then(|slot| self.rows.members.get(slot));
        if there.is_none_or(|there| there.elected != member.elected) {
            self.heard.insert(source, slot);
        }
    }
}
