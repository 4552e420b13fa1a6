//! One experiment: what it shows, its figures, its tables, its goals, and how it was run.

use super::{claims, papers};
use crate::experiments;
use crate::plot;
use crate::report::{CASES, Goal, Report};
use crate::table::{self, Table};
use linkbraid_api::Error;
use maud::{Markup, PreEscaped, html};

pub(super) fn section(report: &Report) -> Result<Markup, Error> {
    let figures = figures(report)?;
    Ok(html! {
        section id=(report.experiment) {
            h2 { (report.experiment) }
            p { (report.about) @if !report.paper.is_empty() { " (" (report.paper) ")" } "." }
            @if let Some(note) = table::busy(report) { p.missed { "Note: " (note) "." } }
            (papers::beside(report))
            div.figures { @for figure in figures { figure { (PreEscaped(figure)) } } }
            @for table in table::tables(report) { (table_of(&table)) }
            @for note in table::notes(report) { p { (note) } }
            (goals(&report.goals))
            (left_out(report))
            (how(report))
        }
    })
}

fn figures(report: &Report) -> Result<Vec<String>, Error> {
    let Some(experiment) = experiments::find(&report.experiment) else { return Ok(Vec::new()) };
    let figure = (experiment.figure)(report);
    figure.panels.iter().filter(|panel| !panel.is_empty()).map(plot::panel_svg).collect()
}

fn table_of(table: &Table) -> Markup {
    let class = |column: usize| (!table.words.contains(&column)).then_some("number");
    html! {
        div.scroll {
            table {
                thead { tr { @for (column, heading) in table.headings.iter().enumerate() { th class=[class(column)] { (heading) } } } }
                tbody {
                    @for row in &table.rows {
                        tr { @for (column, cell) in row.iter().enumerate() { td class=[class(column)] { (cell) } } }
                    }
                }
            }
        }
        @for note in &table.notes { p.small { (note) } }
    }
}

/// Those that were not met in full; the others can be unfolded.
fn goals(goals: &[Goal]) -> Markup {
    let (met, others): (Vec<&Goal>, Vec<&Goal>) = goals.iter().partition(|goal| goal.met == Some(true));
    html! {
        @if !goals.is_empty() {
            h3 { "Goals: " (met.len()) " of " (goals.len()) " met" }
            @if !others.is_empty() { ul { @for goal in &others { li { (goal_line(goal)) } } } }
            @if !met.is_empty() {
                details { summary { "those that were met" } ul { @for goal in &met { li { (goal_line(goal)) } } } }
            }
        }
    }
}

fn goal_line(goal: &Goal) -> Markup {
    let value = goal.value.map_or_else(|| "nothing".to_owned(), claims::number);
    let (class, verdict) = match goal.met {
        Some(true) => ("met", "met".to_owned()),
        Some(false) => ("missed", "missed".to_owned()),
        None => ("open", format!("not known, {}", goal.reason)),
    };
    html! {
        span class=(class) { (verdict) } ": " (goal.case) ": " (value) " " (goal.what) ", wanted " (claims::limit(goal))
    }
}

fn left_out(report: &Report) -> Markup {
    html! {
        @if !report.skipped.is_empty() || !report.failed.is_empty() {
            h3 { "Left out" }
            ul {
                @for reason in &report.skipped { li { (reason.id) ": " (reason.reason) } }
                @for reason in &report.failed { li { (reason.id) ": failed: " (reason.reason) } }
            }
        }
    }
}

fn how(report: &Report) -> Markup {
    let settings = &report.settings;
    let of_cases = report.measures.iter().filter(|measure| measure.kind == CASES.key);
    let mut traffic: Vec<&str> = of_cases.map(|measure| measure.command.as_str()).collect();
    traffic.retain(|command| !command.is_empty());
    traffic.sort_unstable();
    traffic.dedup();
    html! {
        details {
            summary { "how it was run" }
            p {
                "Began " (report.started) "; " (if settings.quick { "a quick run" } else { "a whole run" }) ", "
                (settings.repeat) " times " (settings.seconds) " s, after " (settings.omit) " s that do not count. "
                "The machine was " (format!("{:.0}", report.background_cpu_share * 100.0)) " % busy before."
            }
            pre { "linkbraid bench run " (report.experiment) @if settings.quick { " --quick" } }
            @if !traffic.is_empty() { p { "Traffic:" } pre { (traffic.join("\n")) } }
            @for lab in &report.labs {
                p { "Lab " (lab.name) ":" }
                pre { (lab.commands.join("\n")) }
            }
            @if !report.sysctls.is_empty() {
                p { "Settings of the kernel:" }
                pre { @for (key, value) in &report.sysctls { (key) " = " (value) "\n" } }
            }
        }
    }
}
