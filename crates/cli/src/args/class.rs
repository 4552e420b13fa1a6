//! `class add`, `class set`, `class del`, `class show`.

use clap::{Args, Subcommand};
use linkbraid_api::{ClassAdd, ClassDel, ClassSet, Request, value};

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
    Add(ClassAdd),

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
    Set(ClassChange),

    /// Remove a class; its traffic and its members join all others
    #[command(after_help = "\
Example:
  linkbraid class del bond0 voice")]
    Del(ClassDel),

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
        #[arg(value_parser = value::interface)]
        bond: Option<String>,
    },
}

/// `class set`: the request writes members that are all taken away as an empty list.
#[derive(Debug, Args)]
#[group(skip)]
pub struct ClassChange {
    /// What is given.
    #[command(flatten)]
    pub set: ClassSet,

    /// Take all its members away: it shares those of all other traffic
    #[arg(long, conflicts_with = "members", group = "change")]
    pub no_members: bool,
}

impl From<ClassVerb> for Request {
    fn from(verb: ClassVerb) -> Self {
        match verb {
            ClassVerb::Add(add) => Self::ClassAdd(add),
            ClassVerb::Set(ClassChange { mut set, no_members }) => {
                set.members = if no_members { Some(Vec::new()) } else { set.members };
                Self::ClassSet(set)
            }
            ClassVerb::Del(del) => Self::ClassDel(del),
            ClassVerb::Show { bond } => Self::ClassShow { bond },
        }
    }
}
