//! Classes: kinds of traffic, the rules that choose them, and the records about them.

use crate::{ClassName, LinkName, Policy, Rule, options::options, value::words};
use clap::{ArgGroup, Args, ValueEnum};
use serde::{Deserialize, Serialize};

options! {
    /// How a class uses its members.
    ClassOptions / ClassSettings of "class", Copy;
    /// How the class uses its members: spread (all, also for one flow), flow (each flow over one), active-backup (one at a
    /// time), mirror (each frame over two; the peer delivers the first copy), round-robin (a frame each, in turn),
    /// hash=layer2, hash=layer2+3, hash=layer3+4 and hash=vlan+srcmac (the one that these fields choose)
    policy ("policy"): Policy = Policy::Spread;
    /// When no member of the class works: share (use members of the default class) or block (drop its frames)
    fallback ("fallback"): Fallback = Fallback::Share;
    /// When the default class may use its members: never, or idle (while the class sends nothing)
    borrow ("borrow"): Borrow = Borrow::Never;
    /// Whether its frames leave before others that wait in the queue of the same member: auto (if the class has no members of
    /// its own), on or off
    precedence ("precedence"): Precedence = Precedence::Auto;
}

/// The name of the default class in output; no other class can have it.
pub const REST: &str = "rest";

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// It uses the members of the default class.
    #[default]
    Share,
    /// Its frames are dropped, and counted.
    Block,
}

words!(Fallback, "WHAT");

/// Whether the default class may use the class's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Borrow {
    /// No, unless no other member is left.
    #[default]
    Never,
    /// While the class has sent nothing for a while.
    Idle,
}

words!(Borrow, "WHEN");

/// Whether frames of the class leave before others that wait in the queue of the same member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Precedence {
    /// If the class has no members of its own.
    #[default]
    Auto,
    /// Yes: also on members of its own that others borrow, and on those that it shares when its own have failed.
    On,
    /// No.
    Off,
}

words!(Precedence, "WHETHER");

/// `bond add ... --class NAME=IF[,IF...]`: a class that comes with the bond, with [`default_rules`], policy and fallback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BondClass {
    /// The name of the class.
    pub name: ClassName,
    /// Members of its own, which are among those of the bond. At least one.
    pub members: Vec<LinkName>,
}

impl BondClass {
    /// `NAME=IF[,IF...]`
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let Some((name, members)) = text.split_once('=') else {
            return Err(format!("'{text}' has no members; write NAME=IF[,IF...], such as urgent=eth3"));
        };
        let members = members.split(',').map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { name: name.parse()?, members })
    }

    /// The same as text.
    pub(crate) fn text(&self) -> String {
        format!("{}={}", self.name, LinkName::list(&self.members))
    }
}

/// `class add BOND NAME ...`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClassAdd {
    /// The bond
    pub bond: LinkName,
    /// The name of the class, the same on all hosts: 1 to 15 of a-z, 0-9, '-' and '_'
    pub name: ClassName,
    /// Members of the bond to reserve for this class; without any it uses those of the default class. May be repeated
    #[arg(long = "member", value_name = "IF[,IF...]", value_delimiter = ',', num_args = 1)]
    #[serde(default)]
    pub members: Vec<LinkName>,
    /// A rule for what belongs to the class, see below. May be repeated
    // A frame is of the first class, in the order in which classes were added, that has a rule for it.
    #[arg(long = "match", value_name = "RULE", required = true, num_args = 1)]
    pub rules: Vec<Rule>,
    /// The options that are given.
    #[command(flatten)]
    #[serde(flatten)]
    pub options: ClassOptions,
}

/// `class set BOND NAME ...`: only what is given changes; a list that is given replaces the old one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[group(skip)]
#[command(
    group = ArgGroup::new("change")
        .required(true)
        .multiple(true)
        .args(["members", "rules"])
        .args(ClassOptions::ids())
)]
pub struct ClassSet {
    /// The bond
    pub bond: LinkName,
    /// The class
    pub name: ClassName,
    /// Members of the bond to reserve for this class, instead of those it has. May be repeated
    #[arg(long = "member", value_name = "IF[,IF...]", value_delimiter = ',', num_args = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<LinkName>>,
    /// A rule for what belongs to the class; replaces all rules it has. May be repeated
    #[arg(long = "match", value_name = "RULE", num_args = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<Rule>>,
    /// The options that are given.
    #[command(flatten)]
    #[serde(flatten)]
    pub options: ClassOptions,
}

/// `class del BOND NAME`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClassDel {
    /// The bond
    pub bond: LinkName,
    /// The class
    pub name: ClassName,
}

/// `run --class NAME -- CMD`: the daemon moves the client's process into the class's control group; then the client executes
/// CMD. The kernel reports to the daemon which process that is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The bond; without it, the only one that has such a class.
    #[serde(default)]
    pub bond: Option<LinkName>,
    /// The name of the class.
    pub class: ClassName,
}

/// A class, as `class show` reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassRecord {
    /// The interface name of the bond.
    pub bond: String,
    /// The name of the class.
    pub name: String,
    /// Its own members, by interface name.
    pub members: Vec<String>,
    /// Members that its frames to plain hosts leave by now: its own, or those of the default class.
    pub uses: Vec<String>,
    /// How it uses its members.
    #[serde(flatten)]
    pub settings: ClassSettings,
    /// If its frames have precedence: the queues of the bond's members.
    #[serde(default)]
    pub queues: Vec<QueueRecord>,
    /// Its rules, in the order in which they are tried, with what each matched.
    pub rules: Vec<RuleRecord>,
    /// Frames that left in this class.
    pub tx_frames: u64,
    /// Bytes that left in this class, with Ethernet headers.
    pub tx_bytes: u64,
    /// Of these frames, those that had no precedence because the class sent too much: it leaves a tenth of each link to others.
    #[serde(default)]
    pub tx_over: u64,
}

/// The queue of a member, for classes with precedence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueRecord {
    /// The member, by interface name.
    pub member: String,
    /// Its queueing discipline, by the kernel's name; `noqueue`: frames do not wait here.
    pub kind: String,
    /// Whether linkbraid has set it. Another one is somebody's own, and decides what priority 6 means to it.
    pub ours: bool,
}

/// A rule of a class, with what it matched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleRecord {
    /// Its place in the order in which the rules of the bond are tried, from 1.
    pub number: u32,
    /// What it matches.
    #[serde(rename = "match")]
    pub matches: String,
    /// Frames that it chose.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
}

/// Where the time went, for one class and one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyRecord {
    /// The interface name of the bond.
    pub bond: String,
    /// The class; `rest` is the default class.
    pub class: String,
    /// `application` (from the application's send call to the bond), `driver` (from the bond to the member's driver) or `total`
    /// (both together).
    pub stage: String,
    /// Buffers measured.
    pub count: u64,
    /// The shortest time, in nanoseconds, as are the others.
    pub min_ns: u64,
    /// The arithmetic mean.
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
