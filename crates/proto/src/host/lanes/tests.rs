//! What is striped over which members.

use super::*;
use crate::host::tables::tests::{class, member, settings};

fn of(classes: &[u8]) -> Vec<Member> {
    let member = |(slot, class): (u8, &u8)| Member {
        class: *class,
        weight_mbit: 100 + u32::from(slot),
        ..member(slot)
    };
    (0..).zip(classes).map(member).collect()
}

#[test]
fn what_is_striped_is_known_by_the_members_that_it_may_take() {
    let spread = |number| class(number, Policy::Spread);
    let all = |members: &[Member], classes: &[Class]| {
        let settings = Settings { classes: classes.to_vec(), ..settings() };
        let groups = OwnSide::new(members, &settings).spreads(members).into_iter();
        groups.map(|(_, weights)| weights).collect::<Vec<_>>()
    };
    assert_eq!(all(&of(&[0, 0, 1]), &[spread(1)]), [vec![100, 101], vec![102]]);
    // What is lent, other traffic is striped over; not the other way round.
    let mut lent = spread(1);
    lent.terms.lends = true;
    assert_eq!(all(&of(&[0, 1, 2]), &[lent, spread(2)]), [vec![100, 101], vec![101], vec![102]]);
    let mut members = of(&[0, 1, 2]);
    // A class without live members is striped over those of no class, and other traffic over any.
    members[1].alive = false;
    assert_eq!(all(&members, &[spread(1), spread(2)]), [vec![100], vec![100], vec![102]]);
    members[1].alive = true;
    members[0].alive = false;
    assert_eq!(all(&members, &[spread(1), spread(2)]), [vec![101, 102], vec![101], vec![102]]);
    // Other policies stripe nothing.
    let settings =
        Settings { policy: Policy::ActiveBackup, classes: vec![class(1, Policy::Flow)], ..settings() };
    assert!(OwnSide::new(&members, &settings).spreads(&members).is_empty());
    let settings = Settings { policy: Policy::RoundRobin, classes: Vec::new(), ..settings };
    let striped = OwnSide::new(&members, &settings).spreads(&members);
    assert_eq!(striped, [(Policy::RoundRobin, vec![101, 102])]);
}

//= docs/arp-plus.md#16.4 type=test
#[test]
fn nothing_is_mirrored_to_who_does_not_take_it() {
    let settings = Settings { classes: vec![class(1, Policy::Mirror), class(2, Policy::Flow)], ..settings() };
    let own = OwnSide::new(&of(&[0, 1, 2]), &settings);
    let policies = |class| [true, false].map(|mirrors| own.to_plan(class, &[], mirrors).policy);
    assert_eq!(policies(1), [Policy::Mirror, Policy::ActiveBackup]);
    assert_eq!(policies(2), [Policy::Flow, Policy::Flow]);
}

#[test]
fn the_members_of_a_class_are_those_that_name_it() {
    let mut lent = class(3, Policy::Spread);
    lent.terms.lends = true;
    let settings = Settings { classes: vec![lent, class(5, Policy::Spread)], ..settings() };
    let members = of(&[0, 3, 5, 3]);
    let own = OwnSide::new(&members, &settings);
    let row = |number| own.class_row(number, &members);
    assert_eq!(row(3), ClassRow { slots: 0b1010, lends: true });
    assert_eq!(row(5), ClassRow { slots: 0b0100, lends: false });
    assert_eq!(row(7), ClassRow { slots: 0, lends: false });
}
