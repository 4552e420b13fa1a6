//! The inspector: which members and which lanes can carry traffic now.
//!
//! Job: one machine a member ([`step_member`]) and one a lane ([`step_lane`]). In: [`Input`], each with the time. Out:
//! [`Action`], the next deadline, and verdicts. It never reads a clock, opens a socket or logs.
//!
//! The contract with the loop around it:
//! 1. after every [`Inspector::handle`], call [`Inspector::poll_action`] until it gives none and do what it says;
//! 2. then ask [`Inspector::poll_timeout`], and at that time hand in [`Input::Timeout`];
//! 3. time never goes back from one call to the next;
//! 4. frames that [`linkbraid_wire::is_probe`] or [`linkbraid_wire::is_plain_answer`] recognises come here, other
//!    ARP+ frames go to [`crate::arp_plus`], other ARP and neighbour discovery to the kernel;
//! 5. on [`Action::Verdicts`] make those plans again, as [`Verdict::usable`] shows, and report the new lanes ([`Input::Plan`],
//!    [`Input::PlanOf`]);
//!    report to ARP+ that a member is up where [`Inspector::member_alive`] is [`Verdict::Alive`], so that peers stop sending to
//!    members that are not, and that it is sound where [`Inspector::member_sound`] is not [`Verdict::Failed`], so that it
//!    does not stay the one that takes in broadcasts.
//!
//! How a silent failure is found: `judge::lane_due` sends a PROBE and repeats it in a hurry while it is not answered;
//! `probe::frame` turns a nonce that came back into a proof; no proof for `multiplier` intervals, and `judge::expire`
//! asks whether another lane of that peer was proven since. If so the lane is lost. If not, the peer may have failed, or its
//! daemon, or every lane: all that were in use are kept, as suspects, since nothing better is left.
//!
//! A plain host is a peer of one member here, probed by ARP or neighbour solicitations (`plain`), rarely (`ration`): a lane is
//! lost when what was asked over it is not answered. All else is the same.

pub use crate::arp_plus::Changed;
use crate::{
    Time,
    arp_plus::PeerKey,
    random::Random,
    secret::{Numbers, Secret},
};
use linkbraid_wire::HostId;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
};

mod counter;
mod damper;
mod doubt;
mod event;
mod idle;
mod judge;
mod lane;
mod length;
mod member;
mod plain;
mod probe;
mod rate;
mod ration;
mod snapshot;
mod sound;
mod timing;
mod update;
mod woke;

#[cfg(test)]
mod tests;

pub use counter::{Counter, Counters};
pub use event::{
    Action, Event, Input, LaneId, LaneReason, LaneUse, MemberReason, MemberReport, PeerMemberReport,
    PeerReport, PlainReport, Verdict,
};
pub use lane::{LaneSignal, LaneState, Usage, step_lane};
pub use member::{MemberSignal, MemberState, step_member};
pub use snapshot::{Held, LaneSnapshot, MemberSnapshot, Snapshot};
pub use timing::{OutOfRange, Timing};

/// What an inspector is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Identity of this host, the one of ARP+.
    pub host_id: HostId,
    /// Its epoch, the one of ARP+.
    pub epoch: u64,
    /// When things happen; bounded as [`Timing::bounded`] says.
    pub timing: Timing,
}

impl Config {
    /// That host in that epoch, with the default timing.
    pub fn new(host_id: HostId, epoch: u64) -> Config {
        Config { host_id, epoch, timing: Timing::default() }
    }
}

/// Whom a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    /// Which peers are probed.
    Idle,
    Member(u8),
    Lane(LaneId),
}

/// A peer that is probed.
#[derive(Debug)]
struct Peer {
    report: PeerReport,
    /// Of a plain host only.
    plain: Option<Plain>,
    /// Whether this host leads, so that one end's PROBEs do for both.
    leads: bool,
    /// Whether it ever answered a probe.
    answers: bool,
    /// The answer to a PROBE that left then or later is to be told.
    told_from: Option<Time>,
    /// Each by itself: a node of the map has room for eleven, and most hosts that somebody makes up have one.
    lanes: BTreeMap<(u8, u8), Box<lane::Lane>>,
    /// How many of them are live.
    live: usize,
    /// It was silent as a whole: what fails of its lanes until then is no failure of theirs.
    excused_until: Time,
    /// Whether something was sent to it lately.
    in_use: bool,
    /// It is one of the nearest, which are probed whether or not something is sent to them.
    near: bool,
    /// Nothing is sent to it, and it was met among many: it has one lane, which is that one of those that are heard.
    only_lane: Option<usize>,
    /// Nothing is sent to it, so it has no lanes.
    unprobed: bool,
    /// That may be so from then on.
    idle_from: Time,
}

/// What is kept of a plain host beside its lanes.
#[derive(Debug)]
struct Plain {
    /// It answers for that address, and nothing else.
    ip: IpAddr,
    ration: ration::Ration,
}

/// What is to be done.
#[derive(Debug, Default)]
struct Outbox {
    /// A member changed: every plan does.
    all: bool,
    /// Lanes of these changed.
    peers: BTreeSet<PeerKey>,
    actions: VecDeque<Action>,
    counters: Counters,
}

impl Outbox {
    fn push(&mut self, action: Action) {
        if self.actions.len() >= crate::limits::ACTIONS_MAX {
            return self.counters.one(Counter::LimitActions);
        }
        self.actions.push_back(action);
    }

    fn event(&mut self, event: Event) {
        self.push(Action::Event(event));
    }
}

/// The inspector of one bond.
#[derive(Debug)]
pub struct Inspector {
    host_id: HostId,
    epoch: u64,
    timing: Timing,
    random: Random,
    nonces: Numbers,
    address: Option<IpAddr>,
    /// What lanes are to carry, in bytes without the Ethernet header; 0: that is not found out.
    mtu: u32,
    members: BTreeMap<u8, member::Member>,
    peers: BTreeMap<PeerKey, Peer>,
    lanes: usize,
    /// How many peers are left unprobed; when that is looked at next.
    unprobed: usize,
    idle_look: Option<Time>,
    usage: BTreeMap<LaneId, Usage>,
    agenda: BTreeSet<(Time, Wake)>,
    load: rate::Load,
    probes: rate::Bucket,
    replies: rate::Bucket,
    /// Of the last PROBE or PROBE-REPLY over any lane: a peer that kept a lane which was forgotten here takes no earlier one.
    number: u32,
    sound: sound::Sound,
    out: Outbox,
}

impl Inspector {
    /// An inspector without members and peers. `secret` makes its nonces and jitter: another one on each host.
    pub fn new(config: Config, secret: impl Into<Secret>) -> Inspector {
        let mut nonces = Numbers::new(secret.into());
        Inspector {
            host_id: config.host_id,
            epoch: config.epoch,
            timing: config.timing.bounded(),
            random: Random::new(nonces.next()),
            nonces,
            address: None,
            mtu: 0,
            members: BTreeMap::new(),
            peers: BTreeMap::new(),
            lanes: 0,
            unprobed: 0,
            idle_look: None,
            usage: BTreeMap::new(),
            agenda: BTreeSet::new(),
            load: rate::Load::default(),
            probes: rate::Bucket::default(),
            replies: rate::Bucket::default(),
            number: 0,
            sound: sound::Sound::default(),
            out: Outbox::default(),
        }
    }

    /// Takes one input. Poll actions and timeout afterwards.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Members(reports) => self.set_members(now, reports),
            Input::Peers(reports) => self.set_peers(now, reports),
            Input::Plain(reports) => self.set_plain(now, reports),
            Input::PlainStalled => self.ask_plain(now),
            Input::Address(address) => self.address = address,
            Input::Mtu(mtu) => self.set_mtu(now, mtu),
            Input::Peer(key, report) => self.set_peer(now, key, report),
            Input::Plan(lanes) => self.set_plan(now, lanes),
            Input::PlanOf(peer, lanes) => self.set_plan_of(now, peer, lanes),
            Input::Timing(timing) => self.set_timing(now, timing),
            Input::Frame { slot, bytes } => self.frame(now, slot, bytes),
            Input::Reset(slot) => self.reset(now, slot),
            Input::Woke => self.woke(now),
            Input::Timeout => self.run_timers(now),
        }
        self.count_votes();
        self.plan_idle_look(now);
    }

    /// When to hand in [`Input::Timeout`]; none while there is nothing to wait for. Changes with every `handle`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.agenda.first().map(|(at, _)| *at)
    }

    /// What to do next; call it after every `handle` until it gives none.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        let peers = std::mem::take(&mut self.out.peers);
        if std::mem::take(&mut self.out.all) {
            return Some(Action::Verdicts(Changed::All));
        }
        if !peers.is_empty() {
            return Some(Action::Verdicts(Changed::Peers(peers.into_iter().collect())));
        }
        self.out.actions.pop_front()
    }

    /// Whether a lane can carry traffic; [`Verdict::Unknown`] where it is not probed, was met together with its
    /// peer and not tested yet, or no lane of the peer is proven.
    pub fn lane_alive(&self, peer: &PeerKey, slot: u8, index: u8) -> Verdict {
        //= docs/arp-plus.md#11.7
        let Some(peer) = self.peers.get(peer) else { return Verdict::Unknown };
        let Some(lane) = peer.lanes.get(&(slot, index)) else { return Verdict::Unknown };
        match lane.state {
            LaneState::Cut => Verdict::Failed,
            //= docs/arp-plus.md#11.12
            LaneState::Up if lane.doubted && peer.lanes.values().any(|lane| lane.is_trusted()) => {
                Verdict::Failed
            }
            LaneState::Up if Inspector::is_left_out_as_short(peer, lane) => Verdict::Failed,
            LaneState::Up => Verdict::Alive,
            LaneState::Suspect => Verdict::Suspect,
            LaneState::Down | LaneState::Init if lane.fresh || peer.live == 0 => Verdict::Unknown,
            LaneState::Down | LaneState::Init => Verdict::Failed,
        }
    }

    /// Whether a member can carry traffic; [`Verdict::Unknown`] if there is no such member.
    pub fn member_alive(&self, slot: u8) -> Verdict {
        match self.members.get(&slot).map(|member| member.state) {
            Some(MemberState::Up) => Verdict::Alive,
            Some(MemberState::Down | MemberState::Delayed) => Verdict::Failed,
            None => Verdict::Unknown,
        }
    }

    /// All counters.
    pub const fn counters(&self) -> &Counters {
        &self.out.counters
    }

    /// Whether a plain host answers on any member; none while that is being found out, or where it is not probed.
    pub fn plain_answers(&self, mac: linkbraid_wire::MacAddr) -> Option<bool> {
        let peer = self.peers.get(&PeerKey::Plain(mac))?;
        let tested = peer.lanes.values().all(|lane| lane.state == LaneState::Cut || !lane.is_tested());
        if peer.answers { Some(true) } else { tested.then_some(false) }
    }

    fn lane_mut(&mut self, id: LaneId) -> Option<&mut lane::Lane> {
        self.peers.get_mut(&id.peer)?.lanes.get_mut(&(id.slot, id.index)).map(AsMut::as_mut)
    }

    /// Puts the lane's next deadline on the agenda in place of the former one.
    fn rewake(&mut self, id: LaneId) {
        let Some(lane) =
            self.peers.get_mut(&id.peer).and_then(|peer| peer.lanes.get_mut(&(id.slot, id.index)))
        else {
            return;
        };
        let wake =
            [lane.next_probe, lane.deadline(&self.timing), lane.length.next].into_iter().flatten().min();
        if wake == lane.wake {
            return;
        }
        if let Some(old) = std::mem::replace(&mut lane.wake, wake) {
            self.agenda.remove(&(old, Wake::Lane(id)));
        }
        if let Some(at) = wake {
            self.agenda.insert((at, Wake::Lane(id)));
        }
    }
}
