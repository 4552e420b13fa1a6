//! `linkbraid daemon`.

mod line;
mod log;

use crate::args::{DaemonArgs, HookArg};
use line::Lines;
use linkbraid_api::Error;
use linkbraid_daemon::{Hook, HookChoice, Options};
use linkbraid_terminal::{Failed, report};
use log::Log;
use std::io;
use std::path::PathBuf;
use tracing_subscriber::EnvFilter;

/// Runs the daemon until it is told to stop; its log goes to standard error.
pub fn run(socket: PathBuf, args: DaemonArgs) -> Result<(), Failed> {
    let filter = EnvFilter::try_new(&args.log).map_err(|error| {
        let cause = format!("'{}' is not a filter: {error}; allowed are LEVEL or MODULE=LEVEL,...", args.log);
        Failed::usage(Error::new("daemon", "option '--log'", cause).hint("linkbraid daemon --log debug"))
    })?;
    let hook = match args.hook {
        HookArg::Auto => HookChoice::Auto,
        HookArg::Tcx => HookChoice::Only(Hook::Tcx),
        HookArg::Clsact => HookChoice::Only(Hook::Clsact),
    };
    // Before there is another thread.
    let confined = linkbraid_daemon::confine(hook);
    let (lines, _written) = Log::start(io::stderr()).map_err(|error| {
        Failed::refused(Error::new("daemon", "cannot start the thread of its log", error.to_string()))
    })?;
    let format = Lines { journal: report::to_journal() };
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines).event_format(format).init();
    if let Err(error) = confined {
        tracing::warn!(%error, "it goes on with them");
    }
    linkbraid_daemon::run(Options {
        socket,
        state_dir: args.state,
        hook,
        config: args.config,
        metrics: args.metrics,
    })
    .map_err(Failed::refused)
}
