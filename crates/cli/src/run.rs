//! `linkbraid run`: a command whose traffic is of a class.

use crate::args::RunArgs;
use linkbraid_api::{Error, Reply, Request, Run};
use linkbraid_terminal::{
    client,
    report::{self, Failed, plain},
};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Has this process put into the class's control group, and becomes the command; returns only where that fails.
///
/// The daemon learns from the kernel who asks (`SO_PEERCRED` of unix(7)), and what is in a control group stays there
/// across execve(2). So the exit status, signals and the terminal are the command's own.
pub fn run(socket: &Path, args: RunArgs) -> Result<(), Failed> {
    let Some((program, words)) = args.command.split_first() else {
        // clap requires one word at least.
        return Ok(());
    };
    let request = Request::Run(Run { bond: args.bond, class: args.class });
    match client::ask(socket, &request, client::REPLY_TIMEOUT)? {
        Reply::Done { warnings } => warnings.iter().for_each(|warning| report::warn(warning)),
        Reply::Error(error) => return Err(Failed::refused(error)),
        _ => return Err(client::unexpected(socket, "cannot run a command in a class")),
    }
    let error = Command::new(program).args(words).exec();
    let program = program.to_string_lossy();
    Err(Failed::refused(
        Error::new("run", format!("cannot run '{program}'"), plain(&error)).hint("linkbraid run --help"),
    ))
}
