use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

proptest! {
    /// Whatever order numbers come in: each is new once, and those within the window are known exactly.
    #[test]
    fn the_window_knows_what_came(
        start in prop_oneof![Just(0u64), any::<u64>()],
        steps in prop::collection::vec((any::<bool>(), prop_oneof![0..70u64, 0..3 * WINDOW]), 1..400),
    ) {
        let mut window = Window::default();
        let (mut came, mut newest) = (BTreeSet::new(), start);
        for (ahead, by) in steps {
            let number = if ahead { newest.saturating_add(by) } else { newest.saturating_sub(by) };
            let known = came.last().is_some_and(|newest: &u64| newest.saturating_sub(number) >= WINDOW);
            prop_assert_eq!(window.is_new(number), !known && !came.contains(&number), "{}", number);
            if window.is_new(number) {
                window.take(number);
                came.insert(number);
                newest = newest.max(number);
            }
        }
    }
}
