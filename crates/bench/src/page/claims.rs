//! The table at the top: each claim with the worst figure that it has, met or not.

use crate::report::{Bound, Goal, Report};
use maud::{Markup, html};

/// Goals of one experiment that want the same.
struct Claim<'a> {
    experiment: &'a str,
    what: &'a str,
    goals: Vec<&'a Goal>,
}

impl Claim<'_> {
    fn count(&self, met: Option<bool>) -> usize {
        self.goals.iter().filter(|goal| goal.met == met).count()
    }

    /// The goal whose value is worst, measured by its own limit.
    fn worst(&self) -> Option<&Goal> {
        let judged = self.goals.iter().filter(|goal| goal.value.is_some());
        judged.copied().max_by(|a, b| shortfall(a).total_cmp(&shortfall(b)))
    }

    fn verdict(&self) -> (&'static str, String) {
        let (met, missed, open) = (self.count(Some(true)), self.count(Some(false)), self.count(None));
        match (met, missed, open) {
            (_, 0, 0) => ("met", "met".into()),
            (0, 0, _) => ("open", "not known".into()),
            (_, 0, open) => ("open", format!("met in {met}, not known in {open}")),
            (0, missed, 0) => {
                ("missed", if missed == 1 { "missed".into() } else { format!("missed in all {missed}") })
            }
            (met, missed, 0) => ("missed", format!("missed in {missed} of {}", met + missed)),
            (met, missed, open) => {
                ("missed", format!("missed in {missed} of {}, not known in {open}", met + missed))
            }
        }
    }
}

/// How far a value is on the wrong side of its limit, as a share of it; negative on the right side.
fn shortfall(goal: &Goal) -> f64 {
    let value = goal.value.unwrap_or(goal.limit);
    let scale = if goal.limit == 0.0 { 1.0 } else { goal.limit.abs() };
    match goal.bound {
        Bound::AtLeast => (goal.limit - value) / scale,
        Bound::AtMost | Bound::Below => (value - goal.limit) / scale,
    }
}

fn claims(reports: &[Report]) -> Vec<Claim<'_>> {
    let mut claims: Vec<Claim<'_>> = Vec::new();
    for report in reports {
        for goal in &report.goals {
            let known = claims
                .iter_mut()
                .find(|claim| claim.experiment == report.experiment && claim.what == goal.what);
            match known {
                Some(claim) => claim.goals.push(goal),
                None => {
                    let claim = Claim { experiment: &report.experiment, what: &goal.what, goals: vec![goal] };
                    claims.push(claim);
                }
            }
        }
    }
    claims
}

/// All claims; those that were missed first, then those that nobody can tell, then those that were met.
pub(super) fn summary(reports: &[Report]) -> Markup {
    let mut claims = claims(reports);
    claims.sort_by_key(|claim| (claim.count(Some(false)) == 0, claim.count(None) == 0));
    let missed = claims.iter().filter(|claim| claim.count(Some(false)) > 0).count();
    html! {
        h2 { "Claims" }
        p { (claims.len()) " claims, " (missed) " of them missed somewhere." }
        div.scroll {
            table.claims {
                thead { tr { th { "verdict" } th { "experiment" } th.number { "worst" } th { "what it is" } th.number { "wanted" } } }
                tbody {
                    @for claim in &claims {
                        @let (class, verdict) = claim.verdict();
                        tr {
                            td class=(class) { (verdict) }
                            td { a href={ "#" (claim.experiment) } { (claim.experiment) } }
                            td.number {
                                (claim.worst().and_then(|goal| goal.value).map_or_else(|| "-".into(), number))
                            }
                            td { (claim.what) @if let Some(goal) = claim.worst() { span.small { " (" (goal.case) ")" } } }
                            td.number { (claim.worst().or_else(|| claim.goals.first().copied()).map(limit).unwrap_or_default()) }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn limit(goal: &Goal) -> String {
    format!("{} {}", goal.bound.words(), number(goal.limit))
}

/// Three digits that say something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        x if x == 0.0 || (x >= 1000.0 && x.fract() == 0.0) => format!("{value:.0}"),
        x if x >= 100.0 => format!("{value:.0}"),
        x if x >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}
