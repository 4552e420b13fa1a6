//! What plain hosts' ports bear: managed switches shut a port that sends more than some ARP frames a second (dynamic ARP
//! inspection, usually 15). A probe takes from the ration of the member that sends it, and from that of the plain host,
//! whose port sends the answer.

use super::{Inspector, LaneId};
use crate::{Time, limits};
use std::time::Duration;

/// The time from one regular probe to the next.
const EACH: Duration = Duration::from_nanos(1_000_000_000 / limits::PLAIN_RATE);

/// What one port may still send: one regular probe in each [`EACH`], and urgent ones on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ration {
    regular_at: Time,
    /// All urgent ones may be sent again at that time.
    urgent_full_at: Time,
}

impl Default for Ration {
    fn default() -> Self {
        Ration { regular_at: Time::ZERO, urgent_full_at: Time::ZERO }
    }
}

impl Ration {
    /// When a probe may be sent.
    fn next(&self, urgent: bool) -> Time {
        let others = limits::PLAIN_URGENT_EACH * (limits::PLAIN_URGENT_MAX - 1);
        if urgent { self.regular_at.min(self.urgent_full_at.minus(others)) } else { self.regular_at }
    }

    /// One is sent; [`Ration::next`] has allowed it.
    fn take(&mut self, now: Time) {
        if self.regular_at <= now {
            self.regular_at = now + EACH;
        } else {
            self.urgent_full_at = self.urgent_full_at.max(now) + limits::PLAIN_URGENT_EACH;
        }
    }
}

impl Inspector {
    /// Takes a probe of a plain host's lane from the rations of both ports; or how long it has to wait.
    pub(super) fn take_ration(&mut self, now: Time, id: LaneId, urgent: bool) -> Result<(), Duration> {
        //= docs/arp-plus.md#12.6
        let Some(member) = self.members.get_mut(&id.slot) else { return Ok(()) };
        let Some(plain) = self.peers.get_mut(&id.peer).and_then(|peer| peer.plain.as_mut()) else {
            return Ok(());
        };
        let rations = [&mut member.ration, &mut plain.ration];
        let next = rations.iter().map(|ration| ration.next(urgent)).max().unwrap_or(now);
        if next > now {
            return Err(now.until(next));
        }
        rations.into_iter().for_each(|ration| ration.take(now));
        Ok(())
    }

    /// The interval of a plain host's lanes that leaves every port within its ration; none for a peer.
    pub(super) fn spacing(&self, id: LaneId) -> Option<Duration> {
        let peer = self.peers.get(&id.peer).filter(|peer| peer.plain.is_some())?;
        let hosts = self.peers.values().filter(|peer| peer.plain.is_some()).count();
        // A gap is between 3/4 and 4/4 of the interval.
        Some(EACH * u32::try_from(hosts.max(peer.lanes.len())).unwrap_or(1) * 8 / 7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the probes that are tried each millisecond are sent in each second that begins with one.
    fn most_in_a_second(urgent: impl Fn(u64) -> bool) -> usize {
        let mut ration = Ration::default();
        let mut sent = Vec::new();
        for millis in 0..20_000 {
            let now = Time::from_millis(millis);
            if ration.next(urgent(millis)) <= now {
                ration.take(now);
                sent.push(millis);
            }
        }
        let in_second = |from: &u64| sent.iter().filter(|at| (*from..=from + 1000).contains(*at)).count();
        sent.iter().map(in_second).max().unwrap_or(0)
    }

    //= docs/arp-plus.md#12.6 type=test
    #[test]
    fn a_port_sends_less_than_ten_a_second_and_never_fifteen() {
        let regular = most_in_a_second(|_| false);
        assert!((7..10).contains(&regular), "{regular}");
        for most in [
            most_in_a_second(|_| true),
            most_in_a_second(|millis| millis > 10_000),
            most_in_a_second(|millis| millis % 5000 > 4900),
            most_in_a_second(|millis| millis % 1000 < 100),
        ] {
            assert!((11..15).contains(&most), "{most}");
        }
    }

    #[test]
    fn urgent_ones_alone_last_for_a_while_only() {
        let mut ration = Ration::default();
        let now = Time::from_millis(5000);
        let sent = (0..20).take_while(|_| {
            let may = ration.next(true) <= now;
            ration.take(now);
            may
        });
        assert_eq!(sent.count(), 1 + limits::PLAIN_URGENT_MAX as usize);
        assert_eq!(ration.next(false), now + EACH);
    }
}
