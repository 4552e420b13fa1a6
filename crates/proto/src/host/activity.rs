//! Which lanes carry data, and which plans carried something lately: their lanes are probed at the full rate.

use crate::{Time, inspector::Usage, limits::LANES_MAX};
use std::{collections::HashMap, time::Duration};

/// A lane that carried that many bytes from one look to the next is busy...
const BUSY_BYTES: u64 = 1000;
/// ...for so long: pauses of a flow must not slow its probes down.
const BUSY: Duration = Duration::from_secs(1);
/// All lanes of a plan that carried anything are in use for so long: frames take them in turn, so what is sent now and then
/// visits each lane much later than the one before.
const LIGHT: Duration = Duration::from_secs(10);
/// Plans that carry nothing and are looked at in one turn; with more peers each has its turn later.
const PLANS_AT_ONCE: usize = 64;

#[derive(Debug, Default)]
struct Lanes {
    bytes: [u64; LANES_MAX],
    busy_until: [Time; LANES_MAX],
    light_until: Time,
    /// What followed when last looked at.
    seen: Seen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    /// Bit i is lane i.
    busy: u32,
    light: bool,
}

/// What the counters were when last looked at.
#[derive(Debug, Default)]
pub(super) struct Activity {
    plans: HashMap<u32, Lanes>,
    next: usize,
}

impl Activity {
    /// How a plan uses its lane of that place.
    pub fn usage(&self, number: u32, place: usize) -> Usage {
        let seen = self.plans.get(&number).map(|lanes| lanes.seen).unwrap_or_default();
        match (seen.busy >> place & 1, seen.light) {
            (1, _) => Usage::Busy,
            (_, true) => Usage::Light,
            (_, false) => Usage::Idle,
        }
    }

    /// Whether a plan had carried something since the look before when it was looked at then.
    pub fn carried(&self, looked: Time, number: u32) -> bool {
        self.plans.get(&number).is_some_and(|lanes| lanes.light_until == looked + LIGHT)
    }

    /// Of these plans, ascending, those whose counters are to be read now: all that carried something lately, and some of the
    /// others.
    pub fn turn(&mut self, numbers: &[u32]) -> Vec<u32> {
        self.plans.retain(|number, _| numbers.binary_search(number).is_ok());
        let (in_use, idle): (Vec<u32>, Vec<u32>) =
            numbers.iter().partition(|number| self.plans.get(number).is_some_and(|lanes| lanes.seen.light));
        let start = if self.next < idle.len() { self.next } else { 0 };
        self.next = if idle.len() > PLANS_AT_ONCE { start + PLANS_AT_ONCE } else { 0 };
        let turn = idle.iter().cycle().skip(start).take(idle.len().min(PLANS_AT_ONCE));
        in_use.iter().chain(turn).copied().collect()
    }

    /// Takes the counters of a plan, in bytes; whether any of its lanes is used otherwise than before.
    pub fn take(&mut self, now: Time, number: u32, bytes: &[u64]) -> bool {
        let lanes = self.plans.entry(number).or_default();
        let mut seen = Seen::default();
        for (i, bytes) in bytes.iter().take(LANES_MAX).enumerate() {
            // Counters begin at zero again when the plan is another one.
            let carried = bytes.checked_sub(lanes.bytes[i]).unwrap_or(*bytes);
            lanes.bytes[i] = *bytes;
            if carried > 0 {
                lanes.light_until = now + LIGHT;
            }
            if carried >= BUSY_BYTES {
                lanes.busy_until[i] = now + BUSY;
            }
            seen.busy |= u32::from(now < lanes.busy_until[i]) << i;
        }
        for until in lanes.busy_until.iter_mut().skip(bytes.len()) {
            *until = Time::ZERO;
        }
        seen.light = now < lanes.light_until;
        std::mem::replace(&mut lanes.seen, seen) != seen
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, PLANS_AT_ONCE};
    use crate::{Time, inspector::Usage};
    use std::time::{Duration, Instant};

    fn usage(activity: &Activity) -> [Usage; 2] {
        [0, 1].map(|place| activity.usage(7, place))
    }

    #[test]
    fn a_lane_is_busy_while_its_counter_moves_and_a_little_longer() {
        let mut activity = Activity::default();
        let at = Time::from_millis;
        assert!(!activity.take(at(100), 7, &[0, 0]));
        assert_eq!(usage(&activity), [Usage::Idle; 2]);
        assert!(activity.take(at(200), 7, &[0, 3000]));
        assert!(activity.carried(at(200), 7));
        assert_eq!(usage(&activity), [Usage::Light, Usage::Busy], "the next frame takes the other lane");
        assert!(!activity.take(at(1199), 7, &[0, 3000]));
        assert!(!activity.carried(at(1199), 7));
        assert!(activity.take(at(1200), 7, &[0, 3000]));
        assert_eq!(usage(&activity), [Usage::Light; 2]);
        assert!(!activity.take(at(10_199), 7, &[0, 3000]));
        assert!(activity.take(at(10_200), 7, &[0, 3000]));
        assert_eq!(usage(&activity), [Usage::Idle; 2]);
    }

    #[test]
    fn a_frame_now_and_then_keeps_all_lanes_of_its_plan_in_use_and_none_busy() {
        let mut activity = Activity::default();
        let mut sent = [0; 2];
        for heartbeat in 1..50u64 {
            sent[heartbeat as usize % 2] += 70;
            activity.take(Time::from_millis(heartbeat * 9000), 7, &sent);
            assert_eq!(usage(&activity), [Usage::Light; 2], "heartbeat {heartbeat}");
        }
    }

    #[test]
    fn a_new_plan_starts_from_zero_and_a_gone_one_is_forgotten() {
        let mut activity = Activity::default();
        let now = Time::from_millis(100);
        activity.take(now, 7, &[9000]);
        assert!(!activity.take(now, 7, &[4000]), "still busy");
        assert_eq!(activity.usage(7, 0), Usage::Busy);
        assert!(activity.turn(&[]).is_empty());
        assert_eq!(activity.usage(7, 0), Usage::Idle);
    }

    #[test]
    fn each_of_many_plans_has_its_turn() {
        let numbers: Vec<u32> = (1..=PLANS_AT_ONCE as u32 * 2 + 10).collect();
        let mut activity = Activity::default();
        let mut seen: Vec<u32> = (0..3).flat_map(|_| activity.turn(&numbers)).collect();
        assert_eq!(seen.len(), PLANS_AT_ONCE * 3);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, numbers);
        // What carries something has each turn.
        let in_use = [3, PLANS_AT_ONCE as u32 * 2];
        in_use.iter().for_each(|number| _ = activity.take(Time::from_millis(1), *number, &[70]));
        for _ in 0..5 {
            let turn = activity.turn(&numbers);
            assert_eq!((&turn[..2], turn.len()), (&in_use[..], PLANS_AT_ONCE + 2));
        }
    }

    /// The shortest of several looks at so many plans, some of which are read in each.
    fn shortest_look(plans: u32) -> Duration {
        let numbers: Vec<u32> = (1..=plans).collect();
        let mut activity = Activity::default();
        let mut look = || {
            let began = Instant::now();
            for number in activity.turn(&numbers) {
                activity.take(Time::from_millis(1), number, &[]);
            }
            began.elapsed()
        };
        // All have been read once, then.
        (0..plans).step_by(PLANS_AT_ONCE).for_each(|_| _ = look());
        (0..10).map(|_| look()).min().unwrap_or_default()
    }

    #[test]
    fn eight_times_as_many_plans_take_not_much_more_than_eight_times_as_long() {
        let (few, many) = (shortest_look(512), shortest_look(4096));
        // Each among each others would be 64 times as long.
        assert!(many < few * 24, "{few:?} and {many:?}");
    }
}
