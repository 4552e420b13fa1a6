//! Authentication of ARP+: each frame that leaves is signed, and of those that come in only the ones that a holder of the key
//! has sent just now reach the other machines (`docs/arp-plus.md`, section 15).
//!
//! Job: put the AUTH TLV into frames, and judge those that come in. In: frames, with the time. Out: whether a frame goes on,
//! and questions and answers to send. The model is RFC 8967: no clocks that agree, and nothing on disk.
//!
//! A code alone does not say *when* a frame was sent. So each host draws an index at random when it starts, and counts the
//! frames of each member. Who does not know the index of a member asks it by a PROBE with a nonce of its own, and believes
//! nothing that comes from there before the answer.

use crate::{
    Time,
    arp_plus::{Rate, Tokens},
    limits,
    secret::{Numbers, Secret},
};
use linkbraid_wire::{
    HostId, MacAddr, Probe, ProbeFrame, ProbeKind, Sealed, emit_probe, is_arp_plus, is_probe, parse_probe,
    seal, sealed,
};
use senders::{Freshness, Senders};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

mod counter;
mod key;
mod refused;
mod senders;

#[cfg(test)]
mod tests;

pub use counter::{Counter, Counters};
pub use key::{KEYS_MAX, Key, Ring, SECRET_LEN};
pub use refused::{Unkeyed, Why};

/// What the code covers first, so that it is one of nothing else.
const CONTEXT: &[u8] = b"linkbraid ARP+ AUTH 1";

const CHALLENGES: Rate = Rate { at_once: limits::AUTH_AT_ONCE, a_second: limits::AUTH_RATE };

/// The number of PROBEs and PROBE-REPLYs that are no lane's: what [`Probe::default`] has.
const CHALLENGE_NUMBER: u32 = 0;

/// What is asked of the ARP+ frames of others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing, and own frames are not signed.
    #[default]
    Off,
    /// Nothing, but own frames are signed: until all hosts have the key.
    Permit,
    /// A code by one of our keys, and that they are new.
    Require,
}

/// What the user may set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// What is asked of others.
    pub mode: Mode,
    /// The keys; none where those that were set cannot be used.
    pub ring: Arc<Ring>,
}

/// A question that was sent to a member whose index is not known.
#[derive(Debug, Clone, Copy)]
struct Challenge {
    nonce: u64,
    since: Time,
    sent: Time,
}

/// What comes in is judged here, and what goes out is signed.
#[derive(Debug)]
pub struct Auth {
    host: HostId,
    epoch: u64,
    settings: Settings,
    numbers: Numbers,
    index: u64,
    /// Frames that each own member has sent.
    sent: BTreeMap<MacAddr, u64>,
    senders: Senders,
    /// By own member and the MAC that was asked.
    challenges: BTreeMap<(u8, MacAddr), Challenge>,
    challenged: Tokens,
    answered: Tokens,
    refused: refused::RefusedHosts,
    counters: Counters,
    out: VecDeque<Action>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send this frame, which is signed, out of that member.
    Send {
        /// The member.
        slot: u8,
        /// The frame.
        frame: Vec<u8>,
    },
    /// A member of another host has proven that it speaks now.
    Met {
        /// The own member that heard it.
        slot: u8,
        /// Its MAC.
        mac: MacAddr,
        /// Its host.
        host: HostId,
    },
    /// A host that was not heard before speaks without a key of ours.
    Unkeyed(Unkeyed),
}

/// Where a frame came in.
#[derive(Debug, Clone, Copy)]
pub struct Port<'a> {
    /// The own member.
    pub slot: u8,
    /// The MAC of that member.
    pub mac: MacAddr,
    /// Those of all own members.
    pub own: &'a [MacAddr],
}

impl Auth {
    /// A machine that asks nothing. `secret` makes the index and the nonces: another one at each start.
    pub fn new(host: HostId, epoch: u64, secret: impl Into<Secret>) -> Auth {
        //= docs/arp-plus.md#15.2
        let mut numbers = Numbers::new(secret.into());
        Auth {
            host,
            epoch,
            settings: Settings::default(),
            index: numbers.next(),
            numbers,
            sent: BTreeMap::new(),
            senders: Senders::default(),
            challenges: BTreeMap::new(),
            challenged: Tokens::default(),
            answered: Tokens::default(),
            refused: refused::RefusedHosts::default(),
            counters: Counters::default(),
            out: VecDeque::new(),
        }
    }

    /// The settings now. The index and all counters go on: a frame that came before does not become a new one by another key.
    pub fn set(&mut self, settings: Settings) {
        if settings != self.settings {
            self.refused.forget();
            self.settings = settings;
        }
    }

    /// Whether own frames get an AUTH TLV.
    pub fn signs(&self) -> bool {
        self.settings.mode != Mode::Off && self.settings.ring.signing().is_some()
    }

    /// The frame as it is to leave; none if it is not to.
    pub fn sign(&mut self, now: Time, mut frame: Vec<u8>) -> Option<Vec<u8>> {
        if self.settings.mode == Mode::Off || !is_arp_plus(&frame) {
            return Some(frame);
        }
        let ring = self.settings.ring.clone();
        let Some(key) = ring.signing() else {
            //= docs/arp-plus.md#15.9
            if self.settings.mode == Mode::Permit {
                return Some(frame);
            }
            self.counters.one(Counter::TxUnsigned);
            return None;
        };
        let src = source(&frame)?;
        //= docs/arp-plus.md#15.2
        if self.sent.get(&src) == Some(&u64::MAX) {
            self.index = self.numbers.next();
            self.sent.clear();
        }
        let counter = self.sent.entry(src).or_default();
        *counter += 1;
        let (index, counter) = (self.index, *counter);
        //= docs/arp-plus.md#15.10
        self.senders.sent(now, src, index, counter);
        match seal(&mut frame, (key.id, index, counter), |covered| key.code(CONTEXT, covered)) {
            Ok(()) => Some(frame),
            Err(_) => {
                self.counters.one(Counter::TxRefused);
                None
            }
        }
    }

    /// Judges a frame of ARP+; whether it goes on to the other machines.
    pub fn admit(&mut self, now: Time, port: Port<'_>, bytes: &[u8]) -> bool {
        if self.settings.mode == Mode::Off {
            return true;
        }
        match self.judge(now, port, bytes) {
            Ok(Judged::GoesOn) => {
                self.counters.one(Counter::Accepted);
                true
            }
            Ok(Judged::WasForUs) => false,
            Err(counter) => {
                self.counters.one(counter);
                if let Some(mac) = source(bytes).filter(|mac| !self.senders.is_heard(now, *mac))
                    && let Some(host) = self.refused.note(now, mac, counter, bytes)
                {
                    self.out.push_back(Action::Unkeyed(host.clone()));
                }
                //= docs/arp-plus.md#15.8
                self.settings.mode == Mode::Permit
            }
        }
    }

    fn judge(&mut self, now: Time, port: Port<'_>, bytes: &[u8]) -> Result<Judged, Counter> {
        //= docs/arp-plus.md#15.4
        let sealed = sealed(bytes).map_err(|_| Counter::Malformed)?.ok_or(Counter::Missing)?;
        let key = self.settings.ring.key(sealed.key_id).ok_or(Counter::OtherKey)?;
        if !key.is_code(CONTEXT, sealed.covered, &sealed.code) {
            return Err(Counter::BadCode);
        }
        let asks = challenge_for(port.mac, bytes);
        let Sealed { src, index, counter, .. } = sealed;
        match (self.senders.take((now, port.slot), src, index, counter), asks) {
            (Freshness::Old, _) => Err(Counter::Replayed),
            (Freshness::New, None) => Ok(Judged::GoesOn),
            (Freshness::New, Some(frame)) => {
                self.answer(now, port, &frame);
                Ok(Judged::WasForUs)
            }
            (Freshness::Unknown, Some(frame)) if self.is_answer(now, port.slot, &frame) => {
                if self.senders.prove(now, src, index, counter) {
                    self.counters.one(Counter::LimitSenders);
                }
                self.counters.one(Counter::Proven);
                self.refused.has_key(frame.probe.host, src);
                self.out.push_back(Action::Met { slot: port.slot, mac: src, host: frame.probe.host });
                self.challenges.retain(|(_, mac), _| *mac != src);
                Ok(Judged::WasForUs)
            }
            (Freshness::Unknown, asks) => {
                if let Some(frame) = &asks {
                    self.answer(now, port, frame);
                }
                // Frames of this host before it started again, and those that a switch sends everywhere.
                if !port.own.contains(&src) && (sealed.dst == port.mac || sealed.dst.is_multicast()) {
                    self.ask(now, port, src);
                }
                match asks {
                    Some(_) => Ok(Judged::WasForUs),
                    None => Err(Counter::Unproven),
                }
            }
        }
    }

    /// Asks a member whether it has sent just now what came with an index that is not known.
    fn ask(&mut self, now: Time, port: Port<'_>, to: MacAddr) {
        //= docs/arp-plus.md#15.6
        let place = (port.slot, to);
        let asked = self.challenges.get(&place);
        if asked.is_some_and(|asked| now.since(asked.sent) < limits::AUTH_REPEAT) {
            return;
        }
        if !self.challenged.take(now, CHALLENGES) {
            return self.counters.one(Counter::LimitChallenges);
        }
        // What may be asked in a second bounds how many are left.
        self.challenges.retain(|_, open| is_open(now, open));
        let new = || Challenge { nonce: self.numbers.next(), since: now, sent: now };
        let open = self.challenges.entry(place).or_insert_with(new);
        open.sent = now;
        let nonce = open.nonce;
        if self.send(now, port, to, (ProbeKind::Probe, nonce, 0)) {
            self.counters.one(Counter::Challenged);
        }
    }

    /// Whether that is the answer to what was asked.
    fn is_answer(&self, now: Time, slot: u8, frame: &ProbeFrame) -> bool {
        //= docs/arp-plus.md#15.6
        let asked = self.challenges.get(&(slot, frame.src)).filter(|open| is_open(now, open));
        frame.probe.kind == ProbeKind::Reply && asked.is_some_and(|asked| asked.nonce == frame.probe.echo)
    }

    /// Answers whoever asks.
    fn answer(&mut self, now: Time, port: Port<'_>, frame: &ProbeFrame) {
        //= docs/arp-plus.md#15.7
        if frame.probe.kind != ProbeKind::Probe {
            return;
        }
        if !self.answered.take(now, CHALLENGES) {
            return self.counters.one(Counter::LimitAnswers);
        }
        let (nonce, echo) = (self.numbers.next(), frame.probe.nonce);
        if self.send(now, port, frame.src, (ProbeKind::Reply, nonce, echo)) {
            self.counters.one(Counter::Answered);
        }
    }

    fn send(&mut self, now: Time, port: Port<'_>, to: MacAddr, what: (ProbeKind, u64, u64)) -> bool {
        let ((kind, nonce, echo), host, epoch) = (what, self.host, self.epoch);
        let probe = Probe { kind, nonce, echo, host, epoch, ..Probe::default() };
        let frame = emit_probe(to, port.mac, &probe).ok().and_then(|frame| self.sign(now, frame));
        let is_sent = frame.is_some();
        self.out.extend(frame.map(|frame| Action::Send { slot: port.slot, frame }));
        is_sent
    }

    /// What to do next; call it after every frame until it gives none.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.out.pop_front()
    }

    /// What is asked of others.
    pub const fn mode(&self) -> Mode {
        self.settings.mode
    }

    /// Hosts that were heard lately and have no key of ours.
    pub fn unkeyed(&self, now: Time) -> impl Iterator<Item = &Unkeyed> {
        self.refused.list(now)
    }

    /// All counters.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// What becomes of a frame that is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    GoesOn,
    WasForUs,
}

fn is_open(now: Time, challenge: &Challenge) -> bool {
    now.since(challenge.since) < limits::AUTH_CHALLENGE_LIVES
}

/// A question to that member, or an answer to it, that is no lane's.
fn challenge_for(mac: MacAddr, bytes: &[u8]) -> Option<ProbeFrame> {
    let frame = is_probe(bytes).then(|| parse_probe(bytes).ok()).flatten()?;
    (frame.probe.number == CHALLENGE_NUMBER && frame.dst == mac).then_some(frame)
}

fn source(frame: &[u8]) -> Option<MacAddr> {
    frame.get(6..)?.first_chunk().map(|mac| MacAddr(*mac))
}
