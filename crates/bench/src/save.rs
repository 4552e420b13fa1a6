//! Writes a report as JSON and as SVG, and many of them as a page.

use crate::collect::Collected;
use crate::experiments;
use crate::page::page;
use crate::plot;
use crate::report::{FAILOVERS, Report};
use linkbraid_api::Error;
use serde::Serialize;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Where a report went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The report itself.
    pub json: PathBuf,
    /// Its figure.
    pub svg: PathBuf,
}

/// Writes `EXPERIMENT-TIME.json` and `.svg` into a folder, which is made if it is not there.
pub fn save(report: &Report, folder: &Path) -> Result<Saved, Error> {
    std::fs::create_dir_all(folder).map_err(|e| cannot_write(folder, &e))?;
    let path = |end: &str| folder.join(format!("{}-{}.{end}", report.experiment, report.started));
    let saved = Saved { json: path("json"), svg: path("svg") };
    write_json(report, &saved.json)?;
    std::fs::write(&saved.svg, svg(report)?).map_err(|e| cannot_write(&saved.svg, &e))?;
    Ok(saved)
}

fn write_json(value: &impl Serialize, path: &Path) -> Result<(), Error> {
    let json = serde_json::to_string_pretty(value).map_err(|e| cannot_write(path, &e))?;
    std::fs::write(path, json + "\n").map_err(|e| cannot_write(path, &e))
}

fn cannot_write(path: &Path, cause: &dyn Display) -> Error {
    Error::new(path.display().to_string(), "cannot write", cause.to_string())
}

/// Where a page went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPage {
    /// The HTML.
    pub page: PathBuf,
    /// All that it was made of.
    pub json: PathBuf,
}

/// Writes the page of some reports, and beside it the reports themselves, all in one JSON file.
///
/// # Errors
/// A figure cannot be drawn, or a file cannot be written.
pub fn save_page(collected: &Collected, path: &Path) -> Result<SavedPage, Error> {
    let saved = SavedPage { page: path.to_owned(), json: path.with_extension("json") };
    if saved.json == saved.page {
        let cause = "the page is HTML, JSON goes beside it";
        return Err(cannot_write(path, &cause).hint("linkbraid bench report --out report.html"));
    }
    std::fs::write(&saved.page, page(collected)?).map_err(|e| cannot_write(&saved.page, &e))?;
    write_json(collected, &saved.json)?;
    Ok(saved)
}

pub(crate) fn svg(report: &Report) -> Result<String, Error> {
    let experiment = experiments::find(&report.experiment).ok_or_else(|| {
        Error::new(
            format!("experiment '{}'", report.experiment),
            "cannot draw it",
            "there is none of this name",
        )
        .hint("linkbraid bench list")
    })?;
    let below = format!(
        "{}; {}, {} cores, Linux {}, linkbraid {} ({})",
        what_was_run(report),
        report.machine.cpu,
        report.machine.cores,
        report.machine.kernel,
        report.machine.linkbraid,
        report.machine.build,
    );
    plot::svg(&(experiment.figure)(report), &below)
}

/// How often what was done, for the small print.
fn what_was_run(report: &Report) -> String {
    let settings = report.settings;
    let run = if settings.quick { "quick run" } else { "runs" };
    if let (Some(steps), Some(seed)) = (report.sum("soak", "steps"), report.parameter("soak", "seed")) {
        return format!("{run} of {steps} steps, seed {seed}");
    }
    let times = |id: &&str| Some(report.measure(id, "gap_ms")?.values.len());
    match report.ids(FAILOVERS).iter().filter_map(times).max() {
        Some(times) => format!("{run}, medians of up to {times}"),
        None => format!("{run} of {} s, medians of {}", settings.seconds, settings.repeat),
    }
}

#[cfg(test)]
mod tests;
