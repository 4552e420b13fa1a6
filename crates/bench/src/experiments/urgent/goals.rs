//! What messages that cannot wait shall get.

use super::scenario::{self, id};
use super::{LINKS, loads};
use crate::report::{Bound, Goal, Report};
use crate::run::{Run, cpu_limited};

/// Of the same link idle.
const MEDIAN: f64 = 1.2;
const P99: f64 = 2.0;
/// One channel over two.
const BETTER: f64 = 20.0;
/// Bulk traffic, of the links that are left to it.
const BULK: f64 = 0.97;

/// A mean difference within so many of its standard errors is chance.
const CHANCE: f64 = 3.0;

/// Adds all goals to the report.
pub(super) fn judge(run: &mut Run<'_>) {
    let all = loads(run);
    let mut goals: Vec<Goal> = all.iter().flat_map(|load| of_load(&run.report, load.word)).collect();
    goals.extend(all.iter().flat_map(|load| of_cuts(&run.report, &format!("mirror/{}", load.word))));
    goals.into_iter().for_each(|goal| run.goal(goal));
}

pub(super) fn of_load(report: &Report, load: &str) -> Vec<Goal> {
    let [idle, two, one, bulk] = ["idle", "two", "one-0", scenario::BULK].map(|word| id(load, word));
    let ratio = |id: &str, metric: &str, base: &str| report.times(id, metric, base);
    let links = (LINKS - 1) as f64;
    let lost = report.spread(&two, "lost").map(|lost| lost.max);
    let busy = cpu_limited(report, &two);
    let (most, least) = (Bound::AtMost, Bound::AtLeast);
    let of_links = format!("of {links} bare links' goodput for bulk traffic");
    let bulk = ratio(&two, "bulk.mbit", &bulk).map(|ratio| ratio / links);
    let better = ratio(&one, "median_us", &two);
    [
        Goal::new(
            &two,
            "of the idle link's median round trip",
            most,
            MEDIAN,
            ratio(&two, "median_us", &idle),
        ),
        Goal::new(&two, "of the idle link's 99th percentile", most, P99, ratio(&two, "p99_us", &idle)),
        Goal::new(&two, "messages lost", most, 0.0, lost),
        Goal::new(&two, of_links, least, BULK, bulk),
        Goal::new(&one, "times the median round trip of two channels", least, BETTER, better),
    ]
    .map(|goal| goal.unless(busy.clone()))
    .into()
}

pub(super) fn of_cuts(report: &Report, id: &str) -> Vec<Goal> {
    let sum = |metric: &str| report.sum(id, metric);
    let dropped = sum("backlog_drops").filter(|frames| *frames > 0.0);
    let dropped = dropped.map(|frames| format!("the machine itself dropped {frames} frames"));
    let none = |what: &str, metric: &str| Goal::new(id, what, Bound::AtMost, 0.0, sum(metric));
    vec![
        none("messages lost while a link was cut", "during.lost").unless(dropped.clone()),
        none("messages lost as it came back", "after.lost").unless(dropped),
        none("messages late while a link was cut", "during.late").unless(late_anyway(report, id)),
        none("messages twice", "twice"),
    ]
}

/// Why late messages mean nothing: without a cut messages were late as well, for the machine had no time for them, and
/// from one cut to the next the difference varies more than it is. Late messages come in bursts, so they are compared
/// cut by cut and not as counts of independent things.
fn late_anyway(report: &Report, id: &str) -> Option<String> {
    let [during, late] = ["during.late", "before.late"].map(|metric| report.measure(id, metric));
    let more: Vec<f64> =
        during?.values.iter().zip(&late?.values).map(|(during, before)| during - before).collect();
    let count = more.len() as f64;
    let mean = more.iter().sum::<f64>() / count;
    let variance = more.iter().map(|more| (more - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let (before, of) = (report.sum(id, "before.late")?, report.sum(id, "before.sent")?);
    let chance = CHANCE * (variance / count).sqrt();
    (before > 0.0 && mean <= chance)
        .then(|| format!("with no link cut {before} of {of} messages were late as well"))
}
