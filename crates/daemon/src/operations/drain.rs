//! A member that nobody is to send to any more, until nothing comes in by it.

use crate::world::bond::Bond;
use linkbraid_proto::Time;
use std::time::Duration;

/// It is over when nothing has come in for this long...
const QUIET: Duration = Duration::from_millis(20);
/// ...or after this long: plain hosts and lost announcements must not keep it.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// How often counters are read.
pub(super) const DRAIN_LOOK: Duration = Duration::from_millis(5);

/// What has come in.
#[derive(Debug)]
pub(super) struct Drain {
    rx_frames: u64,
    quiet_since: Time,
    until: Time,
}

impl Drain {
    pub(super) fn new(now: Time) -> Self {
        Self { rx_frames: u64::MAX, quiet_since: now, until: now + DRAIN_TIMEOUT }
    }

    /// Nothing has come in for long enough, or it has gone on for too long.
    pub(super) fn is_over(&mut self, now: Time, bond: &Bond, slot: u8) -> bool {
        let frames = bond.path.member_counts(slot).map_or(0, |counts| counts.rx.frames);
        if frames != self.rx_frames {
            (self.rx_frames, self.quiet_since) = (frames, now);
        }
        now.since(self.quiet_since) >= QUIET || now >= self.until
    }
}
