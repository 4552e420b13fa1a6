//! Experiments, one a file; results as JSON and SVG.
//!
//! Every number is a goodput, a count or a time measured in a lab of network namespaces, and stands beside the
//! number of the same traffic on bare links that was measured in the same run, in turns with it.

mod activity;
mod bed;
mod collect;
mod deliver;
mod experiments;
mod flow;
mod machine;
mod page;
mod percentiles;
mod planned;
mod plot;
mod progress;
mod report;
mod run;
mod sample;
mod save;
mod share;
mod stats;
mod table;

pub use collect::Collected;
pub use experiments::{EXPERIMENTS, Experiment, find};
pub use machine::Machine;
pub use progress::{Progress, Step};
pub use report::{
    Bound, Comparison, Curve, Goal, Kind, LabRecord, Measure, Reason, Report, SCHEMA, Settings,
};
pub use save::{Saved, SavedPage, save, save_page};
pub use stats::Spread;
pub use table::text;

use linkbraid_api::Error;
use linkbraid_lab::Interrupt;
use linkbraid_terminal::limits::REPEATS;
use run::Run;

/// Repeats, measured seconds and unmeasured ones: of a whole run, and of a quick one.
const WHOLE: (u32, u32, u32) = (3, 4, 1);
const QUICK: (u32, u32, u32) = (1, 1, 1);

/// How to run experiments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Fewer cases, less time each.
    pub quick: bool,
    /// How often each case is measured, instead of the default of a whole or a quick run.
    pub repeat: Option<u32>,
    /// Only cases whose names begin with this.
    pub only: Option<String>,
}

impl Options {
    fn settings(&self) -> Settings {
        let (repeat, seconds, omit) = if self.quick { QUICK } else { WHOLE };
        Settings {
            quick: self.quick,
            repeat: self.repeat.unwrap_or(repeat).clamp(*REPEATS.start(), *REPEATS.end()),
            seconds,
            omit,
        }
    }
}

/// Ctrl-C, held back for as long as the value lives: see [`run`].
#[derive(Debug)]
pub struct Guard(Interrupt);

impl Guard {
    /// Call it before any thread is started.
    pub fn new() -> Result<Self, Error> {
        Interrupt::catch("bench").map(Self)
    }

    /// Whether somebody stopped what runs under it.
    pub fn is_stopped(&self) -> bool {
        self.0.is_caught()
    }
}

/// Runs one experiment, and reports to `progress` what it does. Whatever it set up is taken down, also when it is
/// stopped by SIGINT or SIGTERM; [`Guard::is_stopped`] distinguishes that from a failure. If it cannot go on, its report says
/// why among what failed, under the experiment's own name.
///
/// # Errors
/// It was stopped, or the machine reports nothing of its CPU.
pub fn run(
    experiment: &Experiment,
    options: &Options,
    progress: &mut dyn Progress,
    guard: &Guard,
) -> Result<Report, Error> {
    let names = (experiment.name, experiment.about, experiment.paper);
    let mut run = Run::new(names, options.settings(), progress, &guard.0)?;
    run.only = options.only.clone().unwrap_or_default();
    match (experiment.run)(&mut run) {
        Err(error) if guard.is_stopped() => return Err(error),
        // What was measured before stays, and the report has the reason why there is no more.
        Err(error) => run.broken(&error),
        Ok(()) => {}
    }
    Ok(run.report)
}
