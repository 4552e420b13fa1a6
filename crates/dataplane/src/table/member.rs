//! The rows of members and what they carried.

use super::{Member, MemberCounts, key, total, within};
use crate::{
    Tables,
    error::Result,
    intf::{LB_NEAR_INTERFACES, MEMBERS_MAX, lb_member, lb_member_counts},
};
use bytemuck::Zeroable as _;

impl Tables {
    /// Writes a member, or frees its slot.
    ///
    /// # Errors
    /// The kernel refuses, or the slot is out of range.
    pub fn set_member(&self, slot: u8, member: Option<&Member>) -> Result<()> {
        within("slot", slot.into(), MEMBERS_MAX as u64 - 1)?;
        let old: lb_member = self.read("lb_members", &u32::from(slot))?;
        let raw = member.map_or_else(lb_member::zeroed, |member| lb_member {
            ifindex: member.ifindex,
            mac: member.mac,
            live: member.live.into(),
            elected: member.elected,
        });
        if old.ifindex != 0 && old.ifindex != raw.ifindex {
            self.delete("lb_slots", &old.ifindex)?;
            self.set_near_slot(old.ifindex, None)?;
        }
        if old.ifindex != 0 && old.mac != raw.mac {
            self.delete("lb_own_macs", &key(old.mac))?;
        }
        if let Some(member) = member {
            self.write("lb_own_macs", &key(member.mac), &u32::from(slot))?;
            self.write("lb_members", &u32::from(slot), &raw)?;
            self.write("lb_slots", &member.ifindex, &u32::from(slot))?;
            return self.set_near_slot(member.ifindex, Some(slot));
        }
        self.write("lb_members", &u32::from(slot), &raw)
    }

    /// All members by slot, for a daemon that adopts the table of an earlier one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn members(&self) -> Result<Vec<(u8, Member)>> {
        let mut members = Vec::new();
        for slot in 0..MEMBERS_MAX as u8 {
            let raw: lb_member = self.read("lb_members", &u32::from(slot))?;
            if raw.ifindex != 0 {
                let lb_member { ifindex, mac, live, elected } = raw;
                members.push((slot, Member { ifindex, mac, live: live != 0, elected }));
            }
        }
        Ok(members)
    }

    /// What a member carried.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn member_counts(&self, slot: u8) -> Result<MemberCounts> {
        let cpus: Vec<lb_member_counts> = self.map("lb_member_counters")?.read_percpu(slot.into())?;
        Ok(MemberCounts { tx: total(cpus.iter().map(|c| c.tx)), rx: total(cpus.iter().map(|c| c.rx)) })
    }

    /// Forgets what a member carried, for the next one in its slot.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn clear_member_counts(&self, slot: u8) -> Result<()> {
        self.map("lb_member_counters")?.clear_percpu::<lb_member_counts>(slot.into())
    }

    /// Tells the way in the slot of an interface without a hash, if its index is small enough.
    fn set_near_slot(&self, ifindex: u32, slot: Option<u8>) -> Result<()> {
        if ifindex >= LB_NEAR_INTERFACES {
            return Ok(());
        }
        self.write("lb_near_slots", &ifindex, &slot.map_or(0, |slot| u32::from(slot) + 1))
    }
}
