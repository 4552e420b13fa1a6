use super::*;
use crate::tables::tests::member;
use linkbraid_api::Fallback;

fn class(number: u8, policy: Policy, borrow: Borrow) -> SavedClass {
    SavedClass {
        number,
        name: format!("class{number}"),
        rules: Vec::new(),
        has_members: true,
        settings: ClassSettings { policy, fallback: Fallback::Share, borrow },
        applied: false,
    }
}

fn of(classes: &[u8]) -> Vec<Member> {
    let member = |(slot, class): (u8, &u8)| Member {
        class: *class,
        speed_mbit: Some(100 + u32::from(slot)),
        ..member(slot)
    };
    (0..).zip(classes).map(member).collect()
}

#[test]
fn what_is_striped_is_known_by_the_members_that_it_may_take() {
    let spread = |number| class(number, Policy::Spread, Borrow::Never);
    let all = |members: &[Member], classes: &[SavedClass]| spreads(members, classes, Policy::Spread);
    assert_eq!(all(&of(&[0, 0, 1]), &[spread(1)]), [vec![100, 101], vec![102]]);
    // What is lent, the rest is striped over; not the other way round.
    let idle = class(1, Policy::Spread, Borrow::Idle);
    assert_eq!(all(&of(&[0, 1, 2]), &[idle, spread(2)]), [vec![100, 101], vec![101], vec![102]]);
    let mut members = of(&[0, 1, 2]);
    // A class without live members is striped over those of the rest, and the rest over any.
    members[1].alive = false;
    assert_eq!(all(&members, &[spread(1), spread(2)]), [vec![100], vec![100], vec![102]]);
    members[1].alive = true;
    members[0].alive = false;
    assert_eq!(all(&members, &[spread(1), spread(2)]), [vec![101, 102], vec![101], vec![102]]);
    // Other policies stripe nothing.
    let flow = class(1, Policy::Flow, Borrow::Never);
    assert_eq!(spreads(&members, &[flow], Policy::ActiveBackup), Vec::<Vec<u32>>::new());
}
