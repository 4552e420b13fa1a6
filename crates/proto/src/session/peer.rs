//! A link with its clock.

use super::{
    Verdict,
    authentic::Keyed,
    link::{Effect, Link},
    pace::Pace,
    timing::{Settings, detection},
};
use crate::{Time, limits, random::Random};
use linkbraid_wire::fabric::{Control, ControlKind};
use std::time::Duration;

/// What has run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Doubt,
    Expire,
    Send,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub link: Link,
    /// Since when it is what it is.
    pub since: Time,
    /// When the last good message came.
    pub heard: Option<Time>,
    /// When it last proved that it lives and hears.
    pub proven: Option<Time>,
    /// When it last proved that by what nobody can repeat.
    fresh: Option<Time>,
    /// The last cookie of this node's that came back.
    echoed: u64,
    /// When the last question left that had a new one.
    renewed: Time,
    /// When the question left that measures a round trip.
    asked: Option<Time>,
    /// How long the last one took that was measured.
    trip: Duration,
    /// When to ask next.
    ask: Time,
    /// The last rival that was reported.
    pub told_rival: Option<u64>,
    /// What is known of its keys.
    pub keyed: Keyed,
    /// How often it is told that this node lives.
    pub pace: Pace,
    /// The next HELLO or ALIVE; none while the session does not run.
    send: Option<Time>,
    /// So much sooner it may be sent, where something is sent to others.
    slack: Duration,
    /// Time between the last HELLO and the next one.
    gap: Duration,
    expire: Option<Time>,
    doubt: Option<Time>,
}

impl Peer {
    pub const fn new(link: Link, now: Time) -> Peer {
        Peer {
            link,
            since: now,
            heard: None,
            proven: None,
            fresh: None,
            echoed: 0,
            renewed: now,
            asked: None,
            trip: Duration::ZERO,
            ask: now,
            told_rival: None,
            keyed: Keyed::NONE,
            pace: Pace::USUAL,
            send: None,
            slack: Duration::ZERO,
            gap: Duration::ZERO,
            expire: None,
            doubt: None,
        }
    }

    /// The next deadline.
    pub fn next(&self) -> Option<Time> {
        [self.send, self.expire, self.doubt].into_iter().flatten().min()
    }

    /// What runs out at `now`; cleared, so that it is named once.
    pub fn due(&mut self, now: Time) -> Option<Due> {
        let timers = [
            (&mut self.doubt, now, Due::Doubt),
            (&mut self.expire, now, Due::Expire),
            (&mut self.send, now + self.slack, Due::Send),
        ];
        for (timer, by, due) in timers {
            if timer.is_some_and(|at| at <= by) {
                *timer = None;
                return Some(due);
            }
        }
        None
    }

    /// Nothing runs out before `until`: this node did not run for a while, and whoever is on the same machine may not have either.
    pub fn excuse(&mut self, until: Time) {
        for timer in [&mut self.expire, &mut self.doubt].into_iter().flatten() {
            *timer = until.max(*timer);
        }
        self.fresh = self.fresh.map(|at| at.max(until));
    }

    /// Says something at once.
    pub const fn send_now(&mut self, now: Time) {
        self.gap = Duration::ZERO;
        self.send_at(now, Duration::ZERO);
    }

    const fn send_at(&mut self, at: Time, slack: Duration) {
        (self.send, self.slack) = (Some(at), slack);
    }

    pub const fn stop(&mut self) {
        (self.send, self.expire, self.doubt) = (None, None, None);
    }

    /// Whether it is time to ask how long a round trip takes, and then whether by a new cookie; to be asked when something is said anyway.
    pub fn asks(&mut self, now: Time, settings: &Settings) -> Option<bool> {
        // What takes long is what is wanted most: it is waited for.
        let waits = self.asked.is_some_and(|asked| now.since(asked) < limits::ASK_PATIENCE);
        let asks = self.ask <= now && !waits && self.link.peer().is_some() && self.link.rival().is_none();
        if asks {
            //= docs/fabric.md#5.9
            self.ask = now + self.pace.ask_every(settings);
            self.asked = Some(now);
        }
        // One that is under way proves more than the next one, which the peer does not have yet; and another start of the peer, which
        // may be further away, is to have the time to prove itself by one.
        let is_old = now.since(self.renewed) >= limits::COOKIE_LIVES;
        asks.then(|| {
            let fresh = is_old && self.echoed == self.link.cookie();
            if fresh {
                self.renewed = now;
            }
            fresh
        })
    }

    /// How long the round trip took that ends with this message, if it is one.
    pub fn answered(&mut self, now: Time, from: u64, control: &Control) -> Option<Duration> {
        let known = self.link.peer().is_some_and(|peer| peer.epoch == from);
        let echoes = known && control.echo == self.link.cookie();
        if echoes {
            self.echoed = control.echo;
            self.pace.learned();
        }
        let asked = self.asked?;
        (echoes && control.kind == ControlKind::Accept).then(|| {
            self.asked = None;
            self.trip = now.since(asked);
            self.trip
        })
    }

    /// After something was sent because its time had come.
    pub fn said(&mut self, now: Time, settings: &Settings, random: &mut Random) {
        let timing = &settings.timing;
        let wait = if self.link.rival().is_some() {
            // The peer has one interval to answer; one message may be lost.
            settings.interval() / 4
        } else if self.link.peer().is_some() {
            //= docs/fabric.md#5.2
            self.pace.interval(settings)
        } else {
            //= docs/fabric.md#4.10
            self.gap = (self.gap * 2).clamp(timing.retry_min, timing.retry_max);
            self.gap
        };
        // Many peers are spoken to in few turns: each turn wakes two threads.
        self.send_at(now + random.between(wait * 3 / 4, wait), wait / limits::SEND_SLACK);
    }

    /// It is to answer within that time and a round trip, however long it is waited for otherwise.
    pub fn answers_within(&mut self, now: Time, time: Duration) {
        self.asked = self.asked.or(Some(now));
        let until = now + time + self.trip;
        self.expire = self.expire.map(|at| at.min(until));
    }

    fn lives(&mut self, now: Time) {
        self.proven = Some(now);
        self.expire = self.link.peer().map(|peer| now + detection(&peer.offer));
    }

    /// Keeps the timers with what the link did.
    pub fn follow(&mut self, now: Time, effect: &Effect, settings: &Settings, random: &mut Random) {
        match effect {
            Effect::Verdict(verdict) => {
                self.since = now;
                self.asked = None;
                self.gap = Duration::ZERO;
                self.doubt = None;
                self.expire = None;
                self.pace = Pace::USUAL;
                if matches!(verdict, Verdict::Up { .. }) {
                    self.told_rival = None;
                    self.said(now, settings, random);
                }
            }
            Effect::Proof => {
                self.fresh = Some(now);
                self.lives(now);
            }
            //= docs/fabric.md#5.11
            Effect::Sign => {
                let detection = self.link.peer().map_or(Duration::ZERO, |peer| detection(&peer.offer));
                if self.fresh.is_some_and(|at| now.since(at) < detection + limits::SIGN_LIVES) {
                    self.lives(now);
                }
            }
            Effect::Doubt => {
                //= docs/fabric.md#5.5
                self.doubt = Some(now + settings.interval());
                self.said(now, settings, random);
            }
            Effect::Hurry => {
                self.gap = Duration::ZERO;
                let soon = now + settings.timing.retry_min;
                self.send_at(self.send.map_or(soon, |at| at.min(soon)), Duration::ZERO);
            }
            Effect::Duplicate { .. } => self.doubt = None,
            Effect::Send(..) | Effect::Count(_) => {}
        }
    }
}
