//! Hosts with and without classes, each with numbers of its own, under loss, reordering and duplication: what they know of
//! one another is true in the end, and what they make of it fits at both ends.

use super::{
    hosts::{id, mac},
    network::millis,
    sim::{self, BAD, World},
};
use linkbraid_proto::{
    arp_plus::{OwnMember, PeerKey},
    plan::{ClassTerms, Lane, OwnEnd, PeerEnd, PlanMember, Source, class_lanes, default_lanes, peer_ends},
};
use linkbraid_wire::{Class, FEATURE_MIRROR};

const HOSTS: usize = 12;
const MEMBERS: u8 = 4;

/// What classes may be called here; the last one only one host has.
const NAMES: [&str; 3] = ["urgent", "bulk", "audio"];

/// The classes of a host: none at every fourth, and another number for the same name everywhere else.
fn classes(host: usize, lend: u64) -> Vec<Class> {
    let number = |at: usize| 1 + ((host * 5 + at * 2) % 7) as u8;
    let known = if host == 1 { 3 } else { 2 };
    let class =
        |at: usize| Class { number: number(at), may_borrow: lend >> at & 1 == 1, name: NAMES[at].to_owned() };
    if host.is_multiple_of(4) { Vec::new() } else { (0..known).map(class).collect() }
}

/// One member goes to another class of its host, or to none, or dies, or comes back; at least one stays alive.
fn change_member(world: &mut World, host: usize) {
    let mut members = world.hosts[host].members.clone();
    let at = world.random(members.len() as u64) as usize;
    let numbers: Vec<u8> = world.hosts[host].classes.iter().map(|class| class.number).collect();
    match world.random(3) {
        0 => members[at].up = !members[at].up,
        _ => {
            let choice = world.random(numbers.len() as u64 + 1) as usize;
            members[at].class = numbers.get(choice).copied().unwrap_or(0);
        }
    }
    if members.iter().any(|member| member.up) {
        world.set_members(host, members);
    }
}

/// A life in bad weather: each step one host starts, stops, dies, or changes its classes or what is in them.
fn troubled_life(seed: u64) -> World {
    let mut world = World::new(seed, BAD);
    for host in 0..HOSTS {
        world.add(&[0; MEMBERS as usize]);
        world.set_classes(host, classes(host, 0), 0);
    }
    (0..HOSTS).for_each(|host| world.start(host));
    for _ in 0..80 {
        let host = world.random(HOSTS as u64) as usize;
        match (world.hosts[host].running, world.random(8)) {
            (false, _) => world.start(host),
            (true, 0) => world.stop(host),
            (true, 1) => {
                world.kill(host);
                world.start(host);
            }
            (true, 2) => {
                let (lend, features) = (world.random(8), world.random(2) as u32 * FEATURE_MIRROR);
                let classes = classes(host, lend);
                world.set_classes(host, classes, features);
            }
            (true, _) => change_member(&mut world, host),
        }
        let pause = world.random(300);
        world.run(millis(pause));
    }
    (0..HOSTS)
        .filter(|host| !world.hosts[*host].running)
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|host| world.start(host));
    world
}

fn own_ends(world: &World, host: usize) -> Vec<OwnEnd> {
    let end = |member: &OwnMember| OwnEnd {
        member: PlanMember { slot: member.slot, weight_mbit: member.weight_mbit, up: member.up },
        class: member.class,
    };
    world.hosts[host].members.iter().map(end).collect()
}

fn number_of(world: &World, host: usize, name: &str) -> Option<u8> {
    world.hosts[host].classes.iter().find(|class| class.name == name).map(|class| class.number)
}

/// The name of the class that a host has its member in.
fn class_of(world: &World, host: usize, slot: u8) -> Option<&str> {
    let host = &world.hosts[host];
    let member = host.members.iter().find(|member| member.slot == slot).expect("a member");
    host.classes.iter().find(|class| class.number == member.class).map(|class| &class.name[..])
}

/// Whether a host has a live member in that class; none: in no class.
fn has_live(world: &World, host: usize, class: Option<&str>) -> bool {
    let live = world.hosts[host].members.iter().filter(|member| member.up);
    live.into_iter().any(|member| class_of(world, host, member.slot) == class)
}

/// Looks at every plan of one host towards another, from what it has heard of it.
fn check_plans(world: &World, at: usize, towards: usize) {
    let arp = &world.hosts[at].arp;
    let peer = arp.peer(&PeerKey::Host(id(towards))).expect("known");
    let own = own_ends(world, at);
    let theirs: Vec<PeerEnd> = peer_ends(peer, |name| number_of(world, at, name), 100);
    let heard = |slot, index| peer.heard(slot, index);
    let ends = |lane: &Lane| {
        let to = (0..MEMBERS).find(|slot| Some(mac(towards, *slot)) == lane.peer_mac).expect("its member");
        (class_of(world, at, lane.slot), class_of(world, towards, to))
    };
    let terms = |class: &Class| ClassTerms {
        number: class.number,
        has_members: world.hosts[at].members.iter().any(|member| member.class == class.number),
        block: false,
        lends: class.may_borrow,
    };
    let all: Vec<ClassTerms> = world.hosts[at].classes.iter().map(terms).collect();
    let lanes = default_lanes(&own, Some(&theirs), &all, heard);
    assert!(
        lanes.lanes.iter().any(|lane| lane.class == 0),
        "{at} to {towards}: nothing for the default class"
    );
    for lane in &lanes.lanes {
        let (ours, theirs) = ends(lane);
        if lane.class == 0 {
            assert!(ours.is_none() || !has_live(world, at, None), "{at} to {towards}: {lane:?}");
            assert!(theirs.is_none() || !has_live(world, towards, None), "{at} to {towards}: {lane:?}");
        } else {
            assert_eq!(number_of(world, at, ours.expect("of a class")), Some(lane.class));
            assert!(theirs.is_none() || theirs == ours, "{at} to {towards}: {lane:?} ends in another class");
        }
    }
    for (class, terms) in world.hosts[at].classes.iter().zip(&all) {
        let name = Some(&class.name[..]);
        let lanes = class_lanes(terms, &own, Some(&theirs), heard);
        let (ours_live, theirs_live) = (has_live(world, at, name), has_live(world, towards, name));
        assert_eq!(lanes.source == Source::Own, ours_live, "{at} to {towards}: {name:?}");
        assert!(!lanes.lanes.is_empty(), "{at} to {towards}: nothing for {name:?}");
        for lane in &lanes.lanes {
            let (ours, theirs) = ends(lane);
            assert_eq!(ours == name, ours_live, "{at} to {towards}: {name:?} by {lane:?}");
            assert_eq!(theirs == name, theirs_live, "{at} to {towards}: {name:?} by {lane:?}");
        }
    }
}

//= docs/arp-plus.md#13.1 type=test
//= docs/arp-plus.md#5.10 type=test
#[test]
fn tables_are_true_and_plans_fit_after_any_life_with_classes_in_bad_weather() {
    let (mut borrowed, mut paired) = (0, 0);
    for seed in 0..4 {
        let mut world = troubled_life(seed);
        world.run(millis(10_500));
        world.network.weather.loss = 0;
        let took = world.run_until_true(millis(3000));
        println!("seed {seed}: true {took:?} after the last loss");
        // Every pair of live members on the one switch has been heard since.
        world.run(millis(4000));
        assert_eq!(world.check(), Ok(()), "seed {seed}: and it stays so");
        for at in 0..HOSTS {
            for towards in (0..HOSTS).filter(|towards| *towards != at) {
                check_plans(&world, at, towards);
                paired += usize::from(
                    NAMES
                        .iter()
                        .any(|name| [at, towards].iter().all(|host| has_live(&world, *host, Some(name)))),
                );
            }
        }
        let lend = |host: &sim::Host| host.classes.iter().any(|class| class.may_borrow);
        borrowed += world.hosts.iter().filter(|host| lend(host)).count();
    }
    assert!(paired >= 50 && borrowed >= 5, "{paired} pairs share a class, {borrowed} hosts lend");
}

#[test]
fn a_change_of_classes_reaches_everybody_within_two_seconds_of_bad_weather() {
    let mut world = World::new(9, BAD);
    (0..20).for_each(|_| _ = world.add(&[0, 0, 0]));
    (0..20).for_each(|host| world.start(host));
    world.run_until_true(millis(2000));
    for host in (1..20).step_by(2) {
        world.set_classes(host, classes(host, 1), FEATURE_MIRROR);
        let mut members = world.hosts[host].members.clone();
        members[2].class = number_of(&world, host, "urgent").unwrap_or(0);
        world.set_members(host, members);
    }
    let took = world.run_until_true(millis(2000));
    println!("10 hosts of 20 got classes; all tables true after {took:?}");
}
