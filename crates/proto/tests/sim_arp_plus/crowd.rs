//! Many hosts that hear each other, and announce themselves the more seldom.

use super::{
    network::millis,
    sim::{BAD, FAIR, Weather, World},
};
use linkbraid_proto::arp_plus::{Counter, Event, Reason, Segment};
use linkbraid_wire::FEATURE_INTERVALS;
use std::time::Duration;

const MEMBERS: usize = 4;

/// So many hosts that have joined together, and their pace has settled.
fn crowd(hosts: usize, weather: Weather) -> World {
    let mut world = World::new(hosts as u64, weather);
    for _ in 0..hosts {
        let host = world.add(&[0; MEMBERS]);
        world.set_classes(host, Vec::new(), FEATURE_INTERVALS);
    }
    for host in 0..hosts {
        world.start(host);
        world.run(millis(20) / hosts as u32);
    }
    world.run(millis(20_000));
    world
}

/// How many frames a host hears in a second.
fn heard(world: &mut World, seconds: u64) -> u64 {
    world.heard = 0;
    world.run(Duration::from_secs(seconds));
    world.heard / seconds / world.hosts.len() as u64
}

fn silent(world: &World) -> u64 {
    world.hosts.iter().map(|host| host.arp.counters().get(Counter::PeerSilent)).sum()
}

//= docs/arp-plus.md#5.13 type=test
#[test]
fn what_a_host_hears_does_not_grow_with_their_number() {
    for (hosts, seconds) in [(3, 1), (5, 1), (8, 2), (20, 8), (50, 16)] {
        let mut world = crowd(hosts, FAIR);
        assert_eq!(world.check(), Ok(()));
        let every: Vec<u64> = world.hosts.iter().map(|host| host.arp.announces_every().as_secs()).collect();
        assert!(every.iter().all(|every| *every == seconds), "{hosts} hosts: {every:?}");
        let a_second = heard(&mut world, 60);
        println!("{hosts} hosts of {MEMBERS}: every {seconds} s, {a_second} announcements heard a second");
        assert!(a_second <= 64 * 100 / 75 * 100 / 85, "{hosts} hosts: {a_second}");
        world.run(Duration::from_secs(240));
        assert_eq!((world.check(), silent(&world)), (Ok(()), 0));
    }
}

//= docs/arp-plus.md#5.15 type=test
#[test]
fn a_crowd_in_bad_weather_takes_nobody_for_gone_and_hears_of_changes_at_once() {
    let mut world = crowd(30, BAD);
    world.run(Duration::from_secs(300));
    assert_eq!(silent(&world), 0);
    world.network.weather.loss = 0;
    world.run(millis(20_000));
    assert_eq!(world.check(), Ok(()));
    let members = world.hosts[3].members[..2].to_vec();
    world.set_members(3, members);
    let took = world.run_until_true(millis(1000));
    println!("30 hosts know of a member that has gone after {took:?}");
    let late = world.add(&[0; MEMBERS]);
    world.set_classes(late, Vec::new(), FEATURE_INTERVALS);
    world.start(late);
    let took = world.run_until_true(millis(1000));
    println!("one more knows all and is known after {took:?}");
    // Dead ones are missed, though late: one of four members speaks every two seconds.
    world.run(millis(40_000));
    world.kill(5);
    let took = world.run_until_true(Duration::from_secs(20));
    println!("one that died is forgotten after {took:?}");
    assert!(took >= Duration::from_secs(10));
}

//= docs/arp-plus.md#5.14 type=test
//= docs/arp-plus.md#5.15 type=test
#[test]
fn own_members_know_each_second_what_they_share() {
    let mut world = crowd(30, FAIR);
    let segments = |world: &World, host: usize| -> Vec<Vec<u8>> {
        world.hosts[host].arp.segments().iter().map(|Segment { slots, .. }| slots.clone()).collect()
    };
    assert_eq!(segments(&world, 7), [[0, 1, 2, 3]]);
    // The cable between two halves of the switch is pulled; everybody has two members in each.
    (0..30).for_each(|host| world.plug(host, &[0, 0, 1, 1]));
    world.run(millis(5000));
    assert_eq!(segments(&world, 7), [[0, 1], [2, 3]]);
    assert_eq!(world.hosts[7].arp.announces_every(), Duration::from_secs(1), "until all have noticed");
    world.run(millis(4000));
    let peer = world.hosts[7].arp.peers().next().expect("a peer");
    assert!(
        (0..4).all(|slot| (0..4).all(|index| peer.heard(slot, index) == (slot / 2 == index / 2))),
        "{peer:?}"
    );
    world.run(millis(30_000));
    assert!(world.hosts[7].arp.announces_every() > Duration::from_secs(1));
    let lost = |event: &&Event| matches!(event, Event::Peer { reason: Reason::Silent | Reason::Expired, .. });
    assert_eq!(world.hosts[7].events.iter().filter(lost).count(), 0);
}

/// A cable between two switches is pulled, so all hosts hear others of their own members than before: none hears each second from all.
//= docs/arp-plus.md#5.9 type=test
//= docs/arp-plus.md#5.16 type=test
#[test]
fn a_cable_that_all_notice_floods_nobody() {
    let hosts = 80;
    let mut world = crowd(hosts, FAIR);
    (0..hosts).for_each(|host| world.plug(host, &[0, 0, 1, 1]));
    world.run(millis(3000));
    let a_second = heard(&mut world, 12);
    let pairs = (hosts as u64 - 1) * 8;
    println!(
        "{hosts} hosts hear {pairs} pairs, and {a_second} messages a second while all say again who they are"
    );
    assert!(a_second <= 2 * 256, "{a_second} a second");
    world.run(millis(30_000));
    assert_eq!((world.check(), silent(&world)), (Ok(()), 0));
}

/// How many hosts of two members there are, and how many of them each machine stands for, where a person wants to know of more:
/// `LINKBRAID_CROWD="50 200 1000 10000/40"`.
fn crowds() -> Vec<(usize, usize)> {
    let asked = std::env::var("LINKBRAID_CROWD").unwrap_or_else(|_| "20 60 60/3".to_owned());
    let number = |text: &str| text.parse().expect("a number");
    let crowd = |text: &str| match text.split_once('/') {
        Some((all, each)) => (number(all), number(each)),
        None => (number(text), 1),
    };
    asked.split_whitespace().map(crowd).collect()
}

/// What happened since the last look: seconds, messages sent by all, announcements that one host heard.
fn since(world: &mut World, began: linkbraid_proto::Time) -> (f64, u64, u64) {
    let (sent, heard) = (world.total_sent(), world.heard / world.hosts.len() as u64);
    world.sent.clear();
    world.heard = 0;
    (world.now().since(began).as_secs_f64(), sent, heard)
}

/// All switches have power again, one host starts again, and a part of the network is cut off; one frame in a hundred is lost.
//= docs/arp-plus.md#5.11 type=test
//= docs/arp-plus.md#5.13 type=test
#[test]
fn messages_follow_the_number_of_hosts_and_not_its_square() {
    let weather = Weather::new(1, 0, [5, 500]);
    println!(
        "| hosts | all know all after | messages each | heard a second | one restarts | messages | 1/40 is cut off |"
    );
    let mut each = Vec::new();
    for (all, copies) in crowds() {
        let hosts = all / copies;
        // The one that starts again stands for nobody else.
        let copies_of = |host: usize| if host == 0 { 1 } else { copies };
        // Who lost both answers of a host learns of it when that one announces itself.
        let patience = Duration::from_secs(30.max(all as u64 / 8));
        let mut world = World::new(hosts as u64, weather);
        for _ in 0..hosts {
            let host = world.add(&[0, 0]);
            world.set_classes(host, Vec::new(), FEATURE_INTERVALS);
            world.stand_for(host, copies_of(host));
        }
        let began = world.now();
        for host in 0..hosts {
            world.start(host);
            world.run(millis(2000) / hosts as u32);
        }
        world.run_until_true(patience);
        let (joined, sent, _) = since(&mut world, began);
        each.push((all, sent / hosts as u64));
        world.run(Duration::from_secs(60));
        let quiet = heard(&mut world, 60);
        since(&mut world, began);
        // The daemon of one is started again.
        let began = world.now();
        world.kill(0);
        world.start(0);
        world.run_until_true(patience);
        let (restarted, messages, _) = since(&mut world, began);
        let messages = messages * copies as u64;
        world.run(Duration::from_secs(30));
        // One switch of forty has no power, nor has what it connects.
        let began = world.now();
        let gone = hosts.div_ceil(40);
        (0..gone).for_each(|host| world.kill(host));
        world.run_until_true(Duration::from_secs(600));
        let (missed, ..) = since(&mut world, began);
        println!(
            "| {all}, {copies} a machine | {joined:.1} s | {} | {quiet} | {restarted:.2} s | {messages} | {missed:.0} s |",
            each.last().expect("just pushed").1
        );
        assert!(quiet <= 100, "{quiet} announcements a second");
        // Own members tell each other every second meanwhile (5.14).
        let usual = 2 * all as u64 * restarted.ceil() as u64;
        assert!(messages <= 20 * all as u64 + usual, "{messages} messages because of one");
    }
    // 16 REPLYs, and the mapping on two members, between two broadcasts of it (5.9), and the bursts at start and at a change of pace.
    assert!(each.iter().all(|(_, each)| *each <= 90), "messages of each host: {each:?}");
    // A machine that stands for some hosts says what one of as many machines does.
    let alike = |[one, next]: [(usize, u64); 2]| one.0 != next.0 || one.1.abs_diff(next.1) <= one.1 / 5;
    assert!(each.windows(2).all(|pair| alike([pair[0], pair[1]])), "messages of each host: {each:?}");
}
