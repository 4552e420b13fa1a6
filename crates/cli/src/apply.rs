//! `linkbraid apply`: sends the file to the daemon, which reports what it has done.

use crate::args::ApplyArgs;
use crate::client;
use crate::text;
use linkbraid_api::{Apply, ApplyRecord, Error, Records, Reply, Request, limits::CONFIG_BYTES_MAX};
use linkbraid_terminal::report::{self, Failed, plain};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

/// How long a whole file may take: each member that joins a bond may wait 27 s for its peers.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Sends the file and shows what came of it.
pub fn run(socket: &Path, args: ApplyArgs, json: bool) -> Result<(), Failed> {
    let file = args.file.display().to_string();
    let text = read(&args.file).map_err(|error| {
        Failed::refused(Error::new(&file, "cannot read", plain(&error)).hint("linkbraid apply --help"))
    })?;
    let request = Request::Apply(Apply { file, text, dry_run: args.dry_run });
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

/// The whole text, or the beginning of one that is too long: the daemon refuses that.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(CONFIG_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
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
