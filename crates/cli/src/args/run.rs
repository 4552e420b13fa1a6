//! `run`

use clap::Args;
use linkbraid_api::value;
use std::ffi::OsString;

/// `run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The bond [default: the only one that has such a class]
    #[arg(long, value_name = "BOND", value_parser = value::interface)]
    pub bond: Option<String>,

    /// The class
    #[arg(long, value_name = "NAME", value_parser = value::class)]
    pub class: String,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
