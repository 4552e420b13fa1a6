//! How many guests and addresses there may be, and how long what was said of them counts.

use super::*;
use crate::limits;
use linkbraid_wire::{GUEST_ADDRESSES_MAX, GUESTS_MAX};

//= docs/arp-plus.md#14.1 type=test
#[test]
fn an_address_of_a_host_takes_no_place_of_a_guests() {
    let mut one = host(1, 1);
    one.pass(millis(1000));
    let now = one.now;
    let last = GUEST_ADDRESSES_MAX as u8;
    let named = [ip(1)].into_iter().chain((1..=last).map(guest_ip)).zip((1..=last + 1).rev());
    let named: Vec<_> =
        named.map(|(address, age)| (1, address, now.minus(millis(age.into())), now)).collect();
    one.handle(Input::Guests(&seen(&named)));
    assert_eq!(one.arp.announced_guests()[0].addresses.len(), GUEST_ADDRESSES_MAX);
    assert_eq!(one.count(Counter::LimitGuestAddresses), 0);
}

//= docs/arp-plus.md#14.2 type=test
#[test]
fn no_more_guests_are_announced_than_a_message_may_name() {
    let mut one = host(1, 1);
    let numbers: Vec<u8> = (1..=GUESTS_MAX as u8 + 1).collect();
    one.see(&numbers);
    assert_eq!((one.announces().len(), one.count(Counter::LimitGuests)), (GUESTS_MAX, 1));
}

//= docs/arp-plus.md#14.5 type=test
#[test]
fn an_address_that_another_guest_has_taken_over_goes_with_it_after_500_ms() {
    let mut hosts = [host(1, 1), host(2, 1)];
    pass_all(&mut hosts, millis(10));
    let now = hosts[0].now;
    hosts[0].handle(Input::Guests(&seen(&[(1, guest_ip(1), now, now), (1, guest_ip(9), now, now)])));
    pass_all(&mut hosts, millis(10));
    let now = hosts[1].now;
    hosts[1].handle(Input::Guests(&seen(&[(2, guest_ip(9), now, now)])));
    pass_all(&mut hosts, millis(10));
    let [one, _] = &mut hosts;
    let heard = one.now;
    let mut addresses_after = |time| {
        one.arp.guests.look_again();
        one.arp.follow_guests(heard + time);
        one.arp.guests_here()[0].addresses.len()
    };
    let moment = Duration::from_nanos(1);
    assert_eq!([limits::GUEST_CONTEST - moment, limits::GUEST_CONTEST].map(&mut addresses_after), [2, 1]);
}

#[test]
fn of_more_addresses_than_are_used_those_that_came_first_stay() {
    /// As many as fit into one message.
    const GUESTS: u16 = 30;
    const ADDRESSES: u16 = GUEST_ADDRESSES_MAX as u16;
    let guests_of = |number: u8, now: Time| {
        let of = |guest: u16| {
            let mac = MacAddr([0x52, 0x54, 0, number, 0, guest as u8]);
            let address = move |at| SeenAddress {
                vlan: 0,
                address: IpAddr::from([198, 19, number, (guest * ADDRESSES + at) as u8]),
                mac,
                named: now,
            };
            ((mac, now), (0..ADDRESSES).map(address))
        };
        let (last_sent, addresses): (Vec<_>, Vec<_>) = (0..GUESTS).map(of).unzip();
        SeenGuests { last_sent, addresses: addresses.into_iter().flatten().collect() }
    };
    let mut one = host(1, 1);
    let each = usize::from(GUESTS * ADDRESSES);
    let peers = (limits::GUEST_ADDRESSES_MAX / each + 1) as u8;
    for number in 2..2 + peers {
        let mut other = host(number, 1);
        other.handle(Input::Guests(&guests_of(number, other.now)));
        assert_eq!(one.count(Counter::LimitGuestAddresses), 0);
        one.pass(millis(1));
        one.hear(0, &other.says(Kind::Change));
    }
    let (all, most) = (each * usize::from(peers), limits::GUEST_ADDRESSES_MAX);
    let located = &one.arp.located_guests().addresses;
    assert_eq!((located.len(), one.count(Counter::LimitGuestAddresses)), (most, (all - most) as u64));
    let of_last = located.values().filter(|(_, at)| *at == key(1 + peers)).count();
    assert_eq!(of_last, each - (all - most));
}
