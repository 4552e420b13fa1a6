//! Classes: kinds of traffic, the rules that choose them, and what the daemon tells of them.

use crate::{Error, Policy, Rule, limits};
use serde::{Deserialize, Serialize};

/// What all other traffic is called; no class can have this name.
pub const REST: &str = "rest";

/// Refuses what cannot be the name of a class.
pub fn check_class_name(name: &str) -> Result<(), Error> {
    let object = || format!("class '{name}'");
    let hint = "linkbraid class add --help";
    if name == REST {
        let cause = "it is what all other traffic is called";
        return Err(Error::new(object(), "not a name for a class", cause).hint(hint));
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > limits::CLASS_NAME_MAX || !name.chars().all(allowed) {
        let cause = format!("1 to {} of a-z, 0-9, '-' and '_'", limits::CLASS_NAME_MAX);
        return Err(Error::new(object(), "not a name for a class", cause).hint(hint));
    }
    Ok(())
}

/// The rules of a class that `bond add --class` makes: what applications call interactive (`SO_PRIORITY` 6, the most that
/// a process may ask for without privileges: `sk_set_prio_allowed` of net/core/sock.c), and expedited forwarding.
pub fn default_rules() -> Vec<Rule> {
    const PRIORITY: u32 = 6;
    const EXPEDITED: u8 = 46;
    vec![
        Rule { priority: Some(PRIORITY), ..Rule::default() },
        Rule { dscp: Some(EXPEDITED), ..Rule::default() },
    ]
}

/// What a class does when none of its own members can carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// It takes the members of all other traffic.
    #[default]
    Share,
    /// Its frames are dropped, and counted.
    Block,
}

/// Whether all other traffic may use the class's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Borrow {
    /// No, unless no other member is left.
    #[default]
    Never,
    /// While the class has sent nothing for a while.
    Idle,
}

/// `bond add ... --class NAME=IF[,IF...]`: a class that comes with the bond, with [`default_rules`], policy and fallback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BondClass {
    /// The class.
    pub name: String,
    /// Members of its own, which are among those of the bond. At least one.
    pub members: Vec<String>,
}

/// `class add BOND NAME ...`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassAdd {
    /// The bond.
    pub bond: String,
    /// The class: 1 to 15 of `a-z`, `0-9`, `-` and `_`; not `rest`, which is what all other traffic is called.
    pub name: String,
    /// Members of its own; none: it uses those of all other traffic.
    #[serde(default)]
    pub members: Vec<String>,
    /// What belongs to it; a frame is of the first class, in the order in which classes were added, that has a rule
    /// for it. At least one.
    pub rules: Vec<Rule>,
    /// How it spreads over its lanes.
    #[serde(default)]
    pub policy: Policy,
    /// What happens when its members are gone.
    #[serde(default)]
    pub fallback: Fallback,
    /// Whether others may use its members.
    #[serde(default)]
    pub borrow: Borrow,
}

/// `class set BOND NAME ...`: only what is given changes; a list that is given replaces the old one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassSet {
    /// The bond.
    pub bond: String,
    /// The class.
    pub name: String,
    /// Its members from now on; an empty list takes all away.
    #[serde(default)]
    pub members: Option<Vec<String>>,
    /// Its rules from now on.
    #[serde(default)]
    pub rules: Option<Vec<Rule>>,
    /// A new policy.
    #[serde(default)]
    pub policy: Option<Policy>,
    /// A new fallback.
    #[serde(default)]
    pub fallback: Option<Fallback>,
    /// Whether others may use its members from now on.
    #[serde(default)]
    pub borrow: Option<Borrow>,
}

/// `class del BOND NAME`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassDel {
    /// The bond.
    pub bond: String,
    /// The class.
    pub name: String,
}

/// `run --class NAME -- CMD`: the client's process, whose identity the kernel tells the daemon, goes into the class's
/// control group; then the client becomes CMD.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The bond; without it, the only one that has such a class.
    #[serde(default)]
    pub bond: Option<String>,
    /// The class.
    pub class: String,
}

/// One class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassRecord {
    /// The bond.
    pub bond: String,
    /// Its name.
    pub name: String,
    /// Members of its own.
    pub members: Vec<String>,
    /// Members that its frames to plain hosts leave by now: its own, or those of all other traffic.
    pub uses: Vec<String>,
    /// How it spreads.
    pub policy: Policy,
    /// What happens when its members are gone.
    pub fallback: Fallback,
    /// Whether others may use its members.
    pub borrow: Borrow,
    /// Its rules, in the order in which they are tried, with what each matched.
    pub rules: Vec<RuleRecord>,
    /// Frames that left in this class.
    pub tx_frames: u64,
    /// Bytes that left in this class, with Ethernet headers.
    pub tx_bytes: u64,
}

/// One rule of a class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleRecord {
    /// Its place in the order in which the rules of the bond are tried, from 1.
    pub number: u32,
    /// What it matches.
    #[serde(rename = "match")]
    pub matches: String,
    /// Frames that it chose.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Where the time went, for one class and one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyRecord {
    /// The bond.
    pub bond: String,
    /// The class; `rest` for all other traffic.
    pub class: String,
    /// `application` (from the application's send call to the bond) or `driver` (from the bond to the member's driver).
    pub stage: String,
    /// Buffers measured.
    pub count: u64,
    /// The shortest time, in nanoseconds, as are the others.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The standard deviation.
    pub stddev_ns: u64,
    /// Half are shorter than this.
    pub p50_ns: u64,
    /// Nine of ten are shorter than this.
    pub p90_ns: u64,
    /// 99 of 100 are shorter than this.
    pub p99_ns: u64,
    /// 999 of 1,000 are shorter than this.
    pub p999_ns: u64,
    /// The longest time.
    pub max_ns: u64,
}
