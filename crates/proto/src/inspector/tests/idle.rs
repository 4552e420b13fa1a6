//! Which of many peers are probed, and what becomes of the others.

use super::*;
use crate::limits;
use std::collections::BTreeSet;

const MEMBERS: u8 = 4;
const PEERS: u8 = 40;
/// In the midst of the others.
const MIDDLE: HostId = HostId([20; 16]);
const LANES: usize = MEMBERS as usize * MEMBERS as usize;

fn key(host: u8) -> PeerKey {
    PeerKey::Host(HostId([host; 16]))
}

/// One host among many that answer, all on one switch, each with [`MEMBERS`].
struct Crowd {
    now: Time,
    inspector: Inspector,
    number: u32,
    /// PROBEs that left: when, from which member, and the frame.
    asked: Vec<(Time, u8, ProbeFrame)>,
    replies: Vec<ProbeFrame>,
    proven: Vec<PeerKey>,
    /// Members of peers that answer nothing.
    dead: BTreeSet<MacAddr>,
    /// And those that no long frame reaches.
    short: BTreeSet<MacAddr>,
}

impl Crowd {
    fn report(host: u8, epoch: u64) -> PeerReport {
        let heard = || (0..MEMBERS).collect();
        let member = |index| PeerMemberReport { index, mac: mac(host, index), up: true, heard: heard() };
        let members = (0..MEMBERS).map(member).collect();
        PeerReport { key: key(host), epoch: Some(epoch), probes: true, long_probes: true, members }
    }

    fn new() -> Crowd {
        let mut crowd = Crowd {
            now: Time::from_millis(1000),
            inspector: Inspector::new(Config::new(MIDDLE, 1), 7),
            number: 0,
            asked: Vec::new(),
            replies: Vec::new(),
            proven: Vec::new(),
            dead: BTreeSet::new(),
            short: BTreeSet::new(),
        };
        let members = (0..MEMBERS).map(|slot| MemberReport { mac: mac(20, slot), ..report(slot) });
        crowd.handle(Input::Members(members.collect()));
        let peers = (0..=PEERS).filter(|host| *host != 20).map(|host| Crowd::report(host, 5));
        crowd.handle(Input::Peers(peers.collect()));
        crowd
    }

    /// The same after all have been tested and left.
    fn idle() -> Crowd {
        let mut crowd = Crowd::new();
        crowd.pass(Duration::from_secs(8));
        crowd
    }

    fn handle(&mut self, input: Input<'_>) {
        self.inspector.handle(self.now, input);
        while let Some(action) = self.inspector.poll_action() {
            match action {
                Action::Send { slot, frame } => {
                    let is_long = frame.len() > LONG;
                    let frame = parse_probe(&frame).expect("a good probe");
                    match frame.probe.kind {
                        _ if is_long && self.short.contains(&frame.dst) => {}
                        ProbeKind::Probe => self.asked.push((self.now, slot, frame)),
                        ProbeKind::Reply => self.replies.push(frame),
                    }
                }
                Action::Proven { peer, .. } => self.proven.push(peer),
                _ => {}
            }
        }
    }

    fn say(&mut self, kind: ProbeKind, (slot, host, index): (u8, u8, u8), echo: u64) {
        self.number += 1;
        let probe = Probe {
            kind,
            host: HostId([host; 16]),
            epoch: 5,
            nonce: u64::from(self.number) << 32,
            echo,
            number: self.number,
            view: View::Up,
            ..Probe::default()
        };
        let frame = emit_probe(mac(20, slot), mac(host, index), &probe).expect("a good probe");
        self.handle(Input::Frame { slot, bytes: &frame });
    }

    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut answered = self.asked.len();
        loop {
            while let Some((_, slot, frame)) = self.asked.get(answered).cloned() {
                answered += 1;
                if !self.dead.contains(&frame.dst) {
                    let lane = (slot, frame.dst.0[4], frame.dst.0[5]);
                    self.say(ProbeKind::Reply, lane, frame.probe.nonce);
                }
            }
            let Some(at) = self.inspector.poll_timeout().filter(|at| *at <= end) else { break };
            self.now = at.max(self.now);
            self.handle(Input::Timeout);
        }
        self.now = end;
    }

    /// Peers with lanes, and how many each.
    fn probed(&self) -> Vec<(PeerKey, usize)> {
        let mut found: Vec<(PeerKey, usize)> = Vec::new();
        for lane in self.inspector.snapshot(self.now).lanes {
            match found.last_mut() {
                Some((peer, lanes)) if *peer == lane.lane.peer => *lanes += 1,
                _ => found.push((lane.lane.peer, 1)),
            }
        }
        found
    }

    fn uses(&mut self, host: u8, usage: Usage) {
        let used = |at| LaneUse { lane: LaneId { peer: key(host), slot: at, index: at }, usage };
        self.handle(Input::PlanOf(key(host), (0..MEMBERS).map(used).collect()));
    }
}

/// The nearest by host id.
fn nearest() -> Vec<(PeerKey, usize)> {
    vec![(key(19), LANES), (key(21), LANES)]
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn all_are_tested_and_of_those_that_nothing_is_sent_to_the_nearest_are_probed_on() {
    let mut crowd = Crowd::new();
    crowd.pass(Duration::from_secs(4));
    let (tested, near) = (0..16, [19, 21]);
    assert_eq!(crowd.probed(), tested.chain(near).map(|host| (key(host), LANES)).collect::<Vec<_>>());
    assert_eq!(crowd.proven.iter().collect::<BTreeSet<_>>().len(), usize::from(PEERS), "told to ARP+");
    crowd.pass(Duration::from_secs(4));
    assert_eq!(crowd.probed(), nearest());
    assert_eq!(crowd.inspector.lane_alive(&key(5), 0, 0), Verdict::Unknown, "what is heard decides");
    assert!(crowd.inspector.lane_alive(&key(5), 0, 0).usable(true));
    [19, 21].into_iter().for_each(|host| crowd.uses(host, Usage::Idle));
    crowd.pass(Duration::from_secs(5));
    crowd.asked.clear();
    crowd.pass(Duration::from_secs(10));
    let a_second = crowd.asked.len() / 10;
    assert!((36..=48).contains(&a_second), "{a_second} PROBEs a second, whatever there is");
}

/// The lanes of all peers from that one on, which are met among many.
fn later(crowd: &Crowd, first: u8) -> Vec<(PeerKey, usize)> {
    crowd.probed().into_iter().filter(|(peer, _)| *peer >= key(first)).collect()
}

//= docs/arp-plus.md#11.22 type=test
#[test]
fn who_is_met_among_many_is_asked_over_one_lane_until_it_has_answered() {
    let mut crowd = Crowd::new();
    assert_eq!(
        later(&crowd, 16),
        (16..=PEERS).filter(|host| *host != 20).map(|host| (key(host), 1)).collect::<Vec<_>>()
    );
    // It may test us meanwhile.
    crowd.say(ProbeKind::Probe, (3, 40, 2), 0);
    assert_eq!(crowd.replies.len(), 1);
    crowd.pass(Duration::from_secs(2));
    assert_eq!(later(&crowd, 22), [], "all have answered");
    assert!(crowd.proven.contains(&key(40)), "told to ARP+");
    let asked = crowd.asked.iter().filter(|(.., frame)| frame.dst.0[4] == 40).count();
    assert!((3..=6).contains(&asked), "{asked} PROBEs");
    // All of its lanes are tested with the first frame that is sent to it.
    crowd.uses(40, Usage::Light);
    assert_eq!(later(&crowd, 22), [(key(40), LANES)]);
}

//= docs/arp-plus.md#11.22 type=test
#[test]
fn another_lane_is_asked_where_the_only_one_is_not_answered() {
    let mut crowd = Crowd::new();
    // All of one peer, and one member of another.
    crowd.dead.extend((0..MEMBERS).map(|index| mac(39, index)).chain([mac(40, 0)]));
    crowd.pass(Duration::from_secs(9));
    assert_eq!(later(&crowd, 22), [(key(39), 1), (key(40), 1)]);
    crowd.asked.clear();
    crowd.pass(Duration::from_secs(5));
    assert_eq!(later(&crowd, 22), [(key(39), 1)]);
    assert!(crowd.proven.contains(&key(40)));
    crowd.pass(Duration::from_secs(35));
    let of_dead = crowd.asked.iter().filter(|(.., frame)| frame.dst.0[4] == 39);
    let (lanes, asked) = (
        of_dead.clone().map(|(_, slot, frame)| (*slot, frame.dst)).collect::<BTreeSet<_>>(),
        of_dead.count(),
    );
    assert_eq!(lanes.len(), 4, "each for ten seconds");
    assert!(asked <= 40, "{asked} PROBEs in 40 seconds");
    // It is used all the same: what is heard decides.
    crowd.uses(39, Usage::Light);
    assert_eq!(later(&crowd, 22), [(key(39), LANES)]);
}

//= docs/arp-plus.md#11.22 type=test
#[test]
fn the_only_lane_stays_the_only_one_when_the_peer_is_heard_by_more() {
    let mut crowd = Crowd::new();
    let heard_by = |heard: &[u8]| {
        let mut report = Crowd::report(50, 5);
        report.members.iter_mut().for_each(|member| member.heard = heard.to_vec());
        report
    };
    let lanes = |crowd: &Crowd| {
        let all = crowd.inspector.snapshot(crowd.now).lanes.into_iter();
        all.filter(|lane| lane.lane.peer == key(50)).map(|lane| lane.lane.slot).collect::<Vec<_>>()
    };
    crowd.handle(Input::Peer(key(50), Some(heard_by(&[]))));
    assert!(lanes(&crowd).is_empty());
    for heard in [&[2][..], &[1, 2], &[0, 1, 2, 3]] {
        crowd.handle(Input::Peer(key(50), Some(heard_by(heard))));
        assert_eq!(lanes(&crowd), [2]);
    }
}

/// Where a lane works again, and nothing is sent to the peer.
#[test]
fn lanes_of_peers_that_nothing_is_sent_to_are_seldom_asked_once_they_are_tested() {
    let mut crowd = Crowd::new();
    crowd.dead.insert(mac(5, 0));
    crowd.pass(Duration::from_secs(20));
    crowd.asked.clear();
    crowd.pass(Duration::from_secs(20));
    let asked = crowd.asked.iter().filter(|(.., frame)| frame.dst.0[4] == 5).count();
    // 16 lanes each 4 s, at most, and some are repeated.
    assert!((40..=200).contains(&asked), "{asked} PROBEs in 20 s");
    assert_eq!(crowd.probed(), [vec![(key(5), LANES)], nearest()].concat());
    // Those that failed are tried at once again when something is sent to it.
    crowd.asked.clear();
    crowd.dead.clear();
    crowd.uses(5, Usage::Light);
    crowd.pass(millis(300));
    let tried = crowd.asked.iter().filter(|(.., frame)| frame.dst == mac(5, 0)).map(|(_, slot, _)| *slot);
    assert_eq!(tried.collect::<BTreeSet<_>>().len(), usize::from(MEMBERS));
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn so_many_are_probed_that_there_are_eight_lanes() {
    let mut crowd = Crowd::new();
    crowd.handle(Input::Members(vec![MemberReport { mac: mac(20, 0), ..report(0) }]));
    let one = |host| {
        let mut report = Crowd::report(host, 5);
        report.members.truncate(1);
        report
    };
    crowd.handle(Input::Peers((0..=PEERS).filter(|host| *host != 20).map(one).collect()));
    crowd.pass(Duration::from_secs(8));
    let expected = [16, 17, 18, 19, 21, 22, 23, 24].map(|host| (key(host), 1));
    assert_eq!(crowd.probed(), expected);
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn a_peer_with_a_lane_that_carries_no_long_frames_stays_probed() {
    let mut crowd = Crowd::idle();
    crowd.short.insert(mac(30, 2));
    crowd.handle(Input::Mtu(9000));
    crowd.uses(30, Usage::Light);
    crowd.pass(Duration::from_secs(30));
    crowd.uses(30, Usage::Idle);
    crowd.pass(Duration::from_secs(60));
    assert_eq!(crowd.probed(), [nearest(), vec![(key(30), LANES)]].concat());
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn a_peer_with_a_lane_that_worked_once_and_is_not_heard_any_more_stays_probed() {
    let mut crowd = Crowd::idle();
    crowd.uses(30, Usage::Light);
    crowd.pass(Duration::from_secs(2));
    crowd.dead.insert(mac(30, 2));
    let mut silent = Crowd::report(30, 5);
    silent.members[2].heard.clear();
    crowd.handle(Input::Peer(key(30), Some(silent)));
    crowd.pass(Duration::from_secs(2));
    crowd.uses(30, Usage::Idle);
    crowd.pass(Duration::from_secs(60));
    assert_eq!(crowd.probed(), [nearest(), vec![(key(30), LANES)]].concat());
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn who_is_sent_something_is_probed_at_once_and_a_minute_longer() {
    let mut crowd = Crowd::idle();
    crowd.dead.insert(mac(30, 2));
    let began = crowd.now;
    crowd.uses(30, Usage::Light);
    crowd.pass(millis(250));
    assert_eq!(crowd.probed(), [nearest(), vec![(key(30), LANES)]].concat());
    let first = crowd.asked.iter().find(|(at, _, frame)| *at >= began && frame.dst.0[4] == 30);
    assert!(first.expect("a PROBE").0 <= began + millis(13));
    assert_eq!(crowd.inspector.lane_alive(&key(30), 1, 1), Verdict::Alive);
    assert_eq!(crowd.inspector.lane_alive(&key(30), 2, 2), Verdict::Failed, "found within 250 ms");
    crowd.dead.clear();
    crowd.pass(Duration::from_secs(5));
    crowd.uses(30, Usage::Idle);
    crowd.pass(Duration::from_secs(45));
    assert_eq!(crowd.probed().len(), 3);
    crowd.pass(Duration::from_secs(10));
    assert_eq!(crowd.probed(), nearest());
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn a_peer_with_a_lane_that_fails_stays_probed_until_it_works() {
    let mut crowd = Crowd::new();
    crowd.dead.insert(mac(7, 3));
    crowd.pass(Duration::from_secs(20));
    assert_eq!(crowd.probed(), [vec![(key(7), LANES)], nearest()].concat());
    assert_eq!(crowd.inspector.lane_alive(&key(7), 3, 3), Verdict::Failed);
    crowd.dead.clear();
    crowd.pass(Duration::from_secs(3));
    assert_eq!(crowd.probed(), nearest());
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn who_never_answered_takes_nobodys_place_among_the_nearest() {
    let mut crowd = Crowd::new();
    crowd.dead.extend((0..MEMBERS).flat_map(|index| [mac(18, index), mac(19, index), mac(21, index)]));
    crowd.pass(Duration::from_secs(20));
    let probed: Vec<PeerKey> = crowd.probed().into_iter().map(|(peer, _)| peer).collect();
    assert_eq!(
        probed,
        [17, 18, 19, 21, 22].map(key),
        "those that are heard and silent, and the nearest two of the others"
    );
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn a_peer_that_is_not_probed_is_answered_and_nothing_else_follows() {
    let mut crowd = Crowd::idle();
    crowd.replies.clear();
    crowd.say(ProbeKind::Probe, (1, 5, 2), 0);
    let [reply] = &crowd.replies[..] else { panic!("{:?}", crowd.replies) };
    assert_eq!((reply.dst, reply.src), (mac(5, 2), mac(20, 1)));
    assert_eq!((reply.probe.echo, reply.probe.view), (u64::from(crowd.number) << 32, View::Unjudged));
    crowd.say(ProbeKind::Reply, (1, 5, 2), reply.probe.nonce);
    assert_eq!(crowd.replies.len(), 1);
    assert_eq!(crowd.inspector.counters().get(Counter::RxUnprobed), 2);
    assert_eq!(crowd.probed(), nearest());
    // A member that carries nothing here is not to carry anything from there.
    let members = |carrier| {
        (0..MEMBERS)
            .map(|slot| MemberReport { mac: mac(20, slot), carrier: carrier || slot != 1, ..report(slot) })
            .collect()
    };
    crowd.handle(Input::Members(members(false)));
    crowd.replies.clear();
    crowd.say(ProbeKind::Probe, (1, 5, 2), 0);
    assert!(crowd.replies.is_empty());
    assert_eq!(crowd.inspector.counters().get(Counter::RxCut), 1);
    crowd.handle(Input::Members(members(true)));
    // Floods of them leave something for lanes that are probed.
    crowd.pass(Duration::from_secs(1));
    crowd.replies.clear();
    (0..limits::PROBE_BURST).for_each(|_| crowd.say(ProbeKind::Probe, (1, 5, 2), 0));
    assert_eq!(crowd.replies.len() as u64, limits::PROBE_BURST / 2);
}

//= docs/arp-plus.md#6.8 type=test
#[test]
fn a_peer_that_is_not_probed_can_object_and_is_tested_when_it_has_started_again() {
    let mut crowd = Crowd::idle();
    crowd.proven.clear();
    assert!(crowd.inspector.challenge(crowd.now, key(5)));
    crowd.pass(millis(150));
    assert_eq!(crowd.proven.first(), Some(&key(5)), "it is what it was");
    crowd.pass(Duration::from_secs(7));
    assert_eq!(crowd.probed(), nearest());
    crowd.handle(Input::Peer(key(6), Some(Crowd::report(6, 6))));
    assert_eq!(crowd.probed(), [vec![(key(6), LANES)], nearest()].concat());
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn neighbours_that_leave_are_replaced_and_the_ring_closes() {
    let mut crowd = Crowd::idle();
    crowd.handle(Input::Peer(key(21), None));
    crowd.pass(Duration::from_secs(2));
    assert_eq!(crowd.probed(), vec![(key(19), LANES), (key(22), LANES)]);
    for host in (21..=PEERS).chain(2..20) {
        crowd.handle(Input::Peer(key(host), None));
    }
    crowd.pass(Duration::from_secs(2));
    assert_eq!(crowd.probed(), vec![(key(0), LANES), (key(1), LANES)], "after the last one comes the first");
    crowd.handle(Input::Peers(Vec::new()));
    assert_eq!(crowd.inspector.poll_timeout(), None);
}

/// Most members that a host may have.
const WIDE: u8 = limits::MEMBERS_MAX as u8;

/// A peer that is heard by all of so many own members.
fn wide(host: u8, members: u8) -> PeerReport {
    let heard = || (0..WIDE).collect();
    let member = |index| PeerMemberReport { index, mac: mac(host, index), up: true, heard: heard() };
    let members = (0..members).map(member).collect();
    PeerReport { key: key(host), epoch: Some(5), probes: true, long_probes: true, members }
}

/// A host with that many members and these peers, which something was sent to when they were met.
fn wide_host(peers: impl Iterator<Item = PeerReport>) -> Inspector {
    let mut inspector = Inspector::new(Config::new(HostId([0; 16]), 1), 7);
    inspector.handle(Time::ZERO, Input::Members((0..WIDE).map(report).collect()));
    let peers: Vec<PeerReport> = peers.collect();
    let lane = |peer: &PeerReport| LaneId { peer: peer.key, slot: 0, index: 0 };
    let used = |peer| LaneUse { lane: lane(peer), usage: Usage::Light };
    inspector.handle(Time::ZERO, Input::Plan(peers.iter().map(used).collect()));
    inspector.handle(Time::ZERO, Input::Peers(peers));
    inspector.handle(Time::ZERO, Input::Plan(Vec::new()));
    inspector
}

fn lanes_of(inspector: &Inspector, host: u8) -> usize {
    inspector.snapshot(Time::ZERO).lanes.iter().filter(|lane| lane.lane.peer == key(host)).count()
}

/// More peers at a time than may be probed.
#[test]
fn idle_peers_make_room_for_those_in_use() {
    let mut inspector = wide_host((1..=33).map(|host| wide(host, WIDE)));
    assert_eq!(lanes_of(&inspector, 33), 0, "32 peers of 256 lanes are all that may be probed");
    let lane = LaneId { peer: key(33), slot: 0, index: 0 };
    inspector.handle(Time::ZERO, Input::PlanOf(key(33), vec![LaneUse { lane, usage: Usage::Light }]));
    inspector.handle(Time::ZERO, Input::Peer(key(33), Some(PeerReport { epoch: Some(6), ..wide(33, WIDE) })));
    assert_ne!(lanes_of(&inspector, 33), 0);
    assert!(inspector.snapshot(Time::ZERO).lanes.len() <= limits::PROBED_LANES_MAX);
}

/// Lets time pass, with no answer of any peer.
fn wait(inspector: &mut Inspector, time: Duration) {
    let end = Time::ZERO + time;
    while let Some(at) = inspector.poll_timeout().filter(|at| *at <= end) {
        inspector.handle(at, Input::Timeout);
        while inspector.poll_action().is_some() {}
    }
}

/// A peer for whose last lanes there was no room.
#[test]
fn a_peer_with_some_of_its_lanes_gets_the_others_when_there_is_room() {
    // All lanes that there may be but 16, and then one of 32.
    let others = (1..=31).map(|host| wide(host, WIDE)).chain([wide(32, 15)]);
    let mut inspector = wide_host(others.chain([wide(33, 2)]));
    assert_eq!(lanes_of(&inspector, 33), 16);
    assert_eq!(inspector.snapshot(Time::ZERO).lanes.len(), limits::PROBED_LANES_MAX);
    let refused = |inspector: &Inspector| inspector.counters().get(Counter::LimitLanes);
    let before = refused(&inspector);
    inspector.handle(Time::ZERO, Input::Peer(key(33), Some(wide(33, 2))));
    assert_eq!(refused(&inspector), before, "nothing is new");
    wait(&mut inspector, limits::IDLE_LOOK);
    assert_eq!(
        (refused(&inspector), lanes_of(&inspector, 33)),
        (before, 16),
        "there is no room: it is not tried"
    );
    inspector.handle(Time::ZERO + limits::IDLE_LOOK, Input::Peer(key(1), None));
    wait(&mut inspector, limits::IDLE_LOOK * 2);
    assert_eq!(lanes_of(&inspector, 33), 32);
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn peers_in_use_keep_their_lanes_when_room_is_made_for_others() {
    let mut inspector = wide_host((1..=33).map(|host| wide(host, WIDE)));
    for host in [1, 33] {
        let lane = LaneId { peer: key(host), slot: 0, index: 0 };
        inspector.handle(Time::ZERO, Input::PlanOf(key(host), vec![LaneUse { lane, usage: Usage::Light }]));
    }
    inspector.handle(Time::ZERO, Input::Peer(key(33), Some(PeerReport { epoch: Some(6), ..wide(33, WIDE) })));
    let all = usize::from(WIDE) * usize::from(WIDE);
    assert_eq!([1, 2, 3, 33].map(|host| lanes_of(&inspector, host)), [all, 0, all, all]);
}

/// Hosts that somebody invents do not take turns for lanes that they are not to have.
#[test]
fn a_peer_that_never_answered_lacks_no_lane_by_which_it_was_not_heard() {
    let deaf = |host| {
        let mut peer = wide(host, WIDE);
        peer.members.iter_mut().for_each(|member| member.heard = [0].into());
        peer
    };
    // Too many, if the last one wanted all of its pairs.
    let mut inspector = wide_host((1..=31).map(|host| wide(host, WIDE)).chain([wide(32, 2), deaf(33)]));
    assert_eq!(lanes_of(&inspector, 33), usize::from(WIDE));
    let before = inspector.snapshot(Time::ZERO).lanes.len();
    // Until all were tested in vain, and so may have to make room.
    wait(&mut inspector, Duration::from_secs(20));
    assert_eq!(inspector.snapshot(Time::ZERO).lanes.len(), before);
}

//= docs/arp-plus.md#11.21 type=test
#[test]
fn a_peer_that_is_not_probed_is_tested_when_it_has_other_macs_and_not_for_other_news() {
    let mut crowd = Crowd::idle();
    crowd.handle(Input::Peer(key(6), Some(PeerReport { long_probes: false, ..Crowd::report(6, 5) })));
    assert_eq!(crowd.probed(), nearest());
    let mut other = Crowd::report(6, 5);
    other.members[0].mac = mac(6, 99);
    crowd.handle(Input::Peer(key(6), Some(other)));
    assert_eq!(crowd.probed(), [vec![(key(6), LANES)], nearest()].concat());
    assert_eq!(crowd.inspector.probed().len(), 3, "as ARP+ is informed");
}
