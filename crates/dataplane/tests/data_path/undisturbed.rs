//! Tests of what the data path makes of time. It reads the kernel's clock, which goes on while a busy machine lets the test wait.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// What a program takes for a frame, and more: time beyond it is time that somebody else had.
const RUN_MAX: Duration = Duration::from_micros(100);
/// Half of the shortest time that the data path tells from none (`STALL_NS`).
const LOST_MAX: Duration = Duration::from_millis(1);
/// How often a test may be disturbed.
const TURNS: usize = 50;

thread_local! {
    /// When the test last did something.
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    /// What time others had meanwhile.
    static LOST: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// What went by until now is of no interest.
pub fn begin() {
    LAST.set(None);
}

/// A program was run on a frame: what time went by since the last one is time that the test did not ask for.
pub fn ran() {
    let now = Instant::now();
    let pause = LAST.replace(Some(now)).map_or(Duration::ZERO, |last| now - last);
    LOST.set(LOST.get() + pause.saturating_sub(RUN_MAX));
}

/// Lets time pass.
pub fn pass(time: Duration) {
    ran();
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
    let late = begun.elapsed() - time;
    LOST.set(LOST.get() + late.saturating_sub(RUN_MAX));
    LAST.set(Some(Instant::now()));
}

/// Runs a test. If it fails, and others had more than `LOST_MAX` of its time, that says nothing, and it is run again.
pub fn undisturbed(test: impl Fn()) {
    for turn in 1.. {
        begin();
        LOST.set(Duration::ZERO);
        let Err(failure) = catch_unwind(AssertUnwindSafe(&test)) else { return };
        let lost = LOST.get();
        if lost < LOST_MAX || turn == TURNS {
            resume_unwind(failure);
        }
        eprintln!("stood still for {lost:?}, so what failed says nothing: once more");
    }
}
