//! The rows of plain hosts: where each was heard, and the member that it is to send to.

use super::{key, within};
use crate::{
    Tables,
    error::Result,
    intf::{LB_ANSWER_PROBED, MEMBERS_MAX, lb_answer},
};

/// The member whose MAC a plain host gets as the bond's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The member that it is to send to.
    pub slot: u8,
    /// Whether its answers to probes are wanted.
    pub probed: bool,
}

impl Tables {
    /// The plain hosts heard while the bond had several segments, each with a slot of the segment it was heard on; at
    /// most 8192, those heard or sent to most recently. One heard before the segments changed stays until it is heard
    /// again.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn plain_hosts(&self) -> Result<Vec<([u8; 6], u8)>> {
        let rows = self.mac_rows::<u32>("lb_plain_hosts")?;
        Ok(rows.into_iter().map(|(mac, slot)| (mac, slot as u8)).collect())
    }

    /// Forgets where the plain hosts were heard that were heard on this slot, for the next member in it may be on another
    /// segment.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn forget_plain_hosts(&self, slot: u8) -> Result<()> {
        for (mac, heard) in self.plain_hosts()? {
            if heard == slot {
                self.delete("lb_plain_hosts", &key(mac))?;
            }
        }
        Ok(())
    }

    /// From now on ARP and neighbour discovery to the plain host `mac` alone leaves by the member `slot` and names its
    /// MAC, so that the host sends there. A member that is not live, has failed, or is on another segment than the host is not
    /// named: then, as for hosts without an answer, the bond's MAC is. `probed`: the host's answers to probes
    /// come out of the ARP+ ring: copies of ARP replies to 0.0.0.0, and neighbour advertisements to the address that a member's
    /// probes come from (fe80::4c42 and its MAC), both to the member's own MAC.
    ///
    /// # Errors
    /// The kernel refuses, the slot is out of range, or [`ANSWERS_MAX`](crate::ANSWERS_MAX) hosts have an answer.
    pub fn set_answer(&self, mac: [u8; 6], slot: u8, probed: bool) -> Result<()> {
        within("slot", slot.into(), MEMBERS_MAX as u64 - 1)?;
        let flags = if probed { LB_ANSWER_PROBED as u8 } else { 0 };
        self.write("lb_answers", &key(mac), &lb_answer { slot, flags, pad: [0; 2] })
    }

    /// The plain host `mac` gets the bond's own MAC again.
    ///
    /// # Errors
    /// The kernel refuses; a host without an answer is no error.
    pub fn delete_answer(&self, mac: [u8; 6]) -> Result<()> {
        self.delete("lb_answers", &key(mac))
    }

    /// All answers, for a daemon that adopts the table of an earlier one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn answers(&self) -> Result<Vec<([u8; 6], Answer)>> {
        let rows = self.mac_rows::<lb_answer>("lb_answers")?;
        let answer =
            |raw: lb_answer| Answer { slot: raw.slot, probed: u32::from(raw.flags) & LB_ANSWER_PROBED != 0 };
        Ok(rows.into_iter().map(|(mac, raw)| (mac, answer(raw))).collect())
    }
}
