//! Guests: who announces them, who is believed, and what becomes of them when they move.

use super::*;

mod bounds;

use linkbraid_wire::{FEATURE_GUESTS, FEATURE_MIRROR, Guest};
use std::collections::BTreeSet;

/// A guest's MAC.
fn guest_mac(number: u8) -> MacAddr {
    MacAddr([0x52, 0x54, 0, 0, 0, number])
}

fn key(number: u8) -> PeerKey {
    PeerKey::Host(HostId([number; 16]))
}

/// A host that knows of guests.
fn host(number: u8, members: u8) -> Host {
    let mut host = Host::running(number, members);
    host.handle(Input::Features(FEATURE_GUESTS));
    host.proves = true;
    host
}

//= docs/arp-plus.md#14.11 type=test
#[test]
fn who_never_answered_a_probe_has_no_guests() {
    let (mut one, mut two) = (host(1, 1), host(2, 1));
    one.proves = false;
    two.see(&[7]);
    one.hear(0, &two.says(Kind::Change));
    assert_eq!((one.arp.peers().len(), one.locates(7)), (1, None));
    one.handle(Input::Proven { peer: key(2), mac: mac(2, 0), asked: one.now });
    assert_eq!(one.locates(7), Some(key(2)));
}

/// What is seen of guests: by number, address, when each named it, and when it sent last.
fn seen(guests: &[(u8, IpAddr, Time, Time)]) -> SeenGuests {
    let address = |(number, address, named, _): &(u8, IpAddr, Time, Time)| SeenAddress {
        vlan: 0,
        address: *address,
        mac: guest_mac(*number),
        named: *named,
    };
    SeenGuests {
        last_sent: guests.iter().map(|(number, .., last)| (guest_mac(*number), *last)).collect(),
        addresses: guests.iter().map(address).collect(),
    }
}

impl Host {
    /// Guests that have just spoken here, each with 198.18.1.`number`.
    fn see(&mut self, numbers: &[u8]) -> Vec<Action> {
        let now = self.now;
        let guests: Vec<_> = numbers.iter().map(|number| (*number, guest_ip(*number), now, now)).collect();
        self.handle(Input::Guests(&seen(&guests)))
    }

    fn announces(&self) -> Vec<MacAddr> {
        self.arp.announced_guests().iter().map(|guest| guest.mac).collect()
    }

    /// The host that a guest is behind, as this one knows.
    fn locates(&self, number: u8) -> Option<PeerKey> {
        let located = self.arp.located_guests();
        let by_mac = located.macs.get(&guest_mac(number)).copied();
        let by_address = located.addresses.get(&(0, guest_ip(number)));
        assert_eq!(by_mac.map(|key| (guest_mac(number), key)), by_address.copied());
        by_mac
    }
}

fn guest_ip(number: u8) -> IpAddr {
    IpAddr::from([198, 18, 1, number])
}

/// All go on for that long, and hear what the others announce in the end.
fn pass_all(hosts: &mut [Host], duration: Duration) -> Vec<Vec<Action>> {
    let mut actions: Vec<Vec<Action>> = hosts.iter_mut().map(|host| host.pass(duration)).collect();
    for from in 0..hosts.len() {
        let frame = hosts[from].says(Kind::Change);
        for to in (0..hosts.len()).filter(|to| *to != from) {
            let more = hosts[to].hear(0, &frame);
            actions[to].extend(more);
        }
    }
    actions
}

//= docs/arp-plus.md#14.1 type=test
#[test]
fn guests_are_announced_with_the_addresses_that_they_named() {
    let (mut one, mut two) = (host(1, 2), host(2, 1));
    one.hear(0, &two.says(Kind::Change));
    let actions = one.see(&[1, 2]);
    assert_eq!(sent(&actions).len(), 2, "at once, on each member");
    assert_eq!(one.announces(), [guest_mac(1), guest_mac(2)]);
    assert_eq!(sent(&one.see(&[1, 2])), [], "the same once more is no change");
    two.hear(0, &one.says(Kind::Change));
    assert_eq!((two.locates(1), two.locates(2), two.locates(3)), (Some(key(1)), Some(key(1)), None));
    // Addresses and MACs of hosts are no guests'.
    let now = one.now;
    let named = |mac, address| SeenAddress { vlan: 0, address, mac, named: now };
    let hostile = [
        named(guest_mac(3), ip(1)),
        named(guest_mac(3), ip(2)),
        named(mac(1, 1), guest_ip(4)),
        named(mac(2, 0), guest_ip(5)),
        named(alias_of(mac(2, 0)), guest_ip(6)),
    ];
    let last_sent = hostile.iter().map(|seen| (seen.mac, now)).collect();
    one.handle(Input::Guests(&SeenGuests { last_sent, addresses: hostile.to_vec() }));
    assert_eq!(one.announces(), []);
    // The later one to name an address has it; what is only said of a VLAN is nobody's host.
    let mut three = seen(&[(1, guest_ip(1), now, now), (2, guest_ip(1), now.minus(millis(5)), now)]);
    three.addresses.push(SeenAddress { vlan: 7, ..named(guest_mac(2), ip(1)) });
    one.handle(Input::Guests(&three));
    let guest = |vlan, number, address| Guest { vlan, mac: guest_mac(number), addresses: vec![address] };
    assert_eq!(one.arp.announced_guests(), [guest(0, 1, guest_ip(1)), guest(7, 2, ip(1))]);
}

//= docs/arp-plus.md#14.2 type=test
#[test]
fn as_many_are_announced_as_fit_and_who_was_first_stays() {
    let mut one = host(1, 1);
    one.see(&[200]);
    let now = one.now;
    one.pass(millis(10));
    let v6 = |number: u8, last: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, number.into(), last]);
    let address = |number: u8, last| SeenAddress {
        vlan: 0,
        address: v6(number, last),
        mac: guest_mac(number),
        named: now,
    };
    let mut all = seen(&[(200, guest_ip(200), now, now)]);
    all.addresses.extend((0..100).flat_map(|number| (1..=12).map(move |last| address(number, last))));
    all.last_sent.extend((0..100).map(|number| (guest_mac(number), now)));
    one.handle(Input::Guests(&all));
    let announced = one.announces();
    assert!((5..GUESTS_AT_MOST).contains(&announced.len()), "{} guests", announced.len());
    assert_eq!(announced[0], guest_mac(200), "the first one stays");
    assert_eq!(one.count(Counter::LimitGuests), 101 - announced.len() as u64);
    assert_eq!(one.count(Counter::LimitGuestAddresses), 400, "eight of each");
    // What the host itself needs has precedence.
    one.handle(Input::Addresses((100..130).map(ip).collect()));
    assert!(one.announces().len() < announced.len());
    assert_eq!(one.count(Counter::TxRefused), 0);
    let mut two = host(2, 1);
    two.hear(0, &one.says(Kind::Change));
    assert_eq!(two.locates(200), Some(key(1)));
}

const GUESTS_AT_MOST: usize = 12;

//= docs/arp-plus.md#14.3 type=test
#[test]
fn guests_of_a_host_that_does_not_know_of_them_are_nowhere() {
    let (mut one, mut two) = (Host::running(1, 1), host(2, 1));
    one.see(&[1]);
    two.hear(0, &one.says(Kind::Change));
    assert_eq!(two.locates(1), None, "it would not give frames their MACs back");
    assert!(two.arp.peer(&key(1)).is_some_and(|peer| !peer.takes_guests() && peer.guests.len() == 1));
    one.handle(Input::Features(FEATURE_MIRROR | FEATURE_GUESTS));
    two.hear(0, &one.says(Kind::Change));
    assert_eq!(two.locates(1), Some(key(1)));
}

//= docs/arp-plus.md#14.4 type=test
#[test]
fn a_claim_of_a_members_or_gateways_mac_is_refused_and_the_rest_counts() {
    let (mut one, mut two, three) = (host(1, 1), host(2, 1), host(3, 1));
    two.hear(0, &three.says(Kind::Change));
    two.handle(Input::Gateways([guest_mac(9)].into()));
    let now = one.now;
    // Host 1 has not heard host 3, and knows no gateway.
    let named = |mac, address| SeenAddress { vlan: 0, address, mac, named: now };
    let claims = [
        named(guest_mac(9), guest_ip(9)),
        named(mac(3, 0), guest_ip(3)),
        named(alias_of(mac(3, 0)), guest_ip(4)),
        named(mac(2, 0), guest_ip(2)),
        named(guest_mac(5), ip(3)),
        named(guest_mac(5), ip(2)),
        named(guest_mac(1), guest_ip(1)),
    ];
    let last_sent = claims.iter().map(|seen| (seen.mac, now)).collect();
    one.handle(Input::Guests(&SeenGuests { last_sent, addresses: claims.to_vec() }));
    assert_eq!(one.announces().len(), 6);
    let mut actions = two.hear(0, &one.says(Kind::Change));
    let refused = [guest_mac(9), mac(3, 0), alias_of(mac(3, 0)), mac(2, 0)];
    let mut conflict: Vec<Conflict> =
        refused.iter().map(|refused| Conflict::GuestMac { mac: *refused, by: mac(1, 0) }).collect();
    conflict.sort();
    assert_eq!(conflicts(&actions), conflict);
    let macs: Vec<MacAddr> = two.arp.located_guests().macs.keys().copied().collect();
    assert_eq!(macs, [guest_mac(1)]);
    assert_eq!(two.arp.located_guests().addresses.len(), 1);
    assert!(two.arp.peer(&key(1)).is_some(), "its lanes are not lost for it");
    // Reported once, and accepted when the reason has gone.
    two.handle(Input::Gateways([].into()));
    actions = two.pass(millis(600));
    assert_eq!((conflicts(&actions), two.locates(9)), (vec![], Some(key(1))));
    assert!(two.count(Counter::ConflictGuestMac) > 4);
}

//= docs/arp-plus.md#14.4 type=test
#[test]
fn whose_mac_becomes_an_own_members_is_no_peers_guest_any_more() {
    let (mut one, mut two) = (host(1, 1), host(2, 1));
    one.see(&[1]);
    two.hear(0, &one.says(Kind::Change));
    assert_eq!(two.locates(1), Some(key(1)));
    let joins = OwnMember { mac: guest_mac(1), ..member(2, 1) };
    let actions = two.handle(Input::Members(vec![member(2, 0), joins]));
    assert_eq!(two.locates(1), None);
    assert_eq!(conflicts(&actions), [Conflict::GuestMac { mac: guest_mac(1), by: mac(1, 0) }]);
}

//= docs/arp-plus.md#14.4 type=test
#[test]
fn whose_address_a_host_gets_is_no_guest_there_any_more_until_it_is_free_again() {
    let (mut one, mut two, mut three) = (host(1, 1), host(2, 1), host(3, 1));
    one.see(&[1]);
    let guest = one.says(Kind::Change);
    two.hear(0, &guest);
    three.hear(0, &guest);
    assert_eq!([two.locates(1), three.locates(1)], [Some(key(1)); 2]);
    // An own address, and one of a peer.
    two.handle(Input::Addresses(vec![ip(2), guest_ip(1)]));
    assert_eq!(two.locates(1), None);
    let claim = two.says(Kind::Change);
    three.hear(0, &claim);
    assert_eq!(three.locates(1), None);
    one.hear(0, &claim);
    assert_eq!(one.announces(), [], "nor here");
    two.handle(Input::Addresses(vec![ip(2)]));
    assert_eq!(two.locates(1), Some(key(1)));
    three.hear(0, &two.says(Kind::Change));
    three.pass(millis(600));
    assert_eq!(three.locates(1), Some(key(1)));
}

//= docs/arp-plus.md#14.5 type=test
#[test]
fn a_guest_that_moves_is_where_it_spoke_last() {
    let mut hosts = [host(1, 1), host(2, 1), host(3, 1)];
    pass_all(&mut hosts, millis(10));
    hosts[0].see(&[1]);
    pass_all(&mut hosts, millis(10));
    assert_eq!([hosts[1].locates(1), hosts[2].locates(1)], [Some(key(1)); 2]);
    hosts[1].see(&[1]);
    assert_eq!(hosts[1].locates(1), None, "it is here");
    pass_all(&mut hosts, millis(10));
    assert_eq!(hosts[2].locates(1), Some(key(2)), "at once");
    assert_eq!(hosts[0].announces(), [guest_mac(1)], "it may have spoken here since");
    assert!(hosts[0].arp.are_guests_contested());
    pass_all(&mut hosts, millis(760));
    assert_eq!((hosts[0].announces(), hosts[0].locates(1)), (vec![], Some(key(2))));
    assert!(hosts[0].arp.is_guest_elsewhere(guest_mac(1)) && !hosts[0].arp.is_guest_elsewhere(guest_mac(2)));
    // What is still noted of it here says nothing, until it speaks here again.
    let before = hosts[0].now.minus(millis(900));
    let noted = [1, 8].map(|number| (1, guest_ip(number), before, before));
    hosts[0].handle(Input::Guests(&seen(&noted)));
    assert_eq!(hosts[0].announces(), []);
    hosts[0].see(&[1]);
    assert_eq!(hosts[0].announces(), [guest_mac(1)]);
    pass_all(&mut hosts, millis(10));
    assert_eq!(hosts[2].locates(1), Some(key(1)));
    for _ in 0..50 {
        let told = pass_all(&mut hosts, millis(100));
        assert!(told.iter().all(|actions| conflicts(actions).is_empty()), "a move is no conflict");
    }
    assert_eq!(hosts[1].announces(), []);
}

//= docs/arp-plus.md#14.5 type=test
#[test]
fn two_guests_with_one_mac_are_reported_and_nobody_else_believes_either() {
    let mut hosts = [host(1, 1), host(2, 1), host(3, 1)];
    hosts[0].see(&[1]);
    pass_all(&mut hosts, millis(10));
    let mut all = vec![Vec::new(); 3];
    for round in 0..60 {
        assert!(round > 45 || all.iter().all(Vec::is_empty), "it may have moved: {all:?}");
        for ((host, number), all) in hosts.iter_mut().zip([1, 1, 2]).zip(&mut all) {
            all.extend(conflicts(&host.see(&[number])));
        }
        for (all, told) in all.iter_mut().zip(pass_all(&mut hosts, millis(100))) {
            all.extend(conflicts(&told));
        }
    }
    let mac_of = |number| mac(number, 0);
    assert_eq!(all[0], [Conflict::OwnGuest { mac: guest_mac(1), by: mac_of(2) }]);
    assert_eq!(all[1], [Conflict::OwnGuest { mac: guest_mac(1), by: mac_of(1) }]);
    let both = Conflict::PeerGuest { mac: guest_mac(1), owner: key(1), by: mac_of(2) };
    assert_eq!((&all[2], hosts[2].locates(1)), (&vec![both], None));
    assert_eq!([hosts[0].announces(), hosts[1].announces()], [[guest_mac(1)], [guest_mac(1)]]);
    assert_eq!(hosts[0].locates(2), Some(key(3)), "others are not affected");
}

#[test]
fn an_address_that_another_guest_takes_over_goes_with_it() {
    let mut hosts = [host(1, 1), host(2, 1), host(3, 1)];
    let now = hosts[0].now;
    hosts[0].handle(Input::Guests(&seen(&[(1, guest_ip(1), now, now), (1, guest_ip(9), now, now)])));
    pass_all(&mut hosts, millis(10));
    let at = |host: &Host| host.arp.located_guests().addresses.get(&(0, guest_ip(9))).copied();
    assert_eq!(at(&hosts[2]), Some((guest_mac(1), key(1))));
    let now = hosts[1].now;
    hosts[1].handle(Input::Guests(&seen(&[(2, guest_ip(9), now, now)])));
    assert_eq!(at(&hosts[1]), None, "it is here");
    pass_all(&mut hosts, millis(10));
    assert_eq!(at(&hosts[2]), Some((guest_mac(2), key(2))));
    assert_eq!(hosts[0].arp.announced_guests()[0].addresses.len(), 2, "it may have named it here since");
    pass_all(&mut hosts, millis(760));
    assert_eq!(hosts[0].arp.announced_guests()[0].addresses, [guest_ip(1)]);
    assert_eq!(at(&hosts[0]), Some((guest_mac(2), key(2))));
}

//= docs/arp-plus.md#14.6 type=test
#[test]
fn a_guest_that_says_nothing_for_long_is_withdrawn() {
    let mut one = host(1, 1);
    one.see(&[1]);
    let then = one.now;
    let look = |host: &mut Host| {
        host.handle(Input::Guests(&seen(&[(1, guest_ip(1), then, then)])));
        host.announces().len()
    };
    one.pass(Duration::from_secs(299));
    assert_eq!(look(&mut one), 1);
    one.pass(Duration::from_secs(1));
    assert_eq!(look(&mut one), 0);
}

#[test]
fn guests_of_a_silent_host_stay_and_those_of_one_that_left_go() {
    let (mut one, mut two) = (host(1, 1), host(2, 1));
    one.see(&[1]);
    two.hear(0, &one.says(Kind::Change));
    two.pass(millis(5000));
    assert_eq!(two.locates(1), Some(key(1)), "its daemon may have died");
    two.pass(millis(6000));
    assert_eq!(two.locates(1), None);
    two.hear(0, &one.says(Kind::Change));
    assert_eq!(two.locates(1), Some(key(1)));
    let left = one.handle(Input::Stop);
    sent(&left).iter().for_each(|(_, frame)| assert_eq!(frame.parsed.message.kind, Kind::Clear));
    let clear = left.iter().find_map(|action| match action {
        Action::Send { frame, .. } => Some(frame),
        _ => None,
    });
    two.proves = false;
    two.hear(0, clear.expect("it says so"));
    let actions = two.handle(Input::NobodyObjects(key(1)));
    assert!(actions.contains(&Action::Peers(Changed::Peers(vec![key(1)]))));
    assert_eq!(two.locates(1), None);
}

#[test]
fn what_an_earlier_machine_announced_is_announced_from_the_start() {
    let mut one = Host::stopped(1, 2, 1);
    one.handle(Input::Features(FEATURE_GUESTS));
    one.handle(Input::FormerGuests(vec![((0, guest_ip(1)), guest_mac(1))]));
    let first = one.handle(Input::Start);
    let announced = |(_, frame): &(u8, Frame)| {
        frame.parsed.message.extension.as_ref().is_some_and(|extension| extension.guests.len() == 1)
    };
    assert!(sent(&first).iter().all(announced) && !first.is_empty());
    one.handle(Input::Guests(&SeenGuests::default()));
    assert_eq!(one.announces(), []);
}

//= docs/arp-plus.md#14.5 type=test
#[test]
fn a_host_that_comes_with_a_guest_of_another_one_does_not_take_it() {
    let mut hosts = [host(1, 1), host(2, 1), host(3, 1)];
    // Host 1 was away, and does not know that its guest has moved.
    hosts[0].see(&[1]);
    let stale = hosts[0].says(Kind::Change);
    let [_, two, three] = &mut hosts;
    three.hear(0, &two.says(Kind::Change));
    two.see(&[1]);
    three.hear(0, &two.says(Kind::Change));
    assert_eq!(three.locates(1), Some(key(2)));
    two.pass(millis(10));
    two.hear(0, &stale);
    three.hear(0, &stale);
    assert_eq!(three.locates(1), None, "its frames go as to a plain host");
    for _ in 0..2 {
        assert_eq!(conflicts(&two.pass(millis(3000))), []);
        assert_eq!(conflicts(&two.hear(0, &stale)), []);
    }
    assert_eq!((two.announces(), two.locates(1)), (vec![guest_mac(1)], None), "it may be silent and here");
    // To host 1 it is the other way round.
    let says = two.says(Kind::Change);
    hosts[0].hear(0, &says);
    hosts[0].pass(millis(800));
    assert_eq!(hosts[0].announces(), [guest_mac(1)], "until it has said nothing for long");
}

#[test]
fn a_guest_that_went_elsewhere_is_not_here_though_nobody_announces_it_any_more() {
    let mut hosts = [host(1, 1), host(2, 1)];
    pass_all(&mut hosts, millis(10));
    hosts[0].see(&[1]);
    pass_all(&mut hosts, millis(10));
    hosts[1].see(&[1]);
    pass_all(&mut hosts, millis(10));
    pass_all(&mut hosts, millis(760));
    assert_eq!((hosts[0].announces(), hosts[0].locates(1)), (vec![], Some(key(2))));
    hosts[1].handle(Input::Guests(&SeenGuests::default()));
    pass_all(&mut hosts, millis(10));
    assert_eq!(hosts[0].locates(1), None);
    let before = hosts[0].now.minus(millis(780));
    hosts[0].handle(Input::Guests(&seen(&[(1, guest_ip(1), before, before)])));
    assert_eq!(hosts[0].announces(), [], "what it sent before says nothing");
    assert!(hosts[0].arp.is_guest_elsewhere(guest_mac(1)));
}

//= docs/arp-plus.md#14.4 type=test
#[test]
fn whose_mac_becomes_a_peers_members_is_no_guest_here_or_elsewhere() {
    let (mut one, mut two, mut three) = (host(1, 1), host(2, 1), host(3, 1));
    one.see(&[1, 2]);
    two.hear(0, &one.says(Kind::Change));
    assert_eq!((one.announces().len(), two.locates(1)), (2, Some(key(1))));
    three.handle(Input::Members(vec![OwnMember { mac: guest_mac(1), ..member(3, 0) }]));
    let message = three.arp.own.message(Kind::Change);
    let says = emit_frame(MacAddr::BROADCAST, guest_mac(1), &message).expect("a good message");
    one.hear(0, &says);
    two.hear(0, &says);
    assert_eq!(one.announces(), [guest_mac(2)]);
    assert_eq!((two.locates(1), two.locates(2)), (None, Some(key(1))));
}

#[test]
fn guests_that_are_known_and_not_announced_are_shown() {
    let mut one = host(1, 1);
    one.see(&[1, 2]);
    let macs = |one: &Host| one.arp.guests_here().iter().map(|guest| guest.mac).collect::<Vec<_>>();
    assert_eq!((macs(&one), one.arp.are_guests_contested()), (vec![guest_mac(1), guest_mac(2)], false));
    one.handle(Input::Guests(&SeenGuests::default()));
    assert_eq!(macs(&one), []);
}

/// The peers whose entries are said to be others.
fn changed(actions: &[Action]) -> BTreeSet<PeerKey> {
    let keys = actions.iter().filter_map(|action| match action {
        Action::Peers(Changed::Peers(keys)) => Some(keys.clone()),
        _ => None,
    });
    keys.flatten().collect()
}

//= docs/arp-plus.md#14.4 type=test
#[test]
fn a_gateways_mac_is_no_guests_from_the_moment_that_it_is_known() {
    let (mut one, mut two) = (host(1, 1), host(2, 1));
    one.see(&[1]);
    two.hear(0, &one.says(Kind::Change));
    assert_eq!(two.locates(1), Some(key(1)));
    let actions = two.handle(Input::Gateways([guest_mac(1)].into()));
    assert_eq!((two.locates(1), changed(&actions)), (None, [key(1)].into()), "whose rows are others");
    assert!(two.arp.are_guests_contested());
    assert_eq!(conflicts(&two.handle(Input::Gateways([guest_mac(1)].into()))), [], "nothing new");
    assert_eq!(two.count(Counter::ConflictGuestMac), 1, "nor is it looked at again");
    // When the guest moves, so do the rows of both hosts.
    two.handle(Input::Gateways([].into()));
    two.pass(millis(600));
    assert_eq!(two.locates(1), Some(key(1)));
    let mut three = host(3, 1);
    three.hear(0, &one.says(Kind::Change));
    three.see(&[1]);
    assert_eq!(changed(&two.hear(0, &three.says(Kind::Change))), [key(1), key(3)].into());
}

//= docs/arp-plus.md#14.1 type=test
#[test]
fn who_has_not_sent_since_guests_are_looked_at_is_here_only_if_it_was_announced_before() {
    let first_look = |former: &[u8]| {
        let mut one = host(1, 1);
        let former = former.iter().map(|number| ((0, guest_ip(*number)), guest_mac(*number)));
        one.handle(Input::FormerGuests(former.collect()));
        one.pass(millis(1000));
        let (now, before) = (one.now, one.now.minus(millis(5)));
        let spoke = [(1, guest_ip(1), before, before), (2, guest_ip(2), now, now)];
        one.handle(Input::Guests(&seen(&spoke)));
        one.announces()
    };
    assert_eq!(first_look(&[]), [guest_mac(2)]);
    assert_eq!(first_look(&[1]), [guest_mac(1), guest_mac(2)]);
}

//= docs/arp-plus.md#14.5 type=test
#[test]
fn who_has_not_sent_since_guests_are_looked_at_is_where_a_host_comes_with_it() {
    let mut one = host(1, 1);
    one.handle(Input::FormerGuests(vec![((0, guest_ip(1)), guest_mac(1))]));
    one.pass(millis(1000));
    let before = one.now.minus(millis(5));
    one.handle(Input::Guests(&seen(&[(1, guest_ip(1), before, before)])));
    assert_eq!(one.announces(), [guest_mac(1)]);
    let mut two = host(2, 1);
    two.see(&[1]);
    one.hear(0, &two.says(Kind::Change));
    one.pass(millis(760));
    assert_eq!((one.announces(), one.locates(1)), (vec![], Some(key(2))));
}

//= docs/arp-plus.md#14.5 type=test
#[test]
fn a_guest_that_a_peer_announces_with_another_address_is_contested() {
    let mut hosts = [host(1, 1), host(2, 1)];
    pass_all(&mut hosts, millis(10));
    hosts[0].see(&[1]);
    let now = hosts[1].now;
    hosts[1].handle(Input::Guests(&seen(&[(1, guest_ip(9), now, now)])));
    assert!(!hosts[0].arp.are_guests_contested());
    pass_all(&mut hosts, millis(10));
    assert!(hosts[0].arp.are_guests_contested());
}

#[test]
fn no_guest_is_known_of_those_who_were_peers_before_a_stop() {
    let (mut one, mut two) = (host(1, 1), host(2, 1));
    one.see(&[1]);
    two.hear(0, &one.says(Kind::Change));
    assert_eq!(two.locates(1), Some(key(1)));
    two.handle(Input::Stop);
    assert_eq!(two.locates(1), None);
}

//= docs/arp-plus.md#14.5 type=test
#[test]
fn an_address_that_a_peers_guest_has_taken_over_is_not_taken_from_it_by_what_was_said_before() {
    let mut hosts = [host(1, 1), host(2, 1)];
    hosts[0].see(&[]);
    pass_all(&mut hosts, millis(10));
    let now = hosts[1].now;
    hosts[1].handle(Input::Guests(&seen(&[(2, guest_ip(9), now, now)])));
    pass_all(&mut hosts, millis(10));
    let of = |host: &Host| host.arp.located_guests().addresses.get(&(0, guest_ip(9))).copied();
    assert_eq!(of(&hosts[0]), Some((guest_mac(2), key(2))));
    let (now, named) = (hosts[0].now, hosts[0].now.minus(millis(15)));
    hosts[0].handle(Input::Guests(&seen(&[(1, guest_ip(9), named, now)])));
    assert_eq!((hosts[0].announces(), of(&hosts[0])), (vec![], Some((guest_mac(2), key(2)))));
    hosts[0].handle(Input::Guests(&seen(&[(1, guest_ip(9), now, now)])));
    assert_eq!((hosts[0].announces(), of(&hosts[0])), (vec![guest_mac(1)], None), "it has named it since");
}
