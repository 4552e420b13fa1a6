//! `member add`, `member set`, `member del`.

use clap::Subcommand;
use linkbraid_api::{MemberAdd, MemberDel, MemberSet, Request};

/// Shown below the help of the object.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid member add bond0 eth3
  linkbraid member set bond0 eth3 --weight 100
  linkbraid member del bond0 eth3";

/// What to do with a member.
#[derive(Debug, Subcommand)]
pub enum MemberVerb {
    /// Put one more link under a bond
    #[command(after_help = "\
Examples:
  linkbraid member add bond0 eth3
  linkbraid member add bond0 eth3 --weight 100
  linkbraid member add bond0 eth4 --class voice

The link carries traffic only once peers have answered through it; the command
waits for that: a few seconds, or as long as rare probes take, 27 s at most.")]
    Add(MemberAdd),

    /// Change a member
    #[command(
        override_usage = "linkbraid member set [OPTIONS] <BOND> <IF>",
        after_help = "\
Examples:
  linkbraid member set bond0 eth3 --weight 100
  linkbraid member set bond0 eth3 --weight auto"
    )]
    Set(MemberSet),

    /// Take a link out of a bond and put it back as it was
    #[command(after_help = "\
Example:
  linkbraid member del bond0 eth3

The peers are told first, so no frame is lost while other members are left.")]
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
