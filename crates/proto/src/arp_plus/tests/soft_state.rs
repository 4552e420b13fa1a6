use super::*;

fn from_member(host: &Host, slot: u8) -> Vec<u8> {
    let message = host.arp.own.message(Kind::Change);
    emit_frame(MacAddr::BROADCAST, mac(host.number, slot), &message).expect("a good message")
}

//= docs/arp-plus.md#5.4 type=test
#[test]
fn silent_after_3500_ms_deleted_after_10_s_alive_when_heard() {
    let mut host = Host::running(1, 1);
    let mut other = Host::running(2, 1);
    let joined = host.hear(0, &other.says(Kind::Change));
    assert_eq!(reasons(&joined), [Reason::Joined]);
    let named = |action: &Action| match action {
        Action::Event(Event::Peer { key, address, mac, .. }) => Some((key.to_string(), *address, *mac)),
        _ => None,
    };
    let named: Vec<_> = joined.iter().filter_map(named).collect();
    assert_eq!(named, [(HostId([2; 16]).to_string(), Some(ip(2)), mac(2, 0))]);
    assert_eq!(reasons(&host.pass(millis(3400))), []);
    assert_eq!(reasons(&host.pass(millis(400))), [Reason::Silent]);
    assert_eq!(reasons(&host.hear(0, &other.says(Kind::Change))), [Reason::HeardAgain]);
    assert_eq!(reasons(&host.pass(millis(10_300))), [Reason::Silent, Reason::Expired]);
    assert_eq!(host.arp.peers().len(), 0);
    assert!(host.arp.peer_by_mac(mac(2, 0)).is_none());
    other.handle(Input::Stop);
}

//= docs/arp-plus.md#5.17 type=test
#[test]
fn what_this_host_was_late_itself_is_nobodys_silence() {
    // It does nothing for so long once nothing was heard for 3 s: whether the other host and the segment are as they were.
    let holds = |late: u64, probed: bool| {
        let mut host = Host::running(1, 2);
        let mut other = Host::running(2, 1);
        other.arp.own.doublings = u8::from(probed);
        host.hear(0, &other.says(Kind::Change));
        host.hear(1, &from_member(&host, 0));
        let key = PeerKey::Host(HostId([2; 16]));
        let probes = |host: &mut Host| {
            let proven = BTreeMap::from([(key, None)]);
            host.handle(Input::Probed(if probed { proven } else { BTreeMap::new() }));
        };
        probes(&mut host);
        host.pass(millis(3000));
        let is_as_before = |host: &Host| {
            let peer = host.arp.peer(&key).expect("known");
            (peer.state == PeerState::Alive, host.arp.segments().len() == 1)
        };
        assert_eq!(is_as_before(&host), (true, true));
        host.now = host.now + millis(late);
        host.handle(Input::Timeout);
        probes(&mut host);
        let after = is_as_before(&host);
        // The time that it listens counts: that was all there is to it.
        host.pass(millis(1000));
        assert_eq!(is_as_before(&host), (false, false));
        after
    };
    assert_eq!([false, true].map(|probed| holds(4000, probed)), [(true, true); 2]);
    // A little late is not late.
    let mut host = Host::running(1, 1);
    host.hear(0, &Host::running(2, 1).says(Kind::Change));
    host.pass(millis(3400));
    host.now = host.now + millis(200);
    assert_eq!(reasons(&host.handle(Input::Timeout)), [Reason::Silent]);
}

//= docs/arp-plus.md#5.5 type=test
#[test]
fn published_only_host_is_asked_after_a_minute_and_deleted_after_two() {
    let mut host = Host::with_published_only(1, 1);
    host.hear(0, &published(Kind::Broadcast, 9, &[mac(9, 0), mac(9, 1)]));
    assert_eq!(kinds(&host.pass(millis(12))), [Kind::Reply], "it is answered");
    let again = host.hear(0, &published(Kind::Broadcast, 9, &[mac(9, 0), mac(9, 1)]));
    assert_eq!(reasons(&again), [], "the same mapping is no change");
    let fewer = host.hear(0, &published(Kind::Change, 9, &[mac(9, 1)]));
    assert_eq!(reasons(&fewer), [Reason::Changed]);
    host.hear(0, &published(Kind::Change, 9, &[mac(9, 0), mac(9, 1)]));
    let asked = |actions: &[Action]| {
        let asks =
            |(_, frame): &(u8, Frame)| (frame.parsed.message.kind, frame.dst) == (Kind::Broadcast, mac(9, 1));
        sent(actions).into_iter().filter(asks).count()
    };
    assert_eq!(asked(&host.pass(millis(59_000))), 0);
    assert_eq!(asked(&host.pass(millis(12_000))), 2, "it is asked, and again");
    host.hear(0, &published(Kind::Reply, 9, &[mac(9, 0), mac(9, 1)]));
    assert_eq!(reasons(&host.pass(millis(119_000))), [], "it has answered");
    let key = PeerKey::Address(ip(9));
    assert_eq!(key.to_string(), "198.18.0.9");
    let peer = host.arp.peer(&key).expect("still there");
    assert_eq!((peer.state, peer.heard(0, 0), peer.epoch), (PeerState::Alive, true, None));
    assert_eq!(reasons(&host.pass(millis(1500))), [Reason::Expired]);
    host.hear(0, &published(Kind::Change, 9, &[mac(9, 0), mac(9, 1)]));
    host.hear(0, &published(Kind::Clear, 9, &[mac(8, 0)]));
    assert_eq!(host.count(Counter::ClearNotOwner), 1);
    assert_eq!(reasons(&host.hear(0, &published(Kind::Clear, 9, &[mac(9, 0)]))), [Reason::Left]);
}

//= docs/arp-plus.md#6.3 type=test
//= docs/arp-plus.md#6.1 type=test
#[test]
fn earlier_sequence_is_refused_and_wraps() {
    let mut host = Host::running(1, 1);
    let mut other = Host::running(2, 1);
    other.arp.own.sequence = u32::MAX;
    let early = other.says(Kind::Change);
    host.hear(0, &early);
    other.handle(Input::Addresses(vec![ip(2), ip(22)]));
    assert_eq!(other.arp.own.sequence, 0, "serial numbers wrap");
    assert_eq!(reasons(&host.hear(0, &other.says(Kind::Change))), [Reason::Changed]);
    assert_eq!(reasons(&host.hear(0, &early)), []);
    assert_eq!(host.count(Counter::StaleSequence), 1);
    // RFC 1982 leaves open which of two numbers half the circle apart is the later one; here neither is earlier.
    other.arp.own.sequence = 1 << 31;
    host.hear(0, &other.says(Kind::Change));
    assert_eq!(host.count(Counter::StaleSequence), 1);
    assert_eq!(host.arp.peer_by_address(ip(22)).map(Peer::mac), Some(mac(2, 0)));
}

//= docs/arp-plus.md#6.4 type=test
#[test]
fn later_epoch_replaces_and_earlier_is_refused() {
    let mut host = Host::running(1, 1);
    let old = Host::running(2, 2);
    let early = old.says(Kind::Change);
    host.hear(0, &early);
    let mut new = Host::stopped(2, 7, 1);
    new.handle(Input::Start);
    let restarted = Reason::Restarted { old_epoch: 1, new_epoch: 7 };
    assert_eq!(reasons(&host.hear(0, &new.says(Kind::Broadcast))), [restarted]);
    host.hear(0, &early);
    let told = [Counter::StaleEpoch, Counter::PeerJoined, Counter::PeerRestarted, Counter::PeerChanged];
    assert_eq!(told.map(|counter| host.count(counter)), [1, 1, 1, 0]);
    assert_eq!(host.arp.peers().map(|peer| peer.members.len()).collect::<Vec<_>>(), [1]);
}

//= docs/arp-plus.md#6.5 type=test
//= docs/arp-plus.md#6.6 type=test
#[test]
fn clear_deletes_and_delayed_messages_do_not_bring_the_host_back() {
    let mut host = Host::running(1, 1);
    let mut other = Host::running(2, 1);
    let early = other.says(Kind::Change);
    host.hear(0, &early);
    let clear = other.handle(Input::Stop);
    let Action::Send { frame, .. } = &clear[1] else { panic!("a CLEAR after the state event: {clear:?}") };
    assert_eq!(reasons(&host.hear(0, frame)), [Reason::Left]);
    host.hear(0, &early);
    host.hear(0, frame);
    assert_eq!((host.arp.peers().len(), host.count(Counter::StaleCleared)), (0, 2));
    other.handle(Input::Start);
    assert_eq!(reasons(&host.hear(0, &other.says(Kind::Broadcast))), [Reason::Joined], "a new start is new");
}

//= docs/arp-plus.md#6.6 type=test
#[test]
fn who_left_returns_in_a_later_epoch_and_in_no_earlier_one() {
    let mut host = Host::running(1, 1);
    let of_epoch = |epoch| {
        let mut other = Host::stopped(2, epoch, 1);
        other.handle(Input::Start);
        other
    };
    let mut other = of_epoch(7);
    host.hear(0, &other.says(Kind::Change));
    other.arp.own.sequence += 1;
    host.hear(0, &other.says(Kind::Clear));
    assert_eq!(reasons(&host.hear(0, &of_epoch(6).says(Kind::Change))), []);
    assert_eq!((host.arp.peers().len(), host.count(Counter::StaleCleared)), (0, 1));
    // Nothing leads to it by what it had before.
    let mut other = of_epoch(8);
    other.handle(Input::Members(vec![member(2, 1)]));
    other.handle(Input::Addresses(vec![ip(22)]));
    let frame =
        emit_frame(MacAddr::BROADCAST, mac(2, 1), &other.arp.own.message(Kind::Change)).expect("good");
    assert_eq!(reasons(&host.hear(0, &frame)), [Reason::Joined]);
    let leads =
        |number| [host.arp.peer_by_mac(mac(2, number)), host.arp.peer_by_address(ip(2 + 20 * number))];
    assert_eq!([0, 1].map(|number| leads(number).map(|peer| peer.is_some())), [[false; 2], [true; 2]]);
}

//= docs/arp-plus.md#6.5 type=test
#[test]
fn clear_from_a_foreign_mac_is_refused() {
    let mut host = Host::running(1, 1);
    let other = Host::running(2, 1);
    host.hear(0, &other.says(Kind::Change));
    let mut message = other.arp.own.message(Kind::Clear);
    message.extension.as_mut().expect("extended").sequence += 1;
    message.hardware = vec![mac(66, 0)];
    let forged = emit_frame(MacAddr::BROADCAST, mac(66, 0), &message).expect("a good message");
    host.hear(0, &forged);
    assert_eq!((host.arp.peers().len(), host.count(Counter::ClearNotOwner)), (1, 1));
}

//= docs/arp-plus.md#7.6 type=test
#[test]
fn former_mac_leads_to_its_host_for_60_s() {
    let mut host = Host::running(1, 1);
    let mut other = Host::running(2, 2);
    host.hear(0, &other.says(Kind::Change));
    other.handle(Input::Members(vec![member(2, 1)]));
    let frame =
        emit_frame(MacAddr::BROADCAST, mac(2, 1), &other.arp.own.message(Kind::Change)).expect("good");
    host.hear(0, &frame);
    for _ in 0..59 {
        host.pass(millis(1000));
        host.hear(0, &frame);
    }
    assert_eq!(host.arp.peer_by_mac(mac(2, 0)).map(Peer::mac), Some(mac(2, 1)));
    host.pass(millis(1300));
    assert!(host.arp.peer_by_mac(mac(2, 0)).is_none());
    assert!(host.arp.peer_by_mac(mac(2, 1)).is_some());
}

//= docs/arp-plus.md#7.6 type=test
#[test]
fn former_mac_that_its_host_has_again_leads_to_it_without_a_break() {
    let mut host = Host::running(1, 1);
    let mut other = Host::running(2, 2);
    [0, 1].into_iter().for_each(|slot| _ = host.hear(0, &from_member(&other, slot)));
    let leads = |host: &Host| host.arp.peer_by_mac(mac(2, 1)).map(|peer| peer.key);
    for members in [vec![member(2, 0)], vec![member(2, 0), member(2, 1)]] {
        other.handle(Input::Members(members));
        host.hear(0, &from_member(&other, 0));
        assert_eq!(leads(&host), Some(PeerKey::Host(HostId([2; 16]))));
    }
    // It is no former one any more.
    for _ in 0..62 {
        host.pass(millis(1000));
        host.hear(0, &from_member(&other, 0));
        assert!(leads(&host).is_some());
    }
    // Nor is it its own again where another host has spoken from it meanwhile.
    other.handle(Input::Members(vec![member(2, 0)]));
    host.hear(0, &from_member(&other, 0));
    let mut successor = Host::stopped(3, 1, 1);
    successor.handle(Input::Members(vec![OwnMember { mac: mac(2, 1), ..member(3, 0) }]));
    let frame =
        emit_frame(MacAddr::BROADCAST, mac(2, 1), &successor.arp.own.message(Kind::Change)).expect("good");
    host.hear(0, &frame);
    other.handle(Input::Members(vec![member(2, 0), member(2, 1)]));
    host.hear(0, &from_member(&other, 0));
    assert_eq!(leads(&host), Some(PeerKey::Host(HostId([3; 16]))));
}

//= docs/arp-plus.md#7.6 type=test
#[test]
fn former_mac_that_another_host_claims_is_that_hosts() {
    let mut host = Host::running(1, 1);
    let mut other = Host::running(2, 2);
    [0, 1].into_iter().for_each(|slot| _ = host.hear(0, &from_member(&other, slot)));
    other.handle(Input::Members(vec![member(2, 0)]));
    host.hear(0, &other.says(Kind::Change));
    let mut successor = Host::stopped(3, 1, 1);
    successor.handle(Input::Members(vec![OwnMember { mac: mac(2, 1), ..member(3, 0) }]));
    let frame =
        emit_frame(MacAddr::BROADCAST, mac(2, 1), &successor.arp.own.message(Kind::Change)).expect("good");
    assert_eq!(conflicts(&host.hear(0, &frame)), []);
    for _ in 0..62 {
        assert_eq!(
            host.arp.peer_by_mac(mac(2, 1)).map(|peer| peer.key),
            Some(PeerKey::Host(HostId([3; 16])))
        );
        host.pass(millis(1000));
        host.hear(0, &frame);
        host.hear(0, &other.says(Kind::Change));
    }
}

//= docs/arp-plus.md#8.3 type=test
#[test]
fn silent_host_that_lost_a_mac_gets_it_back_when_it_is_free_again() {
    let mut host = Host::running(1, 1);
    let other = Host::running(2, 2);
    [0, 1].into_iter().for_each(|slot| _ = host.hear(0, &from_member(&other, slot)));
    host.pass(millis(4000));
    let mut taker = Host::stopped(3, 1, 1);
    taker.handle(Input::Members(vec![OwnMember { mac: mac(2, 1), ..member(3, 0) }]));
    let frame =
        emit_frame(MacAddr::BROADCAST, mac(2, 1), &taker.arp.own.message(Kind::Change)).expect("good");
    host.hear(0, &frame);
    let members = |host: &Host| host.arp.peer(&PeerKey::Host(HostId([2; 16]))).map(|peer| peer.members.len());
    assert_eq!(members(&host), Some(1));
    host.pass(millis(4000));
    assert_eq!(conflicts(&host.hear(0, &other.says(Kind::Change))), []);
    assert_eq!(members(&host), Some(2));
}

//= docs/arp-plus.md#7.4 type=test
#[test]
fn pairs_that_hear_each_other_are_recorded_and_run_out() {
    let mut host = Host::running(1, 2);
    let mut other = Host::running(2, 2);
    for (slot, frame) in sent(&other.pass(millis(300))) {
        let bytes = emit_frame(frame.dst, frame.src, &frame.parsed.message).expect("good");
        host.hear(slot, &bytes);
    }
    let key = PeerKey::Host(HostId([2; 16]));
    let heard = |host: &Host| {
        let peer = host.arp.peer(&key).expect("known");
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(slot, index)| peer.heard(slot, index))
    };
    assert_eq!(heard(&host), [true, false, false, true]);
    other.handle(Input::Addresses(vec![ip(2), ip(22)]));
    host.hear(0, &other.says(Kind::Change));
    assert_eq!(heard(&host), [true, false, false, true], "another mapping, the same cables");
    let mut told = false;
    for _ in 0..4 {
        told |= host.pass(millis(1000)).iter().any(|action| matches!(action, Action::Peers(_)));
        host.hear(0, &other.says(Kind::Change));
    }
    assert_eq!(heard(&host), [true, false, false, false]);
    assert!(told, "a pair that runs out is told");
    host.handle(Input::Members(vec![member(1, 1)]));
    assert_eq!(heard(&host), [false; 4], "the member that heard is gone");
}

//= docs/arp-plus.md#7.4 type=test
#[test]
fn a_pair_is_heard_for_3500_ms() {
    let heard_after = |age| {
        let mut host = Host::running(1, 1);
        host.hear(0, &Host::running(2, 1).says(Kind::Change));
        host.look_after(millis(age));
        host.arp.peer(&PeerKey::Host(HostId([2; 16]))).is_some_and(|peer| peer.heard(0, 0))
    };
    assert_eq!([250, 3499, 3500].map(heard_after), [true, true, false]);
}

//= docs/arp-plus.md#7.3 type=test
#[test]
fn table_has_a_limit_and_tells_once() {
    let mut host = Host::running(1, 1);
    let other = Host::running(2, 1);
    let mut told = 0;
    let mut hear = |host: &mut Host, kind, number: u32| {
        let mut message = other.arp.own.message(kind);
        let [a, b, c, d] = number.to_be_bytes();
        let extension = message.extension.as_mut().expect("extended");
        extension.host.0[..4].copy_from_slice(&[a, b, c, d]);
        extension.sequence += u32::from(kind == Kind::Clear);
        let peer = PeerKey::Host(extension.host);
        message.address = None;
        message.hardware = vec![MacAddr([6, 0, a, b, c, d])];
        let frame = emit_frame(MacAddr::BROADCAST, message.hardware[0], &message).expect("good");
        let full = |action: &&Action| matches!(action, Action::Event(Event::TableFull { .. }));
        // As fast as a crowd is let in.
        host.now = host.now + millis(63);
        told += host.hear(0, &frame).iter().filter(full).count();
        let proof = Input::Proven { peer, mac: message.hardware[0], asked: host.now };
        host.handle(if kind == Kind::Clear { Input::NobodyObjects(peer) } else { proof });
        told
    };
    let told = (0..4098).map(|number| hear(&mut host, Kind::Change, number)).max();
    assert_eq!((host.arp.peers().len(), host.count(Counter::LimitHosts), told), (4096, 2, Some(1)));
    hear(&mut host, Kind::Clear, 7);
    hear(&mut host, Kind::Change, 5000);
    assert_eq!(hear(&mut host, Kind::Change, 5001), 2, "full again is told again");
}

//= docs/arp-plus.md#9.1 type=test
//= docs/arp-plus.md#9.2 type=test
//= docs/arp-plus.md#9.3 type=test
#[test]
fn members_that_hear_each_other_are_one_segment_with_one_elected() {
    let mut host = Host::running(1, 4);
    let alone: Vec<Vec<u8>> = host.arp.segments().iter().map(|segment| segment.slots.clone()).collect();
    assert_eq!(alone, [[0], [1], [2], [3]], "until anything is heard");
    let own = |host: &Host, from| {
        emit_frame(MacAddr::BROADCAST, mac(1, from), &host.arp.own.message(Kind::Change)).expect("good")
    };
    let frame = own(&host, 3);
    assert!(host.hear(1, &frame).contains(&Action::Segments));
    let frame = own(&host, 2);
    host.hear(0, &frame);
    let segment = |number, slots: [u8; 2]| Segment { number, slots: slots.to_vec(), elected: Some(slots[0]) };
    assert_eq!(host.arp.segments(), [segment(0, [0, 2]), segment(1, [1, 3])]);
    host.hear(3, &Host::running(2, 1).says(Kind::Change));
    let key = PeerKey::Host(HostId([2; 16]));
    assert_eq!(host.arp.broadcast_slot(&key), Some(1), "heard on 3, taken in on the elected one");
    host.hear(2, &Host::running(2, 1).says(Kind::Change));
    assert_eq!(host.arp.broadcast_slot(&key), Some(0), "the first segment that hears it");
    let mut members: Vec<OwnMember> = (0..4).map(|slot| member(1, slot)).collect();
    members[1].up = false;
    host.handle(Input::Members(members));
    let elected: Vec<_> = host.arp.segments().iter().map(|segment| segment.elected).collect();
    assert_eq!(elected, [Some(0), None, Some(3)]);
    assert!(
        host.pass(millis(4000)).contains(&Action::Segments),
        "what is not heard any more is not connected"
    );
}

//= docs/arp-plus.md#9.2 type=test
//= docs/arp-plus.md#9.3 type=test
#[test]
fn doubtful_members_take_in_no_broadcasts_while_there_are_better_ones() {
    let mut host = Host::running(1, 4);
    let own = emit_frame(MacAddr::BROADCAST, mac(1, 2), &host.arp.own.message(Kind::Change)).expect("good");
    host.hear(0, &own);
    let peer = Host::running(2, 1).says(Kind::Change);
    [0, 2, 3].into_iter().for_each(|slot| _ = host.hear(slot, &peer));
    let key = PeerKey::Host(HostId([2; 16]));
    let sequence = host.arp.own.sequence;
    let mut doubt = |doubted: &[u8]| {
        let sound = |slot: u8| OwnMember { sound: !doubted.contains(&slot), ..member(1, slot) };
        let actions = host.handle(Input::Members((0..4).map(sound).collect()));
        assert_eq!(sent(&actions), [], "peers are not told: {doubted:?}");
        assert_eq!(host.arp.own.sequence, sequence, "{doubted:?}");
        let elected: Vec<_> = host.arp.segments().iter().filter_map(|segment| segment.elected).collect();
        (elected, host.arp.broadcast_slot(&key), actions.contains(&Action::Peers(Changed::All)))
    };
    // Segments: 0 and 2, 1, 3. The peer is not heard on 1.
    assert_eq!(doubt(&[]), (vec![0, 1, 3], Some(0), false));
    assert_eq!(doubt(&[0]), (vec![2, 1, 3], Some(2), true), "the lowest sound one");
    assert_eq!(doubt(&[0, 2]), (vec![0, 1, 3], Some(3), true), "another segment hears it soundly");
    assert_eq!(doubt(&[0, 1, 2, 3]), (vec![0, 1, 3], Some(0), true), "none is sound: as if all were");
    assert_eq!(doubt(&[2]), (vec![0, 1, 3], Some(0), true));
    let down = |slot| OwnMember { up: slot != 0, sound: slot != 2, ..member(1, slot) };
    host.handle(Input::Members((0..4).map(down).collect()));
    assert_eq!(host.arp.broadcast_slot(&key), Some(3), "2 is live but not sound, and 3 is both");
}

#[test]
fn a_peer_is_said_to_be_another_when_a_pair_runs_out_and_not_before() {
    let (mut host, frame) = (Host::running(1, 2), Host::running(2, 1).says(Kind::Change));
    let mut rounds = |slots: &[u8], rounds: u32| {
        let mut told = 0;
        for _ in 0..rounds {
            slots.iter().for_each(|slot| _ = host.hear(*slot, &frame));
            let actions = host.pass(millis(1000));
            told += actions.iter().filter(|action| matches!(action, Action::Peers(_))).count();
        }
        told
    };
    rounds(&[0, 1], 1);
    assert_eq!(rounds(&[0, 1], 6), 0);
    assert_eq!(rounds(&[0], 6), 1);
}
