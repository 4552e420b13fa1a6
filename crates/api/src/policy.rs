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
    /// A frame or a segment a lane, in turn and by weight, without damping.
    RoundRobin,
    /// By the MACs and the EtherType, as `xmit_hash_policy` of kernel bonding (`Documentation/networking/bonding.rst`); likewise
    /// the others.
    #[value(name = "hash=layer2")]
    #[serde(rename = "hash=layer2")]
    HashLayer2,
    /// By these and the IP addresses.
    #[value(name = "hash=layer2+3")]
    #[serde(rename = "hash=layer2+3")]
    HashLayer23,
    /// By the IP addresses and ports; fragments by the addresses alone, other protocols as `hash=layer2`.
    #[value(name = "hash=layer3+4")]
    #[serde(rename = "hash=layer3+4")]
    HashLayer34,
    /// By the VLAN and the MAC that it comes from: one of the bond's guests, one lane.
    #[value(name = "hash=vlan+srcmac")]
    #[serde(rename = "hash=vlan+srcmac")]
    HashVlanSrcmac,
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
        matches!(self, Self::Spread | Self::RoundRobin)
    }

    /// Whether it may be that of a whole bond.
    pub fn is_of_bonds(&self) -> bool {
        *self != Self::Mirror
    }
}
