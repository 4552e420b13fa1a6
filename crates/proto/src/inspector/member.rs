//! The machine of one own member.
//!
//! ```text
//!              Found                         Waited, or Needed (no other member is up)
//!   +------+ ---------> +---------+ ------------------------------------------------> +------+
//!   | Down |            | Delayed |                                                   |  Up  |
//!   +------+ <--------- +---------+                                                   +------+
//!      ^        Lost                                                                     |
//!      +---------------------------------------------------------------------------------+
//!                                               Lost: at once
//! ```
//!
//! Carrier loss is final evidence: there is no state between Up and Down.

use super::{MemberReason, MemberReport, Timing, damper::Damper, ration::Ration};
use crate::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Where a member stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// No carrier, or set down.
    Down,
    /// Carrier is back; it waits.
    Delayed,
    /// It carries traffic.
    Up,
}

impl MemberState {
    /// All three.
    pub const ALL: [MemberState; 3] = [MemberState::Down, MemberState::Delayed, MemberState::Up];
}

/// A signal to a member's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemberSignal {
    /// It has no carrier or is set down.
    Lost,
    /// It has carrier and is set up.
    Found,
    /// The time it had to wait has passed.
    Waited,
    /// No member is up.
    Needed,
}

impl MemberSignal {
    /// All four.
    pub const ALL: [MemberSignal; 4] =
        [MemberSignal::Lost, MemberSignal::Found, MemberSignal::Waited, MemberSignal::Needed];
}

/// The machine: one row for each pair.
pub const fn step_member(state: MemberState, signal: MemberSignal) -> MemberState {
    use MemberSignal::{Found, Lost, Needed, Waited};
    use MemberState::{Delayed, Down, Up};
    match (state, signal) {
        (Down, Found) => Delayed,
        (Down, Lost | Waited | Needed) => Down,

        (Delayed, Lost) => Down,
        (Delayed, Found) => Delayed,
        (Delayed, Waited | Needed) => Up,

        //= docs/arp-plus.md#11.1
        (Up, Lost) => Down,
        (Up, Found | Waited | Needed) => Up,
    }
}

/// One own member.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub report: MemberReport,
    pub state: MemberState,
    pub reason: MemberReason,
    pub since: Time,
    /// Carrier came back then.
    pub found_at: Time,
    /// While `Delayed`: until then.
    pub until: Option<Time>,
    pub damper: Damper,
    /// This host has reset its link: what fails of it until then is no failure of the link.
    pub excused_until: Time,
    /// What it may still send to plain hosts.
    pub ration: Ration,
}

impl Member {
    /// A member that has just joined does not wait: it has not failed.
    pub fn new(now: Time, report: MemberReport) -> Member {
        let (state, reason) = match can_carry(&report) {
            Ok(()) => (MemberState::Up, MemberReason::Joined),
            Err(reason) => (MemberState::Down, reason),
        };
        let (damper, ration) = (Damper::default(), Ration::default());
        let excused_until = Time::ZERO;
        Member {
            report,
            state,
            reason,
            since: now,
            found_at: now,
            until: None,
            damper,
            excused_until,
            ration,
        }
    }

    /// Takes a report in; the reason if the state is another one.
    pub fn take(&mut self, now: Time, report: MemberReport, timing: &Timing) -> Option<MemberReason> {
        self.report = report;
        let (signal, reason) = match can_carry(&report) {
            Ok(()) => (MemberSignal::Found, MemberReason::CarrierBack),
            Err(reason) => (MemberSignal::Lost, reason),
        };
        let changed = self.signal(now, signal, reason)?;
        match self.state {
            MemberState::Delayed => {
                //= docs/arp-plus.md#11.2
                self.found_at = now;
                self.until = Some(now + timing.up_delay.max(self.hold(now, timing)));
            }
            // Whoever sets a member down, or resets it, does not flap.
            MemberState::Down if reason == MemberReason::NoCarrier && !self.is_excused(now) => {
                self.damper.fail(now, timing);
            }
            MemberState::Down | MemberState::Up => {}
        }
        Some(changed)
    }

    /// Whether what fails of it now is no failure of the link.
    pub fn is_excused(&self, now: Time) -> bool {
        //= docs/arp-plus.md#11.13
        now < self.excused_until
    }

    /// How long it waits for what failed of it before.
    fn hold(&self, now: Time, timing: &Timing) -> Duration {
        if self.is_excused(now) { Duration::ZERO } else { self.damper.hold(now, timing) }
    }

    /// One step of the machine; the reason if it led anywhere.
    pub fn signal(&mut self, now: Time, signal: MemberSignal, reason: MemberReason) -> Option<MemberReason> {
        let new = step_member(self.state, signal);
        if new == self.state {
            return None;
        }
        (self.state, self.reason, self.since, self.until) = (new, reason, now, None);
        Some(reason)
    }
}

fn can_carry(report: &MemberReport) -> Result<(), MemberReason> {
    match (report.admin_up, report.carrier) {
        (true, true) => Ok(()),
        (true, false) => Err(MemberReason::NoCarrier),
        (false, _) => Err(MemberReason::SetDown),
    }
}
