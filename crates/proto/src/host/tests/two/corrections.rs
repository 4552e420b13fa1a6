//! Who told far more than it carries is taken for what it carries, in plans to that peer.

use super::*;

/// What all lanes of a member that told far too much carry together, in kbit/s, and the others.
const CARRIED: u64 = 20_000;

/// Two hosts of four members on one switch, which told so many Mbit/s.
fn told(ours: [u32; 4], theirs: [u32; 4], settings: &Settings) -> Two {
    let mut two = Two::met(&[0; 4], settings);
    for (host, weights) in [ours, theirs].into_iter().enumerate() {
        let weighed = two.members(host).into_iter().zip(weights);
        let members = weighed.map(|(member, weight_mbit)| Member { weight_mbit, ..member }).collect();
        two.handle(host, Input::Members(members));
    }
    two.pass(2000);
    two
}

/// Who sends to whom in a plan: slots at both ends.
fn pairs(two: &Two, number: u32) -> Vec<(u8, u8)> {
    let lanes = &two.hosts[0].image().plans[&number].lanes;
    lanes.iter().map(|lane| (lane.slot, lane.peer_mac.expect("a peer").0[5])).collect()
}

/// For so many looks each member at the end of several lanes carries what it can, and all others carry nothing more.
fn full(two: &mut Two, number: u32, looks: u64) {
    let lanes = vec![CARRIED / 4; pairs(two, number).len()];
    two.count(looks, &[(number, &lanes)]);
}

const EACH_TO_ITS_OWN: [(u8, u8); 4] = [(0, 0), (1, 1), (2, 2), (3, 3)];

#[test]
fn a_peers_member_that_told_too_much_does_not_get_all_lanes() {
    let mut two = told([20; 4], [20, 20, 20, 10_000], &settings());
    let number = two.plan();
    let before = pairs(&two, number);
    assert!([0, 1, 2, 3].iter().all(|slot| before.contains(&(*slot, 3))), "{before:?}");
    full(&mut two, number, 2);
    assert_eq!(pairs(&two, number), before, "not so soon");
    full(&mut two, number, 10);
    assert_eq!(pairs(&two, two.plan()), EACH_TO_ITS_OWN);
    let weights = two.hosts[0].image().plans[&two.plan()].lanes.iter().map(|lane| lane.weight);
    assert_eq!(weights.collect::<Vec<_>>(), [20_000; 4], "it counts as the others");
    // It tells something else: that is believed again.
    let members = two.members(1).into_iter().map(|member| Member { weight_mbit: 100, ..member });
    two.handle(1, Input::Members(members.collect()));
    two.pass(1000);
    let sum = |two: &Two| two.hosts[0].image().plans[&two.plan()].lanes.iter().map(|lane| lane.weight).sum();
    assert_eq!((pairs(&two, two.plan()), sum(&two)), (EACH_TO_ITS_OWN.to_vec(), 80_000_u32));
}

#[test]
fn what_lanes_carried_beside_others_is_forgotten_with_them() {
    for looks in 3..12 {
        let mut two = told([20; 4], [20, 20, 20, 10_000], &settings());
        let number = two.plan();
        full(&mut two, number, looks);
        if pairs(&two, number) != EACH_TO_ITS_OWN {
            continue;
        }
        two.count(1, &[(number, &[CARRIED / 4; 4])]);
        let lanes = &two.hosts[0].image().plans[&number].lanes;
        let known = two.hosts[0].lane_rates(number, lanes);
        assert_eq!((known.measured, known.in_use), (vec![None; 4], vec![]));
        return;
    }
    panic!("nothing was corrected");
}

#[test]
fn an_own_member_that_told_too_much_is_corrected_unless_the_user_said_so() {
    for (fixed, corrected) in [(false, true), (true, false)] {
        let mut two = told([20, 20, 20, 10_000], [20; 4], &settings());
        let mut members = two.members(0);
        for (member, weight_mbit) in members.iter_mut().zip([20, 20, 20, 10_000]) {
            (member.weight_mbit, member.weight_fixed) = (weight_mbit, fixed && member.slot == 3);
        }
        two.handle(0, Input::Members(members));
        let number = two.plan();
        let before = pairs(&two, number);
        assert!([0, 1, 2, 3].iter().all(|index| before.contains(&(3, *index))), "{before:?}");
        full(&mut two, number, 12);
        let expected = if corrected { EACH_TO_ITS_OWN.to_vec() } else { before.clone() };
        assert_eq!(pairs(&two, two.plan()), expected, "fixed: {fixed}");
        // The user's word counts as soon as it is said.
        let mut members = two.hosts[0].members().to_vec();
        members[3].weight_fixed = true;
        two.handle(0, Input::Members(members));
        assert_eq!(pairs(&two, two.plan()), before);
    }
}

#[test]
fn what_the_lanes_of_a_class_carry_says_nothing_of_weights() {
    let settings = Settings { classes: vec![class(1, Policy::Flow)], ..settings() };
    let mut two = told([20; 4], [20, 20, 20, 10_000], &settings);
    let mut members = two.members(0);
    for member in &mut members {
        (member.weight_mbit, member.class) = (20, u8::from(member.slot > 1));
    }
    two.handle(0, Input::Members(members));
    two.pass(1000);
    let of_class = two.hosts[0].class_plan(two.plan(), 1);
    let before = [two.plan(), of_class].map(|number| pairs(&two, number));
    full(&mut two, of_class, 12);
    assert_eq!([two.plan(), of_class].map(|number| pairs(&two, number)), before);
}

#[test]
fn a_fixed_weight_of_ours_says_nothing_of_the_peers() {
    let mut two = told([20; 4], [20, 20, 20, 10_000], &settings());
    let mut members = two.hosts[0].members().to_vec();
    members[0].weight_fixed = true;
    two.handle(0, Input::Members(members));
    let number = two.plan();
    full(&mut two, number, 12);
    assert_eq!(pairs(&two, two.plan()), EACH_TO_ITS_OWN);
}
