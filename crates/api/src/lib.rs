//! Requests, replies and records that text, JSON and the socket share.
//!
//! The socket speaks [`varlink`]: one [`Request`] from the client, one [`Reply`] back, in order. JSON keys are the long option names of the command with `-` as `_`; a key gains its unit as a suffix
//! (`_mbit`, `_us`, `_bytes`). Keys are never renamed.

mod bond;
mod class;
pub mod config;
mod confirm;
mod error;
mod explain;
mod fabric;
mod key;
pub mod limits;
mod member;
mod metrics;
mod name;
pub mod options;
mod policy;
mod record;
mod request;
mod rule;
pub mod value;
pub mod varlink;
mod words;

pub use bond::{
    BondAdd, BondDel, BondOptions, BondSet, BondSettings, InspectorOptions, InspectorSettings, Mtu, Stripe,
};
pub use class::{
    BondClass, Borrow, ClassAdd, ClassDel, ClassOptions, ClassRecord, ClassSet, ClassSettings, Fallback,
    LatencyRecord, Precedence, QueueRecord, REST, RuleRecord, Run, default_rules,
};
pub use confirm::{ChangeRecord, Confirm, ConfirmTime, Tentative};
pub use error::{Error, ExitCode};
pub use explain::{
    DESTINATION_PORT, Explain, ExplainRecord, Flow, FlowProtocol, SOURCE_PORT, StepLaneRecord, StepRecord,
};
pub use fabric::{
    Encrypt, FabricAdd, FabricDel, FabricOptions, FabricPeerRecord, FabricPeerStats, FabricPeerVxlanRecord,
    FabricRecord, FabricSet, FabricSettings, FabricStatsRecord, FabricVxlanRecord, LatencyBucket, NodeState,
    Poll, RoundTripRecord,
};
pub use key::{Auth, KEY_FILE_BYTES_MAX, KeyFile, KeyId, KeyRecord, KeySource, SECRET_LEN, SecretKey};
pub use member::{MemberAdd, MemberDel, MemberOptions, MemberSet, MemberSettings, Weight};
pub use metrics::MetricsAddress;
pub use name::{ClassName, LinkName};
pub use policy::Policy;
pub use record::{
    ActionRecord, AddressMove, ApplyRecord, BondRecord, CounterRecord, EventKind, EventRecord, FindingRecord,
    GuestRecord, Health, LaneRecord, MemberRecord, PeerMemberRecord, PeerRecord, PeerState, Records,
    Severity, ShareFrom, StatsRecord,
};
pub use request::{Apply, ConfigFile, Request};
pub use rule::Rule;

use serde::{Deserialize, Serialize};

/// Where the daemon listens unless `--socket` or `LINKBRAID_SOCKET` says otherwise.
pub const DEFAULT_SOCKET: &str = "/run/linkbraid/linkbraid.sock";

/// Where the service looks for configuration files: a file, and a folder of them.
pub const CONFIG_PATHS: [&str; 2] = ["/etc/linkbraid.toml", "/etc/linkbraid"];

/// The longest request, in bytes; a longer one is refused and the connection closed.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// What the daemon answers to one [`Request`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, deny_unknown_fields)]
pub enum Reply {
    /// The records that a `show`-like request asked for.
    Records(Records),
    /// Something happened; only after [`Request::Monitor`].
    Event {
        /// What.
        event: EventRecord,
    },
    /// The request was carried out; `warnings` are whole lines for the user.
    Done {
        /// Things that were done differently from what the user may expect.
        warnings: Vec<String>,
    },
    /// The request was refused or failed, and nothing was changed. On the socket it is a [`varlink::Refusal`].
    #[serde(skip)]
    Error(Error),
}

#[cfg(test)]
mod tests;
