//! Rows that are refused, and what waits for them; and what need not be written at all.

use super::*;
use crate::arp_plus::{SeenAddress, SeenGuests};

impl Bench {
    /// Makes all again without writing it.
    fn remake(&mut self) {
        self.report_members();
        self.make();
    }

    /// What is written where the data path refuses some rows.
    fn refused(&mut self, refuses: impl Fn(&Row) -> bool) -> Vec<Row> {
        let mut rows = Vec::new();
        let written = self.tables.write(|write| {
            let row = Row::from(write);
            let taken = !refuses(&row);
            rows.extend(taken.then_some(row));
            taken.then_some(()).ok_or("no room")
        });
        assert_eq!(written, Err("no room"));
        rows
    }
}

fn guest(number: u8) -> (MacAddr, IpAddr) {
    (MacAddr([0x52, 0x54, 0, 0, 0, number]), IpAddr::from([198, 18, 1, number]))
}

#[test]
fn a_guests_row_waits_for_the_plan_of_its_peer() {
    let mut bench = Bench::new(1, TableImage::default());
    bench.write();
    let (mac_of_guest, address) = guest(1);
    bench.hear_proven(2, 1, vec![Guest { vlan: 0, mac: mac_of_guest, addresses: vec![address] }]);
    bench.remake();
    assert_eq!(bench.refused(|row| matches!(row, Row::Plan(1, _))), []);
    let pair =
        |plan, number| Row::GuestPair((0, guest(number).1), Some(GuestPair { mac: guest(number).0, plan }));
    assert!(bench.difference().contains(&pair(1, 1)));
    // One of the own bond waits for no peer's.
    let (mac_of_guest, address) = guest(2);
    let now = Time::from_millis(1);
    let named = SeenAddress { vlan: 0, address, mac: mac_of_guest, named: now };
    let seen = SeenGuests { last_sent: vec![(mac_of_guest, now)], addresses: vec![named] };
    bench.arp_plus.handle(now, Input::Guests(&seen));
    bench.tables.set_own_guests(bench.arp_plus.announced_guests());
    bench.members[0].weight_mbit = 500;
    bench.remake();
    assert!(bench.refused(|row| matches!(row, Row::Plan(..))).contains(&pair(PLAIN_PLAN, 2)));
}

#[test]
fn a_class_waits_for_its_plan() {
    let mut bench = Bench::new(2, TableImage::default());
    bench.write();
    bench.members[1].class = 3;
    bench.settings.classes = vec![class(3, Policy::Flow)];
    bench.hear(Kind::Change, 2, 1);
    bench.remake();
    let peers = bench.tables.plan_of(&key(2)).expect("a plan");
    let number = bench.tables.class_plan(peers, 3);
    assert_ne!(number, peers);
    let of_class = Row::ClassPlan(peers, 3, Some(number));
    let rows = bench.refused(|row| matches!(row, Row::Plan(of, _) if *of == number));
    assert!(!rows.contains(&of_class), "{rows:?}");
    assert!(bench.difference().contains(&of_class));
}

#[test]
fn a_plan_waits_for_the_members_that_it_names() {
    let mut bench = Bench::new(1, TableImage::default());
    bench.write();
    bench.members.push(member(1));
    bench.remake();
    let names = |row: &Row| match row {
        Row::Plan(_, Some(plan)) => plan.lanes.iter().any(|lane| lane.slot == 1),
        _ => false,
    };
    let rows = bench.refused(|row| matches!(row, Row::Member(1, _)));
    assert!(!rows.iter().any(names), "{rows:?}");
    assert!(bench.difference().iter().any(names));
}

#[test]
fn what_changes_back_before_it_is_written_is_not_written() {
    let mut bench = Bench::new(2, TableImage::default());
    bench.hear(Kind::Change, 2, 1);
    bench.write();
    let before = bench.members.clone();
    (bench.members[0].alive, bench.members[1].weight_mbit) = (false, 500);
    bench.remake();
    bench.members = before;
    bench.remake();
    assert_eq!(bench.difference(), []);
}

#[test]
fn nothing_new_points_at_a_plan_that_could_not_be_written_again() {
    let mut bench = Bench::new(2, TableImage::default());
    bench.hear(Kind::Change, 2, 1);
    bench.write();
    // Its plan is another one, and a guest is behind it.
    bench.members[0].weight_mbit = 10;
    let (mac, address) = guest(1);
    bench.hear_proven(2, 2, vec![Guest { vlan: 0, mac, addresses: vec![address] }]);
    bench.remake_peers(&[2]);
    assert_eq!(bench.refused(|row| matches!(row, Row::Plan(..))), []);
    assert!(matches!(bench.difference()[..], [Row::Plan(1, Some(_)), ..]));
}
