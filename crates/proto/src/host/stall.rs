//! Whether plain hosts that are sent to have fallen silent: then the members are tested at once, not in their turn.

use crate::Time;
use std::time::Duration;

/// Hosts that spoke so short a time ago are expected to go on: what goes one way only is never answered.
const HEARD: Duration = Duration::from_secs(1);

/// What was seen in the looks at the counters so far.
#[derive(Debug, Default)]
pub(super) struct Stall {
    frames: u64,
    heard_at: Option<Time>,
    sent_at: Option<Time>,
}

impl Stall {
    /// Something left for plain hosts since the last look.
    pub const fn sent(&mut self, now: Time) {
        self.sent_at = Some(now);
    }

    /// Takes how many frames plain hosts have sent in all; whether they have just fallen silent. Said once.
    pub fn take(&mut self, now: Time, frames: u64) -> bool {
        if std::mem::replace(&mut self.frames, frames) != frames {
            self.heard_at = Some(now);
            return false;
        }
        let spoke = self.heard_at.is_some_and(|at| now.since(at) <= HEARD);
        let stalled = spoke && self.sent_at == Some(now);
        if stalled {
            self.heard_at = None;
        }
        stalled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_that_spoke_until_now_and_are_sent_to_have_fallen_silent() {
        let mut stall = Stall::default();
        let mut look = |tenth: u64, sent, frames| {
            let now = Time::from_millis(tenth * 100);
            if sent {
                stall.sent(now);
            }
            stall.take(now, frames)
        };
        assert!(!look(1, true, 0), "never heard");
        assert!(!look(2, true, 50));
        assert!(!look(3, false, 50), "nobody asked");
        assert!(look(4, true, 50));
        assert!(!look(5, true, 50), "said once");
        assert!(!look(6, true, 60));
        assert!(!look(16, false, 60));
        assert!(!look(17, true, 60), "what goes one way only is not answered");
    }
}
