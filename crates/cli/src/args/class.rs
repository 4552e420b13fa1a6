//! `class add`, `class set`, `class del`, `class show`.

use clap::{Args, Subcommand};
use linkbraid_api::{ClassAdd, ClassDel, ClassSet, LinkName, Request};

/// Shown below the help of the object.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid class add bond0 voice --member eth4 --match dscp=ef
  linkbraid class set bond0 voice --policy mirror
  linkbraid class show
  linkbraid class del bond0 voice

A class is traffic that rules choose. It can have members of its own, at both
hosts if both have a class of that name. All other traffic is the default
class, called rest in output. It uses the members that are in no class.";

/// The subcommands of `class`.
#[derive(Debug, Subcommand)]
pub enum ClassVerb {
    /// Add a class: traffic that rules choose, with members of its own
    #[command(after_help = "\
Examples:
  linkbraid class add bond0 voice --member eth4 --match dscp=ef
  linkbraid class add bond0 ssh --member eth3 --match tcp-port=22 --borrow idle
  linkbraid class add bond0 game --match udp-port=27015-27020,host=198.18.0.7
  linkbraid class add bond0 web --match cgroup=/system.slice/nginx.service

Classes are tried in the order in which they were added. A frame belongs to the
first one that has a matching rule. A rule is one condition, or several that
are separated by commas and must all hold. For several rules repeat --match.

  priority=6                 the socket's SO_PRIORITY
  dscp=46                    or by name: cs0 to cs7, af11 to af43, ef, le
  fwmark=0x1/0xff            the mark that nftables sets; the mask is optional
  tcp-port=22                source or destination
  udp-port=5000-5010         likewise
  host=198.18.0.0/24         source or destination, IPv4 or IPv6
  ethertype=0x88f7           if there is a VLAN tag, the type behind it
  cgroup=/system.slice/ssh.service
                             sent by a process in this control group or below

A mirrored frame has 16 more bytes. Frames that are too long for that, frames
that the NIC segments, and frames to plain hosts are sent once.

Do not give the first member of a bond to a class: plain hosts (hosts without
linkbraid) send to its MAC.")]
    Add(ClassAdd),

    /// Change a class; what is not given stays, a list that is given replaces the old one
    #[command(
        override_usage = "linkbraid class set [OPTIONS] <BOND> <NAME>",
        after_help = "\
Examples:
  linkbraid class set bond0 voice --policy mirror --member eth3,eth4
  linkbraid class set bond0 voice --match dscp=ef --match udp-port=5004
  linkbraid class set bond0 voice --no-members

'linkbraid class add --help' explains rules."
    )]
    Set(ClassChange),

    /// Remove a class; its traffic and its members return to the default class
    #[command(after_help = "\
Example:
  linkbraid class del bond0 voice")]
    Del(ClassDel),

    /// Show classes: their members, and what each of their rules matched
    #[command(after_help = "\
Examples:
  linkbraid class show
  linkbraid class show bond0 --json

Rules are numbered in the order in which they are tried. The first that matches
decides. The rule for a class's own control group, which 'linkbraid run' uses,
comes before all others.")]
    Show {
        /// One bond; all of them if left out
        bond: Option<LinkName>,
    },
}

/// `class set`. In the request, `--no-members` is an empty list of members.
#[derive(Debug, Args)]
#[group(skip)]
pub struct ClassChange {
    /// The other options.
    #[command(flatten)]
    pub set: ClassSet,

    /// Remove all its members: it then uses those of the default class
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
