//! What is sent and when: bursts at start and after a change, announcements, spread replies.

use super::{Action, ArpPlus, Counter, PeerKey, Timing};
use crate::{Time, limits, random::Random};
use linkbraid_wire::{Kind, MacAddr, emit_frame};
use std::{collections::BTreeMap, time::Duration};

/// How many times as often as others a young host announces itself.
const YOUNG_TIMES: u32 = 3;

/// How often CLEAR leaves each member at once: nobody repeats it later.
const CLEAR_COPIES: usize = 2;

/// A BROADCAST or CHANGE that is sent a few times in quick succession, since any one may be lost.
#[derive(Debug, Clone, Copy)]
struct Burst {
    kind: Kind,
    left: u8,
    at: Time,
}

/// A REPLY that waits for its turn.
#[derive(Debug, Clone, Copy)]
struct Reply {
    at: Time,
    slot: u8,
    dst: MacAddr,
}

/// All deadlines of the running state.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    burst: Option<Burst>,
    pub announce_at: Option<Time>,
    pub sweep_at: Option<Time>,
    replies: BTreeMap<PeerKey, Reply>,
    /// When one CHANGE replaces the replies.
    collapse_at: Option<Time>,
    /// REPLYs sent since the own mapping was last broadcast.
    pub replies_sent: usize,
    /// Until when the host counts as young; none once it was answered. Then it announces itself between the announcements, too.
    young_until: Option<Time>,
    /// Until then the host announces itself more often than among so many others.
    pub steady_from: Time,
    /// The doublings of a second with which all hosts may speak more often for a while.
    pub hurried: u8,
    /// When the own mapping was told on all members.
    pub told_at: Time,
    /// Whether it has announced itself more seldom since it started.
    pub is_seldom: bool,
    /// The member that was announced last while they take turns; when the own members are told apart from others.
    pub turn: u8,
    pub own_at: Option<Time>,
    between_at: Option<Time>,
    /// Whether a BROADCAST has left since there was a live member.
    joined: bool,
}

impl Agenda {
    pub fn next(&self) -> Option<Time> {
        let burst_at = self.burst.map(|burst| burst.at);
        let single =
            [burst_at, self.announce_at, self.own_at, self.between_at, self.sweep_at, self.collapse_at];
        single.into_iter().flatten().chain(self.replies.values().map(|reply| reply.at)).min()
    }

    pub fn is_sweep_due(&self, now: Time) -> bool {
        self.sweep_at.is_some_and(|at| at <= now)
    }

    /// What others said is old: the next message to all is a BROADCAST.
    pub fn ask_again(&mut self) {
        self.joined = false;
    }

    /// A REPLY has come: the others know us, the rest of a BROADCAST burst and frequent announcements are not needed.
    pub fn answered(&mut self) {
        //= docs/arp-plus.md#5.2
        if self.burst.is_some_and(|burst| burst.kind == Kind::Broadcast) {
            self.burst = None;
        }
        self.young_until = None;
        self.between_at = None;
    }
}

/// Whether a deadline has passed; if so it is taken.
fn due(deadline: &mut Option<Time>, now: Time) -> bool {
    deadline.take_if(|at| *at <= now).is_some()
}

impl ArpPlus {
    /// S0 to S1.
    pub(super) fn join(&mut self, now: Time) {
        let (sweep_at, young_until) = (Some(now + self.timing.sweep), Some(now + self.timing.young));
        let steady_from = now + limits::STEADY_AFTER;
        self.agenda = Agenda { sweep_at, young_until, steady_from, ..Agenda::default() };
        self.own.doublings = 0;
        self.own.changed();
        self.fit_guests();
        self.update_segments(now);
        self.burst(now);
    }

    /// The own mapping is another one.
    pub(super) fn announce(&mut self, now: Time) {
        self.own.changed();
        self.fit_guests();
        self.burst(now);
    }

    /// S1 to S0.
    pub(super) fn leave(&mut self) {
        self.own.changed();
        //= docs/arp-plus.md#5.6
        for _ in 0..CLEAR_COPIES {
            self.send_all(Kind::Clear);
        }
        self.agenda = Agenda::default();
        if self.table.forget() {
            self.out.all_changed();
        }
    }

    /// Does all that is due.
    pub(super) fn run_timers(&mut self, now: Time) {
        if self.agenda.burst.is_some_and(|burst| burst.at <= now) {
            self.next_of_burst(now);
        }
        let (agenda, in_turn) = (&mut self.agenda, self.own.doublings > 0);
        let (collapses, announces) = (due(&mut agenda.collapse_at, now), due(&mut agenda.announce_at, now));
        if collapses || due(&mut agenda.between_at, now) || announces && !in_turn {
            self.broadcast_mapping(now, Kind::Change);
        } else if announces {
            self.announce_in_turn(now);
        }
        if due(&mut self.agenda.own_at, now) {
            self.tell_own_members(now);
        }
        self.due_replies(now);
        self.take_waited(now);
        let late = self.agenda.sweep_at.map_or(Duration::ZERO, |at| now.since(at));
        if due(&mut self.agenda.sweep_at, now) {
            //= docs/arp-plus.md#5.17
            if late >= limits::LATE {
                self.table.did_not_listen(now, late);
                self.segments.did_not_listen(now, late);
            }
            self.agenda.sweep_at = Some(now + self.sweep_gap());
            for (slot, mac) in self.table.sweep(now, &self.timing, &mut self.out) {
                self.send(slot, mac, Kind::Broadcast);
            }
            self.own.sweep(now, self.timing.alias);
            self.out.sweep(now, &self.timing);
            self.update_segments(now);
            self.follow_crowd(now);
            self.guests.look_again();
        }
    }

    /// Begins a burst and sends its first message at once. A host that nobody can have heard asks; others announce.
    fn burst(&mut self, now: Time) {
        if self.own.live().next().is_none() {
            self.agenda.joined = false;
            self.agenda.burst = None;
            self.agenda.announce_at = None;
            self.agenda.between_at = None;
            return;
        }
        let asks =
            !self.agenda.joined || self.agenda.burst.is_some_and(|burst| burst.kind == Kind::Broadcast);
        let kind = if asks { Kind::Broadcast } else { Kind::Change };
        self.agenda.joined = true;
        self.agenda.burst = Some(Burst { kind, left: self.timing.burst_count, at: now });
        self.next_of_burst(now);
    }

    fn next_of_burst(&mut self, now: Time) {
        let Some(Burst { kind, left, .. }) = self.agenda.burst.take() else { return };
        self.broadcast_mapping(now, kind);
        //= docs/arp-plus.md#5.2
        //= docs/arp-plus.md#5.3
        if left > 1 {
            let gap = self.random.between(self.timing.burst_gap_min, self.timing.burst_gap_max);
            self.agenda.burst = Some(Burst { kind, left: left - 1, at: now + gap });
        }
    }

    /// Tells the own mapping on every live member, which answers whoever waits for a reply.
    fn broadcast_mapping(&mut self, now: Time, kind: Kind) {
        //= docs/arp-plus.md#5.10
        self.send_all(kind);
        self.agenda.told_at = now;
        //= docs/arp-plus.md#5.7
        let waiting = self.agenda.replies.len() as u64;
        self.out.counters.add(Counter::ReplySuppressed, waiting);
        self.agenda.replies.clear();
        self.agenda.collapse_at = None;
        self.agenda.replies_sent = 0;
        //= docs/arp-plus.md#5.1
        let gap = self.announcement_gap();
        //= docs/arp-plus.md#5.12
        let is_young = self.agenda.young_until.is_some_and(|until| now < until);
        self.agenda.between_at = is_young.then(|| now + gap / YOUNG_TIMES);
        self.agenda.announce_at = Some(now + gap);
    }

    /// A BROADCAST has come and its sender has an entry: it is to get a REPLY, some time soon.
    pub(super) fn schedule_reply(&mut self, now: Time, slot: u8, src: MacAddr) {
        let Some(key) = self.table.by_mac(src).map(|peer| peer.key) else { return };
        //= docs/arp-plus.md#5.11
        if self.agenda.replies.contains_key(&key) {
            return;
        }
        //= docs/arp-plus.md#5.8
        let at = now + reply_delay(&mut self.random, &self.timing, self.table.len());
        if self.agenda.replies_sent + self.agenda.replies.len() < limits::REPLIES_MAX {
            self.agenda.replies.insert(key, Reply { at, slot, dst: src });
            return;
        }
        //= docs/arp-plus.md#5.9
        self.out.counters.one(Counter::ReplyCollapsed);
        let at = at.max(self.collapse_from());
        self.agenda.collapse_at.get_or_insert(at);
    }

    fn due_replies(&mut self, now: Time) {
        let mut due = Vec::new();
        self.agenda.replies.retain(|_, reply| {
            let waits = reply.at > now;
            if !waits {
                due.push(*reply);
            }
            waits
        });
        for reply in due {
            // A member that died meanwhile: the CHANGE that said so has answered, or nobody can.
            if self.own.member(reply.slot).is_some_and(|member| member.up) {
                self.agenda.replies_sent += 1;
                self.send(reply.slot, reply.dst, Kind::Reply);
            }
        }
    }

    fn send_all(&mut self, kind: Kind) {
        let slots: Vec<u8> = self.own.live().map(|member| member.slot).collect();
        slots.into_iter().for_each(|slot| self.send(slot, MacAddr::BROADCAST, kind));
    }

    pub(super) fn send(&mut self, slot: u8, dst: MacAddr, kind: Kind) {
        let Some(src) = self.own.member(slot).map(|member| member.mac) else { return };
        match emit_frame(dst, src, &self.own.message(kind)) {
            Ok(frame) => {
                self.out.counters.one(Counter::sent(kind));
                self.out.push(Action::Send { slot, frame });
            }
            Err(_) => self.out.counters.one(Counter::TxRefused),
        }
    }
}

/// At random within a window that grows with the number of hosts that may answer.
fn reply_delay(random: &mut Random, timing: &Timing, hosts: usize) -> Duration {
    let hosts = u32::try_from(hosts).unwrap_or(u32::MAX);
    let window = timing.reply_window.saturating_add(timing.reply_window_host.saturating_mul(hosts));
    random.between(Duration::ZERO, window.min(timing.reply_window_max))
}
