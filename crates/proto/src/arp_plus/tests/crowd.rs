//! Many hosts at once, real and forged.

use super::*;
use crate::limits;
use linkbraid_wire::Member;
use std::collections::BTreeSet;

fn crowd_mac(number: u16) -> MacAddr {
    let [high, low] = number.to_be_bytes();
    MacAddr([2, 0xc0, 0, 0, high, low])
}

fn crowd_key(number: u16) -> PeerKey {
    let mut host = [0xc0; 16];
    host[..2].copy_from_slice(&number.to_be_bytes());
    PeerKey::Host(HostId(host))
}

/// What host `number` of a crowd says of itself.
fn one_of(number: u16, sequence: u32) -> Vec<u8> {
    says(Kind::Change, number, sequence)
}

fn says(kind: Kind, number: u16, sequence: u32) -> Vec<u8> {
    let PeerKey::Host(host) = crowd_key(number) else { unreachable!("a host id") };
    let [high, low] = number.to_be_bytes();
    let extension = linkbraid_wire::Extension {
        host,
        epoch: 1,
        sequence,
        members: vec![Member { index: 0, up: true, weight_mbit: sequence, class: 0 }],
        ..linkbraid_wire::Extension::default()
    };
    let address = Some(IpAddr::from([198, 19, high, low]));
    let hardware = vec![crowd_mac(number)];
    let message = Message { kind, address, hardware, extension: Some(extension) };
    emit_frame(MacAddr::BROADCAST, crowd_mac(number), &message).expect("a good message")
}

/// Who changed, as one turn told; all of them if it did not say.
fn changed(actions: &[Action]) -> Option<Vec<PeerKey>> {
    let keys = |action: &Action| match action {
        Action::Peers(Changed::Peers(keys)) => Some(keys.clone()),
        _ => None,
    };
    actions.iter().find_map(keys)
}

#[test]
fn a_change_names_the_host_that_changed_and_no_other() {
    let mut host = Host::running(1, 2);
    (1..=20).for_each(|number| _ = host.hear(0, &one_of(number, 1)));
    assert_eq!(changed(&host.hear(0, &one_of(21, 1))), Some(vec![crowd_key(21)]), "it joined");
    assert_eq!(changed(&host.hear(1, &one_of(3, 1))), Some(vec![crowd_key(3)]), "heard on one more member");
    assert_eq!(changed(&host.hear(0, &one_of(4, 2))), Some(vec![crowd_key(4)]), "another mapping");
    assert_eq!(changed(&host.hear(0, &one_of(5, 1))), None, "nothing new");
    assert_eq!(host.arp.peers().len(), 21);
}

#[test]
fn a_crowd_of_a_thousand_is_known_at_its_second_message_and_a_flood_enters_slowly() {
    let mut host = Host::running(1, 1);
    // A few may have had to give way to each other among those that are remembered.
    for known in [256..=256, 990..=1000, 1000..=1000] {
        (0..1000).for_each(|number| _ = host.hear(0, &one_of(number, 1)));
        assert!(known.contains(&host.arp.peers().len()), "{known:?}: {}", host.arp.peers().len());
        host.pass(millis(100));
    }
    let refused = host.count(Counter::LimitJoins);
    // 2500 made-up hosts a second, for four seconds.
    for number in 1000..11_000 {
        host.pass(Duration::from_micros(400));
        host.hear(0, &one_of(number, 1));
        // The real ones repeat themselves, as they do.
        if number % 2500 == 0 {
            (0..1000).for_each(|number| _ = host.hear(0, &one_of(number, 1)));
        }
    }
    let entered = host.arp.peers().len() as u32 - 1000;
    let most = 4 * limits::JOIN_RATE_UNKNOWN;
    assert!((most - 10..=most + 6).contains(&entered), "{entered} of at most {most}");
    assert_eq!(host.count(Counter::LimitJoins), refused + 10_000 - u64::from(entered));
    // Who is known is heard as ever, and who is real enters within seconds, since he repeats himself.
    assert_eq!(changed(&host.hear(0, &one_of(7, 2))), Some(vec![crowd_key(7)]));
    let late: Vec<Vec<u8>> = (20_000..20_200).map(|number| one_of(number, 1)).collect();
    let known = |host: &Host| (20_000..20_200).filter(|n| host.arp.peer(&crowd_key(*n)).is_some()).count();
    for _ in 0..2 {
        host.pass(millis(1000));
        late.iter().for_each(|frame| _ = host.hear(0, frame));
    }
    assert_eq!(known(&host), 200);
}

//= docs/arp-plus.md#7.12 type=test
#[test]
fn who_is_heard_a_second_time_enters_during_a_flood() {
    let mut host = Host::running(1, 1);
    // 10,000 made-up hosts a second; who is real starts among them, over two members, and says three times who he is.
    let mut made_up = 0..60_000;
    let mut flood = |host: &mut Host, time: u64| {
        for number in made_up.by_ref().take(time as usize * 10) {
            host.pass(Duration::from_micros(100));
            host.hear(0, &one_of(number, 1));
        }
    };
    flood(&mut host, 3000);
    let real = |host: &Host| host.arp.peer(&crowd_key(60_001)).is_some();
    let say = |host: &mut Host| {
        host.hear(0, &one_of(60_001, 1));
        host.hear(0, &one_of(60_001, 1));
        real(host)
    };
    assert!(!say(&mut host), "one message over two members is heard once");
    flood(&mut host, 100);
    assert!(say(&mut host));
    let entered = host.arp.peers().len();
    flood(&mut host, 2000);
    let more = host.arp.peers().len() - entered;
    assert!(more <= 2 * limits::JOIN_RATE_UNKNOWN as usize + 1, "{more}");
    assert!(host.count(Counter::LimitJoins) > 40_000);
}

#[test]
fn a_crowd_that_falls_silent_is_forgotten_in_portions() {
    let mut host = Host::running(1, 1);
    for _ in 0..3 {
        (0..1000).for_each(|number| _ = host.hear(0, &one_of(number, 1)));
        host.pass(millis(100));
    }
    let mut gone = BTreeSet::new();
    for _ in 0..60 {
        let actions = host.pass(millis(250));
        let told = reasons(&actions);
        let count = |wanted| told.iter().filter(|reason| **reason == wanted).count();
        assert!(count(Reason::Silent) <= limits::EXPIRED_AT_ONCE, "{}", count(Reason::Silent));
        assert!(count(Reason::Expired) <= limits::EXPIRED_AT_ONCE, "{}", count(Reason::Expired));
        gone.insert(host.arp.peers().len());
    }
    assert!(gone.len() > 3, "{gone:?}");
    assert_eq!(host.arp.peers().len(), 0);
}

#[test]
fn of_too_many_hosts_that_left_the_one_that_left_first_is_forgotten() {
    let mut host = Host::running(1, 1);
    let leaves = |host: &mut Host, number, sequence| {
        host.now = host.now + millis(1);
        host.hear(0, &says(Kind::Clear, number, sequence));
    };
    let last = limits::TOMBSTONES_MAX as u16;
    let joins = |host: &mut Host, number, sequence| {
        host.now = host.now + millis(63);
        host.hear(0, &one_of(number, sequence));
    };
    (1..=last).for_each(|number| joins(&mut host, number, 1));
    // The highest number leaves first, so that no order but that of time gives it away.
    (1..=last).rev().for_each(|number| leaves(&mut host, number, 2));
    joins(&mut host, last, 3);
    leaves(&mut host, last, 4);
    assert_eq!(host.count(Counter::LimitTombstones), 0, "who leaves again takes no place");
    joins(&mut host, 0, 1);
    leaves(&mut host, 0, 2);
    assert_eq!(host.count(Counter::LimitTombstones), 1);
    let returns = |host: &mut Host, number| reasons(&host.hear(0, &one_of(number, 1)));
    assert_eq!(returns(&mut host, last - 1), [Reason::Joined], "the first one that did not leave again");
    assert_eq!([last, last - 2, 1, 0].map(|number| returns(&mut host, number)), [const { Vec::new() }; 4]);
    assert_eq!(host.count(Counter::StaleCleared), 4);
    host.now = host.now + millis(10_000);
    host.handle(Input::Timeout);
    assert_eq!([1, 0].map(|number| returns(&mut host, number)), [[Reason::Joined]; 2], "after 10 s");
}

//= docs/arp-plus.md#5.8 type=test
#[test]
fn replies_are_spread_over_more_time_the_more_hosts_may_answer() {
    let took = |hosts: u16| {
        let mut host = Host::running(1, 1);
        host.pass(millis(2000));
        (0..hosts).for_each(|number| _ = host.hear(0, &one_of(number, 1)));
        let began = host.now;
        host.hear(0, &says(Kind::Broadcast, 0, 1));
        while host.count(Counter::TxReply) + host.count(Counter::ReplySuppressed) == 0 {
            assert!(host.now.since(began) < millis(2000), "no reply");
            host.pass(Duration::from_micros(100));
        }
        host.now.since(began)
    };
    assert!(took(1) <= millis(12));
    let (few, many) = (took(20), took(200));
    assert!(few <= millis(50) && many > millis(50), "{few:?} and {many:?}");
}
