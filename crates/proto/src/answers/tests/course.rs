//! Any course of members, hosts, broadcasts and time.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    /// Which members are there, and which of them are usable.
    Members(u8, u8),
    /// Which hosts are there.
    Hosts(u32),
    Broadcast,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (any::<u8>(), any::<u8>()).prop_map(|(there, usable)| Step::Members(there, usable)),
        any::<u32>().prop_map(Step::Hosts),
        Just(Step::Broadcast),
        (0u64..3000).prop_map(Step::Pass),
    ]
}

fn named(bits: u32) -> Vec<PlainHost> {
    (0..32).filter(|host| bits >> host & 1 == 1).map(plain).collect()
}

fn there(bits: u8, usable: u8) -> Vec<Member> {
    let slots = (0..6).filter(|slot| bits >> slot & 1 == 1);
    slots.map(|slot| Member { usable: usable >> slot & 1 == 1, ..member(slot) }).collect()
}

/// Hosts of the usable members.
fn loads(bench: &Bench) -> Vec<usize> {
    let loads = bench.loads().into_iter().zip(&bench.members);
    loads.filter(|(_, member)| member.usable).map(|(load, _)| load).collect()
}

fn spread(bench: &Bench) -> usize {
    let loads = loads(bench);
    loads.iter().max().unwrap_or(&0) - loads.iter().min().unwrap_or(&0)
}

proptest! {
    /// Equal members of one segment.
    #[test]
    fn loads_differ_by_one_at_most_and_every_host_is_corrected(steps in prop::collection::vec(step(), 1..50)) {
        let mut bench = Bench::new(3);
        let mut hosts = 0u32;
        for step in steps {
            let (before, left) = (spread(&bench), bench.table.clone());
            match step {
                Step::Members(bits, usable) => {
                    let old = bench.members.clone();
                    bench.members(there(bits, usable));
                    prop_assert!(bench.members == old || spread(&bench) <= 1, "{:?}", bench.loads());
                    // Who could stay moved only to make room: never more than a fair share each.
                    let stay = |slot: u8| bench.members.iter().any(|member| member.slot == slot && member.usable);
                    let moved = left.iter().filter(|(host, slot)| stay(**slot) && bench.table.get(host) != Some(slot));
                    let new = bench.members.iter().filter(|member| {
                        member.usable && !old.iter().any(|old| old.slot == member.slot && old.usable)
                    });
                    let share = left.len().div_ceil(loads(&bench).len().max(1));
                    prop_assert!(moved.count() <= new.count() * share + before.saturating_sub(1) * left.len());
                }
                Step::Hosts(bits) => {
                    let came_only = hosts & !bits == 0;
                    hosts = bits;
                    bench.hosts(named(bits));
                    prop_assert!(!came_only || spread(&bench) <= before.max(1), "{:?}", bench.loads());
                    let kept = left.iter().filter(|(host, _)| bench.caches.contains_key(host));
                    prop_assert!(kept.into_iter().all(|(host, slot)| bench.table.get(host) == Some(slot)));
                }
                Step::Broadcast => bench.broadcast(),
                Step::Pass(time) => bench.pass(millis(time)),
            }
            let usable = |slot: &u8| bench.members.iter().any(|member| member.slot == *slot && member.usable);
            prop_assert!(bench.table.values().all(usable), "no host on an unusable member");
            let any = bench.members.iter().any(|member| member.usable);
            prop_assert_eq!(bench.table.len(), if any { hosts.count_ones() as usize } else { 0 });
        }
        bench.pass(millis(4000));
        prop_assert_eq!(bench.wrong(), vec![]);
        prop_assert_eq!(bench.answers.poll_timeout(), None, "and then it is quiet");
    }

    /// Unequal members on several segments: no single move would help, and nobody is where it was not heard.
    #[test]
    fn no_move_is_left_that_helps(
        members in prop::collection::vec((any::<bool>(), 0u32..5000, 0u32..3), 1..16),
        hosts in prop::collection::vec(prop::option::of(0u8..16), 0..60),
        again in prop::collection::vec((any::<bool>(), 0u32..5000, 0u32..3), 1..16),
    ) {
        let mut bench = Bench::new(0);
        let make = |list: Vec<(bool, u32, u32)>| -> Vec<Member> {
            let member = |(slot, (usable, weight_mbit, segment))| Member { usable, weight_mbit, segment, ..member(slot) };
            (0..).zip(list).map(member).collect()
        };
        bench.members(make(members));
        let hosts: Vec<PlainHost> =
            (0..).zip(hosts).map(|(host, heard_slot)| PlainHost { heard_slot, ..plain(host) }).collect();
        bench.hosts(hosts.clone());
        bench.members(make(again));
        let member = |slot: u8| bench.members.iter().find(|member| member.slot == slot && member.usable);
        let load = |slot: u8| bench.table.values().filter(|at| **at == slot).count() as u64;
        let weight = |member: &Member| u64::from(member.weight_mbit.max(1));
        for host in &hosts {
            let Some(slot) = bench.table.get(&host.mac) else { continue };
            let Some(at) = member(*slot) else { panic!("on an unusable member") };
            let Some(heard) = host.heard_slot.and_then(member) else { continue };
            prop_assert_eq!(at.segment, heard.segment);
            for to in bench.members.iter().filter(|to| to.usable && to.segment == at.segment && to.slot != at.slot) {
                prop_assert!((load(to.slot) + 1) * weight(at) >= load(at.slot) * weight(to));
            }
        }
    }
}
