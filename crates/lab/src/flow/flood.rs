//! Frames at a rate, whatever becomes of them: what somebody hostile on the wire sends.

use super::{LOOK, Task};
use crate::packet::Tap;
use linkbraid_api::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Frames leave in bursts, one each such time.
const BURST: Duration = Duration::from_millis(1);
/// Most frames that leave with one system call.
const AT_ONCE: u64 = 64;
/// A sender that is this late, because the machine had no time for it, does not catch up.
const LATE: Duration = Duration::from_millis(20);

/// A sender of frames. Dropped, it ends.
#[derive(Debug)]
pub struct Flood(Task<Flooded>);

/// What a flood came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flooded {
    /// Frames that left.
    pub sent: u64,
    /// Frames that the sender's kernel did not take.
    pub refused: u64,
    /// For how long it sent.
    pub time: Duration,
}

impl Flood {
    /// Sends the frames that `frame` makes of the numbers 0, 1 and so on, so many a second.
    pub fn start(tap: Tap, per_second: u32, frame: impl Fn(u64) -> Vec<u8> + Send + 'static) -> Self {
        Self(Task::start(move |over| send(&tap, per_second.max(1), frame, over)))
    }

    /// Ends it.
    pub fn stop(self) -> Result<Flooded, Error> {
        self.0.join().map_err(|e| Error::new("flood", "the sender failed", e.to_string()))
    }
}

impl Flooded {
    /// Frames that left in a second.
    pub fn per_second(&self) -> f64 {
        self.sent as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

fn send(tap: &Tap, per_second: u32, frame: impl Fn(u64) -> Vec<u8>, over: &AtomicBool) -> Flooded {
    let burst = u64::from(per_second / 1000).max(1);
    let period = if per_second < 1000 { Duration::from_secs(1) / per_second } else { BURST };
    let begun = Instant::now();
    let (mut due, mut flooded, mut number) = (begun, Flooded::default(), 0);
    while !over.load(Ordering::Acquire) {
        let now = Instant::now();
        if let Some(wait) = due.checked_duration_since(now) {
            std::thread::sleep(wait.min(LOOK));
            continue;
        }
        due = if now - due > LATE { now } else { due } + period;
        let mut left = burst;
        while left > 0 {
            let many = left.min(AT_ONCE);
            let frames: Vec<Vec<u8>> = (number..number + many).map(&frame).collect();
            let taken = tap.send_all(&frames) as u64;
            flooded.sent += taken;
            flooded.refused += many - taken;
            (left, number) = (left - many, number + many);
        }
    }
    Flooded { time: begun.elapsed(), ..flooded }
}
