//! The experiments, one a file.

mod copies;
mod cpu_limit;
mod fabric;
mod failover;
mod guest;
mod loss;
mod multicast;
mod overhead;
pub(crate) mod peers;
mod plain;
mod rates;
mod scaling;
mod soak;
mod tipc;
mod tokens;
mod unequal;
mod urgent;

use crate::plot::Figure;
use crate::report::Report;
use crate::run::Run;
use linkbraid_api::Error;

/// What `bench run` runs by its name.
pub struct Experiment {
    /// The word that runs it.
    pub name: &'static str,
    /// What it shows, in one sentence.
    pub about: &'static str,
    /// The figure or table of the papers that it repeats, or an empty string.
    pub paper: &'static str,
    /// Measures; an error is one of the whole experiment, a failed case is noted in the report.
    pub(crate) run: fn(&mut Run<'_>) -> Result<(), Error>,
    /// Draws.
    pub(crate) figure: fn(&Report) -> Figure,
}

/// All experiments, in the order they run.
pub const EXPERIMENTS: [&Experiment; 16] = [
    &scaling::EXPERIMENT,
    &overhead::EXPERIMENT,
    &cpu_limit::EXPERIMENT,
    &unequal::EXPERIMENT,
    &rates::EXPERIMENT,
    &plain::EXPERIMENT,
    &tokens::EXPERIMENT,
    &copies::EXPERIMENT,
    &multicast::EXPERIMENT,
    &loss::EXPERIMENT,
    &failover::EXPERIMENT,
    &urgent::EXPERIMENT,
    &soak::EXPERIMENT,
    &fabric::EXPERIMENT,
    &tipc::EXPERIMENT,
    &peers::EXPERIMENT,
];

/// An experiment by name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.into_iter().find(|experiment| experiment.name == name)
}
