//! `lab demo`, `lab up`, `lab exec`, `lab down`.

use crate::limits::{DEMO_LINKS, DEMO_RATES, DEMO_SECONDS, HOSTS_MAX, LINKS_MAX, RATE_MBIT};
use clap::{Args, Subcommand, ValueEnum};
use linkbraid_api::value::{ranged, with_unit};
use std::ffi::OsString;
use std::ops::RangeInclusive;

/// The name of the lab, unless another one is given.
pub const DEFAULT_LAB: &str = "lab";

/// Shown below the help of the object.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid lab demo
  linkbraid lab up
  linkbraid lab exec a -- ping -c 1 198.18.0.2
  linkbraid lab down";

/// The subcommands of `lab`.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// Show one TCP flow over one link, then over all links bonded
    #[command(after_help = "\
Examples:
  linkbraid lab demo
  linkbraid lab demo --links 2 --rate 1gbit --cc bbr

Two hosts and a switch are set up in network namespaces, and removed at the end.
The rate of each link is shown while the flow runs.")]
    Demo(LabDemoArgs),

    /// Set up hosts in network namespaces, with shaped links to one switch
    #[command(after_help = "\
Examples:
  linkbraid lab up
  linkbraid lab up --hosts 3 --links 2 --rate 20mbit --plain 1
  linkbraid lab up --rate none

Hosts are named a, b and so on, their links eth0, eth1 and so on, and their
addresses are 198.18.0.1 and up. Nothing outside the namespaces changes.")]
    Up(LabUpArgs),

    /// Run a command on a host of the lab
    #[command(after_help = "\
Examples:
  linkbraid lab exec a -- ip address
  linkbraid lab exec a -- linkbraid daemon
  linkbraid lab exec a -- linkbraid show

Each host has its own socket and state directory, so that a linkbraid command on
a host finds the daemon of that host.")]
    Exec(LabExecArgs),

    /// Remove a lab, and end all that runs on its hosts
    #[command(after_help = "\
Example:
  linkbraid lab down")]
    Down {
        /// The lab
        #[arg(default_value = DEFAULT_LAB)]
        name: String,
    },
}

/// `lab demo`
#[derive(Debug, Args)]
pub struct LabDemoArgs {
    /// The number of links of each host, 1 to 16
    #[arg(long, value_name = "N", default_value = "4", value_parser = demo_links)]
    pub links: u32,

    /// The rate of each link, 1mbit to 10gbit
    #[arg(long, value_name = "RATE", default_value = "100mbit", value_parser = demo_rate)]
    pub rate: u32,

    /// How long each flow runs, 1 to 3600 seconds
    #[arg(long, value_name = "N", default_value = "8", value_parser = demo_seconds)]
    pub seconds: u32,

    /// TCP's congestion control: cubic or bbr
    #[arg(long, value_name = "CC", default_value = "cubic", value_enum, hide_possible_values = true)]
    pub cc: CcArg,
}

/// A congestion control of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CcArg {
    /// The default of Linux
    Cubic,
    /// Rate-based
    Bbr,
}

/// `lab up`
#[derive(Debug, Args)]
pub struct LabUpArgs {
    /// The name of the lab; several can be up at once
    #[arg(default_value = DEFAULT_LAB)]
    pub name: String,

    /// The number of hosts, 1 to 200
    #[arg(long, value_name = "N", default_value = "2", value_parser = lab_hosts)]
    pub hosts: u32,

    /// The number of links of each host, 1 to 64
    #[arg(long, value_name = "N", default_value = "4", value_parser = lab_links)]
    pub links: u32,

    /// The rate of each link, such as 20mbit or 1gbit, or none for no limit
    #[arg(long, value_name = "RATE", default_value = "100mbit", value_parser = rate)]
    pub rate: Rate,

    /// How many hosts, counted from the last, are plain: they have one link, and are to run no linkbraid
    #[arg(long, value_name = "N", default_value = "0", value_parser = lab_plain)]
    pub plain: u32,
}

/// `lab exec`
#[derive(Debug, Args)]
pub struct LabExecArgs {
    /// The host, such as a
    pub host: String,

    /// The lab
    #[arg(long, value_name = "NAME", default_value = DEFAULT_LAB)]
    pub lab: String,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// The rate of a lab's links in Mbit/s; nothing where they are not shaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(pub Option<u32>);

/// The rate of a lab's links: `none`, or with a unit.
fn rate(text: &str) -> Result<Rate, String> {
    if text == "none" {
        return Ok(Rate(None));
    }
    mbit(text, &RATE_MBIT, "none and ").map(|mbit| Rate(Some(mbit)))
}

/// The rate of the demo's links in Mbit/s.
fn demo_rate(text: &str) -> Result<u32, String> {
    mbit(text, &DEMO_RATES, "")
}

/// Whole numbers of `mbit` or `gbit`, as tc(8) writes them; `besides` names what else is allowed.
fn mbit(text: &str, range: &RangeInclusive<u32>, besides: &str) -> Result<u32, String> {
    let allowed = format!("{besides}{}mbit to {}gbit", range.start(), range.end() / 1000);
    match with_unit(text, &[("mbit", 1), ("gbit", 1000)], "a rate", &allowed)? {
        Some(mbit) if range.contains(&mbit) => Ok(mbit),
        _ => Err(format!("'{text}' is outside the allowed range; allowed are {allowed}")),
    }
}

/// How many links a host of the demo has.
fn demo_links(text: &str) -> Result<u32, String> {
    ranged(text, *DEMO_LINKS.start(), *DEMO_LINKS.end(), "links")
}

/// How long a flow of the demo runs.
fn demo_seconds(text: &str) -> Result<u32, String> {
    ranged(text, *DEMO_SECONDS.start(), *DEMO_SECONDS.end(), "seconds")
}

/// How many hosts a lab has.
fn lab_hosts(text: &str) -> Result<u32, String> {
    ranged(text, 1, HOSTS_MAX as u32, "hosts")
}

/// How many links a host of a lab has.
fn lab_links(text: &str) -> Result<u32, String> {
    ranged(text, 1, LINKS_MAX as u32, "links")
}

/// How many hosts of a lab are plain ones.
fn lab_plain(text: &str) -> Result<u32, String> {
    ranged(text, 0, HOSTS_MAX as u32, "hosts")
}

#[cfg(test)]
mod tests;
