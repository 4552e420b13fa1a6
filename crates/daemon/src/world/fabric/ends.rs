//! What ended starts of a fabric that nobody wanted to end, counted for as long as this daemon has the fabric.

use super::record::{END_NUMBERS_FROM, record};
use linkbraid_api::CounterRecord;
use linkbraid_fabric::Loss;

/// How often, by what it was.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    /// A thread or a program failed.
    pub failed: u64,
    cut: u64,
    overwritten: u64,
    removed: u64,
}

impl Ends {
    /// One more.
    pub(crate) fn lost(&mut self, loss: Loss) {
        *match loss {
            Loss::Cut => &mut self.cut,
            Loss::Overwritten => &mut self.overwritten,
            Loss::Removed => &mut self.removed,
        } += 1;
    }

    /// In the order of their numbers.
    pub(crate) fn records(&self) -> Vec<CounterRecord> {
        let rows = [
            (
                "end_failed",
                "times it was restarted because one of its threads or its program failed",
                self.failed,
            ),
            ("end_memory_cut", "times its shared memory was truncated", self.cut),
            ("end_memory_overwritten", "times its shared memory was overwritten", self.overwritten),
            ("end_memory_removed", "times its shared memory was removed or replaced", self.removed),
        ];
        let one = |(number, (name, text, count)): (u32, (&str, &str, u64))| {
            record(number, name.to_owned(), text, "protocol", count, 0)
        };
        (END_NUMBERS_FROM..).zip(rows).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_has_a_counter_of_its_own() {
        let mut ends = Ends { failed: 4, ..Ends::default() };
        for (loss, times) in Loss::ALL.into_iter().zip(1..) {
            (0..times).for_each(|_| ends.lost(loss));
        }
        let records = ends.records();
        assert!(records.iter().map(|record| record.number).eq(300..304));
        assert!(records.iter().map(|record| record.frames).eq([4, 1, 2, 3]));
        for loss in Loss::ALL {
            assert!(records.iter().any(|record| record.name == format!("end_memory_{}", loss.name())));
        }
    }
}
