//! One page of HTML that holds everything: what is claimed, what was measured, beside what, and how to do it again.
//!
//! It needs nothing but itself: figures are inline SVG, styles are inline, there are no scripts.

mod claims;
mod figures;
mod papers;
mod section;

use crate::collect::Collected;
use crate::report::{Reason, Report};
use linkbraid_api::Error;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page/style.css");

/// The page of some reports.
///
/// # Errors
/// A figure cannot be drawn.
pub fn page(collected: &Collected) -> Result<String, Error> {
    let sections = collected.reports.iter().map(section::section).collect::<Result<Vec<_>, _>>()?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "linkbraid: what it does, measured" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "linkbraid: what it does, measured" }
                p {
                    "Every figure stands beside its base, measured in the same run and in turns with it: read ratios, not Mbit/s. "
                    "Medians, with the smallest and the largest value. What was missed is listed first."
                }
                (where_it_ran(&collected.reports))
                (claims::summary(&collected.reports))
                (not_measured(collected))
                nav {
                    h2 { "Experiments" }
                    ul {
                        @for report in &collected.reports {
                            li { a href={ "#" (report.experiment) } { (report.experiment) } ": " (report.about) }
                        }
                    }
                }
                @for section in sections { (section) }
                (figures::all(&collected.reports))
                footer {
                    h2 { "To do it again" }
                    pre { "linkbraid bench run all --out results\nlinkbraid bench report --in results" }
                    p { "Nothing on this page is typed in but the papers' own values, which are marked as theirs." }
                }
            }
        }
    };
    Ok(page.into_string())
}

fn where_it_ran(reports: &[Report]) -> Markup {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for report in reports {
        let line = report.machine.line();
        match lines.iter_mut().find(|(known, _)| *known == line) {
            Some((_, names)) => names.push(&report.experiment),
            None => lines.push((line, vec![&report.experiment])),
        }
    }
    html! {
        @for (line, names) in &lines {
            p.machine {
                (line)
                @if lines.len() > 1 { " (" (names.join(", ")) ")" }
            }
        }
    }
}

fn not_measured(collected: &Collected) -> Markup {
    let failed = collected
        .reports
        .iter()
        .flat_map(|report| report.failed.iter().map(move |reason| (report.experiment.as_str(), reason)));
    let failed: Vec<(&str, &Reason)> = failed.collect();
    // An experiment that the machine cannot run at all.
    let skipped = collected
        .reports
        .iter()
        .flat_map(|report| report.skipped.iter().filter(|reason| reason.id == report.experiment));
    let skipped: Vec<&Reason> = skipped.collect();
    if collected.missing.is_empty() && collected.unread.is_empty() && failed.is_empty() && skipped.is_empty()
    {
        return html! {};
    }
    html! {
        h2 { "Not measured" }
        ul {
            @for reason in collected.missing.iter().chain(&collected.unread).chain(skipped) {
                li { b { (reason.id) } ": " (reason.reason) }
            }
            @for (experiment, reason) in failed {
                li {
                    b { (experiment) @if reason.id != experiment { ", " (reason.id) } }
                    ": failed: " (reason.reason)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
