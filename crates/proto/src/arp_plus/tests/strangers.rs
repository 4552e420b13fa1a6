//! What somebody on the wire can make a host believe who is not who he says.

use super::*;
use linkbraid_wire::Member;
use std::collections::BTreeSet;

const GATEWAY: MacAddr = MacAddr([6, 0, 0, 0, 0, 1]);

fn key(number: u8) -> PeerKey {
    PeerKey::Host(HostId([number; 16]))
}

/// A message of that host from that MAC, changed.
fn forged(
    by: MacAddr,
    of: &Host,
    kind: Kind,
    edit: impl Fn(&mut Message, &mut linkbraid_wire::Extension),
) -> Vec<u8> {
    let mut message = of.arp.own.message(kind);
    let mut extension = message.extension.take().expect("extended");
    edit(&mut message, &mut extension);
    message.extension = Some(extension);
    emit_frame(MacAddr::BROADCAST, by, &message).expect("a good message")
}

/// A host that lists MACs that are not its own; the first one is its primary.
fn listing(by: MacAddr, hardware: &[MacAddr]) -> Vec<u8> {
    forged(by, &Host::stopped(66, 1, 1), Kind::Change, |message, extension| {
        message.hardware = hardware.to_vec();
        let member = |index| Member { index, ..extension.members[0] };
        extension.members = (0..hardware.len() as u8).map(member).collect();
    })
}

fn leads(host: &Host, mac: MacAddr) -> Option<PeerKey> {
    host.arp.peer_by_mac(mac).map(|peer| peer.key)
}

//= docs/arp-plus.md#7.7 type=test
//= docs/arp-plus.md#7.11 type=test
#[test]
fn a_mac_that_nobody_spoke_from_leads_nowhere() {
    let mut host = Host::running(1, 1);
    let by = mac(66, 0);
    let actions = host.hear(0, &published(Kind::Broadcast, 66, &[by, GATEWAY]));
    assert!(actions.contains(&Action::Event(Event::PublishedOnly { mac: by })));
    let actions = host.hear(0, &published(Kind::Broadcast, 67, &[by, GATEWAY]));
    assert_eq!((actions.len(), host.count(Counter::PublishedOnly)), (0, 2), "it is told once");
    assert_eq!((leads(&host, GATEWAY), leads(&host, by)), (None, None));
    // Where such hosts are let in, and those with an id, it is the same.
    for listed in [published(Kind::Broadcast, 66, &[by, GATEWAY]), listing(by, &[by, GATEWAY])] {
        let mut host = Host::with_published_only(1, 1);
        host.hear(0, &listed);
        assert_eq!((host.arp.peers().len(), leads(&host, GATEWAY)), (1, None));
        assert!(leads(&host, by).is_some());
        // Nor when it says that it had it.
        host.hear(0, &published(Kind::Change, 66, &[by]));
        host.hear(0, &forged(by, &Host::stopped(66, 2, 1), Kind::Change, |_, _| ()));
        assert_eq!(leads(&host, GATEWAY), None);
    }
}

//= docs/arp-plus.md#7.7 type=test
#[test]
fn a_member_leads_to_its_host_once_it_speaks_or_answers() {
    let mut host = Host::running(1, 1);
    let other = Host::running(2, 4);
    host.hear(0, &other.says(Kind::Change));
    let known = |host: &Host| [0, 1, 2, 3].map(|slot| leads(host, mac(2, slot)).is_some());
    assert_eq!(known(&host), [true, false, false, false]);
    let changed = |actions: &[Action]| actions.contains(&Action::Peers(Changed::Peers(vec![key(2)])));
    let spoke = host.hear(0, &forged(mac(2, 1), &other, Kind::Change, |_, _| ()));
    assert_eq!((known(&host), changed(&spoke)), ([true, true, false, false], true));
    let answered = host.handle(Input::Proven { peer: key(2), mac: mac(2, 3), asked: host.now });
    assert_eq!((known(&host), changed(&answered)), ([true, true, false, true], true));
}

//= docs/arp-plus.md#15.11 type=test
#[test]
fn who_has_just_proven_its_key_is_asked_for_its_mapping_unless_it_is_known() {
    let met = Input::Met { slot: 0, mac: mac(2, 1), host: HostId([2; 16]) };
    assert!(Host::stopped(1, 1, 1).handle(met.clone()).is_empty());
    let mut host = Host::running(1, 1);
    let asked = host.handle(met.clone());
    let asks: Vec<_> =
        sent(&asked).into_iter().map(|(slot, frame)| (slot, frame.dst, frame.parsed.message.kind)).collect();
    assert_eq!(asks, [(0, mac(2, 1), Kind::Broadcast)]);
    host.hear(0, &Host::running(2, 2).says(Kind::Reply));
    assert!(host.handle(met).is_empty());
}

//= docs/arp-plus.md#7.8 type=test
#[test]
fn a_primary_mac_out_of_hearing_leads_to_its_host_unless_a_plain_host_has_it() {
    let mut host = Host::running(1, 1);
    let by = mac(66, 1);
    host.hear(0, &listing(by, &[GATEWAY, by]));
    assert_eq!(leads(&host, GATEWAY), None, "before the neighbours are known");
    host.handle(Input::Taken(BTreeSet::new()));
    assert_eq!(leads(&host, GATEWAY), Some(key(66)));
    let changed = Action::Peers(Changed::Peers(vec![key(66)]));
    assert!(host.handle(Input::Taken(BTreeSet::from([GATEWAY]))).contains(&changed));
    assert_eq!((leads(&host, GATEWAY), leads(&host, by)), (None, Some(key(66))));
    assert_eq!(host.arp.silent_primaries(), BTreeSet::from([GATEWAY]));
    // Saying it again does not help.
    host.hear(0, &listing(by, &[GATEWAY, by]));
    assert_eq!(leads(&host, GATEWAY), None);
    assert!(host.handle(Input::Taken(BTreeSet::new())).contains(&changed));
    assert_eq!(leads(&host, GATEWAY), Some(key(66)));
    // Whoever speaks from it has it, though somebody else spoke of it first.
    let mut owner = Host::stopped(3, 1, 1);
    owner.handle(Input::Members(vec![OwnMember { mac: GATEWAY, ..member(3, 0) }]));
    assert_eq!(conflicts(&host.hear(0, &forged(GATEWAY, &owner, Kind::Change, |_, _| ()))), []);
    assert_eq!(leads(&host, GATEWAY), Some(key(3)));
    // And keeps it, whoever else has it or not.
    host.handle(Input::Taken(BTreeSet::from([GATEWAY])));
    assert_eq!(leads(&host, GATEWAY), Some(key(3)));
}

//= docs/arp-plus.md#7.8 type=test
#[test]
fn what_other_macs_plain_hosts_have_changes_nothing() {
    let mut host = Host::running(1, 1);
    host.hear(0, &listing(mac(66, 1), &[GATEWAY, mac(66, 1)]));
    host.handle(Input::Taken(BTreeSet::new()));
    assert_eq!(host.handle(Input::Taken(BTreeSet::from([mac(9, 9)]))), []);
    assert_eq!(leads(&host, GATEWAY), Some(key(66)));
}

//= docs/arp-plus.md#8.3 type=test
#[test]
fn to_say_what_is_known_from_the_mac_of_another_host_takes_nothing() {
    let mut host = Host::running(1, 1);
    let hardware = [mac(66, 0), GATEWAY];
    host.hear(0, &listing(mac(66, 0), &hardware));
    let mut owner = Host::stopped(3, 1, 1);
    owner.handle(Input::Members(vec![OwnMember { mac: GATEWAY, ..member(3, 0) }]));
    host.hear(0, &forged(GATEWAY, &owner, Kind::Change, |_, _| ()));
    let told = conflicts(&host.hear(0, &listing(GATEWAY, &hardware)));
    assert_eq!(told, [Conflict::PeerMac { mac: GATEWAY, owner: key(3), by: GATEWAY }]);
    assert_eq!(leads(&host, GATEWAY), Some(key(3)));
}

//= docs/arp-plus.md#8.3 type=test
#[test]
fn to_be_named_by_another_costs_a_silent_host_nothing() {
    let mut host = Host::running(1, 1);
    host.hear(0, &Host::running(2, 1).says(Kind::Change));
    host.pass(millis(4000));
    host.hear(0, &listing(mac(66, 0), &[mac(66, 0), mac(2, 0)]));
    assert_eq!(leads(&host, mac(2, 0)), Some(key(2)));
}

//= docs/arp-plus.md#6.10 type=test
#[test]
fn news_of_a_live_host_come_from_its_own_macs() {
    let mut host = Host::running(1, 1);
    let other = Host::running(2, 1);
    host.hear(0, &other.says(Kind::Change));
    let by = mac(66, 0);
    let stolen = |of: &Host, sequence| {
        forged(by, of, Kind::Change, |message, extension| {
            message.hardware.push(by);
            extension.members.push(Member { index: 1, ..extension.members[0] });
            extension.sequence += sequence;
        })
    };
    let later = Host::stopped(2, u64::MAX, 1);
    for frame in [stolen(&other, 1), stolen(&other, 1 << 30), stolen(&later, 1)] {
        assert_eq!(reasons(&host.hear(0, &frame)), []);
    }
    assert_eq!((host.count(Counter::Stranger), leads(&host, by)), (3, None));
    host.pass(millis(4000));
    assert_eq!(reasons(&host.hear(0, &stolen(&other, 1))), [Reason::Changed], "it was silent");
}

/// A host that knows another one, which answers PROBEs.
fn proven() -> (Host, Host) {
    let (mut host, other) = (Host::running(1, 1), Host::running(2, 1));
    host.hear(0, &other.says(Kind::Change));
    host.handle(Input::Proven { peer: key(2), mac: mac(2, 0), asked: host.now });
    (host, other)
}

//= docs/arp-plus.md#6.8 type=test
#[test]
fn who_answers_has_neither_left_nor_started_again() {
    let clear =
        |other: &Host| forged(mac(2, 0), other, Kind::Clear, |_, extension| extension.sequence += 1000);
    let start = |_: &Host| forged(mac(2, 0), &Host::stopped(2, u64::MAX, 1), Kind::Broadcast, |_, _| ());
    let (mut host, other) = proven();
    for forged in [clear(&other), start(&other)] {
        let actions = host.hear(0, &forged);
        assert!(actions.contains(&Action::Challenge(key(2))));
        let asked = host.now;
        host.pass(millis(3));
        let early =
            host.handle(Input::Proven { peer: key(2), mac: mac(2, 0), asked: asked.minus(millis(1)) });
        assert_eq!(conflicts(&early), [], "it was asked before");
        let proof = Input::Proven { peer: key(2), mac: mac(2, 0), asked };
        let conflict = Conflict::PeerHostId {
            host: HostId([2; 16]),
            owner: Some(ip(2)),
            address: Some(ip(2)),
            by: mac(2, 0),
        };
        let told = conflicts(&host.handle(proof));
        assert!(told.is_empty() || told == [conflict], "{told:?}");
        assert_eq!(reasons(&host.pass(millis(1000))), []);
        host.hear(0, &other.says(Kind::Change));
    }
    assert_eq!((host.count(Counter::Disproved), host.arp.peers().len()), (2, 1));
    // Nobody answers: it is as the message says.
    for (message, reason) in [
        (clear(&other), Reason::Left),
        (start(&other), Reason::Restarted { old_epoch: 1, new_epoch: u64::MAX }),
    ] {
        let (mut host, _) = proven();
        assert_eq!(reasons(&host.hear(0, &message)), []);
        assert_eq!(reasons(&host.pass(millis(149))), []);
        assert_eq!(reasons(&host.pass(millis(1))), [reason]);
        let (mut host, _) = proven();
        host.hear(0, &message);
        assert_eq!(reasons(&host.handle(Input::NobodyObjects(key(2)))), [reason], "nobody could");
    }
}

//= docs/arp-plus.md#6.8 type=test
#[test]
fn who_leaves_before_its_start_is_believed_has_left() {
    let (mut host, _) = proven();
    let mut started = Host::stopped(2, 7, 1);
    started.handle(Input::Start);
    assert_eq!(reasons(&host.hear(0, &started.says(Kind::Broadcast))), []);
    let left = forged(mac(2, 0), &started, Kind::Clear, |_, extension| extension.sequence += 1);
    host.pass(millis(100));
    assert_eq!(reasons(&host.hear(0, &left)), []);
    // What it said before comes late.
    assert_eq!(reasons(&host.hear(0, &started.says(Kind::Broadcast))), []);
    assert_eq!(reasons(&host.pass(millis(49))), []);
    assert_eq!(
        reasons(&host.pass(millis(1))),
        [Reason::Left],
        "the time for objections is that of the start"
    );
}

//= docs/arp-plus.md#6.9 type=test
//= docs/arp-plus.md#6.6 type=test
#[test]
fn the_highest_epoch_locks_nobody_out() {
    let highest = Host::stopped(2, u64::MAX, 1);
    let (mut host, other) = proven();
    host.hear(0, &forged(mac(2, 0), &highest, Kind::Broadcast, |_, _| ()));
    host.handle(Input::NobodyObjects(key(2)));
    assert_eq!(host.arp.peer(&key(2)).and_then(|peer| peer.epoch), Some(u64::MAX));
    host.hear(0, &other.says(Kind::Change));
    assert_eq!(host.count(Counter::StaleEpoch), 1, "it may have been under way");
    host.pass(millis(1900));
    host.hear(0, &other.says(Kind::Change));
    assert_eq!(host.arp.peer(&key(2)).and_then(|peer| peer.epoch), Some(1));
    // After a CLEAR of that epoch the host is back with what it said before.
    let (mut host, other) = proven();
    host.hear(0, &forged(mac(2, 0), &highest, Kind::Clear, |_, _| ()));
    host.handle(Input::NobodyObjects(key(2)));
    assert_eq!(host.arp.peers().len(), 0);
    assert_eq!(reasons(&host.hear(0, &other.says(Kind::Change))), [Reason::Joined]);
    // And one of a host that is not known buries nobody.
    let mut host = Host::running(1, 1);
    host.hear(0, &forged(mac(2, 0), &highest, Kind::Clear, |_, _| ()));
    assert_eq!(reasons(&host.hear(0, &other.says(Kind::Change))), [Reason::Joined]);
}

//= docs/arp-plus.md#6.9 type=test
#[test]
fn a_mapping_that_is_not_repeated_gives_way_to_one_that_is() {
    let (mut host, other) = proven();
    let frame = forged(mac(2, 0), &other, Kind::Change, |message, extension| {
        message.address = Some(ip(77));
        extension.sequence += 1 << 30;
    });
    assert_eq!(reasons(&host.hear(0, &frame)), [Reason::Changed], "anybody can say so in its name");
    let mut changed = Vec::new();
    for _ in 0..4 {
        host.pass(millis(950));
        changed.extend(reasons(&host.hear(0, &other.says(Kind::Change))));
    }
    assert_eq!(changed, [Reason::Changed]);
    assert_eq!(host.arp.peer(&key(2)).and_then(Peer::address), Some(ip(2)));
    assert_eq!(host.count(Counter::StaleSequence), 1);
}

//= docs/arp-plus.md#7.9 type=test
#[test]
fn a_full_table_makes_room_by_whom_nothing_is_proven() {
    let (mut host, other) = proven();
    let join = |host: &mut Host, number: u16| {
        let [high, low] = number.to_be_bytes();
        let by = MacAddr([6, 1, 0, 0, high, low]);
        host.now = host.now + millis(63);
        host.hear(
            0,
            &forged(by, &other, Kind::Change, |message, extension| {
                extension.host.0[..2].copy_from_slice(&[high, low]);
                (message.address, message.hardware) = (None, vec![by]);
            }),
        )
    };
    (1000..5095).for_each(|number| _ = join(&mut host, number));
    assert_eq!((host.arp.peers().len(), host.count(Counter::PeerEvicted)), (4096, 0));
    assert_eq!(reasons(&join(&mut host, 9000)), [Reason::Evicted, Reason::Joined]);
    assert_eq!((host.arp.peers().len(), host.count(Counter::LimitHosts)), (4096, 0));
    assert!(host.arp.peer(&key(2)).is_some(), "who answers stays, though it was heard first");
}

//= docs/arp-plus.md#7.10 type=test
#[test]
fn changes_of_one_host_are_limited() {
    let mut host = Host::running(1, 1);
    let mut other = Host::running(2, 1);
    let mut change = |host: &mut Host, number: u8| {
        other.handle(Input::Addresses(vec![ip(2), ip(100 + number)]));
        reasons(&host.hear(0, &other.says(Kind::Change))).len()
    };
    let taken: usize = (0..100).map(|number| change(&mut host, number)).sum();
    assert_eq!((taken, host.count(Counter::LimitChanges)), (17, 83), "the first one is no change");
    host.pass(millis(1000));
    let taken: usize = (0..100).map(|number| change(&mut host, number)).sum();
    assert_eq!(taken, 4);
}

//= docs/arp-plus.md#7.8 type=test
#[test]
fn what_plain_hosts_have_is_known_after_a_stop() {
    let mut host = Host::running(1, 1);
    let by = mac(66, 1);
    host.handle(Input::Taken(BTreeSet::new()));
    host.handle(Input::Stop);
    host.handle(Input::Start);
    host.hear(0, &listing(by, &[GATEWAY, by]));
    assert_eq!(leads(&host, GATEWAY), Some(key(66)), "nobody has it");
}

//= docs/arp-plus.md#6.10 type=test
#[test]
fn news_of_a_published_only_host_come_from_its_own_macs() {
    let mut host = Host::with_published_only(1, 1);
    host.hear(0, &published(Kind::Change, 9, &[mac(9, 0)]));
    host.hear(0, &published(Kind::Change, 9, &[mac(8, 0)]));
    assert_eq!(host.count(Counter::Stranger), 1);
    assert_eq!(leads(&host, mac(9, 0)), Some(PeerKey::Address(ip(9))));
    assert_eq!(leads(&host, mac(8, 0)), None);
}
