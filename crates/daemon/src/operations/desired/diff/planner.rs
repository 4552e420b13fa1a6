//! The steps so far, and what there is after them.

use crate::operations::desired::step::Step;
use linkbraid_api::config::Config;

/// Makes the steps from one configuration to another.
pub(super) struct Planner<'c> {
    /// What there is after the steps so far.
    pub now: Config,
    pub to: &'c Config,
    pub steps: Vec<Step>,
}

impl<'c> Planner<'c> {
    /// Nothing is planned yet.
    pub(super) fn new(from: &Config, to: &'c Config) -> Self {
        Self { now: from.clone(), to, steps: Vec::new() }
    }

    /// Plans a step.
    pub(super) fn step(&mut self, step: Step) {
        step.apply(&mut self.now);
        self.steps.push(step);
    }
}
