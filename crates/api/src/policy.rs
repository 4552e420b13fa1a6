//! How traffic is distributed over lanes. A further policy is a row here, and a file of its name in
//! `crates/dataplane/src/bpf/policies/`, whose function chooses the lane of a frame.

use crate::value::{word, words};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How a class, or a bond, spreads over its lanes. The data path knows a policy by its place here, so new ones come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Byte-fair weighted round robin over all lanes.
    #[default]
    Spread,
    /// One flow stays on one lane. Borrowed lanes are not used.
    Flow,
    /// The first live lane carries everything.
    ActiveBackup,
    /// Each frame leaves twice, over the first lane that lives and the one that shares least with it, and the peer passes on
    /// the first copy. One that has no room for the trailer, is a buffer of several segments, or finds one lane only leaves
    /// once. Frames to plain hosts spread. Of classes only.
    Mirror,
}

words!(Policy, "POLICY");

impl Policy {
    /// All of them; a policy's place is its number in the data path.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// As it is written.
    pub fn word(self) -> String {
        word(&self)
    }

    /// Whether frames of one flow leave by several lanes, each by one of them.
    pub const fn spreads(self) -> bool {
        matches!(self, Self::Spread)
    }

    /// Whether it may be that of a whole bond.
    pub fn is_of_bonds(&self) -> bool {
        *self != Self::Mirror
    }
}
