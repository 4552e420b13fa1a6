//! Tests of what the data path makes of time. It reads the kernel's clock, which goes on while a busy machine lets the test wait.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Half of the shortest time that the data path tells from none (`STALL_NS`).
const PAUSE_MAX: Duration = Duration::from_millis(1);
/// How often a test may be disturbed.
const TURNS: usize = 50;

thread_local! {
    /// When the test last did something.
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    static LONGEST: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// What went by until now is of no interest.
pub fn begin() {
    LAST.set(None);
}

/// A program was run on a frame: what time went by since the last one is time that the test did not ask for.
pub fn ran() {
    let now = Instant::now();
    let pause = LAST.replace(Some(now)).map_or(Duration::ZERO, |last| now - last);
    LONGEST.set(LONGEST.get().max(pause));
}

/// Lets time pass.
pub fn pass(time: Duration) {
    ran();
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
    let late = begun.elapsed() - time;
    LONGEST.set(LONGEST.get().max(late));
    LAST.set(Some(Instant::now()));
}

/// Runs a test. If it fails, and stood still for longer than `PAUSE_MAX` meanwhile, that says nothing, and it is run again.
pub fn undisturbed(test: impl Fn()) {
    for turn in 1.. {
        begin();
        LONGEST.set(Duration::ZERO);
        let Err(failure) = catch_unwind(AssertUnwindSafe(&test)) else { return };
        let pause = LONGEST.get();
        if pause < PAUSE_MAX || turn == TURNS {
            resume_unwind(failure);
        }
        eprintln!("stood still for {pause:?}, so what failed says nothing: once more");
    }
}
