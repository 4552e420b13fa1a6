//! `linkbraid apply`: sends the files to the daemon, which reports what it has done.

use crate::args::{ApplyArgs, Cli, Word};
use crate::{session, text};
use clap::Parser as _;
use linkbraid_api::{
    ActionRecord, Apply, ApplyRecord, CONFIG_PATHS, ConfigFile, Error, Records, Reply, Request,
};
use linkbraid_daemon::config_files;
use linkbraid_terminal::{
    client,
    report::{self, Failed, plain},
};
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
    let apply = Apply { first, more: files.collect(), dry_run: args.dry_run };
    if !args.dry_run && session::is_there() {
        // What would be done says whom it would cut off. If it is refused, it is refused below, too.
        let told = Request::Apply(Apply { dry_run: true, ..apply.clone() });
        if let Reply::Records(Records::Applied(record)) = client::ask(socket, &told, client::REPLY_TIMEOUT)? {
            let confirm = args.within.confirm;
            let steps: Vec<Request> =
                record.actions.iter().filter_map(|action| request(&action.command)).collect();
            session::warn(&steps.into_iter().map(|step| step.tentative(confirm)).collect::<Vec<_>>());
        }
    }
    let request = Request::Apply(apply).tentative(args.within.confirm.filter(|_| !args.dry_run));
    match client::ask(socket, &request, TIMEOUT)? {
        Reply::Records(Records::Applied(record)) => show(&record, json),
        Reply::Error(error) => Err(Failed::refused(error)),
        _ => Err(client::unexpected(socket, "cannot apply a file")),
    }
}

/// The request that a printed command makes.
fn request(command: &str) -> Option<Request> {
    match Cli::try_parse_from(command.split(' ')).ok()?.word {
        Word::Bond(verb) => Some(verb.into()),
        Word::Member(verb) => Some(verb.into()),
        _ => None,
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
    let style = text::Style::new(report::colour());
    let line = |action: &ActionRecord| style.step(&report::one_line(&action.command));
    let mut lines: Vec<String> = record.actions.iter().map(line).collect();
    if lines.is_empty() {
        lines.push("nothing to do".to_owned());
    }
    report::print(&(lines.join("\n") + "\n"))
}
