use super::*;

#[test]
fn work_is_all_but_idle_waiting_and_stolen() {
    let before = CpuClock::parse("cpu  10 1 5 100 7 2 3 50 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n").expect("parses");
    let after = CpuClock::parse("cpu  110 1 55 200 57 12 43 950 9 9\n").expect("parses");
    let used = after.since(before);
    assert_eq!(used.busy_s, 2.0);
    assert!((used.share - 200.0 / 350.0).abs() < 1e-9, "{used:?}");
    assert_eq!(before.since(before), CpuUse { busy_s: 0.0, share: 0.0 });
}

#[test]
fn text_that_is_something_else_is_refused() {
    for text in ["", "cpu0 1 2 3 4 5 6 7 8\n", "cpu  1 2 3\n", "cpu  a b c d e f g h\n"] {
        assert_eq!(CpuClock::parse(text), None, "{text}");
    }
}

#[test]
fn this_machine_has_a_clock_that_runs() {
    let first = CpuClock::now().expect("readable");
    while CpuClock::now().expect("readable").all == first.all {
        std::hint::spin_loop();
    }
}
