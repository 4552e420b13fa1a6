//! `bond add`, `bond set`, `bond del`.

use super::inspector::{self, InspectorArgs};
use crate::units;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use linkbraid_api::{BondAdd, BondClass, BondDel, BondSet, Policy, Request, Stripe};

/// Shown below the help of the object and of `bond add`.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid bond add bond0 --member eth1,eth2,eth3,eth4
  linkbraid bond add bond0 --member eth1 --member eth2 --address 198.18.0.1/24
  linkbraid bond set bond0 --policy flow
  linkbraid bond del bond0";

/// What to do with a bond.
#[derive(Debug, Subcommand)]
pub enum BondVerb {
    /// Make a bond: one interface over several links
    #[command(after_help = "\
Examples:
  linkbraid bond add bond0 --member eth1,eth2,eth3,eth4
  linkbraid bond add bond0 --member eth1 --member eth2 --address 198.18.0.1/24
  linkbraid bond add bond0 --member eth0,eth1 --move-address
  linkbraid bond add bond0 --member eth1,eth2,eth3 --class urgent=eth3

Addresses on a link that joins move to the bond, and back when it leaves.
A bond that cannot be made whole leaves nothing behind. 'linkbraid class add'
makes classes with other rules, and more than one.")]
    Add(BondAddArgs),

    /// Change a bond that is up; what is not named stays
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
    Set(BondSetArgs),

    /// Remove a bond and put its links back as they were
    #[command(after_help = "\
Example:
  linkbraid bond del bond0")]
    Del {
        /// The bond
        #[arg(value_parser = units::interface)]
        name: String,
    },
}

/// An option that is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On
    On,
    /// Off
    Off,
}

impl Switch {
    pub(super) fn is_on(self) -> bool {
        self == Self::On
    }
}

/// `bond add`
#[derive(Debug, Args)]
pub struct BondAddArgs {
    /// The name of the new interface, such as bond0
    #[arg(value_parser = units::interface)]
    pub name: String,

    /// The links that join; the first one gives the bond its MAC. May be repeated
    #[arg(
        long,
        value_name = "IF[,IF...]",
        required = true,
        value_delimiter = ',',
        num_args = 1,
        value_parser = units::interface
    )]
    pub member: Vec<String>,

    /// An address for the bond, IPv4 or IPv6. May be repeated
    #[arg(long, value_name = "CIDR", value_parser = units::cidr)]
    pub address: Vec<String>,

    /// How traffic spreads: spread (all links, even one flow), flow (a flow keeps to one link),
    /// active-backup (one link at a time)
    #[arg(long, value_name = "POLICY", default_value = "spread", value_parser = units::policy)]
    pub policy: Policy,

    /// The bond's MTU in bytes, 1280 to 65535 [default: that of the members, if it is the same]
    #[arg(long, value_name = "BYTES", value_parser = units::mtu)]
    pub mtu: Option<u32>,

    /// How much of a flow one link takes before the next: auto, a time (200us) or a size (16KiB, 4400B)
    #[arg(long, value_name = "AUTO|TIME|SIZE", default_value = "auto", value_parser = units::stripe)]
    pub stripe: Stripe,

    /// Hold back duplicate ACKs of spread flows that only tell of reordering
    #[arg(long, value_name = "ON|OFF", default_value = "on", value_enum, hide_possible_values = true)]
    pub damping: Switch,

    /// Take a link that carries the default route too; its addresses and routes move to the bond
    #[arg(long)]
    pub move_address: bool,

    /// A class with members of its own, of those that --member names; frames of socket priority 6 or with the DSCP ef
    /// belong to it
    #[arg(long, value_name = "NAME=IF[,IF...]", value_parser = units::bond_class)]
    pub class: Option<BondClass>,

    /// When links are probed and trusted.
    #[command(flatten)]
    pub inspector: InspectorArgs,
}

/// `bond set`
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    group = ArgGroup::new("change")
        .required(true)
        .multiple(true)
        .args(["policy", "mtu", "stripe", "damping", "latency", "address", "no_addresses"])
        .args(inspector::IDS)
)]
pub struct BondSetArgs {
    /// The bond
    #[arg(value_parser = units::interface)]
    pub name: String,

    /// How traffic spreads: spread, flow or active-backup
    #[arg(long, value_name = "POLICY", value_parser = units::policy)]
    pub policy: Option<Policy>,

    /// The MTU in bytes of the bond and all its members, 1280 to 65535
    #[arg(long, value_name = "BYTES", value_parser = units::mtu)]
    pub mtu: Option<u32>,

    /// How much of a flow one link takes before the next: auto, a time (200us) or a size (16KiB, 4400B)
    #[arg(long, value_name = "AUTO|TIME|SIZE", value_parser = units::stripe)]
    pub stripe: Option<Stripe>,

    /// Hold back duplicate ACKs of spread flows that only tell of reordering
    #[arg(long, value_name = "ON|OFF", value_enum, hide_possible_values = true)]
    pub damping: Option<Switch>,

    /// Measure where the time goes, for 'linkbraid stats --latency'; off in a new bond
    #[arg(long, value_name = "ON|OFF", value_enum, hide_possible_values = true)]
    pub latency: Option<Switch>,

    /// An address for the bond instead of those that it was given with this option before; others stay. May be repeated
    #[arg(long, value_name = "CIDR", value_parser = units::cidr)]
    pub address: Vec<String>,

    /// Take all addresses that it was given with --address away
    #[arg(long, conflicts_with = "address")]
    pub no_addresses: bool,

    /// When links are probed and trusted.
    #[command(flatten)]
    pub inspector: InspectorArgs,
}

impl From<BondVerb> for Request {
    fn from(verb: BondVerb) -> Self {
        match verb {
            BondVerb::Add(add) => Self::BondAdd(BondAdd {
                name: add.name,
                members: add.member,
                addresses: add.address,
                policy: add.policy,
                mtu: add.mtu,
                stripe: add.stripe,
                damping: add.damping.is_on(),
                move_address: add.move_address,
                inspector: add.inspector.into(),
                classes: add.class.into_iter().collect(),
            }),
            BondVerb::Set(set) => Self::BondSet(BondSet {
                name: set.name,
                policy: set.policy,
                mtu: set.mtu,
                stripe: set.stripe,
                damping: set.damping.map(Switch::is_on),
                inspector: set.inspector.into(),
                latency: set.latency.map(Switch::is_on),
                addresses: match set.no_addresses {
                    true => Some(Vec::new()),
                    false => (!set.address.is_empty()).then_some(set.address),
                },
            }),
            BondVerb::Del { name } => Self::BondDel(BondDel { name }),
        }
    }
}
