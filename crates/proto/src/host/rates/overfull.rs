//! Lanes that other traffic fills, so that nearly nothing of TCP gets through.
//!
//! UDP that does not back off fills a slow link which claims a high speed. TCP then loses most of its segments there and nothing on the other
//! lanes, and has so little under way that nothing is seen to wait anywhere. No rate can be measured, but this can be seen: so such
//! a lane counts for half as much, again and again, until TCP gets through.

use super::LaneRate;

/// A lane is overfull if TCP loses this part of what it is sent, in percent: what is sent again for nothing while a flow begins is less...
const LOST_PERCENT: u64 = 30;
/// ...and if the half of the lanes that lose least lose at most one n-th of that part...
const CLEAN_PART: u64 = 8;
/// ...and if it loses something in so many rounds: a lane that fails is given up before, and a window that was too long loses once...
const LOSSY_ROUNDS: u32 = 3;
/// ...and so many bytes in all, eight segments: what light traffic sends again, for whatever reason, may be on one lane by chance.
const LOST_BYTES: u64 = 8 * 1448;
/// Rounds are taken together, so many at most: TCP that gets next to nothing through sends little in one.
const ROUNDS: u32 = 25;

/// What TCP was sent over a lane and lost there, in bytes, and in how many rounds it lost.
#[derive(Debug, Clone, Copy, Default)]
struct Loss {
    sent: u64,
    lost: u64,
    rounds: u32,
}

impl Loss {
    /// Whether that many times the part is lost here that is lost there.
    fn is_times(self, times: u64, other: Loss) -> bool {
        u128::from(self.lost) * u128::from(other.sent)
            >= u128::from(other.lost) * u128::from(self.sent) * u128::from(times)
    }

    fn part(&self) -> u64 {
        self.lost.saturating_mul(1 << 16) / self.sent.max(1)
    }
}

/// What TCP lost in the last rounds, none of which was busy.
#[derive(Debug, Clone, Default)]
pub(super) struct Losses {
    rounds: u32,
    lanes: Vec<Loss>,
}

impl Losses {
    /// Takes a round in which nothing waited: lanes that are overfull count for less.
    pub fn take(&mut self, lanes: &mut [LaneRate]) {
        if self.rounds >= ROUNDS {
            self.clear();
        }
        self.rounds += 1;
        self.lanes.resize(lanes.len(), Loss::default());
        for (loss, lane) in self.lanes.iter_mut().zip(lanes.iter()) {
            loss.sent += lane.sent_tcp();
            loss.lost += lane.lost();
            loss.rounds += u32::from(lane.lost() > 0);
        }
        let mut cleanest = self.lanes.clone();
        cleanest.sort_by_key(Loss::part);
        let half = cleanest.iter().take(lanes.len() / 2);
        let clean = half.fold(Loss::default(), |all, lane| Loss {
            sent: all.sent + lane.sent,
            lost: all.lost + lane.lost,
            rounds: 0,
        });
        let is_overfull = |loss: &Loss, lane: &LaneRate| {
            loss.rounds >= LOSSY_ROUNDS
                && loss.lost >= LOST_BYTES
                && loss.lost * 100 >= loss.sent * LOST_PERCENT
                && clean.sent > 0
                && loss.is_times(CLEAN_PART, clean)
                && !lane.fixed
        };
        let mut is_cut = false;
        for (_, lane) in self.lanes.iter().zip(lanes).filter(|(loss, lane)| is_overfull(loss, lane)) {
            lane.cut();
            is_cut = true;
        }
        if is_cut {
            self.clear();
        }
    }

    /// Something waited, or the lanes are others.
    pub fn clear(&mut self) {
        *self = Losses::default();
    }
}
