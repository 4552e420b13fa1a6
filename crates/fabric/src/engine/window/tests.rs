use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn in_order_everything_passes_once_over_the_wrap() {
    let mut window = Window::default();
    for sequence in (u32::MAX - 200..=u32::MAX).chain(0..200) {
        assert!(window.take(sequence));
        assert!(!window.take(sequence));
    }
}

#[test]
fn a_late_one_passes_once_and_a_very_late_one_does_not() {
    let mut window = Window::default();
    for sequence in [10, 12, 11 + WINDOW - 1] {
        assert!(window.take(sequence));
    }
    assert!(window.take(11) && !window.take(11), "the last one that is remembered");
    assert!(!window.take(10) && !window.take(9), "{WINDOW} behind and more");
    assert!(window.take(5_000) && !window.take(12));
}

proptest! {
    #[test]
    fn nothing_passes_twice(start in any::<u32>(), steps in proptest::collection::vec(0u32..2_500, 1..300)) {
        let (mut window, mut passed) = (Window::default(), BTreeSet::new());
        for step in steps {
            let sequence = start.wrapping_add(step);
            if window.take(sequence) {
                prop_assert!(passed.insert(sequence));
            }
        }
    }
}
