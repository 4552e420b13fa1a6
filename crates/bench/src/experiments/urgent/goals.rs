//! What messages that cannot wait shall get.

use super::scenario::id;
use super::{LINKS, loads};
use crate::report::{Bound, Cut, CutCase, Goal, MessageCase};
use crate::run::{CPU_LIMITED, Run};

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
    let mut goals = Vec::new();
    for load in loads(run) {
        let case = |word: &str| run.report.message_case(&id(load.word, word));
        goals.extend(of_load(load.word, case("two"), case("one-0")));
    }
    for load in loads(run) {
        let id = format!("mirror/{}", load.word);
        goals.extend(of_cuts(&id, run.report.cuts.iter().find(|case| case.id == id)));
    }
    goals.into_iter().for_each(|goal| run.goal(goal));
}

pub(super) fn of_load(load: &str, two: Option<&MessageCase>, one: Option<&MessageCase>) -> Vec<Goal> {
    let idle = id(load, "idle");
    let (name, one_name) = (id(load, "two"), id(load, "one-0"));
    let ratio = |name: &str, base: &str| two?.ratio(name, base);
    let links = (LINKS - 1) as f64;
    let lost = two.and_then(|case| case.medians.lost).map(|lost| lost.max);
    let busy = two.and_then(cpu_limited);
    [
        Goal::new(
            &name,
            "of the idle link's median round trip",
            Bound::AtMost,
            MEDIAN,
            ratio("median", &idle),
        ),
        Goal::new(&name, "of the idle link's 99th percentile", Bound::AtMost, P99, ratio("p99", &idle)),
        Goal::new(&name, "messages lost", Bound::AtMost, 0.0, lost),
        Goal::new(
            &name,
            format!("of {links} bare links' goodput for bulk traffic"),
            Bound::AtLeast,
            BULK,
            ratio("bulk", &id(load, super::scenario::BULK)).map(|ratio| ratio / links),
        ),
        Goal::new(
            &one_name,
            "times the median round trip of two channels",
            Bound::AtLeast,
            BETTER,
            one.and_then(|one| one.ratio("median", &name)),
        ),
    ]
    .map(|goal| goal.unless(busy.clone()))
    .into()
}

pub(super) fn of_cuts(id: &str, case: Option<&CutCase>) -> Vec<Goal> {
    let sum = |value: fn(&Cut) -> u64| case.map(|case| case.sum(value) as f64);
    let dropped = case.filter(|case| case.backlog_drops > 0);
    let dropped = dropped.map(|case| format!("the machine itself dropped {} frames", case.backlog_drops));
    let lost = |what: &str, value| Goal::new(id, what, Bound::AtMost, 0.0, value).unless(dropped.clone());
    vec![
        lost("messages lost while a link was cut", sum(|cut| cut.during.lost)),
        lost("messages lost as it came back", sum(|cut| cut.after.lost)),
        Goal::new(id, "messages late while a link was cut", Bound::AtMost, 0.0, sum(|cut| cut.during.late))
            .unless(case.and_then(late_anyway)),
        Goal::new(id, "messages twice", Bound::AtMost, 0.0, case.map(|case| case.twice as f64)),
    ]
}

/// Why late messages tell nothing: without a cut messages were late as well, for the machine had no time for them, and
/// from one cut to the next the difference varies more than it is. Late messages come in bursts, so they are compared
/// cut by cut and not as counts of independent things.
fn late_anyway(case: &CutCase) -> Option<String> {
    let more: Vec<f64> =
        case.cuts.iter().map(|cut| cut.during.late as f64 - cut.before.late as f64).collect();
    let count = more.len() as f64;
    let mean = more.iter().sum::<f64>() / count;
    let variance = more.iter().map(|more| (more - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let (before, of) = (case.sum(|cut| cut.before.late), case.sum(|cut| cut.before.sent));
    let chance = CHANCE * (variance / count).sqrt();
    (before > 0 && mean <= chance)
        .then(|| format!("with no link cut {before} of {of} messages were late as well"))
}

/// Why a missed goal of this case tells nothing: the machine had no CPU left, whatever took it.
fn cpu_limited(case: &MessageCase) -> Option<String> {
    let share = case.medians.cpu_share?.median;
    (share > CPU_LIMITED).then(|| format!("the machine was at its limit: CPU {:.0} % busy", share * 100.0))
}
