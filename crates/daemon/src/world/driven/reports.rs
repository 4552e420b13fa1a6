//! When the groups of what is behind a bond are to be reported again, for switches that send multicast only where it was asked for.

use linkbraid_proto::Time;
use std::time::Duration;

/// A report may be lost, and whoever was asked reports once: it is asked again after so long (RFC 3376, section 8.1: robustness).
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// When groups are to be reported again: where other members take them in than before.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// The members by which they were reported last.
    elected: Vec<u8>,
    /// They are to be reported now.
    now: bool,
    /// The question is to be asked once more, whenever the time is looked at next.
    repeat: bool,
    /// Then it is.
    again: Option<Time>,
}

impl Reports {
    pub fn follow(&mut self, elected: &[u8]) {
        if elected != self.elected {
            self.elected = elected.to_vec();
            (self.now, self.repeat) = (true, true);
        }
    }

    pub fn look(&mut self, now: Time) {
        if self.again.take_if(|at| *at <= now).is_some() {
            self.now = true;
        }
        if std::mem::take(&mut self.repeat) {
            self.again = Some(now + ASK_AGAIN);
        }
    }

    /// Whether they are to be reported now, and then no more.
    pub fn take(&mut self) -> bool {
        std::mem::take(&mut self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_asked_for_at_once_and_once_more_when_another_member_is_elected() {
        let mut groups = Reports::default();
        // Every 100 ms: whether it asks. Another member is elected at 0.2 s, and again at 0.9 s.
        let asks = |tick: u64, groups: &mut Reports| {
            groups.follow(if (2..9).contains(&tick) { &[1] } else { &[] });
            groups.look(Time::from_millis(tick * 100));
            groups.take()
        };
        let asked: Vec<u64> = (0..40).filter(|tick| asks(*tick, &mut groups)).collect();
        assert_eq!(asked, [2, 9, 19]);
    }
}
