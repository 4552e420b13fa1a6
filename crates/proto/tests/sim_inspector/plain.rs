//! Hosts that speak ARP or neighbour discovery only, next to one that probes them.

use super::{
    answer::answer,
    fault::Fault,
    hosts::mac,
    network::millis,
    spread,
    world::{Due, PLAIN, Planned, World, key},
};
use linkbraid_proto::{Time, inspector::*};
use linkbraid_wire::MacAddr;
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv6Addr},
    rc::Rc,
    time::Duration,
};

impl World {
    /// A plain host's one address.
    fn ip(&self, plain: usize) -> IpAddr {
        let number = (plain - PLAIN) as u8 + 1;
        if self.ipv6 {
            return IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number.into()));
        }
        IpAddr::from([198, 18, 1, number])
    }

    /// What goes to plain hosts leaves by the members that nothing speaks against, or by all if there is none.
    pub fn plan_plain(&self, at: usize) -> BTreeSet<Planned> {
        let inspector = &self.hosts[at].inspector;
        let slots = self.hosts[at].reports.iter().map(|report| report.slot);
        let up: Vec<u8> = slots.filter(|slot| inspector.member_alive(*slot) == Verdict::Alive).collect();
        let mut planned = BTreeSet::new();
        for plain in self.plain.keys() {
            let sound = |slot: &&u8| {
                inspector.member_sound(**slot) != Verdict::Failed
                    && inspector.lane_alive(&key(*plain), **slot, 0).usable(true)
            };
            let any = up.iter().any(|slot| sound(&slot));
            planned.extend(up.iter().filter(|slot| !any || sound(slot)).map(|slot| (*plain, *slot, 0)));
        }
        planned
    }

    /// A plain host answers whoever asks for its address. The way there takes no time.
    pub fn carry_plain_probe(&mut self, from: usize, slot: u8, bytes: &Rc<[u8]>) {
        let field = |at: usize| MacAddr(bytes[at..at + 6].try_into().expect("six bytes"));
        assert_eq!(field(6), mac(from, slot), "a member speaks for itself");
        let switch = self.hosts[from].switches[&slot];
        let asked = self.plain.iter().find(|(plain, _)| mac(**plain, 0) == field(0)).expect("a plain host");
        let (plain, there) = (*asked.0, *asked.1);
        let frame = answer(bytes, self.ip(plain)).expect("a probe of that host");
        self.asked.push((self.now(), slot, plain));
        let stopped = [Fault::From(from, slot), Fault::To(from, slot), Fault::Switch(switch)]
            .iter()
            .any(|fault| self.faults.contains(fault));
        let up = self.hosts[from].reports.iter().any(|report| report.slot == slot && report.carrier);
        let lost = self.random(100) < self.network.weather.loss;
        if there != Some(switch) || stopped || !up || lost {
            return;
        }
        self.network.carry(Duration::ZERO, &Due::Deliver { host: from, slot, frame });
    }

    fn meet_plain(&mut self, at: usize, switches: &[u8]) {
        self.plain = (PLAIN..).zip(switches.iter().map(|switch| Some(*switch))).collect();
        let reports = self.plain.keys().map(|plain| PlainReport { mac: mac(*plain, 0), ip: self.ip(*plain) });
        let reports = reports.collect();
        self.input(at, Input::Plain(reports));
        self.replan(at, None);
    }

    /// A host with a member on each of these switches, and plain hosts that it has proven.
    fn beside(seed: u64, own: &[u8], plain: &[u8]) -> World {
        World::beside_of(false, seed, own, plain)
    }

    /// The same; plain hosts have either IPv4 or IPv6.
    fn beside_of(ipv6: bool, seed: u64, own: &[u8], plain: &[u8]) -> World {
        let mut world = World::new(seed);
        world.ipv6 = ipv6;
        world.add(own);
        world.meet_plain(0, plain);
        world.run(millis(2000));
        world
    }

    /// The most probes that one member sent, or one plain host was sent, within any second.
    fn most_in_a_second(&self) -> usize {
        let slots = (0..8).map(|slot| self.asked.iter().filter(|ask| ask.1 == slot).collect::<Vec<_>>());
        let hosts = self.plain.keys();
        let hosts = hosts.map(|host| self.asked.iter().filter(|ask| ask.2 == *host).collect::<Vec<_>>());
        let most = |asks: Vec<&(Time, u8, usize)>| {
            let within = |first: usize| {
                asks[first..].iter().take_while(|ask| ask.0 <= asks[first].0 + millis(1000)).count()
            };
            (0..asks.len()).map(within).max().unwrap_or(0)
        };
        slots.chain(hosts).map(most).max().unwrap_or(0)
    }

    fn sound(&self) -> Vec<Verdict> {
        let slots = 0..self.hosts[0].reports.len() as u8;
        slots.map(|slot| self.hosts[0].inspector.member_sound(slot)).collect()
    }
}

const ALIVE: [Verdict; 2] = [Verdict::Alive; 2];

/// How long a host takes to find out that a member failed silently, and that it works again. `stalls`: traffic to the plain
/// host stops, which is noticed after 100 to 200 ms.
fn silent_failure(seed: u64, ipv6: bool, members: u8, fault: Fault, stalls: bool) -> [Duration; 2] {
    let own = vec![0; usize::from(members)];
    let mut world = World::beside_of(ipv6, seed, &own, &[0]);
    // Urgent probes were used when all began.
    let pause = 5000 + world.random(500);
    world.run(millis(pause));
    let others: Vec<(u8, u8)> = (1..members).map(|slot| (slot, 0)).collect();
    assert_eq!(world.lanes(0, PLAIN).len(), others.len() + 1);
    let began = world.now();
    world.faults.insert(fault);
    if stalls {
        let noticed = 100 + world.random(100);
        world.run(millis(noticed));
        world.input(0, Input::PlainStalled);
    }
    world.until(millis(2000), |world| world.lanes(0, PLAIN) == others);
    let found = world.now().since(began);
    assert_eq!(world.sound()[0], Verdict::Failed, "seed {seed}");
    assert!(world.sound()[1..].iter().all(|verdict| *verdict == Verdict::Alive), "seed {seed}");
    let outage = 500 + world.random(5000);
    world.run(millis(outage));
    assert_eq!((world.sound()[0], world.lanes(0, PLAIN)), (Verdict::Failed, others));
    let losses = world.losses(0, began);
    assert!(losses.len() == 1 && losses[0].0.peer == key(PLAIN), "{losses:?}");
    world.faults.clear();
    let back = world.until(millis(2000), |world| world.lanes(0, PLAIN).len() == usize::from(members));
    assert!(world.sound().iter().all(|verdict| *verdict == Verdict::Alive), "seed {seed}");
    assert!(world.most_in_a_second() < 15, "seed {seed}: {} in a second", world.most_in_a_second());
    [found, back]
}

//= docs/arp-plus.md#12.1 type=test
//= docs/arp-plus.md#12.2 type=test
//= docs/arp-plus.md#12.6 type=test
#[test]
fn silent_failure_of_a_member_is_found_by_one_plain_host_and_its_end_too() {
    for (members, stalls, most) in
        [(2, false, 450), (2, true, 350), (4, false, 850), (4, true, 650), (8, true, 1300)]
    {
        let (mut found, mut back) = (Vec::new(), Vec::new());
        for seed in 0..100 {
            for fault in [Fault::From(0, 0), Fault::To(0, 0)] {
                let [one, other] = silent_failure(seed, false, members, fault, stalls);
                found.push(one);
                back.push(other);
            }
        }
        let name = |what| format!("{members} members, traffic stalls: {stalls}: {what}");
        assert!(spread(&name("known after"), found) <= millis(most));
        assert!(spread(&name("its end"), back) <= millis(2000));
    }
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn silent_failure_is_found_though_all_that_may_be_asked_at_once_was_asked() {
    for members in [2, 4, 8] {
        let mut found = Vec::new();
        for seed in 0..100 {
            let mut world = World::new(seed);
            world.add(&vec![0; members]);
            world.meet_plain(0, &[0]);
            let is_proven = |world: &World| world.sound().iter().all(|verdict| *verdict == Verdict::Alive);
            world.until(millis(6000), is_proven);
            let pause = world.random(1000);
            world.run(millis(pause));
            let began = world.now();
            world.faults.insert(Fault::To(0, 0));
            world.until(millis(5000), |world| world.sound()[0] == Verdict::Failed);
            found.push(world.now().since(began));
            assert!(world.most_in_a_second() < 15, "seed {seed}: {} in a second", world.most_in_a_second());
        }
        spread(&format!("{members} members, soon after the first proofs: known after"), found);
    }
}

//= docs/arp-plus.md#12.7 type=test
#[test]
fn silent_failure_of_a_member_is_found_as_soon_by_a_plain_host_without_ipv4() {
    for seed in 0..10 {
        for (members, fault, stalls) in [(2, Fault::From(0, 0), false), (4, Fault::To(0, 0), true)] {
            let times = [false, true].map(|ipv6| silent_failure(seed, ipv6, members, fault, stalls));
            assert_eq!(times[0], times[1], "seed {seed}, {members} members");
        }
    }
}

//= docs/arp-plus.md#12.4 type=test
#[test]
fn plain_host_that_dies_is_no_fault_of_any_member() {
    let mut world = World::beside(5, &[0, 0], &[0, 0]);
    let began = world.now();
    world.plain.insert(PLAIN, None);
    world.run(millis(5000));
    assert_eq!(world.sound(), ALIVE, "the other plain host answers on both");
    assert_eq!(world.lanes(0, PLAIN), [(0, 0), (1, 0)], "and this one is not given up");
    world.plain.insert(PLAIN + 1, None);
    world.run(Duration::from_secs(100));
    assert_eq!(world.sound(), [Verdict::Suspect; 2]);
    assert_eq!(world.lanes(0, PLAIN + 1), [(0, 0), (1, 0)]);
    let losses = world.losses(0, began);
    assert_eq!(losses.len(), 4, "{losses:?}");
    assert!(losses.iter().all(|(.., reason, _)| *reason == LaneReason::NoneAnswers));
    // It comes back together with a silent failure of one member.
    world.faults.insert(Fault::From(0, 1));
    world.plain.insert(PLAIN, Some(0));
    world.until(millis(1000), |world| world.sound() == [Verdict::Alive, Verdict::Failed]);
    world.faults.clear();
    world.until(millis(1500), |world| world.sound() == ALIVE);
    assert_eq!(world.count(0, Counter::LaneLost), 1);
}

//= docs/arp-plus.md#12.5 type=test
#[test]
fn plain_host_on_one_switch_condemns_no_member_on_the_other() {
    let mut world = World::beside(7, &[0, 1], &[0]);
    world.run(millis(20_000));
    assert_eq!(world.sound(), [Verdict::Alive, Verdict::Unknown]);
    assert_eq!(world.lanes(0, PLAIN), [(0, 0)], "but it is not sent to over there");
    // A second one over there; then it moves, and the member that lost it has nobody else.
    world.plain.insert(PLAIN + 1, Some(1));
    world.input(
        0,
        Input::Plain(
            [PLAIN, PLAIN + 1].map(|plain| PlainReport { mac: mac(plain, 0), ip: world.ip(plain) }).to_vec(),
        ),
    );
    world.until(millis(500), |world| world.sound() == ALIVE);
    world.plain.insert(PLAIN + 1, Some(0));
    let took = world.until(Duration::from_secs(11), |world| world.lanes(0, PLAIN + 1) == [(0, 0)]);
    println!("a plain host that moved is found after {took:?}");
    assert_eq!(
        world.sound(),
        [Verdict::Alive, Verdict::Failed],
        "proven before: nothing tells a move from a failure"
    );
}

//= docs/arp-plus.md#12.4 type=test
#[test]
fn plain_host_that_never_answers_is_not_judged_and_tried_rarely() {
    let mut world = World::new(9);
    world.add(&[0, 1]);
    world.meet_plain(0, &[0]);
    world.plain.insert(PLAIN, None);
    let asked = |world: &mut World, seconds: u64| {
        let before = world.asked.len();
        world.run(Duration::from_secs(seconds));
        world.asked.len() - before
    };
    let (first, minute) = (asked(&mut world, 1), asked(&mut world, 59));
    assert!((6..=10).contains(&first), "tested on two lanes: {first}");
    assert!((118..=160).contains(&minute), "then once a second: {minute}");
    asked(&mut world, 10);
    let later = asked(&mut world, 100);
    assert!((20..=28).contains(&later), "then every 10 s: {later}");
    assert_eq!((world.sound(), world.lanes(0, PLAIN)), (vec![Verdict::Unknown; 2], vec![(0, 0), (1, 0)]));
    assert_eq!(world.losses(0, Time::ZERO), []);
    // It answers after all, on one of two switches: then the other lane is tested at once, and judged after that.
    world.plain.insert(PLAIN, Some(1));
    let took = world.until(Duration::from_secs(11), |world| world.lanes(0, PLAIN) == [(1, 0)]);
    println!("a plain host that answers after all is judged after {took:?}");
    assert_eq!(world.sound(), [Verdict::Unknown, Verdict::Alive]);
}

//= docs/arp-plus.md#12.6 type=test
#[test]
fn lossy_wires_condemn_nobody_and_cost_is_as_stated() {
    let mut world = World::beside(11, &[0, 0, 0, 0], &[0, 0, 0, 0]);
    world.run(millis(6000));
    let rate = |world: &mut World, usage| {
        world.hosts[0].usage = usage;
        world.report_plan(0);
        world.asked.clear();
        world.run(millis(30_000));
        assert!((5..10).contains(&world.most_in_a_second()), "{} in a second", world.most_in_a_second());
        world.asked.len() / 30
    };
    let rates = [Usage::Busy, Usage::Light, Usage::Idle].map(|usage| rate(&mut world, usage));
    assert!(rates.iter().all(|rate| (22..=28).contains(rate)), "4 members and 4 hosts: {rates:?} a second");
    world.hosts[0].usage = Usage::Busy;
    world.report_plan(0);
    world.network.weather.loss = 5;
    world.asked.clear();
    world.run(Duration::from_secs(120));
    assert_eq!((world.count(0, Counter::LaneLost), world.count(0, Counter::LaneSuspect)), (0, 0));
    println!("{rates:?} probes a second; {} in one on lossy wires", world.most_in_a_second());
    assert!(world.most_in_a_second() < 15);
}
