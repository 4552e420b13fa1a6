//! Members of bonds: their options, and the requests that add, change and remove them.

use crate::{
    ClassName, LinkName,
    limits::{WEIGHT_MBIT_MAX, WEIGHT_MBIT_MIN},
    options::options,
    value::{Kind, Value, ranged},
};
use clap::{ArgGroup, Args};
use serde::{Deserialize, Serialize};

options! {
    /// How a member carries traffic.
    MemberOptions / MemberSettings of "member", Copy;
    /// Its share of the traffic in Mbit/s, 1 to 1000000; auto: the link's own speed. What its lanes are measured to carry counts more
    weight ("weight"): Weight = Weight::Auto;
    /// The weight counts whatever is measured
    weight_fixed ("weight_fixed"): bool = false;
}

/// A member's share of the traffic, in Mbit/s of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The link's own speed, re-read when it changes.
    #[default]
    Auto,
    /// This many Mbit/s.
    Mbit(u32),
}

impl Value for Weight {
    const NAME: &'static str = "MBIT|auto";
    const KIND: Kind = Kind::NumberOr("auto");

    fn read(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let (low, high) = (WEIGHT_MBIT_MIN, WEIGHT_MBIT_MAX);
        // 0 means "no traffic there", which is no share.
        if !text.is_empty() && text.bytes().all(|byte| byte == b'0') {
            return Err(format!(
                "'{text}' would leave the member without traffic; allowed are {low} to {high} Mbit/s, or auto"
            ));
        }
        ranged(text, low, high, "Mbit/s").map(Self::Mbit).map_err(|cause| cause + ", or auto")
    }

    fn text(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Mbit(mbit) => mbit.to_string(),
        }
    }
}

/// `member add BOND IF`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MemberAdd {
    /// The bond
    pub bond: LinkName,
    /// The link to add
    #[arg(value_name = "IF")]
    pub interface: LinkName,
    /// The options that are given.
    #[command(flatten)]
    #[serde(flatten)]
    pub options: MemberOptions,
    /// Also accept a link that carries the default route; its addresses and routes move to the bond
    #[arg(long)]
    #[serde(default)]
    pub move_address: bool,
    /// Add it even if no peer answers through it
    #[arg(long)]
    #[serde(default)]
    pub force: bool,
    /// The class that the member is for; without this option it carries the default class
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassName>,
}

/// `member set BOND IF ...`: only what is given changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[group(skip)]
#[command(group = ArgGroup::new("change").required(true).multiple(true).args(MemberOptions::ids()))]
pub struct MemberSet {
    /// The bond
    pub bond: LinkName,
    /// The member
    #[arg(value_name = "IF")]
    pub interface: LinkName,
    /// The options that are given.
    #[command(flatten)]
    #[serde(flatten)]
    pub options: MemberOptions,
}

/// `member del BOND IF`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MemberDel {
    /// The bond
    pub bond: LinkName,
    /// The member to remove
    #[arg(value_name = "IF")]
    pub interface: LinkName,
    /// Remove even the last member; the bond stays, without any link
    #[arg(long)]
    #[serde(default)]
    pub force: bool,
}
