//! The rows of guests.

use super::*;
use crate::arp_plus::{SeenAddress, SeenGuests, alias_of};

fn guest_mac(number: u8) -> MacAddr {
    MacAddr([0x52, 0x54, 0, 0, 0, number])
}

fn guest(number: u8) -> Guest {
    Guest { vlan: 0, mac: guest_mac(number), addresses: vec![at(number).1] }
}

fn at(number: u8) -> GuestAddress {
    (0, IpAddr::from([198, 18, 1, number]))
}

impl Bench {
    /// From a host that answered a PROBE.
    fn hear_guests(&mut self, host: u8, sequence: u32, numbers: &[u8]) {
        self.hear_proven(host, sequence, numbers.iter().map(|number| guest(*number)).collect());
    }

    /// Guests speak behind the own bond.
    fn see(&mut self, numbers: &[u8]) {
        let now = Time::from_millis(1);
        let named = |number: &u8| SeenAddress {
            vlan: 0,
            address: at(*number).1,
            mac: guest_mac(*number),
            named: now,
        };
        let last_sent = numbers.iter().map(|number| (guest_mac(*number), now)).collect();
        let seen = SeenGuests { last_sent, addresses: numbers.iter().map(named).collect() };
        self.arp_plus.handle(now, Input::Guests(&seen));
        self.tables.set_own_guests(self.arp_plus.announced_guests());
    }
}

fn row(plan: u32, primary: MacAddr, kind: MacKind) -> Option<PeerMac> {
    Some(PeerMac { plan, primary, broadcast_slot: Some(0), kind })
}

fn pair(number: u8, plan: u32) -> Row {
    Row::GuestPair(at(number), Some(GuestPair { mac: guest_mac(number), plan }))
}

//= docs/arp-plus.md#14.3 type=test
#[test]
fn rows_of_guests_come_with_them_and_aliases_while_there_are_guests_here() {
    let mut bench = Bench::new(1, TableImage::default());
    bench.hear(Kind::Change, 2, 1);
    bench.write();
    bench.hear_guests(2, 2, &[1]);
    let member =
        |has_guests| Row::PeerMac(mac(2), row(1, mac(2), MacKind::Member { has_guests, takes_guests: true }));
    let behind = Row::PeerMac(guest_mac(1), row(1, guest_mac(1), MacKind::Guest));
    assert_eq!(bench.update(&[2]), [pair(1, 1), member(true), behind]);
    bench.see(&[9]);
    let alias = Row::PeerMac(alias_of(mac(2)), row(1, mac(2), MacKind::Alias { has_guests: true }));
    assert_eq!(bench.write(), [pair(9, 0), alias]);
    bench.see(&[9]);
    assert!(!bench.tables.is_behind(), "the same guests again are no news");
    bench.hear_guests(2, 3, &[]);
    let alias = |row| Row::PeerMac(alias_of(mac(2)), row);
    let gone = [
        Row::GuestPair(at(1), None),
        alias(row(1, mac(2), MacKind::Alias { has_guests: false })),
        member(false),
        Row::PeerMac(guest_mac(1), None),
    ];
    assert_eq!(bench.update(&[2]).iter().filter(|row| !gone.contains(row)).count(), 0);
    bench.see(&[]);
    assert_eq!(bench.write(), [Row::GuestPair(at(9), None), alias(None)]);
}

#[test]
fn a_guest_that_moves_takes_its_rows_along() {
    let mut bench = Bench::new(1, TableImage::default());
    bench.hear_guests(2, 1, &[1]);
    bench.hear_guests(3, 1, &[]);
    bench.write();
    bench.hear_guests(3, 2, &[1]);
    let behind = |plan| Row::PeerMac(guest_mac(1), row(plan, guest_mac(1), MacKind::Guest));
    let rows = bench.update(&[2, 3]);
    assert!(rows.contains(&pair(1, 2)) && rows.contains(&behind(2)), "{rows:?}");
    // Here, and back.
    bench.see(&[1]);
    let rows = bench.update(&[2, 3]);
    assert!(rows.contains(&pair(1, 0)) && rows.contains(&Row::PeerMac(guest_mac(1), None)), "{rows:?}");
    bench.see(&[]);
    let rows = bench.update(&[2, 3]);
    assert!(rows.contains(&pair(1, 2)) && rows.contains(&behind(2)), "{rows:?}");
    bench.hear(Kind::Clear, 3, 3);
    bench.arp_plus.handle(Time::from_millis(1), Input::NobodyObjects(key(3)));
    let rows = bench.update(&[3, 2]);
    assert!(rows.iter().any(|row| matches!(row, Row::GuestPair(..))), "{rows:?}");
    assert!(bench.tables.image().guest_pairs.values().all(|pair| pair.plan == 1));
}

#[test]
fn an_earlier_daemons_guests_stay_until_they_are_found_wrong() {
    let mut first = Bench::new(1, TableImage::default());
    first.hear_guests(2, 1, &[1, 2]);
    first.see(&[9]);
    first.write();
    let mut bench = Bench::new(1, first.tables.image().clone());
    bench.arp_plus.handle(Time::ZERO, Input::FormerGuests(bench.tables.former_guests()));
    bench.tables.set_own_guests(bench.arp_plus.announced_guests());
    let guests = |rows: Vec<Row>| -> Vec<Row> {
        rows.into_iter().filter(|row| matches!(row, Row::GuestPair(..))).collect()
    };
    assert_eq!(guests(bench.write()), []);
    bench.hear_guests(2, 2, &[1]);
    assert_eq!(guests(bench.update(&[2])), []);
    bench.tables.drop_inherited();
    assert_eq!(guests(bench.difference()), [Row::GuestPair(at(2), None)]);
    assert!(bench.tables.image().guest_pairs.contains_key(&at(9)));
    let macs = bench.tables.image().peer_macs.keys().copied().collect::<BTreeSet<_>>();
    assert_eq!(macs, [mac(2), alias_of(mac(2)), guest_mac(1)].into(), "what was said again");
    // Whether there were guests here is known as well.
    let mut left = first.tables.image().clone();
    assert!(!Tables::adopt(left.clone()).set_own_guests(&[guest(9)]));
    left.guest_pairs.remove(&at(9));
    assert!(Tables::adopt(left).set_own_guests(&[guest(9)]));
}

#[test]
fn an_alias_that_is_a_members_mac_is_none() {
    for (own, aliases) in [(mac(7), 1), (alias_of(mac(2)), 0)] {
        let mut bench = Bench::new(1, TableImage::default());
        bench.members[0].mac = own;
        bench.report_members();
        bench.hear_guests(2, 1, &[]);
        bench.see(&[9]);
        bench.write();
        let macs = bench.tables.image().peer_macs.values();
        assert_eq!(macs.filter(|row| matches!(row.kind, MacKind::Alias { .. })).count(), aliases);
    }
}

#[test]
fn only_the_first_own_guest_and_the_last_one_change_what_peers_rows_are() {
    let mut bench = Bench::new(1, TableImage::default());
    let mut is_another = |guests: &[Guest]| bench.tables.set_own_guests(guests);
    assert_eq!(
        [&[][..], &[guest(1)], &[guest(1), guest(2)], &[]].map(&mut is_another),
        [false, true, false, true]
    );
}
