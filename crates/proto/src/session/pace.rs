//! How often a peer is told that this node lives: seldom where there are many and neither end uses the link (`docs/fabric.md`, 5.2 and
//! 5.12).

use super::{
    Session, limits,
    link::{LinkInput, Own},
    timing::{Settings, detection},
};
use crate::Time;
use linkbraid_wire::fabric::{IN_USE_FEATURE, Offer};
use std::time::Duration;

/// What a link has of its own in the offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// When frames last left to the peer alone.
    used: Option<Time>,
    /// The offer says that this node uses the link.
    in_use: bool,
    /// The interval that it offers, where that is longer than the usual one.
    idle: Option<Duration>,
    /// The peer has answered since it was offered.
    is_known: bool,
}

impl Pace {
    /// Of a link that has just come up, and while it is not up.
    pub const USUAL: Pace = Pace { used: None, in_use: false, idle: None, is_known: true };

    /// What this node says of itself over the link.
    pub fn own(&self, own: &Own) -> Own {
        let idle = self.idle.map_or(0, |idle| u32::try_from(idle.as_micros()).unwrap_or(u32::MAX));
        let in_use = if self.in_use { IN_USE_FEATURE } else { 0 };
        let Offer { interval_us, features, .. } = own.offer;
        let offer = Offer { interval_us: interval_us.max(idle), features: features | in_use, ..own.offer };
        Own { offer, ..*own }
    }

    /// Time between two ALIVEs: what the peer does not know yet must not be waited for.
    pub fn interval(&self, settings: &Settings) -> Duration {
        //= docs/fabric.md#5.12
        self.idle.filter(|_| self.is_known).unwrap_or_default().max(settings.interval())
    }

    /// Time between two measured round trips.
    pub fn ask_every(&self, settings: &Settings) -> Duration {
        //= docs/fabric.md#5.9
        settings.ask_every().max(self.idle.unwrap_or_default() * limits::IDLE_ASK_INTERVALS)
    }

    /// The peer has answered.
    pub const fn learned(&mut self) {
        self.is_known = true;
    }

    /// What it is to be among so many peers that are up.
    fn wanted(self, now: Time, settings: &Settings, up: u32, is_wanted_there: bool) -> Pace {
        let in_use = self.used.is_some_and(|at| now.since(at) < limits::LINK_IN_USE);
        // Few steps: each costs a message to each peer.
        let among = Duration::from_secs(1) * up.next_power_of_two() / limits::IDLE_ALIVE_RATE;
        let idle = Some(among.min(limits::ALIVE_INTERVAL_MAX))
            .filter(|among| !in_use && !is_wanted_there && *among > settings.interval());
        // A shorter one than the peer may wait for does no harm, unless it has not heard of either.
        let is_known = idle.is_none() || idle <= self.idle && self.is_known;
        Pace { in_use, idle, is_known, ..self }
    }
}

impl Session {
    /// Frames left to a peer alone.
    pub(super) fn used(&mut self, now: Time, node: u16) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        let Some(known) = peer.link.peer() else { return };
        let (was_in_use, waits) = (peer.pace.in_use, detection(&known.offer));
        peer.pace.used = Some(now);
        self.fit_pace(now, node);
        let usual = detection(&self.own.offer);
        //= docs/fabric.md#5.13
        if !was_in_use && waits > usual {
            if let Some(peer) = self.peers.get_mut(&node) {
                peer.answers_within(now, usual);
            }
            self.drive(now, node, LinkInput::Ask { fresh: false });
            self.drive(now, node, LinkInput::Resend);
        }
    }

    /// Offers a peer another interval, where another one is right by now; whether it has.
    pub(super) fn fit_pace(&mut self, now: Time, node: u16) -> bool {
        let Some(peer) = self.peers.get_mut(&node) else { return false };
        let Some(known) = peer.link.peer().filter(|_| peer.link.rival().is_none()) else { return false };
        let wanted = peer.pace.wanted(now, &self.settings, self.up, known.offer.uses_link());
        if wanted == peer.pace {
            return false;
        }
        peer.pace = wanted;
        self.drive(now, node, LinkInput::Changed);
        if let Some(peer) = self.peers.get_mut(&node).filter(|peer| peer.link.verdict().is_up()) {
            peer.said(now, &self.settings, &mut self.random);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Pace = Pace { idle: Some(Duration::from_secs(2)), ..Pace::USUAL };

    //= docs/fabric.md#5.9 type=test
    #[test]
    fn a_round_trip_is_measured_less_often_where_little_is_said() {
        let settings = Settings::new(4, 1500);
        assert_eq!(Pace::USUAL.ask_every(&settings), settings.ask_every());
        assert_eq!(IDLE.ask_every(&settings), Duration::from_secs(8));
    }

    //= docs/fabric.md#5.12 type=test
    #[test]
    fn what_is_said_of_a_link_comes_on_top_of_what_is_said_of_the_node() {
        let offer = Offer { features: IN_USE_FEATURE | 1, ..Settings::new(4, 1500).offer() };
        let own = Own { epoch: 1, offer, fast_path: None };
        let said = |pace: Pace| pace.own(&own).offer;
        assert_eq!(said(Pace { in_use: true, ..Pace::USUAL }), offer);
        assert_eq!(said(IDLE), Offer { interval_us: 2_000_000, ..offer });
    }
    //= docs/fabric.md#5.12 type=test
    #[test]
    fn a_link_is_in_use_for_ten_seconds_and_its_interval_longer_only_where_that_of_many_is() {
        let used = Time::from_millis(5);
        let mut settings = Settings::new(4, 1500);
        let is_in_use =
            |at: Time| Pace { used: Some(used), ..Pace::USUAL }.wanted(at, &settings, 4, false).in_use;
        let end = used + limits::LINK_IN_USE;
        assert_eq!([end.minus(Duration::from_nanos(1)), end].map(is_in_use), [true, false]);
        // What 16 peers get.
        settings.timing.interval = Duration::from_millis(160);
        let wanted = |up| Pace::USUAL.wanted(end, &settings, up, false).idle;
        assert_eq!([16, 17].map(wanted), [None, Some(Duration::from_millis(320))]);
    }
}
