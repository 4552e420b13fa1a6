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

/// The subcommands of `bench`.
#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    /// List the experiments
    #[command(after_help = "\
Examples:
  linkbraid bench list
  linkbraid bench list --json")]
    List,

    /// Run experiments in namespaces, each compared with the bare link in the same run
    #[command(after_help = "\
Examples:
  linkbraid bench run scaling --quick
  linkbraid bench run overhead unequal --repeat 5
  linkbraid bench run scaling --only 100mbit/cubic-1
  linkbraid bench run all --out results --strict

Each experiment writes a JSON file with every sample, and a plot as SVG. A goal
that is not met is reported. It is an error only with --strict.")]
    Run(BenchRunArgs),

    /// Write one HTML page of the newest results, with the papers' values beside them
    #[command(after_help = "\
Examples:
  linkbraid bench report
  linkbraid bench report --in results --out report.html

The page needs no other file. A JSON file beside it has everything that it was
made from.")]
    Report(BenchReportArgs),
}

/// `bench report`
#[derive(Debug, Args)]
pub struct BenchReportArgs {
    /// The folder of the results
    #[arg(long = "in", value_name = "DIR", default_value = "results", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// The HTML file; a JSON file of the same name is written beside it [default: report.html in the folder of the results]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

/// `bench run`
#[derive(Debug, Args)]
pub struct BenchRunArgs {
    /// An experiment (see 'linkbraid bench list'), or all
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,

    /// Fewer cases and less time: a first look
    #[arg(long)]
    pub quick: bool,

    /// The folder for results, made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "results", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,

    /// How often each case is measured, 1 to 100 [default: 3, quick: 1]
    #[arg(long, value_name = "N", value_parser = repeat)]
    pub repeat: Option<u32>,

    /// Only cases whose names begin with this, and the cases that they are compared with
    #[arg(long, value_name = "CASE")]
    pub only: Option<String>,

    /// Exit with status 1 if a goal is not met
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
