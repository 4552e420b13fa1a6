//! Options of the words that show records.

use clap::Args;
use linkbraid_api::value;

/// `stats`
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// One bond or fabric; all of them if left out
    #[arg(value_parser = value::interface)]
    pub name: Option<String>,

    /// Show counters that are zero too
    #[arg(long)]
    pub all: bool,

    /// Show how long frames took on their way out instead, by class and stage
    #[arg(long, conflicts_with = "all")]
    pub latency: bool,
}
