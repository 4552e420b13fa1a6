//! Who is corrected, when, and with what.

use super::*;

#[test]
fn changes_are_reported_at_once_and_again_after_the_locktime() {
    let mut bench = Bench::new(2);
    let began = bench.now;
    bench.hosts(vec![plain(0), plain(1)]);
    assert_eq!(bench.loads(), [1, 1]);
    bench.pass(millis(5000));
    assert_eq!(bench.times(began), [0, 0, 1200, 1200], "only the one that is not to name the bond's MAC");
    assert!(bench.sent.iter().all(|(_, slot, frame)| *slot == 1 && frame[..6] == host_mac(1).0));
    assert_eq!((bench.wrong(), bench.answers.poll_timeout()), (vec![], None));
    // The host had us for less than a second: the first correction was in vain, as balance-alb's are.
    let (at, _, _) = bench.sent[2];
    assert_eq!(bench.caches[&host_mac(1)].changed, at);
}

#[test]
fn own_broadcasts_are_corrected_after_the_locktime_however_many_come() {
    let mut bench = Bench::new(2);
    bench.hosts(vec![plain(0), plain(1)]);
    bench.pass(millis(5000));
    bench.sent.clear();
    let began = bench.now;
    bench.broadcast();
    assert_eq!(bench.wrong(), [host_mac(1)], "it has taken the bond's MAC");
    bench.pass(millis(5000));
    assert_eq!((bench.times(began), bench.wrong()), (vec![1200, 1200, 2400, 2400], vec![]));
    // The kernel asks once a second for a host that is not there: nobody starves, and the last word is ours.
    let mut wrong = 0;
    bench.sent.clear();
    for _ in 0..20 {
        bench.broadcast();
        bench.pass(millis(1000));
        wrong += bench.wrong().len();
    }
    assert!((30..=36).contains(&bench.sent.len()), "{} corrections in 20 s", bench.sent.len());
    assert!(wrong <= 16, "{wrong}");
    bench.pass(millis(2500));
    assert_eq!((bench.wrong(), bench.answers.poll_timeout()), (vec![], None));
}

#[test]
fn with_one_usable_member_nothing_is_sent_unless_a_host_names_another() {
    let mut bench = Bench::new(1);
    bench.hosts((0..5).map(plain).collect());
    bench.broadcast();
    bench.pass(millis(5000));
    assert_eq!((bench.sent.len(), bench.loads()), (0, vec![5]));
    // The only usable one is not the one whose MAC the bond has: every broadcast leads hosts astray.
    bench.members(vec![Member { usable: false, ..member(0) }, member(1)]);
    bench.pass(millis(5000));
    assert_eq!((bench.sent.len(), bench.wrong()), (20, vec![]));
    bench.broadcast();
    bench.pass(millis(5000));
    assert_eq!((bench.sent.len(), bench.wrong()), (40, vec![]));
}

#[test]
fn rate_is_bounded_and_the_dead_members_hosts_come_first() {
    let mut bench = Bench::new(2);
    bench.hosts((0..1000).map(plain).collect());
    bench.pass(millis(10_000));
    assert_eq!(bench.wrong(), []);
    bench.sent.clear();
    let began = bench.now;
    bench.broadcast();
    bench.pass(millis(1300));
    // In the middle of the corrections that are due anyway the first member dies.
    bench.members(vec![Member { usable: false, ..member(0) }, member(1)]);
    let died = bench.now;
    let orphans: BTreeSet<MacAddr> =
        bench.table.keys().copied().filter(|host| bench.wrong().contains(host)).collect();
    let before = bench.sent.len();
    bench.pass(millis(10_000));
    assert_eq!((bench.wrong(), bench.answers.poll_timeout()), (vec![], None));
    assert!(bench.answers.counters().get(Counter::LimitRate) > 0);
    let first: BTreeSet<&[u8]> =
        bench.sent[before..].iter().take(1000).map(|(.., frame)| &frame[..6]).collect();
    assert!(first.len() == 500 && orphans.iter().filter(|host| first.contains(&host.0[..])).count() == 500);
    let in_second = |from: Time| {
        bench.sent.iter().filter(|(at, ..)| from <= *at && at.since(from) < millis(1000)).count()
    };
    let most = (0..100).map(|step| in_second(began + millis(100) * step)).max().expect("steps");
    assert!(most as u64 <= limits::ANSWER_RATE + limits::ANSWER_BURST, "{most}");
    println!(
        "1000 hosts in order {:?} after a member died",
        bench.sent.last().expect("a frame").0.since(died)
    );
}

#[test]
fn only_addresses_that_a_host_may_know_are_told() {
    let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
    for (own, prefix, known, by) in [
        ("198.18.0.1", 24, "198.18.0.9", true),
        ("198.18.0.1", 24, "198.18.1.9", false),
        ("198.18.0.1", 23, "198.18.1.9", true),
        ("198.18.0.1", 0, "192.0.2.9", true),
        ("198.18.0.1", 32, "198.19.1.9", true),
        ("198.18.0.1", 24, "2001:db8::9", false),
        ("2001:db8::1", 64, "2001:db8::9", true),
        ("2001:db8::1", 64, "2001:db8:1::9", false),
        ("2001:db8::1", 64, "fe80::9", true),
        ("2001:db8::1", 128, "2001:db8:1::9", true),
        ("fe80::1", 64, "fe80::9", true),
        ("fe80::1", 64, "198.18.0.9", false),
    ] {
        let found = correct::known_by(&[ip(known)], ip(own), prefix);
        assert_eq!(found, by.then(|| ip(known)), "{own}/{prefix} by {known}");
    }
    let several = [ip("fe80::9"), ip("2001:db8::9")];
    assert_eq!(correct::known_by(&several, ip("2001:db8::1"), 64), Some(several[1]), "the nearest");
}

#[test]
fn frames_that_nobody_polls_are_bounded() {
    let mut answers = Answers::default();
    let addresses = vec![(IpAddr::V4(OWN_V4), 16)];
    answers.handle(Time::ZERO, Input::Own(Own { mac: mac(0), addresses, router: false }));
    answers.handle(Time::ZERO, Input::Members(vec![member(0), member(1)]));
    answers.handle(Time::ZERO, Input::Hosts((0..1000).map(plain).collect()));
    for second in 1..100 {
        answers.handle(Time::from_millis(second * 1000), Input::Broadcast);
    }
    assert!(answers.counters().get(Counter::LimitActions) > 0);
    assert_eq!(
        std::iter::from_fn(|| answers.poll_action()).count(),
        limits::ACTIONS_MAX + 1,
        "and the table"
    );
}

#[test]
fn routers_say_so_and_bad_addresses_are_counted() {
    let mut answers = Answers::default();
    let bad = IpAddr::from([224, 0, 0, 1]);
    let addresses = vec![(IpAddr::V6(OWN_V6), 64), (bad, 32)];
    answers.handle(Time::ZERO, Input::Own(Own { mac: mac(0), addresses, router: true }));
    answers.handle(Time::ZERO, Input::Members(vec![Member { mac: mac(1), ..member(1) }]));
    answers.handle(Time::ZERO, Input::Hosts(vec![plain(3)]));
    let actions: Vec<Action> = std::iter::from_fn(|| answers.poll_action()).collect();
    let frame = emit_advertisement(host_mac(3), v6(3), mac(1), OWN_V6, true).expect("good addresses");
    let row = Assignment { host: host_mac(3), slot: Some(1) };
    assert_eq!(actions, [Action::Assign(vec![row]), Action::Send { slot: 1, frame }]);
    assert_eq!(answers.counters().get(Counter::TxRefused), 1);
}

#[test]
fn what_a_host_or_we_get_new_is_corrected_too() {
    let mut bench = Bench::new(2);
    bench.hosts(vec![plain(0), PlainHost { ips: vec![IpAddr::V4(v4(1))], ..plain(1) }]);
    bench.pass(millis(5000));
    assert_eq!(bench.sent.len(), 2, "IPv4 only");
    bench.hosts(vec![plain(0), plain(1)]);
    bench.pass(millis(5000));
    assert_eq!((bench.sent.len(), bench.wrong()), (6, vec![]), "it has an IPv6 address now");
    let addresses = vec![(IpAddr::V6(OWN_V6), 64), (IpAddr::V4(OWN_V4), 16)];
    bench.handle(Input::Own(Own { mac: mac(0), addresses, router: false }));
    bench.pass(millis(5000));
    assert_eq!(bench.sent.len(), 10);
    // A member under the same number with another MAC is another NIC.
    let other = Member { mac: mac(77), ..member(1) };
    bench.members(vec![member(0), other]);
    bench.pass(millis(5000));
    assert_eq!((bench.sent.len(), bench.wrong()), (14, vec![]));
}

#[test]
fn a_host_that_is_as_before_is_not_corrected_and_one_that_knows_us_otherwise_is() {
    let mut bench = Bench::new(2);
    let second = |ip| PlainHost { ips: vec![ip], ..plain(1) };
    let mut sent_with = |ip| {
        bench.hosts(vec![plain(0), second(ip)]);
        bench.pass(millis(5000));
        std::mem::take(&mut bench.sent).len()
    };
    let (v4, v6) = (IpAddr::V4(v4(1)), IpAddr::V6(v6(1)));
    assert_eq!([v4, v4, v6].map(&mut sent_with), [2, 0, 2]);
}

#[test]
fn corrections_that_were_given_up_with_the_last_member_leave_when_one_is_back() {
    let mut bench = Bench::new(2);
    bench.hosts(vec![plain(0), plain(1)]);
    let down = |slot| Member { usable: false, ..member(slot) };
    bench.members(vec![down(0), down(1)]);
    bench.pass(millis(5000));
    assert_eq!(bench.table, BTreeMap::new());
    bench.members(vec![member(0), member(1)]);
    bench.pass(millis(5000));
    assert_eq!((bench.loads(), bench.wrong()), (vec![1, 1], vec![]));
}
