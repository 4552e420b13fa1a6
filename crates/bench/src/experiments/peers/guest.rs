//! Measures in an emulated machine with a stock kernel, where this kernel does not have what is to be measured: `tests/vm/peers` of
//! the source tree boots it, and its report becomes this one's.

use super::super::guest;
use crate::collect::Collected;
use crate::experiments::prelude::*;
use linkbraid_lab::daemon;
use std::path::PathBuf;
use std::process::Command;

/// How long a guest may take, in real time.
const LIMIT: Duration = Duration::from_secs(2 * 3600);

/// Boots a guest; what prevents that is said in the report.
pub(super) fn run(run: &mut Run<'_>, missing: &str) -> Result<(), Error> {
    run.say(&format!(
        "  this kernel has no {missing}: measuring in an emulated machine with a stock kernel"
    ))?;
    let report = measure(run);
    if let Some(report) = run.noted(guest::CASE, report)? {
        run.report = Report { started: run.report.started.clone(), ..report };
    }
    Ok(())
}

fn measure(run: &mut Run<'_>) -> Result<Report, Error> {
    let script = guest::script(super::SCRIPT, super::NAME)?;
    let out = Scratch::new()?;
    let mut command = Command::new(&script);
    command.arg("--out").arg(&out.0).args(options(run)).env("LINKBRAID_BIN", daemon::binary()?);
    let ended = guest::follow(run, command, LIMIT, &mut |run, line| {
        // The headline has been said.
        if line.starts_with(' ') {
            run.step(line.split_whitespace().next().unwrap_or_default());
            run.say(line)?;
        }
        Ok(())
    })?;
    let Collected { reports, unread, .. } = Collected::look(&out.0).unwrap_or_default();
    reports.into_iter().find(|report| report.experiment == super::NAME).ok_or_else(|| {
        let unread = unread.iter().map(|file| format!("cannot read {}: {}; ", file.id, file.reason));
        let hint = format!("{} --out results --quick", script.display());
        Error::new(guest::CASE, "not measured", unread.collect::<String>() + &ended).hint(hint)
    })
}

/// What the guest's `linkbraid bench run` is given; what came out is ours to say.
fn options(run: &Run<'_>) -> Vec<String> {
    let mut options = vec!["--progress".to_owned(), "--repeat".to_owned(), run.settings.repeat.to_string()];
    if run.settings.quick {
        options.push("--quick".into());
    }
    if !run.only.is_empty() {
        options.extend(["--only".into(), run.only.clone()]);
    }
    options
}

/// A folder that goes with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("linkbraid-peers-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|e| Error::new(path.display().to_string(), "cannot make the folder", e.to_string()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder left behind costs some kilobytes.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
