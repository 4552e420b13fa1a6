use super::*;
use std::collections::BTreeSet;

fn actions(seed: u64, count: usize) -> Vec<Action> {
    let mut schedule = Schedule::new(seed);
    (0..count).map(|_| schedule.next_action()).collect()
}

#[test]
fn a_seed_gives_the_same_steps_each_time_and_another_gives_others() {
    assert_eq!(actions(7, 500), actions(7, 500));
    assert_ne!(actions(7, 500), actions(8, 500));
}

#[test]
fn every_kind_of_step_comes_and_mostly_a_lane_is_left() {
    for seed in 0..20 {
        let mut schedule = Schedule::new(seed);
        let (mut kinds, mut left) = (BTreeSet::new(), 0);
        for _ in 0..1000 {
            kinds.insert(schedule.next_action().kind());
            left += u32::from(schedule.lane_is_left());
        }
        assert_eq!(kinds.len(), 10, "seed {seed}: {kinds:?}");
        assert!((500..950).contains(&left), "seed {seed}: a lane is left after {left} of 1000 steps");
    }
}

#[test]
fn no_step_is_one_that_must_be_refused() {
    for seed in 0..20 {
        let mut schedule = Schedule::new(seed);
        for step in 0..1000 {
            let before = schedule.hosts.clone();
            let action = schedule.next_action();
            let (here, far, link) = (&before[action.host], &before[1 - action.host], action.link);
            let alive = here.down.is_none();
            let fine = match action.what {
                What::Fail(_) => here.faults[link].is_none(),
                What::Mend => here.faults[link].is_some(),
                What::MemberDel => {
                    alive && here.members[link] && here.members.iter().filter(|m| **m).count() > 1
                }
                What::MemberAdd => alive && !here.members[link] && far.down.is_none() && far.any_works(),
                What::Weight(_) => alive && here.members[link],
                What::Kill => alive,
                What::Start => !alive,
            };
            assert!(fine, "seed {seed}, step {step}: {action} on {before:?}");
            assert!(before.iter().all(|host| host.down.is_none_or(|steps| steps <= DOWN_STEPS_MAX + 1)));
        }
    }
}

#[test]
fn a_host_without_a_daemon_need_not_follow_what_changes() {
    let apply = |schedule: &mut Schedule, host, link, what| schedule.apply(Action { host, link, what });
    let mut schedule = Schedule::new(0);
    apply(&mut schedule, 0, 0, What::Kill);
    assert!(schedule.lane_is_left(), "frames flow on without it");
    apply(&mut schedule, 1, 0, What::Fail(Fault::Silent));
    assert!(!schedule.lane_is_left(), "it does not know");
    apply(&mut schedule, 0, 0, What::Start);
    assert!(schedule.lane_is_left());
    (0..LINKS).for_each(|link| apply(&mut schedule, 1, link, What::Fail(Fault::SilentIn)));
    assert!(!schedule.lane_is_left());
    apply(&mut schedule, 1, 2, What::Mend);
    assert!(schedule.lane_is_left());
    apply(&mut schedule, 1, 2, What::MemberDel);
    assert!(!schedule.lane_is_left(), "the last good one is no member any more");
    apply(&mut schedule, 0, 0, What::Kill);
    apply(&mut schedule, 1, 0, What::Mend);
    assert!(
        !schedule.lane_is_left(),
        "there was none when its daemon died, and nobody could take up the new one"
    );
    apply(&mut schedule, 0, 0, What::Start);
    assert!(schedule.lane_is_left());
}
