//! Options of the words that show records.

use clap::Args;
use linkbraid_api::LinkName;

/// `stats`
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// One bond or fabric [default: all]
    pub name: Option<LinkName>,

    /// Also show counters that are zero
    #[arg(long)]
    pub all: bool,

    /// Instead show how long frames took on their way out, by class and stage
    #[arg(long, conflicts_with = "all")]
    pub latency: bool,
}
