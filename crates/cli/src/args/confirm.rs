//! Changes that are undone unless they are confirmed.

use clap::{Args, Subcommand};
use linkbraid_api::{ConfirmTime, Request, value::Value as _};

/// Shown below the help of `confirm`.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid bond add bond0 --member eth0,eth1 --move-address --confirm 60s
  linkbraid confirm
  linkbraid confirm --undo

A change with --confirm is undone when the time is over, unless it is confirmed
before: also if the terminal is lost, and also if the daemon has been killed
meanwhile, by the next one. Until then no other change can be made, and
'linkbraid show' tells. Files stay as they are: when a file was applied that
way and is undone, put the file back, too, before the daemon starts again.";

/// The time in which a change is to be confirmed.
#[derive(Debug, Args)]
pub struct Within {
    /// Undo the change unless 'linkbraid confirm' comes within this time, such as 60s
    #[arg(long, global = true, value_name = ConfirmTime::NAME, value_parser = ConfirmTime::read)]
    pub confirm: Option<ConfirmTime>,
}

/// The verbs of an object, all of which change it.
#[derive(Debug, Args)]
pub struct Changes<V: Subcommand> {
    /// Whether the change is to be confirmed.
    #[command(flatten)]
    pub within: Within,

    /// The verb.
    #[command(subcommand)]
    pub verb: V,
}

impl<V: Subcommand + Into<Request>> From<Changes<V>> for Request {
    fn from(changes: Changes<V>) -> Self {
        changes.verb.into().tentative(changes.within.confirm)
    }
}
