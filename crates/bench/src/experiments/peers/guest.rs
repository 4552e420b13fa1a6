//! Measures in an emulated machine with a stock kernel, where this kernel lacks what is to be measured: `tests/vm/peers` of
//! the source tree boots it, and its report becomes this one's.

use crate::report::{Report, SCHEMA};
use crate::run::Run;
use linkbraid_api::Error;
use linkbraid_lab::{Running, daemon};
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Where the source tree is, if the current folder is not in it.
const SOURCE_ENV: &str = "LINKBRAID_SOURCE";
/// The script that boots the guest, below it.
const SCRIPT: &str = "tests/vm/peers";
/// What a case that could not be measured is called.
const GUEST: &str = "guest";
/// How long a guest may take, in real time: it is emulated.
const LIMIT: Duration = Duration::from_secs(2 * 3600);
/// How long it may take to end when asked to.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(200);
/// Lines that it says last, kept for an error.
const LINES: usize = 5;
/// The longest report that is read.
const FILE_MAX: u64 = 64 << 20;

/// Boots a guest; what prevents that is said in the report.
pub(super) fn run(run: &mut Run<'_>, lacks: &str) -> Result<(), Error> {
    run.say(&format!("  this kernel has no {lacks}: measuring in an emulated machine with a stock kernel"))?;
    match measure(run) {
        Ok(report) => {
            run.report = Report { started: run.report.started.clone(), ..report };
            Ok(())
        }
        Err(error) => run.fail(GUEST, error),
    }
}

fn measure(run: &mut Run<'_>) -> Result<Report, Error> {
    let script = script()?;
    let out = Scratch::new()?;
    let mut command = Command::new(&script);
    command.arg("--out").arg(&out.0).args(options(run)).env("LINKBRAID_BIN", daemon::binary()?);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut guest = Running::start(command)?;
    let (lines, said) = mpsc::channel();
    for pipe in [
        guest.child().stdout.take().map(|pipe| Box::new(pipe) as Box<dyn std::io::Read + Send>),
        guest.child().stderr.take().map(|pipe| Box::new(pipe) as Box<dyn std::io::Read + Send>),
    ] {
        let (Some(pipe), lines) = (pipe, lines.clone()) else { continue };
        std::thread::spawn(move || {
            let all = BufReader::new(pipe).lines().map_while(Result::ok);
            // Nobody listens any more after Ctrl-C.
            all.take_while(|line| lines.send(line.clone()).is_ok()).for_each(drop);
        });
    }
    drop(lines);
    let last = relay(run, &said).inspect_err(|_| stop(&mut guest))?;
    let status = guest.wait()?;
    newest(&out.0)?.ok_or_else(|| {
        let cause = format!("{status}; it said last: {}", last.join("; "));
        Error::new(GUEST, "not measured", cause).hint(format!("{} --out results --quick", script.display()))
    })
}

/// Passes lines on until there are no more; the last ones.
fn relay(run: &mut Run<'_>, said: &Receiver<String>) -> Result<Vec<String>, Error> {
    let due = Instant::now() + LIMIT;
    let mut last: Vec<String> = Vec::new();
    while Instant::now() < due {
        run.check()?;
        match said.recv_timeout(LOOK) {
            Ok(line) => {
                // The headline has been said.
                if line.starts_with(' ') {
                    run.step(line.split_whitespace().next().unwrap_or_default());
                    run.say(&line)?;
                }
                last.push(line.trim().to_owned());
                last.drain(..last.len().saturating_sub(LINES));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(last),
        }
    }
    Err(Error::new(GUEST, "not measured", format!("it was not done after {LIMIT:?}")))
}

/// The script takes its guest down when asked to end; killed, it could not.
fn stop(guest: &mut Running) {
    // One that has ended by itself is what we want.
    let _ = guest.signal(Signal::SIGTERM);
    let _ = linkbraid_lab::wait_for(STOP_LIMIT, "the guest to end", || guest.ended().ok_or("it still runs"));
}

/// What the guest's `linkbraid bench run` is told; what came out is ours to say.
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

/// The script: of the tree that is named, or that the current folder is in.
fn script() -> Result<PathBuf, Error> {
    let named = std::env::var_os(SOURCE_ENV).map(PathBuf::from);
    let cannot = |cause: String| {
        let hint = "git clone of the sources, then in it: linkbraid bench run peers";
        Error::new(GUEST, "not measured", cause).hint(hint)
    };
    if let Some(tree) = named {
        let script = tree.join(SCRIPT);
        return if script.is_file() {
            Ok(script)
        } else {
            Err(cannot(format!("{SOURCE_ENV}: no {}", script.display())))
        };
    }
    let here = std::env::current_dir().map_err(|e| cannot(format!("no current folder: {e}")))?;
    find(&here).ok_or_else(|| {
        cannot(format!("no {SCRIPT} in the current folder or above it, and {SOURCE_ENV} is not set"))
    })
}

fn find(from: &Path) -> Option<PathBuf> {
    from.ancestors().map(|folder| folder.join(SCRIPT)).find(|script| script.is_file())
}

/// The report in a folder, if the guest left one.
fn newest(folder: &Path) -> Result<Option<Report>, Error> {
    let cannot = |cause: String| Error::new(GUEST, "cannot read its report", cause);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|e| cannot(e.to_string()))?,
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let Some(path) = paths.filter(|path| path.extension().is_some_and(|end| end == "json")).max() else {
        return Ok(None);
    };
    if std::fs::metadata(&path).map_err(|e| cannot(e.to_string()))?.len() > FILE_MAX {
        return Err(cannot(format!("it is longer than {FILE_MAX} bytes")));
    }
    let text = std::fs::read_to_string(&path).map_err(|e| cannot(e.to_string()))?;
    let report: Report = serde_json::from_str(&text).map_err(|e| cannot(e.to_string()))?;
    if report.experiment != super::NAME || report.schema != SCHEMA {
        return Err(cannot(format!("it is of '{}', layout {}", report.experiment, report.schema)));
    }
    Ok(Some(report))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report;

    #[test]
    fn the_script_is_found_from_inside_the_tree() {
        let found = find(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("this is in the tree");
        assert!(found.ends_with(SCRIPT) && find(Path::new("/")).is_none());
    }

    #[test]
    fn only_a_report_of_this_experiment_is_taken() {
        let folder =
            Scratch(std::env::temp_dir().join(format!("linkbraid-peers-test-{}", std::process::id())));
        assert_eq!(newest(&folder.0).expect("a folder that is not there has none"), None);
        std::fs::create_dir_all(&folder.0).expect("made");
        let write = |report: &Report| {
            let text = serde_json::to_string(report).expect("written");
            std::fs::write(folder.0.join("peers-1.json"), text).expect("written");
        };
        let own = Report { experiment: super::super::NAME.into(), ..report() };
        write(&own);
        assert_eq!(newest(&folder.0).expect("read"), Some(own));
        write(&report());
        assert!(newest(&folder.0).is_err());
    }
}
