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

/// What the counters were when last looked at, of plans that ever carried anything.
#[derive(Debug, Default)]
pub(super) struct Activity {
    plans: HashMap<u32, Lanes>,
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

    /// The plans whose counters are to be read now, ascending: those of `used` and those that carried something lately, as far as they
    /// exist. Plans that are gone are forgotten.
    pub fn turn(&mut self, used: &[u32], exists: impl Fn(u32) -> bool) -> Vec<u32> {
        self.plans.retain(|number, _| exists(*number));
        let lately = self.plans.iter().filter(|(_, lanes)| lanes.seen.light).map(|(number, _)| *number);
        let mut turn: Vec<u32> =
            used.iter().copied().filter(|number| exists(*number)).chain(lately).collect();
        turn.sort_unstable();
        turn.dedup();
        turn
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
    use super::Activity;
    use crate::{Time, inspector::Usage};

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
        assert!(activity.turn(&[7], |_| false).is_empty());
        assert_eq!(activity.usage(7, 0), Usage::Idle);
    }

    #[test]
    fn plans_are_read_when_they_are_used_and_for_a_while_after() {
        let mut activity = Activity::default();
        let exists = |number: u32| number != 9;
        let mut look = |ms: u64, used: &[u32], bytes: u64| {
            let turn = activity.turn(used, exists);
            turn.iter().for_each(|number| _ = activity.take(Time::from_millis(ms), *number, &[bytes]));
            turn
        };
        assert_eq!(look(100, &[], 0), [0; 0], "most of many plans are never used");
        assert_eq!(look(200, &[3, 8, 9], 5000), [3, 8]);
        assert_eq!(look(300, &[1, 8], 5000), [1, 3, 8], "each once");
        assert_eq!(look(10_400, &[], 5000), [1, 3, 8]);
        assert_eq!(look(10_500, &[], 5000), [0; 0]);
        // What it counted before is not new: one small frame makes it no busy one.
        assert_eq!(look(60_000, &[3], 5070), [3]);
        assert_eq!([1, 3].map(|number| activity.usage(number, 0)), [Usage::Idle, Usage::Light]);
    }
}
