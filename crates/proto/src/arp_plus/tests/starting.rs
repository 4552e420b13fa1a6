use super::*;

//= docs/arp-plus.md#5.2 type=test
#[test]
fn start_broadcasts_three_times_within_300_ms_on_every_live_member() {
    let mut host = Host::stopped(1, 1, 3);
    host.handle(Input::Members(vec![member(1, 0), OwnMember { up: false, ..member(1, 1) }, member(1, 2)]));
    let first = host.handle(Input::Start);
    assert_eq!(sent(&first).iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), [0, 2], "live members only");
    let rest = host.pass(millis(300));
    assert_eq!(kinds(&rest), [Kind::Broadcast; 4]);
    for (slot, frame) in sent(&first) {
        assert_eq!((frame.dst, frame.src), (MacAddr::BROADCAST, mac(1, slot)));
        assert_eq!(
            frame.parsed.message.hardware,
            [mac(1, 0), mac(1, 1), mac(1, 2)],
            "failed members are told too"
        );
    }
}

//= docs/arp-plus.md#5.2 type=test
#[test]
fn reply_ends_the_broadcasts() {
    let mut joiner = Host::running(1, 1);
    let other = Host::running(2, 1);
    joiner.hear(0, &other.says(Kind::Reply));
    assert_eq!(kinds(&joiner.pass(millis(500))), []);
    // What others say of themselves says nothing of whether they have heard this host.
    let mut joiner = Host::running(1, 1);
    joiner.hear(0, &other.says(Kind::Change));
    assert!(kinds(&joiner.pass(millis(500))).contains(&Kind::Broadcast));
}

#[test]
fn addresses_that_no_message_holds_are_left_out_and_counted() {
    let mut host = Host::running(1, 1);
    host.handle(Input::Addresses((1..=40).map(ip).collect()));
    assert_eq!(host.arp.own.message(Kind::Change).all_addresses().count(), 33);
    assert_eq!(host.count(Counter::LimitAddresses), 7);
}

//= docs/arp-plus.md#5.1 type=test
#[test]
fn mapping_is_repeated_at_least_once_a_second_on_every_live_member() {
    let mut host = Host::running(1, 2);
    host.pass(millis(2400));
    for second in 0..20 {
        let actions = host.pass(millis(1000));
        for slot in 0..2 {
            let own = sent(&actions).into_iter().filter(|(at, _)| *at == slot).count();
            assert!((1..=2).contains(&own), "second {second}, member {slot}: {own} messages");
        }
        assert!(kinds(&actions).iter().all(|kind| *kind == Kind::Change));
    }
}

//= docs/arp-plus.md#5.12 type=test
#[test]
fn a_host_that_nobody_has_answered_yet_announces_itself_more_often() {
    let announced = |reply: bool| {
        let mut host = Host::running(1, 1);
        if reply {
            host.hear(0, &Host::running(2, 1).says(Kind::Reply));
        }
        host.pass(millis(400));
        let early = kinds(&host.pass(millis(1600))).len();
        (early, kinds(&host.pass(millis(1600))).len())
    };
    let (early, later) = announced(false);
    assert!((4..=7).contains(&early) && (1..=3).contains(&later), "{early}, then {later}");
    let (early, later) = announced(true);
    assert!((1..=3).contains(&early) && (1..=3).contains(&later), "{early}, then {later} after a reply");
}

//= docs/arp-plus.md#5.8 type=test
#[test]
fn broadcast_is_answered_by_unicast_on_the_member_it_came_in() {
    let mut host = Host::running(1, 2);
    host.pass(millis(400));
    let joiner = Host::running(2, 1);
    assert_eq!(kinds(&host.hear(1, &joiner.says(Kind::Broadcast))), [], "not at once");
    assert_eq!(kinds(&host.handle(Input::Timeout)), [], "nor when something else is due");
    let replies = sent(&host.pass(millis(12)));
    let [(slot, frame)] = &replies[..] else { panic!("one reply, got {replies:?}") };
    assert_eq!((*slot, frame.dst, frame.src), (1, mac(2, 0), mac(1, 1)));
    assert_eq!(frame.parsed.message.kind, Kind::Reply);
}

//= docs/arp-plus.md#5.7 type=test
#[test]
fn own_broadcast_replaces_waiting_replies() {
    let mut host = Host::running(1, 1);
    host.pass(millis(400));
    host.hear(0, &Host::running(2, 1).says(Kind::Broadcast));
    let change = host.handle(Input::Addresses(vec![ip(1), ip(101)]));
    assert_eq!(kinds(&change), [Kind::Change]);
    assert!(!kinds(&host.pass(millis(400))).contains(&Kind::Reply));
    assert_eq!(host.count(Counter::ReplySuppressed), 1);
}

//= docs/arp-plus.md#5.9 type=test
#[test]
fn many_replies_become_one_change() {
    let mut host = Host::running(1, 1);
    host.pass(millis(400));
    for number in 100..140 {
        host.hear(0, &Host::running(number, 1).says(Kind::Broadcast));
    }
    let kinds = kinds(&host.pass(millis(400)));
    let replies = kinds.iter().filter(|kind| **kind == Kind::Reply).count();
    assert!(replies <= crate::limits::REPLIES_MAX, "{replies} replies");
    assert!(kinds.contains(&Kind::Change));
    assert_eq!(host.count(Counter::ReplyCollapsed), 24);
}

//= docs/arp-plus.md#5.3 type=test
#[test]
fn change_is_told_at_once_three_times_with_a_later_sequence() {
    let mut host = Host::running(1, 1);
    host.pass(millis(400));
    let before = host.arp.own.sequence;
    let mut actions = host.handle(Input::Members(vec![member(1, 0), member(1, 1)]));
    assert_eq!(kinds(&actions), [Kind::Change; 2]);
    actions.extend(host.pass(millis(300)));
    assert_eq!(kinds(&actions), [Kind::Change; 6]);
    for (_, frame) in sent(&actions) {
        assert_eq!(frame.parsed.message.extension.expect("extended").sequence, before + 1);
    }
    assert_eq!(kinds(&host.handle(Input::Members(vec![member(1, 0), member(1, 1)]))), [], "nothing changed");
}

//= docs/arp-plus.md#5.6 type=test
#[test]
fn stop_clears_and_ends_everything() {
    let mut host = Host::running(1, 2);
    host.hear(0, &Host::running(2, 1).says(Kind::Change));
    assert_eq!(host.arp.peers().len(), 1);
    let actions = host.handle(Input::Stop);
    assert_eq!(kinds(&actions), [Kind::Clear; 4]);
    assert!(actions.contains(&Action::Peers(Changed::All)));
    assert_eq!((host.arp.state(), host.arp.peers().len(), host.arp.poll_timeout()), (State::S0, 0, None));
    host.hear(0, &Host::running(2, 1).says(Kind::Change));
    assert_eq!(host.count(Counter::RxStopped), 1);
}

#[test]
fn host_without_live_member_is_quiet_and_asks_when_one_comes() {
    let mut host = Host::stopped(1, 1, 1);
    host.handle(Input::Members(vec![OwnMember { up: false, ..member(1, 0) }]));
    assert_eq!(kinds(&host.handle(Input::Start)), []);
    assert_eq!(kinds(&host.pass(millis(5000))), []);
    let failed = vec![OwnMember { up: false, ..member(1, 0) }];
    for _ in 0..2 {
        assert_eq!(kinds(&host.handle(Input::Members(vec![member(1, 0)]))), [Kind::Broadcast]);
        host.hear(0, &Host::running(2, 1).says(Kind::Broadcast));
        assert_eq!(kinds(&host.handle(Input::Members(failed.clone()))), []);
        assert_eq!(kinds(&host.pass(millis(2000))), [], "no reply by a failed member either");
    }
}

//= docs/arp-plus.md#5.9 type=test
#[test]
fn replies_between_two_broadcasts_are_limited_however_slowly_hosts_join() {
    let mut host = Host::running(1, 1);
    host.pass(millis(2400));
    let (mut since_broadcast, mut most) = (0, 0);
    for number in 100..200 {
        let mut actions = host.hear(0, &Host::running(number, 1).says(Kind::Broadcast));
        actions.extend(host.pass(millis(10)));
        for kind in kinds(&actions) {
            since_broadcast = if kind == Kind::Reply { since_broadcast + 1 } else { 0 };
            most = most.max(since_broadcast);
        }
    }
    assert_eq!(most, crate::limits::REPLIES_MAX, "all that is allowed and no more");
}

#[test]
fn host_without_address_says_so() {
    let mut host = Host::stopped(1, 1, 1);
    host.handle(Input::Addresses(vec![]));
    let actions = host.handle(Input::Start);
    assert_eq!(sent(&actions)[0].1.parsed.message.address, None);
}

//= docs/arp-plus.md#6.2 type=test
#[test]
fn message_tells_the_whole_mapping_with_its_digest() {
    let mut host = Host::running(1, 2);
    let v6: IpAddr = "2001:db8::1".parse().expect("an address");
    let actions = host.handle(Input::Addresses(vec![ip(1), v6]));
    let message = &sent(&actions)[0].1.parsed.message;
    let extension = message.extension.as_ref().expect("extended");
    assert_eq!((message.address, &extension.addresses[..]), (Some(ip(1)), &[v6][..]));
    assert_eq!(extension.members.iter().map(|member| member.index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(extension.digest, Some(message.mapping_digest()));
}

//= docs/arp-plus.md#11.14 type=test
#[test]
fn host_that_has_slept_asks_again_on_every_member_at_once() {
    let mut host = Host::running(1, 2);
    host.hear(0, &Host::running(2, 1).says(Kind::Broadcast));
    host.pass(millis(3000));
    let actions = host.handle(Input::Woke);
    assert_eq!(kinds(&actions), [Kind::Broadcast; 2]);
    assert_eq!(sent(&actions).iter().map(|sent| sent.0).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn each_change_of_the_state_is_told_once() {
    let states = |actions: &[Action]| -> Vec<(State, State)> {
        let state = |action: &Action| match action {
            Action::Event(Event::State { old, new }) => Some((*old, *new)),
            _ => None,
        };
        actions.iter().filter_map(state).collect()
    };
    let mut host = Host::stopped(1, 1, 1);
    assert_eq!(states(&host.handle(Input::Start)), [(State::S0, State::S1)]);
    assert_eq!(states(&host.handle(Input::Start)), []);
    assert_eq!(states(&host.pass(millis(3000))), []);
    assert_eq!(states(&host.handle(Input::Stop)), [(State::S1, State::S0)]);
}

#[test]
fn what_a_member_said_that_has_gone_comes_back_as_its_own_for_a_while() {
    let mut host = Host::running(1, 2);
    host.handle(Input::Members(vec![member(1, 0)]));
    let is_former = |host: &Host| [mac(1, 0), mac(1, 1), mac(2, 0)].map(|mac| host.arp.own.is_former(mac));
    assert_eq!(is_former(&host), [false, true, false]);
    host.pass(millis(59_900));
    assert_eq!(is_former(&host), [false, true, false]);
    host.pass(millis(500));
    assert_eq!(is_former(&host), [false; 3]);
}

#[test]
fn what_a_host_is_capable_of_is_what_it_says() {
    use linkbraid_wire::{FEATURE_GUESTS, FEATURE_LONG_PROBES, FEATURE_MIRROR};
    for features in [0, FEATURE_MIRROR, FEATURE_GUESTS, FEATURE_LONG_PROBES] {
        let (mut host, mut other) = (Host::running(1, 1), Host::running(2, 1));
        other.handle(Input::Features(features));
        host.hear(0, &other.says(Kind::Change));
        let peer = host.arp.peers().next().expect("a peer");
        assert_eq!(peer.takes_long_probes(), features == FEATURE_LONG_PROBES);
        assert_eq!(peer.takes_guests(), features == FEATURE_GUESTS);
    }
}
