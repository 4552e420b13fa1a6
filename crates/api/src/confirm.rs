//! Changes that are undone unless they are confirmed in time.

use crate::{Request, value::Millis};
use clap::Args;
use serde::{Deserialize, Serialize};

/// How long a change may wait to be confirmed.
pub type ConfirmTime = Millis<1000, 3_600_000>;

/// `... --confirm TIME`: a change that is undone unless it is confirmed in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tentative {
    /// The change, such as `{"method": "BondDel", "parameters": {"name": "bond0"}}`.
    pub request: Box<Request>,
    /// How long it waits, from when it is made.
    pub confirm_ms: ConfirmTime,
}

/// `confirm`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Confirm {
    /// Undo the change now
    #[arg(long)]
    #[serde(default)]
    pub undo: bool,
}

/// A change that is not confirmed yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeRecord {
    /// The command that made it.
    pub command: String,
    /// When it is undone; absent while it is being made or undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
}

impl Request {
    /// Whether it changes bonds or fabrics.
    pub fn is_change(&self) -> bool {
        match self {
            Self::Apply(apply) => !apply.dry_run,
            Self::BondAdd(_)
            | Self::BondSet(_)
            | Self::BondDel(_)
            | Self::MemberAdd(_)
            | Self::MemberSet(_)
            | Self::MemberDel(_)
            | Self::ClassAdd(_)
            | Self::ClassSet(_)
            | Self::ClassDel(_)
            | Self::FabricAdd(_)
            | Self::FabricSet(_)
            | Self::FabricDel(_) => true,
            _ => false,
        }
    }

    /// The same, undone unless it is confirmed in time, if a time is given.
    #[must_use]
    pub fn tentative(self, time: Option<ConfirmTime>) -> Self {
        match time {
            None => self,
            Some(confirm_ms) => Self::Tentative(Tentative { request: Box::new(self), confirm_ms }),
        }
    }
}
