//! Who gets which member, and how few move.

use super::*;

/// Many hosts on some members, dealt out.
fn dealt(members: u8, hosts: u16) -> Bench {
    let mut bench = Bench::new(members);
    bench.hosts((0..hosts).map(plain).collect());
    bench.pass(millis(5000));
    bench.sent.clear();
    bench
}

/// Rows of the table that differ.
fn moved(before: &BTreeMap<MacAddr, u8>, bench: &Bench) -> usize {
    before.iter().filter(|(host, slot)| bench.table.get(host) != Some(slot)).count()
}

#[test]
fn new_hosts_go_to_the_least_loaded_member_by_weight() {
    let bench = dealt(4, 42);
    assert_eq!(bench.loads(), [11, 11, 10, 10]);
    let mut bench = Bench::new(3);
    let weights = [1000, 100, 0];
    bench.members(
        (0..3).map(|slot| Member { weight_mbit: weights[usize::from(slot)], ..member(slot) }).collect(),
    );
    bench.hosts((0..110).map(plain).collect());
    assert_eq!(bench.loads(), [100, 10, 0], "a weight of 0 counts as 1");
}

#[test]
fn hosts_of_a_dead_member_move_and_no_others() {
    let mut bench = dealt(4, 42);
    let before = bench.table.clone();
    let failed = |slot| Member { usable: slot != 1, segment: u32::from(slot == 1), ..member(slot) };
    bench.members((0..4).map(failed).collect());
    assert_eq!((bench.loads(), moved(&before, &bench)), (vec![14, 0, 14, 14], 11));
    assert_eq!(bench.sent.len(), 22, "all of them are corrected at once, in both families");
    bench.pass(millis(2000));
    assert_eq!((bench.sent.len(), bench.wrong()), (44, vec![]));
    // It comes back: a fair share, no more, moves there.
    let before = bench.table.clone();
    bench.members((0..4).map(member).collect());
    assert_eq!((bench.loads(), moved(&before, &bench)), (vec![11, 10, 11, 10], 10));
    bench.pass(millis(2000));
    // The last ones go.
    let before = bench.table.clone();
    bench.members((0..4).map(|slot| Member { usable: false, ..member(slot) }).collect());
    assert_eq!((bench.table.len(), bench.loads()), (0, vec![0; 4]), "no host on an unusable member");
    bench.sent.clear();
    bench.members(vec![Member { usable: false, ..member(0) }, member(1)]);
    assert_eq!(bench.loads(), [0, 42]);
    let stayed = before.values().filter(|slot| **slot == 1).count();
    assert_eq!(bench.sent.len(), 2 * (42 - stayed), "who names it already is not told");
}

#[test]
fn hosts_that_leave_move_nobody() {
    let mut bench = dealt(2, 10);
    let on_second: Vec<MacAddr> =
        bench.table.iter().filter(|(_, slot)| **slot == 1).map(|(mac, _)| *mac).collect();
    let stay: Vec<PlainHost> = (0..10).map(plain).filter(|host| on_second.contains(&host.mac)).collect();
    bench.hosts(stay);
    assert_eq!((bench.loads(), bench.sent.len()), (vec![0, 5], 0), "a host keeps its member");
    bench.members(vec![Member { weight_mbit: 999, ..member(0) }, member(1)]);
    assert_eq!(bench.loads(), [2, 3], "until members change");
}

#[test]
fn hosts_stay_on_their_segment() {
    let mut bench = Bench::new(0);
    let on = |slot| Member { segment: u32::from(slot / 2), ..member(slot) };
    bench.members((0..4).map(on).collect());
    let heard = |host: u16| PlainHost {
        heard_slot: [Some(0), Some(1), Some(2), None][usize::from(host % 4)],
        ..plain(host)
    };
    bench.hosts((0..40).map(heard).collect());
    assert_eq!(bench.loads(), [10, 10, 5, 5]);
    assert_eq!(bench.table.len(), 30, "nobody knows where the others are");
    // A failed member is alone in its segment: its hosts are where they were heard before.
    let failed =
        |slot| Member { usable: slot != 0, segment: [9, 0, 1, 1][usize::from(slot)], ..member(slot) };
    bench.members((0..4).map(failed).collect());
    assert_eq!(bench.loads(), [0, 20, 5, 5]);
    // With nobody left there, another segment is better than none.
    let failed = |slot| Member { usable: slot > 1, segment: [9, 8, 1, 1][usize::from(slot)], ..member(slot) };
    bench.members((0..4).map(failed).collect());
    assert_eq!(bench.loads(), [0, 0, 20, 20], "and those unheard can be on no other one");
    bench.members((0..4).map(on).collect());
    assert_eq!(bench.loads()[..2], [10, 10], "home again");
    assert_eq!(bench.table.len(), 40, "who was given a member keeps it");
    // A host that is heard elsewhere has moved.
    let mut hosts: Vec<PlainHost> = (0..40).map(heard).collect();
    (0..40).step_by(4).for_each(|host| hosts[host].heard_slot = Some(3));
    bench.hosts(hosts);
    let moved = (0..40).step_by(4).all(|host| bench.table[&host_mac(host)] >= 2);
    assert!(moved, "{:?}", bench.table);
}

#[test]
fn what_is_too_much_or_not_a_host_is_left_out_and_counted() {
    let mut bench = Bench::new(2);
    let many = limits::ANSWER_HOSTS_MAX as u16 + 7;
    bench.hosts((0..many).map(plain).collect());
    assert_eq!(
        (bench.table.len(), bench.answers.counters().get(Counter::LimitHosts)),
        (limits::ANSWER_HOSTS_MAX, 7)
    );
    let odd = [MacAddr::BROADCAST, MacAddr::ZERO, mac(1)].map(|mac| PlainHost { mac, ..plain(0) });
    bench.hosts(odd.to_vec());
    assert_eq!((bench.table.len(), bench.answers.poll_timeout()), (0, None), "a group, nobody, ourselves");
    bench.handle(Input::Members((0..20).map(member).collect()));
    assert_eq!(bench.answers.counters().get(Counter::LimitMembers), 4);
    let addresses = vec![(IpAddr::V4(OWN_V4), 16); limits::ADDRESSES_MAX + 2];
    bench.handle(Input::Own(Own { mac: mac(0), addresses, router: false }));
    assert_eq!(bench.answers.counters().get(Counter::LimitAddresses), 2);
}
