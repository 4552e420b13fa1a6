//! Two hosts and the switches between them: what can be seen of one, and what comes of what its lanes counted.

use super::*;
use crate::{
    auth,
    host::tables::tests::class,
    inspector::{LaneId, LaneSnapshot, Usage},
    limits,
};

mod corrections;
mod guests;
mod members;

const OTHER: PeerKey = PeerKey::Host(HostId([2; 16]));

/// Two hosts with a member each on every switch.
struct Two {
    hosts: [Host; 2],
    now: Time,
    /// The switch of each slot.
    switches: Vec<u8>,
    /// Switches that forward nothing.
    dead: Vec<u8>,
    /// Slots of the first host whose ports forward nothing.
    deaf: Vec<u8>,
    /// Neighbours of the first host, and the slots that it heard them on.
    neighbours: (Vec<Neighbour>, Vec<(MacAddr, u8)>),
    /// Whether the gateway answers.
    answers: bool,
    /// Of the first host, but for frames.
    actions: Vec<Action>,
    /// In the first one's latest PROBE.
    address: Option<IpAddr>,
    /// How often the gateway was told a member's MAC for an address.
    told: usize,
}

impl Two {
    fn new(switches: &[u8], settings: &Settings) -> Two {
        let config = |id| Config { host_id: HostId([id; 16]), epoch: 1, secret: u64::from(id).into() };
        let host = |id| Host::new(config(id), settings.clone(), TableImage::default());
        let mut two = Two {
            hosts: [host(1), host(2)],
            now: Time::from_millis(1),
            switches: switches.to_vec(),
            dead: Vec::new(),
            deaf: Vec::new(),
            neighbours: (Vec::new(), Vec::new()),
            answers: true,
            actions: Vec::new(),
            address: None,
            told: 0,
        };
        for host in 0..2 {
            let members = two.members(host);
            let mac = members[0].mac;
            two.handle(host, Input::Members(members));
            two.handle(host, Input::Own(answers::Own { mac, addresses: Vec::new(), router: false }));
            two.handle(host, Input::Start);
        }
        two
    }

    /// The same after they have met.
    fn met(switches: &[u8], settings: &Settings) -> Two {
        let mut two = Two::new(switches, settings);
        two.pass(2000);
        assert!(two.hosts[0].plan_of(&OTHER).is_some());
        two.actions.clear();
        two
    }

    /// The members of a host as they are at the start.
    fn members(&self, host: usize) -> Vec<Member> {
        let mac = |slot| MacAddr([2, 0, 0, 0, 1 + host as u8, slot]);
        (0..self.switches.len() as u8).map(|slot| Member { mac: mac(slot), ..member(slot) }).collect()
    }

    fn handle(&mut self, host: usize, input: Input<'_>) {
        self.hosts[host].handle(self.now, input);
        while let Some(action) = self.hosts[host].poll_action() {
            match action {
                Action::Send { slot, frame } => self.carry(host, slot, &frame),
                Action::AskNeighbours => {
                    let (known, heard) = if host == 0 { self.neighbours.clone() } else { Default::default() };
                    self.handle(host, Input::Neighbours(Some(known), heard));
                }
                action if host == 0 => self.actions.push(action),
                _ => {}
            }
            self.hosts[host].write(|_| Ok::<(), ()>(())).expect("nothing fails");
        }
    }

    /// A switch forwards a frame, and the gateway answers on each that lives.
    fn carry(&mut self, from: usize, out: u8, frame: &[u8]) {
        if let Ok(probe) = linkbraid_wire::parse_probe(frame)
            && from == 0
        {
            self.address = probe.probe.address;
        }
        self.told += usize::from(frame[..6] == GATEWAY.0 && frame[12..14] == [8, 6] && frame[21] == 2);
        let switch = self.switches[usize::from(out)];
        let is_deaf = |two: &Two, host: usize, slot: u8| host == 0 && two.deaf.contains(&slot);
        if self.dead.contains(&switch) || is_deaf(self, from, out) {
            return;
        }
        for host in 0..2 {
            for member in self.members(host) {
                let is_there = self.switches[usize::from(member.slot)] == switch;
                let is_for = frame[0] & 1 == 1 || frame[..6] == member.mac.0;
                let is_there = is_there && !is_deaf(self, host, member.slot);
                if is_there && is_for && (host, member.slot) != (from, out) {
                    self.handle(host, Input::Frame { slot: member.slot, bytes: frame, heard_again: false });
                }
            }
        }
        if let Some(answer) = answer(frame).filter(|_| self.answers) {
            self.handle(from, Input::Frame { slot: out, bytes: &answer, heard_again: false });
        }
    }

    fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        loop {
            let due = self.hosts.iter().filter_map(Host::poll_timeout).min();
            let Some(at) = due.filter(|at| *at <= end) else { break };
            self.now = at.max(self.now);
            (0..2).for_each(|host| self.handle(host, Input::Timeout));
        }
        self.now = end;
    }

    /// For some looks at the counters, 200 ms apart, each lane of these plans carries so many kbit/s, and something waits on it.
    fn count(&mut self, looks: u64, carried: &[(u32, &[u64])]) {
        for look in 1..=looks {
            let lane = |kbit: &u64| LaneCount {
                bytes: look * kbit * 25,
                busy_bytes: (look * kbit * 25) as u32,
                busy_us: look as u32 * 200_000,
                ..LaneCount::default()
            };
            let counts =
                carried.iter().map(|(number, lanes)| (*number, lanes.iter().map(lane).collect())).collect();
            self.handle(0, Input::LaneCounts(counts));
            self.pass(200);
        }
    }

    fn plan(&self) -> u32 {
        self.hosts[0].plan_of(&OTHER).expect("it has a plan")
    }

    /// The lane between members of the same number, or from a member to the gateway.
    fn lane(&self, peer: PeerKey, slot: u8) -> LaneSnapshot {
        let index = if peer == OTHER { slot } else { 0 };
        let lanes = self.hosts[0].inspector().snapshot(self.now).lanes;
        lanes.into_iter().find(|lane| lane.lane == LaneId { peer, slot, index }).expect("a lane")
    }

    /// How lanes to the other host are used.
    fn usage(&self) -> Vec<Usage> {
        (0..self.switches.len() as u8).map(|slot| self.lane(OTHER, slot).usage).collect()
    }
}

#[test]
fn a_member_is_found_by_its_slot_and_told_apart_by_what_was_proven() {
    let mut two = Two::new(&[0, 1, 2], &settings());
    let proven = |two: &Two| [0, 1, 2].map(|slot| two.hosts[0].is_proven(slot));
    let others = |two: &Two| [0, 1, 2].map(|slot| two.hosts[0].other_member_is_proven(slot));
    assert_eq!((proven(&two), others(&two)), ([false; 3], [false; 3]), "nobody has answered yet");
    two.dead = vec![0, 2];
    two.pass(2000);
    assert_eq!((proven(&two), others(&two)), ([false, true, false], [true, false, true]));
    two.dead.clear();
    two.pass(5000);
    assert_eq!((proven(&two), others(&two)), ([true; 3], [true; 3]));
    let host = &two.hosts[0];
    assert_eq!(host.spreads(), [(Policy::Spread, vec![1000; 3])]);
    assert_eq!(
        [0, 1, 2, 3].map(|slot| host.member(slot).map(|member| member.ifindex)),
        [Some(10), Some(11), Some(12), None]
    );
}

#[test]
fn what_failed_leaves_the_data_path_at_once_and_is_worth_another_stripe() {
    let mut two = Two::met(&[0, 1, 2, 3], &settings());
    assert_eq!((two.hosts[0].failed_slots(), two.hosts[0].live_slots()), (0, 0b1111));
    let mut members = two.members(0);
    (members[0].carrier, members[3].carrier) = (false, false);
    two.handle(0, Input::Members(members.clone()));
    assert_eq!((two.hosts[0].failed_slots(), two.hosts[0].live_slots()), (0b1001, 0b0110));
    assert_eq!(two.actions.iter().filter(|action| **action == Action::FailedSlots(0b1001)).count(), 1);
    assert!(two.actions.contains(&Action::Stripe));
    assert_eq!(two.hosts[0].image().bond.failed_slots, 0b1001);
    // Once its carrier has lasted for a while it is back.
    two.handle(0, Input::Members(two.members(0)));
    assert_eq!(two.hosts[0].failed_slots(), 0b1001);
    two.actions.clear();
    two.pass(1000);
    assert_eq!((two.hosts[0].failed_slots(), two.hosts[0].live_slots()), (0, 0b1111));
    assert!(two.actions.contains(&Action::FailedSlots(0)) && two.actions.contains(&Action::Stripe));
    two.handle(0, Input::Members(members.clone()));
    // The same again is no news.
    two.actions.clear();
    two.handle(0, Input::Members(members.clone()));
    assert_eq!(two.actions, []);
    // One that is to leave still takes frames in, and what is sent takes the others.
    members[1].leaving = true;
    two.handle(0, Input::Members(members));
    assert_eq!((two.hosts[0].failed_slots(), two.hosts[0].live_slots()), (0b1001, 0b0100));
    assert!(two.actions.contains(&Action::Stripe));
    assert!(!two.actions.iter().any(|action| matches!(action, Action::FailedSlots(_))));
}

#[test]
fn lanes_are_used_as_the_plan_that_uses_them_most() {
    let settings = Settings { classes: vec![class(1, Policy::Flow)], ..settings() };
    let mut two = Two::met(&[0, 1, 2], &settings);
    let mut members = two.members(0);
    members[2].class = 1;
    two.handle(0, Input::Members(members));
    two.pass(1000);
    let (rest, of_class) = (two.plan(), two.hosts[0].class_plan(two.plan(), 1));
    assert_ne!(of_class, rest);
    let slots = |two: &Two, number: u32| -> Vec<u8> {
        two.hosts[0].image().plans[&number].lanes.iter().map(|lane| lane.slot).collect()
    };
    assert_eq!((slots(&two, rest), slots(&two, of_class)), (vec![0, 1], vec![2]));
    assert_eq!(two.usage(), [Usage::Idle, Usage::Idle, Usage::Light], "a class does not wait");
    assert_eq!(two.hosts[0].plans_to_read(&[]), [0; 0]);
    assert_eq!(two.hosts[0].plans_to_read(&[of_class, rest, 99]), [rest, of_class]);
    two.count(1, &[(rest, &[0, 3000]), (of_class, &[3000])]);
    assert_eq!(two.usage(), [Usage::Light, Usage::Busy, Usage::Busy]);
    assert_eq!(two.hosts[0].plans_to_read(&[]), [rest, of_class], "they carried something lately");
    // Without members of its own a class goes where all else goes, and is worth no less there.
    two.handle(0, Input::Members(two.members(0)));
    two.pass(1000);
    let of_class = two.hosts[0].class_plan(two.plan(), 1);
    two.count(60, &[(rest, &[0, 0, 0]), (of_class, &[0, 0, 0])]);
    assert_eq!(two.usage(), [Usage::Light; 3]);
    two.count(1, &[(rest, &[0, 3000, 0]), (of_class, &[3000, 0, 0])]);
    assert_eq!(two.usage(), [Usage::Busy, Usage::Busy, Usage::Light]);
}

#[test]
fn what_lanes_deliver_is_what_their_plan_is_spread_by_as_long_as_there_is_one() {
    let mut two = Two::met(&[0, 1], &settings());
    let number = two.plan();
    let host = |two: &Two| {
        let host = &two.hosts[0];
        [0, 1, 2].map(|slot| (host.member_kbit(slot), host.is_spread_by_measure(slot)))
    };
    assert_eq!(host(&two), [(None, false); 3]);
    two.count(5, &[(number, &[100_000, 20_000])]);
    assert_eq!(host(&two), [(Some(100_000), true), (Some(20_000), true), (None, false)]);
    let plan = two.hosts[0].image().plans[&number].clone();
    assert_eq!(plan.rates, [100_000, 20_000]);
    let known = two.hosts[0].lane_rates(number, &plan.lanes);
    assert_eq!((known.measured, known.in_use), (vec![Some(100_000), Some(20_000)], vec![100_000, 20_000]));
    assert!(two.actions.contains(&Action::Tables));
    assert!(two.actions.contains(&Action::Stripe), "stripes follow the slowest");
    assert_eq!(two.hosts[0].stripe().slowest_kbit, Some(20_000));
    // Plans that are made again for another reason keep it.
    let other = answers::Own { mac: STRANGER, addresses: Vec::new(), router: false };
    two.handle(0, Input::Own(other));
    assert_eq!(two.hosts[0].image().plans[&number].rates, [100_000, 20_000]);
    // It is forgotten with the peer.
    two.handle(1, Input::Stop);
    two.pass(1000);
    assert_eq!(two.hosts[0].plan_of(&OTHER), None);
    two.count(1, &[]);
    assert_eq!(host(&two), [(None, false); 3]);
}

#[test]
fn lanes_of_a_plan_without_a_member_are_spread_by_what_is_known_of_the_others_at_once() {
    let known = [((0, 0), 66_666), ((0, 1), 10_000), ((1, 1), 6_666), ((1, 2), 13_333)];
    let with_fixed = [((0, 0), 66_666), ((0, 1), 10_000), ((1, 1), 333_334), ((1, 2), 666_667)];
    for (weight_fixed, wanted) in [(false, known), (true, with_fixed)] {
        let mut two = Two::met(&[0, 0, 0], &settings());
        let mut members = two.members(0);
        members[1].weight_fixed = weight_fixed;
        two.handle(0, Input::Members(members.clone()));
        two.count(5, &[(two.plan(), &[100_000, 20_000, 100_000])]);
        members[2].carrier = false;
        two.handle(0, Input::Members(members));
        let plan = &two.hosts[0].image().plans[&two.plan()];
        let ends = plan.lanes.iter().map(|lane| (lane.slot, lane.peer_mac.expect("to the peer").0[5]));
        let rates: Vec<((u8, u8), u32)> = ends.zip(plan.rates.iter().copied()).collect();
        assert_eq!(rates, wanted, "fixed: {weight_fixed}");
    }
}

#[test]
fn a_weight_that_the_user_fixed_is_the_rate() {
    let mut two = Two::met(&[0, 1], &settings());
    let mut members = two.members(0);
    members[1].weight_fixed = true;
    two.handle(0, Input::Members(members.clone()));
    two.pass(1000);
    assert_eq!([0, 1, 2].map(|slot| two.hosts[0].is_weight_fixed(slot)), [false, true, false]);
    two.count(5, &[(two.plan(), &[100_000, 20_000])]);
    let rates = two.hosts[0].image().plans[&two.plan()].rates.clone();
    assert_eq!(rates, [100_000, 1_000_000], "what was measured of the other one counts");
    members[0].weight_fixed = true;
    two.handle(0, Input::Members(members));
    two.count(5, &[(two.plan(), &[100_000, 20_000])]);
    assert!(two.hosts[0].image().plans[&two.plan()].rates.is_empty());
}

#[test]
fn stripes_follow_a_member_that_carries_far_less_than_it_told_unless_that_is_fixed() {
    for (fixed, slowest) in [(false, Some(90_000)), (true, None)] {
        let mut two = Two::met(&[0, 1], &settings());
        // The other host's members are as fast as they tell.
        let told = two.members(1).into_iter().map(|member| Member { weight_mbit: 100, ..member });
        two.handle(1, Input::Members(told.collect()));
        let mut members = two.members(0);
        (members[1].weight_mbit, members[0].weight_fixed) = (100, fixed);
        two.handle(0, Input::Members(members));
        two.pass(1000);
        two.count(5, &[(two.plan(), &[90_000, 80_000])]);
        assert_eq!(two.hosts[0].stripe().slowest_kbit, slowest);
    }
}

#[test]
fn hosts_of_another_switch_know_the_bond_by_the_member_elected_there() {
    let mut two = Two::met(&[0, 0, 1, 1], &settings());
    two.pass(2000);
    let segments = two.hosts[0].arp_plus().segments().to_vec();
    assert_eq!(segments.iter().map(|segment| segment.slots.clone()).collect::<Vec<_>>(), [[0, 1], [2, 3]]);
    let elected = segments[1].elected.expect("a member lives there");
    let members = two.members(0);
    let told = members.iter().map(|member| two.hosts[0].mac_for(member)).collect::<Vec<_>>();
    assert_eq!(told, [0, 0, elected, elected].map(|slot| members[usize::from(slot)].mac));
    // One that is no member's: the bridge's own.
    let other = answers::Own { mac: STRANGER, addresses: Vec::new(), router: false };
    two.handle(0, Input::Own(other));
    assert_eq!(two.hosts[0].mac_for(&members[3]), STRANGER);
}

/// A gateway that was heard on a slot, and that something is sent to.
fn gateway(slot: u8) -> (Vec<Neighbour>, Vec<(MacAddr, u8)>) {
    let ip = IpAddr::from([198, 18, 0, 254]);
    (vec![Neighbour { ip, mac: GATEWAY, active: true, gateway: true }], vec![(GATEWAY, slot)])
}

#[test]
fn a_plain_host_is_probed_and_its_lanes_are_those_of_its_switch() {
    let peer = PeerKey::Plain(GATEWAY);
    for (switches, heard, expected) in [(vec![0, 0, 0], 0, PLAIN_PLAN), (vec![0, 1, 1], 2, plain_plan(1))] {
        let mut two = Two::new(&switches, &settings());
        two.neighbours = gateway(heard);
        two.pass(2000);
        two.handle(0, Input::NeighboursChanged);
        two.pass(1000);
        assert_eq!(two.hosts[0].plain_host(GATEWAY).map(|host| host.heard_slot), Some(Some(heard)));
        assert_eq!(two.hosts[0].plain_host(STRANGER), None);
        assert_eq!(two.hosts[0].plans_to_read(&[PLAIN_PLAN, plain_plan(0), plain_plan(1)]), [expected]);
        let lanes = two.hosts[0].image().plans[&expected].lanes.clone();
        let mut carried = vec![0; lanes.len()];
        carried[0] = 3000;
        two.count(1, &[(expected, &carried)]);
        let usage = |two: &Two| [0, 1, 2].map(|slot| two.lane(peer, slot).usage);
        let of = |slot: u8| match lanes.iter().position(|lane| lane.slot == slot) {
            None => Usage::Unused,
            Some(0) => Usage::Busy,
            Some(_) => Usage::Light,
        };
        assert_eq!(usage(&two), [0, 1, 2].map(of), "{switches:?}");
        let row = two.hosts[0].image().answers[&GATEWAY];
        assert_eq!(
            (row.slot, row.probed),
            (two.hosts[0].answers().table().next().map_or(0, |row| row.1), true)
        );
        two.count(60, &[(expected, &vec![0; lanes.len()])]);
        assert!(usage(&two).iter().all(|usage| *usage < Usage::Light));
    }
}

#[test]
fn a_gateway_that_is_sent_to_and_falls_silent_is_asked_at_once() {
    let mut two = Two::new(&[0, 0], &settings());
    two.neighbours = gateway(0);
    two.pass(3000);
    let mut seen = 0;
    let mut look = |two: &mut Two, spoke: bool, sent: bool| {
        seen += u64::from(spoke);
        let count = if sent { 1000 } else { 0 };
        two.handle(
            0,
            Input::LaneCounts(vec![(
                PLAIN_PLAN,
                vec![LaneCount { bytes: count, ..LaneCount::default() }; 2],
            )]),
        );
        let before = two.lane(PeerKey::Plain(GATEWAY), 0).sent;
        two.handle(0, Input::PlainFrames(seen));
        two.pass(limits::PLAIN_URGENT_EACH.as_millis() as u64 / 100);
        two.lane(PeerKey::Plain(GATEWAY), 0).sent - before
    };
    look(&mut two, true, false);
    let quiet = look(&mut two, false, false);
    let asked = look(&mut two, false, true);
    assert!((quiet, asked) == (0, 1), "{quiet} {asked}");
}

/// The PROBEs that leave in a while, and the address that they are sent by.
fn probes(two: &mut Two, millis: u64) -> (u64, Option<IpAddr>) {
    let sent = |two: &Two| {
        two.hosts[0].inspector().snapshot(two.now).lanes.iter().map(|lane| lane.sent).sum::<u64>()
    };
    let before = sent(two);
    two.pass(millis);
    (sent(two) - before, two.address)
}

#[test]
fn settings_reach_the_machines_that_they_are_for() {
    let mut two = Two::met(&[0, 1], &settings());
    let timing = inspector::Timing { discovery: Duration::from_secs(2), ..settings().timing };
    two.handle(0, Input::Settings(Settings { timing, ..settings() }));
    assert_eq!(two.hosts[0].inspector().snapshot(two.now).timing, timing);
    assert!(two.hosts[0].image().bond.damping);
    two.handle(0, Input::Settings(Settings { timing, damping: false, ..settings() }));
    assert_eq!(two.hosts[0].inspector().snapshot(two.now).timing, timing, "it stays");
    assert!(!two.hosts[0].image().bond.damping);
    let policy = Policy::ActiveBackup;
    two.handle(0, Input::Settings(Settings { policy, ..settings() }));
    assert!(!two.hosts[0].image().bond.damping, "nothing is striped");
    two.handle(0, Input::Settings(settings()));
    assert!(two.hosts[0].image().bond.damping);
    let mut members = two.members(0);
    members[1].carrier = false;
    two.handle(0, Input::Members(members));
    assert!(!two.hosts[0].image().bond.damping, "over one member");
}

#[test]
fn others_know_a_host_by_ipv4_then_by_an_address_that_leads_everywhere() {
    let mut two = Two::met(&[0], &settings());
    let addresses =
        ["fe80::1", "2001:db8::1", "198.18.0.1"].map(|ip| ip.parse::<IpAddr>().expect("an address"));
    for known in (0..3).rev() {
        let mac = two.members(0)[0].mac;
        let addresses_now = addresses[..=known].iter().map(|ip| (*ip, 24)).collect();
        two.handle(0, Input::Own(answers::Own { mac, addresses: addresses_now, router: false }));
        two.pass(2000);
        let (sent, address) = probes(&mut two, 2000);
        assert!(sent > 0);
        assert_eq!(address, Some(addresses[known]));
        let told = two.hosts[1].arp_plus().peers().next().expect("a peer").addresses.clone();
        assert_eq!(told, addresses[..=known].iter().rev().copied().collect::<Vec<_>>());
    }
}

//= docs/arp-plus.md#15.4 type=test
#[test]
fn with_keys_hosts_meet_and_nobody_else_is_believed() {
    let key = auth::Key::new(1, zeroize::Zeroizing::new([7; auth::SECRET_LEN]));
    let ring = std::sync::Arc::new(auth::Ring::new(vec![key], 1).expect("a ring"));
    let settings = Settings { auth: auth::Settings { mode: auth::Mode::Require, ring }, ..settings() };
    let mut two = Two::met(&[0, 1], &settings);
    assert!(two.hosts[0].is_proven(0) && two.hosts[0].is_proven(1));
    let forged = says(Kind::Change, 9, 1);
    for slot in [0, 1, 7] {
        two.handle(0, Input::Frame { slot, bytes: &forged, heard_again: false });
    }
    assert_eq!(two.hosts[0].arp_plus().peers().len(), 1);
    assert_eq!(two.hosts[0].auth().counters().get(auth::Counter::Missing), 3);
    assert_eq!(two.actions.iter().filter(|action| matches!(action, Action::Unkeyed(_))).count(), 1);
}

#[test]
fn hosts_say_what_they_are_capable_of() {
    use linkbraid_wire::{FEATURE_GUESTS, FEATURE_INTERVALS, FEATURE_LONG_PROBES, FEATURE_MIRROR};
    let two = Two::met(&[0], &settings());
    let peer = two.hosts[0].arp_plus().peers().next().expect("a peer");
    for feature in [FEATURE_MIRROR, FEATURE_GUESTS, FEATURE_LONG_PROBES, FEATURE_INTERVALS] {
        assert_ne!(peer.features & feature, 0);
    }
}

#[test]
fn a_plain_host_sends_to_a_member_that_works() {
    let mut two = Two::new(&[0, 0, 0], &settings());
    two.neighbours = gateway(0);
    two.pass(3000);
    let given = |two: &Two| two.hosts[0].answers().table().collect::<Vec<_>>();
    let [(GATEWAY, slot)] = given(&two)[..] else { panic!("{:?}", given(&two)) };
    let mut members = two.members(0);
    let own =
        answers::Own { mac: members[0].mac, addresses: vec![([198, 18, 0, 1].into(), 24)], router: false };
    two.handle(0, Input::Own(own));
    two.pass(1000);
    two.told = 0;
    members[usize::from(slot)].carrier = false;
    two.handle(0, Input::Members(members));
    two.pass(1000);
    assert_ne!(two.told, 0, "it is told so");
    let [(GATEWAY, other)] = given(&two)[..] else { panic!("{:?}", given(&two)) };
    assert_ne!(other, slot);
    assert_eq!(two.hosts[0].image().answers.get(&GATEWAY).map(|row| row.slot), Some(other));
    two.neighbours = Default::default();
    two.handle(0, Input::NeighboursChanged);
    two.pass(1000);
    assert_eq!(given(&two), [], "nobody speaks to it any more");
}
