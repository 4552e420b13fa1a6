//! `run`

use clap::Args;
use linkbraid_api::{ClassName, LinkName};
use std::ffi::OsString;

/// `run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The bond [default: the only one that has such a class]
    #[arg(long, value_name = "BOND")]
    pub bond: Option<LinkName>,

    /// The class
    #[arg(long, value_name = "NAME")]
    pub class: ClassName,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
