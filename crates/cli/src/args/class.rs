//! `class add`, `class set`, `class del`, `class show`.

use crate::units;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use linkbraid_api::{Borrow, ClassAdd, ClassDel, ClassSet, Fallback, Policy, Request, Rule};

/// Shown below the help of the object.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid class add bond0 voice --member eth4 --match dscp=ef
  linkbraid class set bond0 voice --policy mirror
  linkbraid class show
  linkbraid class del bond0 voice

A class is traffic that its rules choose. It has members of its own, at both
hosts where both have a class of that name; all other traffic, called rest,
uses the other members.";

/// What to do with a class.
#[derive(Debug, Subcommand)]
pub enum ClassVerb {
    /// Choose traffic by rules, and give it members of its own
    #[command(after_help = "\
Examples:
  linkbraid class add bond0 voice --member eth4 --match dscp=ef
  linkbraid class add bond0 ssh --member eth3 --match tcp-port=22 --borrow idle
  linkbraid class add bond0 game --match udp-port=27015-27020,host=198.18.0.7
  linkbraid class add bond0 web --match cgroup=/system.slice/nginx.service

A frame belongs to the first class, in the order in which classes were added,
that has a rule for it. A rule is one condition, or several joined by commas,
which must all hold; several rules are several --match:

  priority=6                 the socket's SO_PRIORITY
  dscp=46                    or by name: cs0 to cs7, af11 to af43, ef, le
  fwmark=0x1/0xff            as nftables sets it; value and, if any, mask
  tcp-port=22                source or destination
  udp-port=5000-5010         likewise
  host=198.18.0.0/24         source or destination, IPv4 or IPv6
  ethertype=0x88f7           behind a VLAN tag, if there is one
  cgroup=/system.slice/ssh.service
                             sent by a process in this control group or below

A mirrored frame has 16 bytes more: it must be that much shorter than the MTU.
Larger ones, those that the NIC is to cut, and those to hosts without linkbraid
leave once.

The first member of a bond is no good one to give to a class: hosts without
linkbraid send to its MAC.")]
    Add(ClassAddArgs),

    /// Change a class; what is not named stays, a list that is named replaces the old one
    #[command(
        override_usage = "linkbraid class set [OPTIONS] <BOND> <NAME>",
        after_help = "\
Examples:
  linkbraid class set bond0 voice --policy mirror --member eth3,eth4
  linkbraid class set bond0 voice --match dscp=ef --match udp-port=5004
  linkbraid class set bond0 voice --no-members

'linkbraid class add --help' tells what a rule can say."
    )]
    Set(ClassSetArgs),

    /// Remove a class; its traffic and its members join all others
    #[command(after_help = "\
Example:
  linkbraid class del bond0 voice")]
    Del {
        /// The bond
        #[arg(value_parser = units::interface)]
        bond: String,

        /// The class
        #[arg(value_parser = units::class)]
        name: String,
    },

    /// Show classes: what carries them, and what each of their rules matched
    #[command(after_help = "\
Examples:
  linkbraid class show
  linkbraid class show bond0 --json

Rules are numbered in the order in which the bond tries them; the first that
matches decides. The rule for a class's own control group, the one that
'linkbraid run' uses, comes before all others.")]
    Show {
        /// One bond; all of them if left out
        #[arg(value_parser = units::interface)]
        bond: Option<String>,
    },
}

/// What a class does without its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FallbackArg {
    /// Uses those of all other traffic
    Share,
    /// Is not sent
    Block,
}

impl From<FallbackArg> for Fallback {
    fn from(arg: FallbackArg) -> Self {
        match arg {
            FallbackArg::Share => Self::Share,
            FallbackArg::Block => Self::Block,
        }
    }
}

/// Whether all other traffic may use a class's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BorrowArg {
    /// It may not
    Never,
    /// While the class sends nothing
    Idle,
}

impl From<BorrowArg> for Borrow {
    fn from(arg: BorrowArg) -> Self {
        match arg {
            BorrowArg::Never => Self::Never,
            BorrowArg::Idle => Self::Idle,
        }
    }
}

/// `class add`
#[derive(Debug, Args)]
pub struct ClassAddArgs {
    /// The bond
    #[arg(value_parser = units::interface)]
    pub bond: String,

    /// The name of the class, the same on all hosts: 1 to 15 of a-z, 0-9, '-' and '_'
    #[arg(value_parser = units::class)]
    pub name: String,

    /// Members of the bond that are for this class from now on; without any it shares those of all other traffic.
    /// May be repeated
    #[arg(
        long,
        value_name = "IF[,IF...]",
        value_delimiter = ',',
        num_args = 1,
        value_parser = units::interface
    )]
    pub member: Vec<String>,

    /// What belongs to the class: a rule, see below. May be repeated
    #[arg(long = "match", value_name = "RULE", required = true, num_args = 1, value_parser = units::rule)]
    pub rules: Vec<Rule>,

    /// How it uses its members: spread (all, even for one flow), flow (a flow keeps to one), active-backup (one at a
    /// time), mirror (each frame over two, the peer takes the first copy)
    #[arg(long, value_name = "POLICY", default_value = "spread", value_parser = units::class_policy)]
    pub policy: Policy,

    /// What it does when none of its members works: share (uses those of all other traffic) or block (is not sent)
    #[arg(long, value_name = "WHAT", default_value = "share", value_enum, hide_possible_values = true)]
    pub fallback: FallbackArg,

    /// When all other traffic may use its members: never, or idle (while it sends nothing)
    #[arg(long, value_name = "WHEN", default_value = "never", value_enum, hide_possible_values = true)]
    pub borrow: BorrowArg,
}

/// `class set`
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    group = ArgGroup::new("change")
        .required(true)
        .multiple(true)
        .args(["member", "no_members", "rules", "policy", "fallback", "borrow"])
)]
pub struct ClassSetArgs {
    /// The bond
    #[arg(value_parser = units::interface)]
    pub bond: String,

    /// The class
    #[arg(value_parser = units::class)]
    pub name: String,

    /// The members that are for this class from now on, instead of those it had. May be repeated
    #[arg(
        long,
        value_name = "IF[,IF...]",
        value_delimiter = ',',
        num_args = 1,
        value_parser = units::interface
    )]
    pub member: Vec<String>,

    /// Take all its members away: it shares those of all other traffic
    #[arg(long, conflicts_with = "member")]
    pub no_members: bool,

    /// What belongs to it from now on, instead of what did: a rule. May be repeated
    #[arg(long = "match", value_name = "RULE", num_args = 1, value_parser = units::rule)]
    pub rules: Vec<Rule>,

    /// How it uses its members: spread, flow, active-backup or mirror
    #[arg(long, value_name = "POLICY", value_parser = units::class_policy)]
    pub policy: Option<Policy>,

    /// What it does when none of its members works: share (uses those of all other traffic) or block (is not sent)
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true)]
    pub fallback: Option<FallbackArg>,

    /// When all other traffic may use its members: never, or idle (while it sends nothing)
    #[arg(long, value_name = "WHEN", value_enum, hide_possible_values = true)]
    pub borrow: Option<BorrowArg>,
}

impl From<ClassVerb> for Request {
    fn from(verb: ClassVerb) -> Self {
        // An option that was not given is an empty list here; one that takes all away is another option.
        fn given<T>(list: Vec<T>) -> Option<Vec<T>> {
            (!list.is_empty()).then_some(list)
        }
        match verb {
            ClassVerb::Add(add) => Self::ClassAdd(ClassAdd {
                bond: add.bond,
                name: add.name,
                members: add.member,
                rules: add.rules,
                policy: add.policy,
                fallback: add.fallback.into(),
                borrow: add.borrow.into(),
            }),
            ClassVerb::Set(set) => Self::ClassSet(ClassSet {
                bond: set.bond,
                name: set.name,
                members: if set.no_members { Some(Vec::new()) } else { given(set.member) },
                rules: given(set.rules),
                policy: set.policy,
                fallback: set.fallback.map(Into::into),
                borrow: set.borrow.map(Into::into),
            }),
            ClassVerb::Del { bond, name } => Self::ClassDel(ClassDel { bond, name }),
            ClassVerb::Show { bond } => Self::ClassShow { bond },
        }
    }
}
