//! What the programs of the command share.
//!
//! `linkbraid` asks the daemon; `linkbraid lab` and `linkbraid bench` are programs of their own, which it becomes. All of
//! them take the same command line and print errors and results alike.

pub mod args;
pub mod client;
pub mod human;
pub mod limits;
pub mod report;
mod table;
mod usage;

pub use report::Failed;
pub use table::Table;
pub use usage::refusal;

use clap::Parser;
use linkbraid_api::ExitCode;
use serde::Serialize;
use std::process;

/// A program from its command line to its exit status.
pub fn program<C: Parser>(run: impl FnOnce(C) -> Result<ExitCode, Failed>) -> process::ExitCode {
    let outcome = match C::try_parse() {
        Ok(cli) => run(cli),
        Err(error) => usage::report(&error, C::command()).map(|()| ExitCode::Done),
    };
    match outcome {
        Ok(code) => process::ExitCode::from(code as u8),
        Err(failed) => {
            report::error(&failed.error);
            process::ExitCode::from(failed.code as u8)
        }
    }
}

/// A value as indented JSON, with a final line feed.
pub fn json(value: &impl Serialize) -> String {
    // Only maps with keys that are not strings cannot be written, and the records have none.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// A value as one line of JSON, for records that never end.
pub fn json_line(value: &impl Serialize) -> String {
    // As above.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}
