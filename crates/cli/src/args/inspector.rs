//! Options of `bond add` and `bond set` that tell when links are probed and trusted.

use super::bond::Switch;
use crate::units;
use clap::Args;
use linkbraid_api::InspectorSet;

/// The ids of these options, for groups that they are part of.
pub const IDS: [&str; 4] = ["probes", "probe_interval", "probe_multiplier", "up_delay"];

/// Only what is given is sent; the daemon knows the defaults.
#[derive(Debug, Args)]
#[group(skip)]
pub struct InspectorArgs {
    /// Probe every lane, so that one whose carrier stays but that forwards nothing is found; on in a new bond
    #[arg(long, value_name = "ON|OFF", value_enum, hide_possible_values = true)]
    pub probes: Option<Switch>,

    /// Time between two proofs of a lane that carries data, 10ms to 10s; 50ms in a new bond
    #[arg(long, value_name = "TIME", value_parser = units::probe_interval)]
    pub probe_interval: Option<u32>,

    /// A lane is lost after this many intervals without proof, 2 to 50; 3 in a new bond
    #[arg(long, value_name = "N", value_parser = units::probe_multiplier)]
    pub probe_multiplier: Option<u8>,

    /// How long a member whose carrier is back waits before it is used, 0ms to 60s; 100ms in a new bond
    #[arg(long, value_name = "TIME", value_parser = units::up_delay)]
    pub up_delay: Option<u32>,
}

impl From<InspectorArgs> for InspectorSet {
    fn from(args: InspectorArgs) -> Self {
        Self {
            probes: args.probes.map(Switch::is_on),
            probe_interval_ms: args.probe_interval,
            probe_multiplier: args.probe_multiplier,
            up_delay_ms: args.up_delay,
        }
    }
}
