//! What ended starts of a fabric that nobody wanted to end, counted for as long as this daemon has the fabric.

use linkbraid_fabric::Loss;

/// How often, by what it was.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    /// A thread or a program failed.
    pub failed: u64,
    pub cut: u64,
    pub overwritten: u64,
    pub removed: u64,
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
}
