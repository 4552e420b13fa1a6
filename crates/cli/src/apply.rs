//! `linkbraid apply`: sends the files to the daemon, which reports what it has done.

use crate::args::ApplyArgs;
use crate::client;
use crate::text;
use linkbraid_api::{Apply, ApplyRecord, CONFIG_PATHS, ConfigFile, Error, Records, Reply, Request};
use linkbraid_daemon::config_files;
use linkbraid_terminal::report::{self, Failed, plain};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a whole file may take: each member that joins a bond may wait 27 s for its peers.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Sends the files and shows what came of it.
pub fn run(socket: &Path, args: ApplyArgs, json: bool) -> Result<(), Failed> {
    let mut files = read(args.files)?.into_iter();
    let Some(first) = files.next() else {
        let cause = format!("there is no file {}", CONFIG_PATHS.join(", and none in "));
        return Err(Failed::refused(
            Error::new("apply", "nothing to apply", cause).hint("linkbraid apply --help"),
        ));
    };
    let request = Request::Apply(Apply { first, more: files.collect(), dry_run: args.dry_run });
    match client::ask(socket, &request, TIMEOUT)? {
        Reply::Records(Records::Applied(record)) => show(&record, json),
        Reply::Error(error) => Err(Failed::refused(error)),
        Reply::Records(_) | Reply::Done { .. } | Reply::Event(_) => {
            let object = socket.display().to_string();
            let cause =
                "the daemon sent an unexpected reply; its version may differ from that of this command";
            Err(Failed::refused(Error::new(object, "cannot apply a file", cause)))
        }
    }
}

/// The files that the user names; otherwise those of the service, as far as they are there.
fn read(paths: Vec<PathBuf>) -> Result<Vec<ConfigFile>, Failed> {
    let is_named = !paths.is_empty();
    let paths = if is_named { paths } else { CONFIG_PATHS.map(PathBuf::from).to_vec() };
    let mut files = Vec::new();
    for path in paths {
        match config_files(&path) {
            Ok(found) if found.is_empty() && is_named => {
                let cause = "no file in this folder has a name that ends in .toml";
                return Err(refused(&path, cause));
            }
            Ok(found) => files.extend(found),
            Err(error) if error.kind() == ErrorKind::NotFound && !is_named => {}
            Err(error) => return Err(refused(&path, &plain(&error))),
        }
    }
    Ok(files)
}

fn refused(path: &Path, cause: &str) -> Failed {
    let error = Error::new(path.display().to_string(), "cannot read", cause);
    Failed::refused(error.hint("linkbraid apply --help"))
}

/// The steps, one a line.
pub fn show(record: &ApplyRecord, json: bool) -> Result<(), Failed> {
    record.warnings.iter().for_each(|warning| report::warn(warning));
    if json {
        return report::print(&text::json(record));
    }
    let mut lines: Vec<String> =
        record.actions.iter().map(|action| report::one_line(&action.command)).collect();
    if lines.is_empty() {
        lines.push("nothing to do".to_owned());
    }
    report::print(&(lines.join("\n") + "\n"))
}
