//! How often the own mapping is announced. Where many hosts hear it, each speaks less often, so that what all of them hear
//! stays the same; what only the own members need to hear from each other goes to them alone.

use super::{ArpPlus, Signal, State};
use crate::{Time, limits};
use linkbraid_wire::{FEATURE_INTERVALS, INTERVAL_DOUBLINGS_MAX, Kind};
use std::time::Duration;

/// What hosts there are, as far as the pace follows from them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Crowd {
    /// Pairs of an own member and a peer's that hear each other: announcements that come in while each host makes one.
    pub pairs: usize,
    /// Whether there is one that would take a slower host for gone.
    pub hasty: bool,
}

/// The fewest doublings of a second with which a share of what may be heard is enough.
fn doublings(pairs: usize, percent: usize) -> u8 {
    let fits = |doublings: &u8| pairs * 100 <= (limits::ANNOUNCEMENTS_HEARD << doublings) * percent;
    (0..INTERVAL_DOUBLINGS_MAX).find(fits).unwrap_or(INTERVAL_DOUBLINGS_MAX)
}

/// The pace for a crowd, which does not go to and fro with each host that comes and leaves.
fn pace(before: u8, crowd: Crowd) -> u8 {
    //= docs/arp-plus.md#5.13
    if crowd.hasty {
        return 0;
    }
    before.clamp(doublings(crowd.pairs, 100), doublings(crowd.pairs, limits::ANNOUNCEMENTS_FEWER_PERCENT))
}

/// The pace of a host that speaks more often for a while, as many may do at once.
fn hurried(crowd: Crowd) -> u8 {
    //= docs/arp-plus.md#5.13
    if crowd.hasty { 0 } else { doublings(crowd.pairs, limits::ANNOUNCEMENTS_HURRIED_PERCENT) }
}

impl ArpPlus {
    /// Looks whether the own mapping is to be announced more or less often.
    pub(super) fn follow_crowd(&mut self, now: Time) {
        //= docs/arp-plus.md#5.13
        // A proof of who sends (section 15) lives for two seconds without a message.
        let may = self.own.features & FEATURE_INTERVALS != 0 && self.own.appended == 0;
        let crowd = self.table.crowd();
        self.agenda.hurried = hurried(crowd);
        let wanted = match may {
            true if now >= self.agenda.steady_from => pace(self.own.doublings, crowd),
            // Each other pace is one more thing to tell: who has just started goes on with a second.
            true => self.own.doublings.min(self.agenda.hurried),
            false => 0,
        };
        if wanted != self.own.doublings {
            self.own.doublings = wanted;
            self.agenda.own_at = (wanted > 0).then_some(now);
            if !std::mem::replace(&mut self.agenda.is_seldom, true) {
                // Answers that were lost are not repeated soon.
                self.agenda.ask_again();
            }
            self.signal(now, Signal::OwnChange);
        }
    }

    /// Somebody else speaks in this host's name, or the network is another one: for a while it says more often who it is.
    pub(super) fn speak_often(&mut self, now: Time) {
        //= docs/arp-plus.md#5.16
        let some = limits::CONTESTED_GAP * (1 << self.agenda.hurried);
        self.agenda.steady_from = now + some.max(limits::CONTESTED);
    }

    /// When one CHANGE to all may replace REPLYs: where many ask many, not at once.
    pub(super) fn collapse_from(&self) -> Time {
        //= docs/arp-plus.md#5.9
        match self.own.doublings.min(self.agenda.hurried) {
            0 => Time::ZERO,
            doublings => self.agenda.told_at + Duration::from_secs(1) * (1 << doublings),
        }
    }

    /// The time to the next announcement: of all members at once, or of the next one in turn.
    pub(super) fn announcement_gap(&mut self) -> Duration {
        let gap = self.random.between(self.timing.announce_min, self.timing.announce_max);
        let live = u32::try_from(self.own.live().count()).unwrap_or(u32::MAX).max(1);
        match self.own.doublings {
            0 => gap,
            doublings => gap * (1 << doublings) / live,
        }
    }

    /// One member's turn to be heard by all.
    pub(super) fn announce_in_turn(&mut self, now: Time) {
        let after = self.agenda.turn;
        let live = || self.own.live().map(|member| member.slot);
        let next = live().filter(|slot| *slot > after).min().or_else(|| live().min());
        if let Some(slot) = next {
            self.agenda.turn = slot;
            self.send(slot, linkbraid_wire::MacAddr::BROADCAST, Kind::Change);
        }
        self.agenda.replies_sent = 0;
        self.agenda.announce_at = Some(now + self.announcement_gap());
    }

    /// Each two own members hear whether they are on one segment still.
    pub(super) fn tell_own_members(&mut self, now: Time) {
        //= docs/arp-plus.md#5.14
        let live: Vec<_> = self.own.live().map(|member| (member.slot, member.mac)).collect();
        for (at, (slot, _)) in live.iter().enumerate() {
            live[at + 1..].iter().for_each(|(_, mac)| self.send(*slot, *mac, Kind::Change));
        }
        let gap = self.random.between(self.timing.announce_min, self.timing.announce_max);
        self.agenda.own_at = Some(now + gap);
    }

    /// Own members hear others of the own ones than before: the network is another one, and who hears whom may be, too.
    pub(super) fn network_changed(&mut self, now: Time) {
        //= docs/arp-plus.md#5.15
        if self.own.doublings > 0 && self.state != State::S0 {
            self.table.hear_again(now, &self.timing);
            // Others notice it at other times, and are to hear this host after that.
            self.speak_often(now);
            self.agenda.ask_again();
            self.signal(now, Signal::OwnChange);
        }
    }

    /// The time to the next look at the table: a long one is looked at more seldom.
    pub(super) fn sweep_gap(&self) -> Duration {
        self.timing.sweep * u32::from(self.own.doublings / 2 + 1)
    }

    /// Whether it is to be known who of the peers is probed, and was proven ([`super::Input::Probed`]).
    pub fn follows_probes(&self, now: Time) -> bool {
        self.agenda.is_sweep_due(now) && self.table.peers().any(|peer| peer.doublings > 0)
    }

    /// The time between two announcements of a member.
    pub fn announces_every(&self) -> Duration {
        Duration::from_secs(1) * (1 << self.own.doublings)
    }
}

#[cfg(test)]
mod tests {
    use super::{Crowd, hurried, pace};

    //= docs/arp-plus.md#5.13 type=test
    #[test]
    fn what_is_heard_stays_the_same_however_many_there_are() {
        let crowd = |pairs| Crowd { pairs, hasty: false };
        let paces = [0, 64, 65, 128, 1600, 16_000, 1_000_000].map(|pairs| pace(0, crowd(pairs)));
        assert_eq!(paces, [0, 0, 1, 1, 5, 7, 7]);
        assert_eq!(pace(5, Crowd { pairs: 1600, hasty: true }), 0);
        // Not to and fro with each host.
        assert_eq!([130, 128, 120, 97, 96, 90, 40].map(|pairs| pace(2, crowd(pairs))), [2, 2, 2, 2, 1, 1, 0]);
    }

    //= docs/arp-plus.md#5.16 type=test
    #[test]
    fn who_speaks_more_often_leaves_room_for_all_others_to_do_so() {
        let of = |pairs| hurried(Crowd { pairs, hasty: false });
        assert_eq!([0, 64, 256, 257, 512, 16_000, 1_000_000].map(of), [0, 0, 0, 1, 1, 6, 7]);
        assert_eq!(hurried(Crowd { pairs: 16_000, hasty: true }), 0);
    }
}
