//! ARP+: which hosts there are, which hardware addresses are behind each, and which members hear each other.
//!
//! Job: keep the table of `docs/arp-plus.md` true by messages alone. In: [`Input`], each with the time. Out:
//! [`Action`], the next deadline, and the table itself. It never reads a clock, opens a socket or logs.
//!
//! The contract with the loop around it:
//! 1. after every [`ArpPlus::handle`], call [`ArpPlus::poll_action`] until it gives none and do what it says;
//! 2. then ask [`ArpPlus::poll_timeout`], and at that time hand in [`Input::Timeout`];
//! 3. time never goes back from one call to the next.
//!
//! Where a frame goes: [`ArpPlus::handle`], `receive::frame` (is it ours, is it a claim on what is ours),
//! `state::step`, `table::Table::learn` (is it fresh, whose are the MACs), and for a BROADCAST `send::schedule_reply`.

use crate::{
    Time,
    random::Random,
    secret::{Numbers, Secret},
};
use linkbraid_wire::{HostId, Kind, MacAddr};
use std::net::IpAddr;

mod counter;
mod event;
mod guests;
mod outbox;
mod own;
mod pace;
mod peer;
mod receive;
mod segment;
mod send;
mod snapshot;
mod state;
mod table;
mod timing;
mod tokens;

#[cfg(test)]
mod tests;

pub use counter::{Counter, Counters};
pub use event::{Action, Changed, Conflict, Event, Input, OwnMember, Reason};
pub use guests::{GuestAddress, Located, SeenAddress, SeenGuests, alias_of};
pub use outbox::OpenConflict;
pub use peer::{Alias, Peer, PeerClass, PeerKey, PeerMember, PeerState};
pub use segment::Segment;
pub use snapshot::Snapshot;
pub use state::{Effect, Signal, State, step};
pub use timing::Timing;
pub(crate) use tokens::Rate;
pub use tokens::Tokens;

/// What a machine is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Identity of this host: the same after every start, another one on every other host.
    pub host_id: HostId,
    /// Grows with every start; the clock in nanoseconds will do.
    pub epoch: u64,
    /// When things happen.
    pub timing: Timing,
}

impl Config {
    /// That host in that epoch, with the default timing.
    pub fn new(host_id: HostId, epoch: u64) -> Config {
        Config { host_id, epoch, timing: Timing::default() }
    }
}

/// The protocol machine of one bond.
#[derive(Debug)]
pub struct ArpPlus {
    timing: Timing,
    random: Random,
    state: State,
    own: own::Own,
    table: table::Table,
    segments: segment::Segments,
    guests: guests::Guests,
    agenda: send::Agenda,
    /// Whether published-only hosts may be peers; whether it was said that one may not.
    published_only: bool,
    published_only_told: bool,
    out: outbox::Outbox,
}

impl ArpPlus {
    /// A machine in S0. `secret` makes its jitter: another one on each host, or hosts answer all at once.
    pub fn new(config: Config, secret: impl Into<Secret>) -> ArpPlus {
        ArpPlus {
            own: own::Own::new(&config),
            timing: config.timing,
            random: Random::new(Numbers::new(secret.into()).next()),
            state: State::S0,
            table: table::Table::default(),
            segments: segment::Segments::default(),
            guests: guests::Guests::default(),
            agenda: send::Agenda::default(),
            published_only: false,
            published_only_told: false,
            out: outbox::Outbox::default(),
        }
    }

    /// Takes one input. Poll actions and timeout afterwards.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.take(now, input);
        self.follow_guests(now);
    }

    fn take(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Start => self.signal(now, Signal::Start),
            Input::Stop => self.signal(now, Signal::Stop),
            Input::Timeout => self.signal(now, Signal::Timeout),
            Input::Frame { slot, bytes, heard_again } => self.frame(now, slot, bytes, heard_again),
            Input::Members(members) => {
                let before = self.own.members.clone();
                let differ = self.own.set_members(now, members, &mut self.out);
                if differ == own::Differ::Nothing {
                    return;
                }
                //= docs/arp-plus.md#7.4
                // A slot that another member has taken says nothing of where the former one was.
                let own = &self.own;
                let was = |slot| before.iter().find(|member| member.slot == slot);
                let keep = |slot| {
                    let is = own.member(slot);
                    is.is_some_and(|is| was(slot).is_none_or(|was| was.mac == is.mac))
                };
                self.table.retain_slots(keep, &mut self.out);
                self.segments.retain_slots(keep);
                self.update_segments(now);
                // Which of several segments takes in a peer's broadcasts depends on soundness, too.
                self.out.all_changed();
                if differ == own::Differ::Mapping {
                    self.signal(now, Signal::OwnChange);
                }
            }
            Input::Classes(classes) => {
                if self.own.set_classes(classes, &mut self.out) {
                    // Which members of peers are in a class of ours follows from its name.
                    self.out.all_changed();
                    self.signal(now, Signal::OwnChange);
                }
            }
            Input::Woke => {
                //= docs/arp-plus.md#11.14
                self.agenda.ask_again();
                self.signal(now, Signal::OwnChange);
            }
            Input::Features(features) => {
                if std::mem::replace(&mut self.own.features, features) != features {
                    self.signal(now, Signal::OwnChange);
                }
            }
            Input::Appended(bytes) => {
                if std::mem::replace(&mut self.own.appended, bytes) != bytes {
                    self.signal(now, Signal::OwnChange);
                }
            }
            Input::Guests(seen) => self.see_guests(now, seen),
            Input::FormerGuests(addresses) => self.inherit_guests(&addresses),
            Input::Gateways(gateways) => self.set_gateways(gateways),
            Input::PublishedOnly(may) => {
                if std::mem::replace(&mut self.published_only, may) != may {
                    self.published_only_told = false;
                    if !may {
                        self.table.drop_published_only(&mut self.out);
                    }
                }
            }
            Input::Taken(macs) => self.table.set_taken(macs, &mut self.out),
            Input::Proven { peer, mac, asked } => {
                self.table.proven(now, (peer, mac, asked), &self.timing, &mut self.out);
            }
            Input::Met { slot, mac, host } => {
                //= docs/arp-plus.md#15.11
                if self.state != State::S0 && self.table.get(&PeerKey::Host(host)).is_none() {
                    self.send(slot, mac, Kind::Broadcast);
                }
            }
            Input::Probed(peers) => self.table.take_probed(now, &peers, &mut self.out),
            Input::NobodyObjects(peer) => {
                self.table.nobody_objects(now, peer);
                self.take_waited(now);
            }
            Input::Segments(groups) => self.segments.inherit(now, &groups),
            Input::Addresses(addresses) => {
                if self.own.set_addresses(addresses, &mut self.out) {
                    self.guests.own_addresses_differ();
                    self.signal(now, Signal::OwnChange);
                }
            }
        }
    }

    /// When to hand in [`Input::Timeout`]; none while not running. Changes with every `handle`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        match self.state {
            State::S0 => None,
            State::S1 | State::S2 | State::S3 => {
                [self.agenda.next(), self.table.next_waited()].into_iter().flatten().min()
            }
        }
    }

    /// What to do next; call it after every `handle` until it gives none.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.out.poll()
    }

    /// One step of the published machine, and what it entails.
    fn signal(&mut self, now: Time, signal: Signal) {
        let old = self.state;
        let (next, effect) = step(old, signal);
        self.state = next;
        if old != next {
            self.out.event(Event::State { old, new: next });
        }
        match effect {
            Effect::Join => self.join(now),
            Effect::Announce => self.announce(now),
            Effect::Leave => self.leave(),
            Effect::RunTimers => self.run_timers(now),
            // Done by whoever gave the signal: `receive` holds the message.
            Effect::MakeEntry | Effect::UpdateTable | Effect::Reply | Effect::Ignore | Effect::Nothing => {}
        }
    }

    fn update_segments(&mut self, now: Time) {
        if self.segments.update(now, &self.own.members, &self.timing) {
            self.out.segments_changed();
            // Where broadcasts of a peer are taken in follows from the segments.
            self.out.all_changed();
            self.network_changed(now);
        }
    }

    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Every host of the table, in the order of keys.
    pub fn peers(&self) -> impl ExactSizeIterator<Item = &Peer> {
        self.table.peers()
    }

    /// The host of that key.
    pub fn peer(&self, key: &PeerKey) -> Option<&Peer> {
        self.table.get(key)
    }

    /// The host that has that MAC, or had it lately.
    pub fn peer_by_mac(&self, mac: MacAddr) -> Option<&Peer> {
        self.table.by_mac(mac)
    }

    /// The primary MACs of peers that nothing was heard from: they may be plain hosts'.
    pub fn silent_primaries(&self) -> std::collections::BTreeSet<MacAddr> {
        self.table.silent_primaries()
    }

    /// The host that has that IP address.
    pub fn peer_by_address(&self, address: IpAddr) -> Option<&Peer> {
        self.table.by_address(address)
    }

    /// Which own members hear each other, ascending by lowest slot.
    pub fn segments(&self) -> &[Segment] {
        self.segments.list()
    }

    /// The slot on which broadcasts of a host are taken in: the elected member of the first own segment on which a
    /// sound member hears the host, else of the first on which any hears it. None if it is not heard anywhere. Of
    /// several segments, those where a member of the host that is in no class is heard come first, for by that one its
    /// broadcasts leave; then those whose elected member is in no class.
    pub fn broadcast_slot(&self, key: &PeerKey) -> Option<u8> {
        //= docs/arp-plus.md#9.3
        let peer = self.table.get(key)?;
        let hears = |segment: &&Segment| segment.slots.iter().any(|slot| peer.heard_on(*slot));
        let sound = |slot: &u8| self.own.member(*slot).is_some_and(|member| member.up && member.sound);
        let soundly =
            |segment: &&Segment| segment.slots.iter().any(|slot| sound(slot) && peer.heard_on(*slot));
        let segments = || self.segments.list().iter().filter(|segment| segment.elected.is_some());
        let told_here = |segment: &Segment| segment.slots.iter().any(|slot| peer.rest_heard_on(*slot));
        let rest_elected = |segment: &Segment| {
            segment.elected.and_then(|slot| self.own.member(slot)).is_some_and(|member| member.class == 0)
        };
        // Of equals `min_by_key` takes the first.
        let rank = |segment: &&Segment| (!told_here(segment), !rest_elected(segment));
        let first = segments().filter(soundly).min_by_key(rank);
        first.or_else(|| segments().filter(hears).min_by_key(rank))?.elected
    }

    /// All counters.
    pub const fn counters(&self) -> &Counters {
        &self.out.counters
    }

    /// Conflicts seen lately.
    pub fn conflicts(&self) -> Vec<OpenConflict> {
        self.out.conflicts()
    }
}
