//! Options of `doctor`.

use clap::Args;
use linkbraid_api::LinkName;
use std::net::IpAddr;

pub const EXAMPLES: &str = "\
Examples:
  linkbraid doctor bond0 --answer 198.18.0.1         on 198.18.0.2, first
  linkbraid doctor bond0 198.18.0.2                  on 198.18.0.1, then
  linkbraid doctor bond0 198.18.0.2 --json

It sends frames over one lane at a time, 0.25 s in each direction, and then TCP
over all of them, one flow and eight, 2 s each. It names the bottleneck, what it
costs, and a command that helps. Other traffic is slower meanwhile.

The other host takes part only while its administrator lets it. It answers one
address, on TCP port 4919, and sends test frames to MACs of that peer only.";

/// `doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The bond [default: the only one]
    pub bond: Option<LinkName>,

    /// The address of the peer [default: that of the only one]
    pub peer: Option<IpAddr>,

    /// Let the doctor of that peer examine this host, too
    #[arg(long, value_name = "ADDRESS", conflicts_with = "peer")]
    pub answer: Option<IpAddr>,

    /// For so many minutes, 1 to 1440
    #[arg(long, value_name = "N", default_value_t = 10, requires = "answer",
          value_parser = clap::value_parser!(u16).range(1..=1440))]
    pub minutes: u16,
}
