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
            let here = &before[action.index()];
            let fine = match action {
                Action::Fail { link, .. } => here.faults[link].is_none(),
                Action::Mend { link, .. } => here.faults[link].is_some(),
                Action::MemberDel { link, .. } => {
                    here.down.is_none()
                        && here.members[link]
                        && here.members.iter().filter(|m| **m).count() > 1
                }
                Action::MemberAdd { link, .. } => {
                    let far = &before[1 - action.index()];
                    here.down.is_none() && !here.members[link] && far.down.is_none() && far.any_works()
                }
                Action::Weight { link, .. } => here.down.is_none() && here.members[link],
                Action::Kill { .. } => here.down.is_none(),
                Action::Start { .. } => here.down.is_some(),
            };
            assert!(fine, "seed {seed}, step {step}: {action} on {before:?}");
            assert!(before.iter().all(|host| host.down.is_none_or(|steps| steps <= DOWN_STEPS_MAX + 1)));
        }
    }
}

#[test]
fn a_host_without_a_daemon_need_not_follow_what_changes() {
    let mut schedule = Schedule::new(0);
    schedule.apply(Action::Kill { host: 0 });
    assert!(schedule.lane_is_left(), "frames flow on without it");
    schedule.apply(Action::Fail { host: 1, link: 0, fault: Fault::Silent });
    assert!(!schedule.lane_is_left(), "it does not know");
    schedule.apply(Action::Start { host: 0 });
    assert!(schedule.lane_is_left());
    (0..LINKS).for_each(|link| schedule.apply(Action::Fail { host: 1, link, fault: Fault::SilentIn }));
    assert!(!schedule.lane_is_left());
    schedule.apply(Action::Mend { host: 1, link: 2 });
    assert!(schedule.lane_is_left());
    schedule.apply(Action::MemberDel { host: 1, link: 2 });
    assert!(!schedule.lane_is_left(), "the last good one is no member any more");
    schedule.apply(Action::Kill { host: 0 });
    schedule.apply(Action::Mend { host: 1, link: 0 });
    assert!(
        !schedule.lane_is_left(),
        "there was none when its daemon died, and nobody could take up the new one"
    );
    schedule.apply(Action::Start { host: 0 });
    assert!(schedule.lane_is_left());
}
