//! `member add`, `member set`, `member del`.

use crate::units;
use clap::{Args, Subcommand};
use linkbraid_api::{MemberAdd, MemberDel, MemberSet, Request, Weight};

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
    Add(MemberAddArgs),

    /// Change a member
    #[command(after_help = "\
Examples:
  linkbraid member set bond0 eth3 --weight 100
  linkbraid member set bond0 eth3 --weight auto")]
    Set(MemberSetArgs),

    /// Take a link out of a bond and put it back as it was
    #[command(after_help = "\
Example:
  linkbraid member del bond0 eth3

The peers are told first, so no frame is lost while other members are left.")]
    Del(MemberDelArgs),
}

/// `member add`
#[derive(Debug, Args)]
pub struct MemberAddArgs {
    /// The bond
    #[arg(value_parser = units::interface)]
    pub bond: String,

    /// The link that joins
    #[arg(value_name = "IF", value_parser = units::interface)]
    pub interface: String,

    /// Its share of the traffic in Mbit/s, 1 to 1000000; auto is the link's own speed
    #[arg(long, value_name = "MBIT|auto", default_value = "auto", value_parser = units::weight)]
    pub weight: Weight,

    /// Take a link that carries the default route too; its addresses and routes move to the bond
    #[arg(long)]
    pub move_address: bool,

    /// Admit it though no peer answers through it
    #[arg(long)]
    pub force: bool,

    /// The class that it is for; if left out it carries all other traffic
    #[arg(long, value_name = "NAME", value_parser = units::class)]
    pub class: Option<String>,
}

/// `member set`
#[derive(Debug, Args)]
pub struct MemberSetArgs {
    /// The bond
    #[arg(value_parser = units::interface)]
    pub bond: String,

    /// The member
    #[arg(value_name = "IF", value_parser = units::interface)]
    pub interface: String,

    /// Its share of the traffic in Mbit/s, 1 to 1000000; auto is the link's own speed
    #[arg(long, value_name = "MBIT|auto", required = true, value_parser = units::weight)]
    pub weight: Weight,
}

/// `member del`
#[derive(Debug, Args)]
pub struct MemberDelArgs {
    /// The bond
    #[arg(value_parser = units::interface)]
    pub bond: String,

    /// The link that leaves
    #[arg(value_name = "IF", value_parser = units::interface)]
    pub interface: String,

    /// Remove the last member, too; the bond stays, without any link
    #[arg(long)]
    pub force: bool,
}

impl From<MemberVerb> for Request {
    fn from(verb: MemberVerb) -> Self {
        match verb {
            MemberVerb::Add(add) => Self::MemberAdd(MemberAdd {
                bond: add.bond,
                interface: add.interface,
                weight: add.weight,
                move_address: add.move_address,
                force: add.force,
                class: add.class,
            }),
            MemberVerb::Set(set) => Self::MemberSet(MemberSet {
                bond: set.bond,
                interface: set.interface,
                weight: Some(set.weight),
            }),
            MemberVerb::Del(del) => {
                Self::MemberDel(MemberDel { bond: del.bond, interface: del.interface, force: del.force })
            }
        }
    }
}
