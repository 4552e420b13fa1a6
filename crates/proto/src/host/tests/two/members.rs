//! Which members peers and the other hosts of a segment are to send to.

use super::*;
use crate::host::Class;

/// The member that takes in broadcasts, on the only segment of members that hear each other.
fn elected(two: &Two) -> Option<u8> {
    two.hosts[0].arp_plus().segments()[0].elected
}

/// The first host's members as the other one knows them: whether they are up.
fn told_up(two: &Two) -> Vec<bool> {
    let peer = two.hosts[1].arp_plus().peers().next().expect("a peer");
    peer.members.iter().map(|member| member.up).collect()
}

#[test]
fn broadcasts_come_in_on_a_member_that_is_proven() {
    let mut two = Two::met(&[0, 0], &settings());
    assert_eq!(elected(&two), Some(0));
    two.deaf = vec![0];
    two.pass(1500);
    assert_eq!(two.hosts[0].inspector().member_sound(0), Verdict::Failed);
    assert_eq!(two.hosts[0].arp_plus().segments()[0].slots, [0, 1], "heard lately");
    assert_eq!(elected(&two), Some(1));
}

#[test]
fn a_member_that_joins_takes_in_nothing_until_it_has_had_its_time() {
    let mut two = Two::new(&[0, 0], &settings());
    two.pass(2000);
    let mut members = two.members(0);
    members[0].joining = true;
    two.handle(0, Input::Members(members));
    two.pass(2000);
    assert!(two.hosts[0].is_proven(0), "though it is proven");
    assert_eq!(elected(&two), Some(1));
    two.handle(0, Input::Members(two.members(0)));
    assert_eq!(elected(&two), Some(0));
}

#[test]
fn peers_send_to_members_that_live_and_do_not_leave() {
    let mut two = Two::met(&[0, 0, 0], &settings());
    assert_eq!(told_up(&two), [true; 3]);
    let mut members = two.members(0);
    members[0].carrier = false;
    members[1].leaving = true;
    two.handle(0, Input::Members(members));
    two.pass(500);
    assert_eq!(told_up(&two), [false, false, true]);
}

/// The first host starts again with what the data path held, but its MACs.
fn restarted(two: &mut Two) {
    let mut left = two.hosts[0].image().clone();
    left.guest_pairs.clear();
    let config = Config { host_id: HostId([1; 16]), epoch: 2, secret: 9.into() };
    two.hosts[0] = Host::new(config, settings(), left);
    let members = two.members(0);
    two.handle(0, Input::Members(members));
    let segments = two.hosts[0].arp_plus().segments().iter().map(|segment| segment.slots.clone());
    assert_eq!(segments.collect::<Vec<_>>(), [vec![0], vec![1, 2]], "before anybody is heard");
    two.handle(0, Input::Start);
}

#[test]
fn after_a_restart_broadcasts_come_in_where_they_did_until_that_is_found_wrong() {
    let mut two = Two::met(&[0, 0, 0], &settings());
    let mut members = two.members(0);
    members[0].carrier = false;
    two.handle(0, Input::Members(members));
    two.pass(500);
    assert_eq!(two.hosts[0].image().bond.elected, [1]);
    restarted(&mut two);
    let segments = two.hosts[0].arp_plus().segments();
    assert_eq!((segments.len(), segments[0].elected), (1, Some(1)), "{segments:?}");
    two.deaf = vec![1];
    two.pass(1500);
    assert_eq!(elected(&two), Some(0));
}

#[test]
fn a_class_is_its_name_whatever_number_each_host_has_for_it() {
    let named = |number, name: &str| Class { name: name.to_owned(), ..class(number, Policy::Flow) };
    let here = Settings { classes: vec![named(1, "storage"), named(2, "backup")], ..settings() };
    let there = Settings { classes: vec![named(1, "backup"), named(2, "storage")], ..settings() };
    let mut two = Two::met(&[0, 0, 0], &settings());
    for (host, settings, classes) in [(0, here, [0, 1, 2]), (1, there, [0, 1, 2])] {
        let members = two.members(host).into_iter().zip(classes);
        let members = members.map(|(member, class)| Member { class, ..member }).collect();
        two.handle(host, Input::Settings(settings));
        two.handle(host, Input::Members(members));
    }
    two.pass(2000);
    let pairs = |class: u8| -> Vec<(u8, u8)> {
        let plan = &two.hosts[0].image().plans[&two.hosts[0].class_plan(two.plan(), class)];
        plan.lanes.iter().map(|lane| (lane.slot, lane.peer_mac.expect("a peer").0[5])).collect()
    };
    assert_eq!([1, 2].map(pairs), [[(1, 2)], [(2, 1)]]);
}

#[test]
fn plain_hosts_of_another_switch_are_sent_to_by_its_members_alone() {
    let mut two = Two::met(&[0, 0, 1, 1], &settings());
    two.neighbours = gateway(2);
    two.handle(0, Input::NeighboursChanged);
    two.pass(2000);
    let slots = |number| {
        let lanes = &two.hosts[0].image().plans[&number].lanes;
        lanes.iter().map(|lane| lane.slot).collect::<Vec<_>>()
    };
    let elected = two.hosts[0].arp_plus().segments().iter().filter_map(|segment| segment.elected);
    let of_segments: Vec<_> = elected.map(|slot| slots(plain_plan(slot))).collect();
    assert_eq!(of_segments, [[0, 1], [2, 3]]);
    let one = Two::met(&[0, 0], &settings());
    assert_eq!(
        one.hosts[0].image().plans.range(plain_plan(0)..).count(),
        0,
        "one switch has the plan for all"
    );
}

#[test]
fn the_last_members_are_not_given_up_on_suspicion() {
    let mut two = Two::met(&[0, 0], &settings());
    let sound = |two: &Two| two.hosts[0].members().iter().map(|member| member.sound).collect::<Vec<_>>();
    two.deaf = vec![0];
    two.pass(1500);
    assert_eq!(sound(&two), [false, true]);
    let mut members = two.members(0);
    members[1].carrier = false;
    two.handle(0, Input::Members(members));
    assert_eq!(sound(&two), [true, true]);
}

#[test]
fn a_slot_that_has_another_interface_now_is_dead_if_that_is_down_too() {
    let mut two = Two::met(&[0, 0], &settings());
    let left = two.hosts[0].image().clone();
    let config = Config { host_id: HostId([1; 16]), epoch: 2, secret: 9.into() };
    two.hosts[0] = Host::new(config, settings(), left);
    let mut members = two.members(0);
    (members[1].ifindex, members[1].carrier) = (99, false);
    two.hosts[0].handle(two.now, Input::Members(members));
    assert_eq!(two.hosts[0].failed_slots() & 0b10, 0b10);
}

#[test]
fn the_data_path_knows_the_members_of_each_class() {
    let settings = Settings { classes: vec![class(1, Policy::Flow)], ..settings() };
    let mut two = Two::met(&[0, 0], &settings);
    assert_eq!(two.hosts[0].image().classes[&1].slots, 0);
    let mut members = two.members(0);
    members[1].class = 1;
    let mut written = Vec::new();
    two.hosts[0].handle(two.now, Input::Members(members));
    two.hosts[0].settle();
    let write = |write: Write<'_>| {
        if let Write::Class(number, row) = write {
            written.push((number, row.slots));
        }
        Ok::<(), ()>(())
    };
    two.hosts[0].write(write).expect("nothing fails");
    assert_eq!(written, [(1, 0b10)], "and others are not written");
}

#[test]
fn a_peer_that_the_kernel_has_as_a_neighbour_is_no_plain_host() {
    let mut two = Two::met(&[0, 0], &settings());
    let mac = two.members(1)[0].mac;
    two.neighbours = gateway(0);
    two.neighbours.0.push(Neighbour { ip: [198, 18, 0, 2].into(), mac, active: true, gateway: false });
    two.handle(0, Input::NeighboursChanged);
    two.pass(1000);
    let lanes = two.hosts[0].inspector().snapshot(two.now).lanes;
    assert!(lanes.iter().any(|lane| lane.lane.peer == PeerKey::Plain(GATEWAY)));
    assert!(lanes.iter().all(|lane| lane.lane.peer != PeerKey::Plain(mac)));
    assert_eq!(two.hosts[0].plain_host(mac), None);
}

//= docs/arp-plus.md#6.8 type=test
#[test]
fn who_answers_has_not_left_whoever_says_so() {
    let mut two = Two::met(&[0, 0], &settings());
    let sequence = two.hosts[0].arp_plus().peer(&OTHER).and_then(|peer| peer.sequence).expect("it spoke");
    let clear = says(Kind::Clear, 2, sequence.wrapping_add(1));
    two.handle(0, Input::Frame { slot: 0, bytes: &clear, heard_again: false });
    assert!(two.hosts[0].plan_of(&OTHER).is_some(), "it is asked first");
    two.pass(1000);
    assert!(two.hosts[0].plan_of(&OTHER).is_some());
}
