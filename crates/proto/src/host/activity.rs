//! Which lanes carry data: only those are probed at the full rate.

use crate::limits::LANES_MAX;
use std::collections::HashMap;

/// A lane that was busy counts as busy for so many looks more: pauses of a flow must not slow its probes down.
const LOOKS_MAX: u8 = 10;
/// Plans looked at in one turn; with more peers each has its turn later.
const PLANS_AT_ONCE: usize = 256;

#[derive(Debug, Default)]
struct Lanes {
    bytes: [u64; LANES_MAX],
    looks_left: [u8; LANES_MAX],
}

/// What the counters were when last looked at.
#[derive(Debug, Default)]
pub(super) struct Activity {
    plans: HashMap<u32, Lanes>,
    next: usize,
}

impl Activity {
    /// The lanes of a plan that carry data: bit i is lane i.
    pub fn busy(&self, number: u32) -> u32 {
        let Some(lanes) = self.plans.get(&number) else { return 0 };
        let bits = lanes.looks_left.iter().enumerate().filter(|(_, left)| **left > 0);
        bits.fold(0, |bits, (i, _)| bits | 1 << i)
    }

    /// Of these plans, ascending, those whose counters are to be read now.
    pub fn turn(&mut self, numbers: &[u32]) -> Vec<u32> {
        self.plans.retain(|number, _| numbers.binary_search(number).is_ok());
        let start = if self.next < numbers.len() { self.next } else { 0 };
        self.next = if numbers.len() > PLANS_AT_ONCE { start + PLANS_AT_ONCE } else { 0 };
        numbers.iter().cycle().skip(start).take(numbers.len().min(PLANS_AT_ONCE)).copied().collect()
    }

    /// Takes the counters of a plan, in bytes; whether a lane began or ended to be busy.
    pub fn take(&mut self, number: u32, bytes: &[u64]) -> bool {
        let before = self.busy(number);
        let lanes = self.plans.entry(number).or_default();
        for (i, bytes) in bytes.iter().take(LANES_MAX).enumerate() {
            // Counters begin at zero again when the plan is another one.
            let moved = *bytes != lanes.bytes[i] && *bytes > 0;
            lanes.bytes[i] = *bytes;
            lanes.looks_left[i] = if moved { LOOKS_MAX } else { lanes.looks_left[i].saturating_sub(1) };
        }
        for left in lanes.looks_left.iter_mut().skip(bytes.len()) {
            *left = 0;
        }
        self.busy(number) != before
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, LOOKS_MAX, PLANS_AT_ONCE};
    use std::time::{Duration, Instant};

    #[test]
    fn a_lane_is_busy_while_its_counter_moves_and_a_little_longer() {
        let mut activity = Activity::default();
        assert!(!activity.take(7, &[0, 0]));
        assert!(activity.take(7, &[0, 60]));
        assert_eq!(activity.busy(7), 0b10);
        for _ in 1..LOOKS_MAX {
            assert!(!activity.take(7, &[0, 60]));
        }
        assert!(activity.take(7, &[0, 60]));
        assert_eq!(activity.busy(7), 0);
    }

    #[test]
    fn a_new_plan_starts_from_zero_and_a_gone_one_is_forgotten() {
        let mut activity = Activity::default();
        activity.take(7, &[100]);
        assert!(!activity.take(7, &[40]), "still busy");
        assert_eq!(activity.busy(7), 1);
        assert_eq!(activity.turn(&[]), []);
        assert_eq!(activity.busy(7), 0);
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
    }

    /// The shortest of several looks at so many plans, some of which are read in each.
    fn shortest_look(plans: u32) -> Duration {
        let numbers: Vec<u32> = (1..=plans).collect();
        let mut activity = Activity::default();
        let mut look = || {
            let began = Instant::now();
            for number in activity.turn(&numbers) {
                activity.take(number, &[]);
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
