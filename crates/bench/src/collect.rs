//! Finds the reports that a page is made of: of each experiment the newest in a folder.

use crate::experiments::EXPERIMENTS;
use crate::report::{Reason, Report};
use linkbraid_api::Error;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::Path;

/// The longest file that is read: a whole soak is about a megabyte.
const FILE_MAX: u64 = 64 << 20;

/// What a folder of results holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Collected {
    /// The newest report of each experiment, in the order in which experiments run.
    pub reports: Vec<Report>,
    /// Experiments without a report, each with the reason.
    pub missing: Vec<Reason>,
    /// Files that could not be read, each with the reason.
    pub unread: Vec<Reason>,
}

impl Collected {
    /// Reads `EXPERIMENT-TIME.json` files, as [`save`](crate::save) writes them.
    ///
    /// # Errors
    /// The folder cannot be read, or holds no report at all.
    pub fn from_folder(folder: &Path) -> Result<Self, Error> {
        let shown = folder.display().to_string();
        let hint = |error: Error| error.hint(format!("linkbraid bench run all --out {shown}"));
        let found =
            Self::look(folder).map_err(|e| hint(Error::new(&shown, "cannot read results", e.to_string())))?;
        if found.reports.is_empty() {
            return Err(hint(Error::new(shown.clone(), "cannot report", "there are no results in it")));
        }
        Ok(found)
    }

    /// The same of a folder that may hold none.
    pub(crate) fn look(folder: &Path) -> io::Result<Self> {
        let entries = fs::read_dir(folder)?;
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        let mut found = Self::default();
        for experiment in &EXPERIMENTS {
            let (report, unread) = newest(folder, &names, experiment.name);
            found.unread.extend(unread);
            match report {
                Some(report) => found.reports.push(report),
                None => found.missing.push(Reason {
                    id: experiment.name.into(),
                    reason: format!("not run; linkbraid bench run {}", experiment.name),
                }),
            }
        }
        Ok(found)
    }
}

/// The newest report of an experiment among the files of a folder, and newer ones that could not be read. The time in their
/// sorted names makes the newest the last.
fn newest(folder: &Path, names: &[String], experiment: &str) -> (Option<Report>, Vec<Reason>) {
    let mut unread = Vec::new();
    for name in names.iter().rev().filter(|name| is_of(name, experiment)) {
        match read(&folder.join(name)) {
            Ok(report) => return (Some(report), unread),
            Err(reason) => unread.push(Reason { id: name.clone(), reason }),
        }
    }
    (None, unread)
}

/// Whether a file's name is `EXPERIMENT-TIME.json`.
fn is_of(name: &str, experiment: &str) -> bool {
    let time = name.strip_prefix(experiment).and_then(|rest| rest.strip_prefix('-'));
    time.and_then(|rest| rest.strip_suffix("Z.json"))
        .is_some_and(|time| time.len() == 15 && time.bytes().all(|b| b.is_ascii_digit() || b == b'T'))
}

fn read(path: &Path) -> Result<Report, String> {
    let length = fs::metadata(path).map_err(|e| e.to_string())?.len();
    if length > FILE_MAX {
        return Err(format!("it is longer than {FILE_MAX} bytes"));
    }
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    Report::parse(&text)
}

#[cfg(test)]
mod tests;
