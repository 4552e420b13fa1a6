//! Bonds: their options, and the requests that make and change them.

use crate::{
    LinkName, Policy,
    class::BondClass,
    key::{Auth, KeySource},
    limits::{STRIPE_BYTES_MAX, STRIPE_BYTES_MIN, STRIPE_US_MAX, STRIPE_US_MIN},
    options::options,
    value::{self, Millis, Number, Value, with_unit},
};
use clap::{ArgAction, ArgGroup, Args};
use serde::{Deserialize, Serialize};

options! {
    /// How a bond carries traffic.
    BondOptions / BondSettings of "bond";
    /// How traffic is distributed: spread (over all links, also one flow), flow (each flow over one link), active-backup
    /// (over one link at a time), round-robin (a frame a link, in turn), hash=layer2, hash=layer2+3, hash=layer3+4 and
    /// hash=vlan+srcmac (over the link that these fields choose)
    policy ("policy"): Policy = Policy::Spread, by bond_policy;
    /// How much of a flow one link carries before the next one: auto, a time (200us) or a size (16KiB, 4400B)
    stripe ("stripe"): Stripe = Stripe::Auto;
    /// Hold back duplicate ACKs of striped flows that only report reordering
    damping ("damping"): bool = true;
    /// Measure how long frames take on their way out, for 'linkbraid stats --latency'
    latency ("latency"): bool = false;
    /// Take hosts for peers that speak only the published part of ARP+, without an id
    published_only ("published_only"): bool = false;
    /// The keys of ARP+: none, the whole path of a key file, or credential:NAME
    key ("key"): KeySource = KeySource::None;
    /// Whose ARP+ is believed: off (everybody's), permit (everybody's, and own messages are signed), require (that of hosts
    /// that have the key)
    auth ("auth"): Auth = Auth::Off;
    given {
        /// The MTU in bytes of the bond and all its members
        mtu ("mtu"): Mtu = "that of the members, if all have the same";
    }
    group {
        /// When links are probed and trusted.
        inspector: InspectorOptions / InspectorSettings;
    }
}

options! {
    /// When links are probed and trusted (docs/arp-plus.md, section 11).
    InspectorOptions / InspectorSettings of "bond", Copy;
    /// Probe every lane, to detect failures that do not change the carrier
    probes ("probes"): bool = true;
    /// Time between two probes of a lane that carries data
    probe_interval ("probe_interval_ms"): Millis<10, 10_000> = Millis(50);
    /// A lane is lost after this many intervals without an answer
    // With 1, a single lost probe would cost the lane.
    probe_multiplier ("probe_multiplier"): Number<2, 50> = Number(3);
    /// How long a member waits before it is used after its carrier is back
    up_delay ("up_delay_ms"): Millis<0, 60_000> = Millis(100);
    /// A link or lane that fails again and again is held down, each time for longer, and at most for this time
    hold_max ("hold_max_ms"): Millis<0, 3_600_000> = Millis(60_000);
}

/// An MTU in bytes: from what IPv6 needs (RFC 8200, section 5) to what an Ethernet interface of Linux can have (`ETH_MAX_MTU` of
/// `linux/if_ether.h`).
pub type Mtu = Number<1280, 65_535>;

/// A policy of a bond.
fn bond_policy(text: &str) -> Result<Policy, String> {
    let allowed: Vec<Policy> = Policy::all().iter().copied().filter(Policy::is_of_bonds).collect();
    match Policy::read(text) {
        Ok(policy) if !policy.is_of_bonds() => {
            Err(format!("'{text}' is of classes only; {}", value::allowed_are(&allowed)))
        }
        _ => value::one_of(text, &allowed),
    }
}

/// How long a piece of one flow stays on a lane before the next lane takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stripe {
    /// From the members' rates: about 200 us of the slowest one.
    #[default]
    Auto,
    /// This many microseconds of the slowest member's rate.
    Us(u32),
    /// This many bytes.
    Bytes(u32),
}

impl Value for Stripe {
    const NAME: &'static str = "AUTO|TIME|SIZE";

    fn read(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let allowed = format!(
            "auto, {STRIPE_US_MIN}us to {}ms and {STRIPE_BYTES_MIN}B to {}KiB",
            STRIPE_US_MAX / 1000,
            STRIPE_BYTES_MAX >> 10
        );
        let units = [("us", 1), ("ms", 1000), ("B", 1), ("KiB", 1024)];
        let value = with_unit(text, &units, "a time or a size", &allowed)?;
        let (low, high, make): (_, _, fn(u32) -> Self) = match text.ends_with('s') {
            true => (STRIPE_US_MIN, STRIPE_US_MAX, Self::Us),
            false => (STRIPE_BYTES_MIN, STRIPE_BYTES_MAX, Self::Bytes),
        };
        match value {
            Some(value) if (low..=high).contains(&value) => Ok(make(value)),
            _ => Err(format!("'{text}' is outside the allowed range; allowed are {allowed}")),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Us(us) => format!("{us}us"),
            Self::Bytes(bytes) => format!("{bytes}B"),
        }
    }
}

/// `bond add NAME --member IF[,IF...] ...`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BondAdd {
    /// The name of the new interface, such as bond0
    pub name: LinkName,
    /// The links that become members; the bond has the MAC of the first one. May be repeated
    #[arg(long = "member", value_name = "IF[,IF...]", required = true, value_delimiter = ',', num_args = 1)]
    pub members: Vec<LinkName>,
    /// An IPv4 or IPv6 address for the bond, besides those that move from the links. May be repeated
    #[arg(long = "address", value_name = "CIDR", num_args = 1, value_parser = value::cidr)]
    #[serde(default)]
    pub addresses: Vec<String>,
    /// The options that are given.
    #[command(flatten)]
    #[serde(flatten)]
    pub options: BondOptions,
    /// Also accept a link that carries the default route; its addresses and routes move to the bond
    #[arg(long)]
    #[serde(default)]
    pub move_address: bool,
    /// A class with members of its own, which --member names too; frames with socket priority 6 or DSCP ef belong to it
    #[arg(
        long = "class",
        value_name = "NAME=IF[,IF...]",
        action = ArgAction::Set,
        num_args = 1,
        value_parser = BondClass::read
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<BondClass>,
}

/// `bond set NAME ...`: only what is given changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[group(skip)]
#[command(group = ArgGroup::new("change").required(true).multiple(true).args(BondOptions::ids()).arg("addresses"))]
pub struct BondSet {
    /// The bond
    pub name: LinkName,
    /// The options that are given.
    #[command(flatten)]
    #[serde(flatten)]
    pub options: BondOptions,
    /// An address for the bond; replaces those given with this option before, others stay. May be repeated
    #[arg(long = "address", value_name = "CIDR", num_args = 1, value_parser = value::cidr)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
}

/// `bond del NAME`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BondDel {
    /// The bond
    pub name: LinkName,
}
