use super::*;

//= docs/arp-plus.md#8.1 type=test
#[test]
fn claims_on_what_is_ours_are_reported_and_change_nothing() {
    let mut host = Host::running(1, 2);
    let by = mac(66, 0);
    let forge = |edit: &dyn Fn(&mut Message)| {
        let mut message = Host::stopped(66, 1, 1).arp.own.message(Kind::Change);
        edit(&mut message);
        emit_frame(MacAddr::BROADCAST, by, &message).expect("a good message")
    };
    let address = forge(&|message| message.address = Some(ip(1)));
    let more = forge(&|message| message.extension.as_mut().expect("extended").addresses = vec![ip(1)]);
    let hardware = forge(&|message| {
        message.hardware.push(mac(1, 1));
        let members = &mut message.extension.as_mut().expect("extended").members;
        members.push(linkbraid_wire::Member { index: 1, ..members[0] });
    });
    let id = forge(&|message| message.extension.as_mut().expect("extended").host = HostId([1; 16]));
    assert_eq!(conflicts(&host.hear(0, &address)), [Conflict::OwnAddress { address: ip(1), by }]);
    assert_eq!(conflicts(&host.hear(0, &more)), [], "the same conflict is told once");
    assert_eq!(conflicts(&host.hear(0, &hardware)), [Conflict::OwnMac { mac: mac(1, 1), by }]);
    assert_eq!(conflicts(&host.hear(0, &id)), [Conflict::OwnHostId { address: Some(ip(66)), by }]);
    assert_eq!(host.count(Counter::ConflictOwnAddress), 2);
    assert_eq!(host.arp.peers().len(), 0);
    assert_eq!(host.arp.conflicts().len(), 3);
}

//= docs/arp-plus.md#8.1 type=test
#[test]
fn own_mac_as_the_source_of_another_host_is_a_conflict() {
    let mut host = Host::running(1, 1);
    let twin = Host::stopped(66, 1, 1);
    let mut message = twin.arp.own.message(Kind::Change);
    message.hardware = vec![mac(1, 0)];
    let frame = emit_frame(MacAddr::BROADCAST, mac(1, 0), &message).expect("a good message");
    let conflict = Conflict::OwnMac { mac: mac(1, 0), by: mac(1, 0) };
    assert_eq!(conflicts(&host.hear(0, &frame)), [conflict]);
}

//= docs/arp-plus.md#8.2 type=test
#[test]
fn own_frames_that_come_back_are_no_conflict() {
    let mut host = Host::running(1, 2);
    let before = host.says(Kind::Change);
    assert_eq!(conflicts(&host.hear(1, &before)), []);
    host.handle(Input::Members(vec![member(1, 1)]));
    assert_eq!(conflicts(&host.hear(1, &before)), [], "a former member's frame still in flight");
    let mut again = Host::stopped(1, 2, 2);
    again.handle(Input::Start);
    assert_eq!(conflicts(&again.hear(1, &before)), [], "from before this host started again");
    assert_eq!((host.count(Counter::RxOwn), host.arp.peers().len()), (2, 0));
    assert_eq!((again.count(Counter::RxOwn), again.arp.peers().len()), (1, 0));
    let by = mac(1, 0);
    assert_eq!(
        conflicts(&host.hear(1, &again.says(Kind::Change))),
        [Conflict::OwnHostId { address: Some(ip(1)), by }],
        "a later epoch"
    );
}

//= docs/arp-plus.md#8.3 type=test
#[test]
fn mac_of_a_live_host_cannot_be_taken_that_of_a_silent_one_can() {
    let mut host = Host::running(1, 1);
    host.hear(0, &Host::running(2, 1).says(Kind::Change));
    let thief = Host::stopped(66, 1, 1);
    let mut message = thief.arp.own.message(Kind::Change);
    message.hardware = vec![mac(2, 0)];
    let frame = emit_frame(MacAddr::BROADCAST, mac(2, 0), &message).expect("a good message");
    let owner = PeerKey::Host(HostId([2; 16]));
    let conflict = Conflict::PeerMac { mac: mac(2, 0), owner, by: mac(2, 0) };
    assert_eq!(conflicts(&host.hear(0, &frame)), [conflict]);
    assert_eq!(host.arp.peer_by_mac(mac(2, 0)).map(|peer| peer.key), Some(owner));
    host.pass(millis(4000));
    assert_eq!(reasons(&host.hear(0, &frame)), [Reason::LostMacs, Reason::Joined]);
    assert_eq!(host.arp.peer_by_mac(mac(2, 0)).map(|peer| peer.key), Some(PeerKey::Host(HostId([66; 16]))));
}

//= docs/arp-plus.md#8.3 type=test
#[test]
fn a_silent_host_that_loses_a_mac_keeps_the_others() {
    let mut host = Host::running(1, 1);
    let other = Host::running(2, 2);
    for slot in 0..2 {
        let frame = emit_frame(MacAddr::BROADCAST, mac(2, slot), &other.arp.own.message(Kind::Change));
        host.hear(0, &frame.expect("a good message"));
    }
    host.pass(millis(4000));
    let mut message = Host::stopped(66, 1, 1).arp.own.message(Kind::Change);
    message.hardware = vec![mac(2, 0)];
    host.hear(0, &emit_frame(MacAddr::BROADCAST, mac(2, 0), &message).expect("a good message"));
    let peer = host.arp.peer(&PeerKey::Host(HostId([2; 16]))).expect("it has another member");
    assert_eq!(peer.members.iter().map(|member| member.mac).collect::<Vec<_>>(), [mac(2, 1)]);
}

//= docs/arp-plus.md#8.4 type=test
//= docs/arp-plus.md#8.7 type=test
#[test]
fn two_hosts_with_one_id_are_told_by_their_addresses() {
    // As a copy of a machine that runs, and as one whose daemon has started since.
    for epoch in [1, 9] {
        let mut host = Host::running(1, 1);
        let mut first = Host::running(2, 2);
        host.hear(0, &first.says(Kind::Change));
        let mut clone = Host::stopped(3, epoch, 2);
        clone.handle(Input::Start);
        clone.arp.own.host = HostId([2; 16]);
        let told = conflicts(&host.hear(0, &clone.says(Kind::Change)));
        let (owner, address, by) = (Some(ip(2)), Some(ip(3)), mac(3, 0));
        assert_eq!(told, [Conflict::PeerHostId { host: HostId([2; 16]), owner, address, by }], "{epoch}");
        assert_eq!(told[0].to_string(), format!("{} and {} have the same host id", ip(2), ip(3)));
        assert_eq!(host.arp.peers().map(Peer::mac).collect::<Vec<_>>(), [mac(2, 0)]);
        let told = conflicts(&first.hear(0, &clone.says(Kind::Change)));
        assert_eq!(told, [Conflict::OwnHostId { address, by }]);
        assert_eq!(told[0].to_string(), format!("{} has the same host id as this host", ip(3)));
        assert_eq!(first.arp.peers().len(), 0);
    }
}

//= docs/arp-plus.md#8.7 type=test
#[test]
fn a_host_that_gets_another_member_is_not_two() {
    let mut host = Host::running(1, 1);
    let mut other = Host::running(2, 1);
    host.hear(0, &other.says(Kind::Change));
    other.handle(Input::Members(vec![member(2, 0), member(2, 1)]));
    let frame = other.arp.own.message(Kind::Change);
    let frame = emit_frame(MacAddr::BROADCAST, mac(2, 1), &frame).expect("a good message");
    assert_eq!(conflicts(&host.hear(0, &frame)), []);
    assert_eq!(host.count(Counter::Stranger), 1, "its first member says so, too");
}

//= docs/arp-plus.md#8.5 type=test
#[test]
fn conflict_that_goes_on_is_told_again_and_one_that_ended_is_forgotten() {
    let mut host = Host::running(1, 1);
    let mut message = Host::stopped(66, 1, 1).arp.own.message(Kind::Change);
    message.address = Some(ip(1));
    let frame = emit_frame(MacAddr::BROADCAST, mac(66, 0), &message).expect("a good message");
    let mut told = 0;
    for _ in 0..130 {
        told += conflicts(&host.hear(0, &frame)).len();
        host.pass(millis(1000));
    }
    assert_eq!((told, host.count(Counter::ConflictOwnAddress)), (3, 130));
    host.pass(Duration::from_secs(61));
    assert_eq!(host.arp.conflicts(), []);
}

//= docs/arp-plus.md#8.6 type=test
#[test]
fn address_of_a_live_host_claimed_by_another_is_told() {
    let mut host = Host::with_published_only(1, 1);
    host.hear(0, &Host::running(2, 1).says(Kind::Change));
    let owner = PeerKey::Host(HostId([2; 16]));
    let published = published(Kind::Change, 2, &[mac(9, 0)]);
    let conflict = |by| Conflict::PeerAddress { address: ip(2), owner, by };
    assert_eq!(conflicts(&host.hear(0, &published)), [conflict(mac(9, 0))]);
    assert_eq!(host.arp.peers().len(), 1, "an address is all the identity a published-only host has");
    let mut other = Host::running(3, 1);
    other.handle(Input::Addresses(vec![ip(3), ip(2)]));
    assert_eq!(conflicts(&host.hear(0, &other.says(Kind::Change))), [conflict(mac(3, 0))]);
    assert_eq!(host.arp.peers().len(), 2, "a host with an id is known by that");
    assert_eq!(host.arp.peer_by_address(ip(2)).map(|peer| peer.key), Some(owner));
    host.pass(millis(4000));
    host.hear(0, &other.says(Kind::Change));
    let successor = PeerKey::Host(HostId([3; 16]));
    assert_eq!(
        host.arp.peer_by_address(ip(2)).map(|peer| peer.key),
        Some(successor),
        "the first one is silent"
    );
}

//= docs/arp-plus.md#8.6 type=test
#[test]
fn the_address_of_an_entry_that_is_replaced_or_of_a_silent_host_is_no_conflict() {
    let mut host = Host::with_published_only(1, 1);
    host.hear(0, &published(Kind::Change, 2, &[mac(2, 0)]));
    assert_eq!(conflicts(&host.hear(0, &Host::running(2, 1).says(Kind::Change))), []);
    host.pass(millis(4000));
    let mut heir = Host::running(3, 1);
    heir.handle(Input::Addresses(vec![ip(2)]));
    assert_eq!(conflicts(&host.hear(0, &heir.says(Kind::Change))), []);
}

//= docs/arp-plus.md#7.2 type=test
#[test]
fn source_must_be_among_the_hardware_addresses() {
    let mut host = Host::running(1, 1);
    let message = Host::stopped(2, 1, 2).arp.own.message(Kind::Change);
    let frame = emit_frame(MacAddr::BROADCAST, mac(66, 0), &message).expect("a good message");
    host.hear(0, &frame);
    assert_eq!((host.arp.peers().len(), host.count(Counter::SourceNotListed)), (0, 1));
}

//= docs/arp-plus.md#7.1 type=test
#[test]
fn hosts_go_by_id_and_published_only_hosts_by_address() {
    let mut host = Host::with_published_only(1, 1);
    host.hear(0, &published(Kind::Change, 9, &[mac(9, 0)]));
    host.hear(0, &Host::running(2, 1).says(Kind::Change));
    let keys: Vec<PeerKey> = host.arp.peers().map(|peer| peer.key).collect();
    assert_eq!(keys, [PeerKey::Host(HostId([2; 16])), PeerKey::Address(ip(9))]);
    let nobody = Message { kind: Kind::Change, address: None, hardware: vec![mac(8, 0)], extension: None };
    host.hear(0, &emit_frame(MacAddr::BROADCAST, mac(8, 0), &nobody).expect("good"));
    assert_eq!((host.arp.peers().len(), host.count(Counter::NoIdentity)), (2, 1));
}

//= docs/arp-plus.md#7.5 type=test
#[test]
fn published_only_host_that_learns_the_rest_or_moves_replaces_its_entry() {
    let mut host = Host::with_published_only(1, 1);
    host.hear(0, &published(Kind::Change, 2, &[mac(2, 0)]));
    let moved = host.hear(0, &published(Kind::Change, 7, &[mac(2, 0)]));
    assert_eq!(reasons(&moved), [Reason::Replaced, Reason::Joined]);
    let upgraded = host.hear(0, &Host::running(2, 1).says(Kind::Change));
    assert_eq!(reasons(&upgraded), [Reason::Replaced, Reason::Joined]);
    assert_eq!(host.arp.peers().map(|peer| peer.key).collect::<Vec<_>>(), [PeerKey::Host(HostId([2; 16]))]);
}

#[test]
fn malformed_frames_and_strange_members_are_counted_by_reason() {
    let mut host = Host::running(1, 1);
    host.hear(0, &[0xff; 20]);
    host.hear(0, &[2; 9]);
    host.hear(5, &Host::running(2, 1).says(Kind::Change));
    assert_eq!(host.count(Counter::RefusedNotArpPlus), 1);
    assert_eq!(host.count(Counter::RefusedTruncated), 1);
    assert_eq!(host.count(Counter::RxUnknownMember), 1);
    assert_eq!(host.arp.peers().len(), 0);
}

#[test]
fn published_only_hosts_are_peers_only_as_long_as_the_user_wants_them() {
    let mut host = Host::running(1, 1);
    let (frame, extended) = (published(Kind::Change, 9, &[mac(9, 0)]), Host::running(2, 1));
    host.hear(0, &extended.says(Kind::Change));
    host.hear(0, &frame);
    assert_eq!(host.arp.peers().len(), 1);
    host.handle(Input::PublishedOnly(true));
    host.hear(0, &frame);
    assert_eq!(host.arp.peers().len(), 2);
    assert_eq!(reasons(&host.handle(Input::PublishedOnly(true))), [], "as before");
    assert_eq!(reasons(&host.handle(Input::PublishedOnly(false))), [Reason::PublishedOnly]);
    let left: Vec<PeerKey> = host.arp.peers().map(|peer| peer.key).collect();
    assert_eq!(left, [PeerKey::Host(HostId([2; 16]))]);
}

#[test]
fn a_host_is_named_by_its_address_where_that_tells_it_from_the_other_one() {
    let conflict = |owner, address| {
        let host = HostId([2; 16]);
        Conflict::PeerHostId { host, owner: Some(owner), address: Some(address), by: mac(9, 0) }.to_string()
    };
    assert_eq!(conflict(ip(2), ip(3)), "198.18.0.2 and 198.18.0.3 have the same host id");
    assert!(conflict(ip(2), ip(2)).starts_with(&format!("{} uses the id of host", mac(9, 0))));
}

#[test]
fn what_a_published_only_host_says_again_is_no_change() {
    let mut host = Host::with_published_only(1, 1);
    (0..3).for_each(|_| _ = host.hear(0, &published(Kind::Change, 9, &[mac(9, 0)])));
    assert_eq!((host.count(Counter::PeerJoined), host.count(Counter::PeerChanged)), (1, 0));
}
