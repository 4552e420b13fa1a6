//! `bench list`, `bench run`, `bench report`.

use crate::limits::REPEATS;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// Shown below the help of the object.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid bench list
  linkbraid bench run scaling --quick
  linkbraid bench run all --out results
  linkbraid bench report --in results";

/// The name that stands for all experiments.
pub const ALL: &str = "all";

/// What to do with experiments.
#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    /// List the experiments
    #[command(after_help = "\
Examples:
  linkbraid bench list
  linkbraid bench list --json")]
    List,

    /// Measure in namespaces, each figure beside the bare link in the same run
    #[command(after_help = "\
Examples:
  linkbraid bench run scaling --quick
  linkbraid bench run overhead unequal --repeat 5
  linkbraid bench run scaling --only 100mbit/cubic-1
  linkbraid bench run all --out results --strict

Each experiment leaves a JSON file with every sample, and a plot as SVG. A goal
that is not met is reported; it is an error only with --strict.")]
    Run(BenchRunArgs),

    /// Make one page of HTML of the newest results, with the papers' values beside them
    #[command(after_help = "\
Examples:
  linkbraid bench report
  linkbraid bench report --in results --out report.html

The page needs nothing but itself. Beside it goes a JSON file with everything
that it was made of.")]
    Report(BenchReportArgs),
}

/// `bench report`
#[derive(Debug, Args)]
pub struct BenchReportArgs {
    /// Where the results are
    #[arg(long = "in", value_name = "DIR", default_value = "results", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// The page; the JSON file beside it has the same name and ends in .json [default: report.html in that folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

/// `bench run`
#[derive(Debug, Args)]
pub struct BenchRunArgs {
    /// An experiment (see bench list), or all
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,

    /// Fewer cases and less time: a first look
    #[arg(long)]
    pub quick: bool,

    /// Where the results go; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "results", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,

    /// How often each case is measured, 1 to 100 [default: 3, quick: 1]
    #[arg(long, value_name = "N", value_parser = repeat)]
    pub repeat: Option<u32>,

    /// Measure only cases whose names begin with this, and what they are compared with
    #[arg(long, value_name = "CASE")]
    pub only: Option<String>,

    /// Exit with 1 if a goal is not met
    #[arg(long)]
    pub strict: bool,
}

fn repeat(text: &str) -> Result<u32, String> {
    let range = REPEATS;
    text.parse()
        .ok()
        .filter(|n| range.contains(n))
        .ok_or_else(|| format!("'{text}' is outside the allowed range {} to {}", range.start(), range.end()))
}
