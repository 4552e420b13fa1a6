//! `bond add`, `bond set`, `bond del`.

use super::Change;
use clap::Subcommand;
use linkbraid_api::{BondAdd, BondDel, BondSet, Request};

/// Shown below the help of the object and of `bond add`.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid bond add bond0 --member eth1,eth2,eth3,eth4
  linkbraid bond add bond0 --member eth1 --member eth2 --address 198.18.0.1/24
  linkbraid bond set bond0 --policy flow
  linkbraid bond del bond0";

/// The subcommands of `bond`.
#[derive(Debug, Subcommand)]
pub enum BondVerb {
    /// Add a bond: one interface over several links
    #[command(after_help = "\
Examples:
  linkbraid bond add bond0 --member eth1,eth2,eth3,eth4
  linkbraid bond add bond0 --member eth1 --member eth2 --address 198.18.0.1/24
  linkbraid bond add bond0 --member eth0,eth1 --move-address
  linkbraid bond add bond0 --member eth1,eth2,eth3 --class urgent=eth3

Addresses of a link move to the bond when it joins, and back when it leaves. If
a step fails, everything is undone. 'linkbraid class add' adds classes with
other rules, and more than one.")]
    Add(BondAdd),

    /// Change options of a bond; options that are not given stay
    #[command(
        override_usage = "linkbraid bond set [OPTIONS] <NAME>",
        after_help = "\
Examples:
  linkbraid bond set bond0 --policy active-backup
  linkbraid bond set bond0 --stripe 200us --damping on
  linkbraid bond set bond0 --probe-interval 20ms --probe-multiplier 5
  linkbraid bond set bond0 --address 198.18.0.1/24 --address 2001:db8::1/64
  linkbraid bond set bond0 --latency on"
    )]
    Set(Change<BondSet>),

    /// Remove a bond and restore its links
    #[command(after_help = "\
Example:
  linkbraid bond del bond0")]
    Del(BondDel),
}

impl From<BondVerb> for Request {
    fn from(verb: BondVerb) -> Self {
        match verb {
            BondVerb::Add(add) => Self::BondAdd(add),
            BondVerb::Set(Change { mut set, no_addresses }) => {
                set.addresses = if no_addresses { Some(Vec::new()) } else { set.addresses };
                Self::BondSet(set)
            }
            BondVerb::Del(del) => Self::BondDel(del),
        }
    }
}
