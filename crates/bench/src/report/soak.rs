//! What a long run of random failures and changes came to.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A soak.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Soak {
    /// Runs the same steps again.
    pub seed: u64,
    /// Steps done.
    pub steps: u32,
    /// How long they took.
    pub seconds: f64,
    /// How often each kind of step was done.
    pub kinds: BTreeMap<String, u32>,
    /// After how many steps a lane existed, so that the hosts had to reach each other.
    pub demanded: u32,
    /// The longest time that took, milliseconds.
    pub slowest_ms: f64,
    /// The median of that time.
    pub median_ms: f64,
    /// Steps after which something was wrong.
    pub broken: Vec<Broken>,
    /// Whether each host's table had at the end what the other host has.
    pub tables_equal: bool,
    /// What was there after the bonds were gone and had not been there before, or the other way round.
    pub left_behind: Vec<String>,
}

/// Something that was wrong after a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// The step, from 1.
    pub step: u32,
    /// What it did.
    pub action: String,
    /// What was wrong.
    pub what: String,
}
