//! `member add`, `member set`, `member del`.

use clap::Subcommand;
use linkbraid_api::{MemberAdd, MemberDel, MemberSet, Request};

/// Shown below the help of the object.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid member add bond0 eth3
  linkbraid member set bond0 eth3 --weight 100
  linkbraid member del bond0 eth3";

/// The subcommands of `member`.
#[derive(Debug, Subcommand)]
pub enum MemberVerb {
    /// Add a link to a bond
    #[command(after_help = "\
Examples:
  linkbraid member add bond0 eth3
  linkbraid member add bond0 eth3 --weight 100
  linkbraid member add bond0 eth4 --class voice

The link carries traffic once peers have answered through it. The command waits
for that: a few seconds, or as long as infrequent probes need, 27 s at most.")]
    Add(MemberAdd),

    /// Change options of a member
    #[command(
        override_usage = "linkbraid member set [OPTIONS] <BOND> <IF>",
        after_help = "\
Examples:
  linkbraid member set bond0 eth3 --weight 100
  linkbraid member set bond0 eth3 --weight auto"
    )]
    Set(MemberSet),

    /// Remove a member from a bond and restore the link
    #[command(after_help = "\
Example:
  linkbraid member del bond0 eth3

The removal is announced to peers first, so no frame is lost while the bond has
other members.")]
    Del(MemberDel),
}

impl From<MemberVerb> for Request {
    fn from(verb: MemberVerb) -> Self {
        match verb {
            MemberVerb::Add(add) => Self::MemberAdd(add),
            MemberVerb::Set(set) => Self::MemberSet(set),
            MemberVerb::Del(del) => Self::MemberDel(del),
        }
    }
}
