//! What is wanted of copies.

use super::{COPIES, KINDS, METRIC, id};
use crate::experiments::note;
use crate::report::{Bound, Goal};
use crate::run::{Run, cpu_limited};

/// What two links gain at least where all copies are remote and files are large: two links cannot carry more than twice
/// what one does, and the copies begin one by one.
const GAIN: f64 = 1.8;

/// Two links against one, with all copies remote and the largest files.
pub(super) fn judge(run: &mut Run<'_>, sizes: &[usize]) {
    let [one, two] = KINDS;
    let Some(largest) = sizes.last() else { return };
    let [one, two] = [one, two].map(|kind| id(kind, *largest, COPIES));
    let gain = note::ratio(run, &two, &one, METRIC);
    let what = "times the rate over one link, two links, all eight copies remote";
    let busy = cpu_limited(&run.report, &two);
    note::goal(run, Goal::new(&two, what, Bound::AtLeast, GAIN, gain).unless(busy));
}
