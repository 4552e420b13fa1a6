//! The very times at which something runs out or is told again, and how often it is told.

use super::{outbox::Outbox, *};
use crate::limits;

const MOMENT: Duration = Duration::from_millis(1);

fn key(number: u8) -> PeerKey {
    PeerKey::Host(HostId([number; 16]))
}

//= docs/arp-plus.md#8.5 type=test
#[test]
fn a_conflict_is_told_again_and_forgotten_after_a_minute() {
    let (timing, mut out) = (Timing::default(), Outbox::default());
    let (first, minute) = (Time::from_millis(5), Duration::from_secs(60));
    let conflict = Conflict::OwnAddress { address: ip(1), by: mac(2, 0) };
    let mut told_at = |at| {
        out.conflict(at, &timing, conflict.clone());
        out.poll().is_some()
    };
    assert_eq!(
        [first, first + (minute - MOMENT), first + minute].map(&mut told_at),
        [true, false, true],
        "while it goes on"
    );
    let mut open_at = |at| {
        out.sweep(at, &timing);
        out.conflicts().len()
    };
    assert_eq!([first + (minute * 2 - MOMENT), first + minute * 2].map(&mut open_at), [1, 0]);
}

//= docs/arp-plus.md#8.2 type=test
#[test]
fn frames_of_a_member_that_has_gone_are_own_ones_for_a_minute() {
    let mut host = Host::running(1, 2);
    host.handle(Input::Members(vec![member(1, 1)]));
    let (gone, grace) = (host.now, host.arp.timing.alias);
    let mut is_own_at = |at| {
        host.arp.own.sweep(at, grace);
        host.arp.own.is_former(mac(1, 0))
    };
    assert_eq!([gone + (grace - MOMENT), gone + grace].map(&mut is_own_at), [true, false]);
}

//= docs/arp-plus.md#9.1 type=test
#[test]
fn own_members_hear_each_other_for_3500_ms() {
    let segments_after = |age| {
        let mut host = Host::running(1, 2);
        let own = host.says(Kind::Change);
        host.hear(1, &own);
        host.look_after(millis(age));
        host.arp.segments().len()
    };
    assert_eq!([250, 3499, 3500].map(segments_after), [1, 1, 2]);
}

//= docs/arp-plus.md#6.6 type=test
#[test]
fn what_a_host_said_before_it_left_is_refused_for_so_long() {
    let peers_after = |age| {
        let mut host = Host::running(1, 1);
        let mut other = Host::running(2, 1);
        let early = other.says(Kind::Change);
        host.hear(0, &early);
        other.arp.own.sequence += 1;
        host.hear(0, &other.says(Kind::Clear));
        assert_eq!(host.arp.peers().len(), 0);
        host.now = host.now + age;
        host.handle(Input::Timeout);
        host.hear(0, &early);
        host.arp.peers().len()
    };
    let most = Timing::default().tombstone;
    assert_eq!([most - MOMENT, most].map(peers_after), [0, 1]);
}

//= docs/arp-plus.md#5.5 type=test
#[test]
fn published_only_hosts_that_say_nothing_are_forgotten_in_portions() {
    let mut host = Host::with_published_only(1, 1);
    let most = limits::EXPIRED_AT_ONCE;
    for number in 1..=most as u16 + 1 {
        let [high, low] = number.to_be_bytes();
        let hardware = vec![MacAddr([2, 0, 0, 9, high, low])];
        let address = Some(IpAddr::from([198, 19, high, low]));
        let message = Message { kind: Kind::Change, address, hardware, extension: None };
        // As fast as they are let in.
        host.now = host.now + millis(63);
        host.hear(0, &emit_frame(MacAddr::BROADCAST, message.hardware[0], &message).expect("good"));
    }
    host.now = host.now + host.arp.timing.forget;
    let left = [(); 2].map(|()| {
        let before = host.arp.peers().len();
        host.look_after(host.arp.timing.sweep);
        (before, host.arp.peers().len())
    });
    assert_eq!(left, [(most + 1, 1), (1, 0)]);
}

//= docs/arp-plus.md#5.15 type=test
#[test]
fn a_silent_host_that_speaks_seldom_is_there_again_if_it_was_proven_within_a_second() {
    let mut host = Host::running(1, 1);
    let mut message = Host::running(2, 1).arp.own.message(Kind::Change);
    let features = linkbraid_wire::with_interval(linkbraid_wire::FEATURE_INTERVALS, 2);
    message.extension.as_mut().expect("extended").features = features;
    host.hear(0, &emit_frame(MacAddr::BROADCAST, mac(2, 0), &message).expect("a good message"));
    host.handle(Input::Probed(BTreeMap::from([(key(2), None)])));
    host.pass(millis(4000));
    let now = host.now;
    let mut proven = |ago| {
        host.handle(Input::Probed(BTreeMap::from([(key(2), Some(now.minus(ago)))])));
        host.arp.peer(&key(2)).map(|peer| peer.state)
    };
    assert_eq!(proven(limits::PROVEN_LATELY), Some(PeerState::Silent));
    assert_eq!(proven(limits::PROVEN_LATELY - MOMENT), Some(PeerState::Alive));
}

//= docs/arp-plus.md#5.2 type=test
//= docs/arp-plus.md#5.3 type=test
#[test]
fn what_changes_while_a_host_asks_is_asked_with_and_later_told_three_times() {
    let mut host = Host::running(1, 1);
    let changes = |host: &mut Host, last| kinds(&host.handle(Input::Addresses(vec![ip(last)])));
    assert_eq!(changes(&mut host, 2), [Kind::Broadcast]);
    host.pass(millis(3000));
    assert_eq!([3, 4].map(|last| changes(&mut host, last)), [[Kind::Change], [Kind::Change]]);
    // Three gaps are over by then, and the next announcement is not due yet.
    assert_eq!(kinds(&host.pass(millis(460))), [Kind::Change; 2]);
}

//= docs/arp-plus.md#5.12 type=test
#[test]
fn a_host_announces_itself_more_often_for_two_seconds() {
    let told_after = |age| {
        let mut host = Host::running(1, 1);
        host.arp.timing.burst_count = 1;
        host.pass(age);
        assert_eq!(host.handle(Input::Addresses(vec![ip(2)])).len(), 1);
        kinds(&host.pass(millis(700))).len()
    };
    let young = Timing::default().young;
    assert_eq!([young - MOMENT, young].map(told_after), [1, 0]);
}

//= docs/arp-plus.md#5.14 type=test
#[test]
fn who_speaks_each_second_to_all_tells_own_members_nothing_apart() {
    let mut host = Host::running(1, 2);
    host.pass(millis(3000));
    host.arp.own.doublings = 2;
    host.arp.follow_crowd(host.now);
    assert_eq!(host.arp.announces_every().as_secs(), 1, "nobody else is there");
    let actions = host.pass(millis(700));
    assert!(!actions.is_empty() && sent(&actions).iter().all(|(_, frame)| frame.dst == MacAddr::BROADCAST));
}
