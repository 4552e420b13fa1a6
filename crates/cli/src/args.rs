//! The words and options of the command, once: parsing, help, man pages and completions all come from here.

mod apply;
mod bond;
mod class;
mod fabric;
mod member;
mod records;
mod run;

pub use apply::ApplyArgs;
pub use bond::BondVerb;
pub use class::ClassVerb;
pub use fabric::FabricVerb;
pub use member::MemberVerb;
pub use records::StatsArgs;
pub use run::RunArgs;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use linkbraid_terminal::args::bench::{self, BenchVerb};
use linkbraid_terminal::args::lab::{self, LabVerb};
use linkbraid_terminal::args::{Anywhere, STATE_ENV};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  linkbraid lab demo                                 see it work, in namespaces
  systemctl start linkbraid                          or: linkbraid daemon
  linkbraid bond add bond0 --member eth1,eth2        one interface over two NICs
  linkbraid class show                               what has links of its own
  linkbraid show                                     is it well?
  linkbraid monitor                                  what changes, and why
  linkbraid bond del bond0                           everything as it was before
  linkbraid apply /etc/linkbraid.toml                all of it, from a file

Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 no daemon.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "linkbraid",
    version,
    about = "Many cheap links, one fast Ethernet interface",
    long_about = "Many cheap links, one fast Ethernet interface.\n\n\
        linkbraid puts several NICs on ordinary switches under one interface with one IP and one MAC, and spreads \
        even a single TCP flow over all of them. A daemon sets it up; every other word here asks the daemon.",
    after_help = EXAMPLES,
    disable_help_subcommand = true,
    subcommand_required = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What stands anywhere.
    #[command(flatten)]
    pub anywhere: Anywhere,

    /// What to do.
    #[command(subcommand)]
    pub word: Word,
}

/// The first word of the command line.
#[derive(Debug, Subcommand)]
pub enum Word {
    /// Run the daemon in the foreground
    #[command(after_help = "\
Examples:
  linkbraid daemon
  linkbraid daemon --config /etc/linkbraid.toml
  linkbraid daemon --socket /run/lab.sock --log debug

Several daemons can run on one machine, one in each network namespace; give
each its own socket. A daemon that stops or restarts interrupts no traffic.")]
    Daemon(DaemonArgs),

    /// Make, change and remove bonds
    #[command(subcommand, after_help = bond::EXAMPLES)]
    Bond(BondVerb),

    /// Add, change and remove the links under a bond
    #[command(subcommand, after_help = member::EXAMPLES)]
    Member(MemberVerb),

    /// Give traffic that cannot wait members of its own
    #[command(subcommand, after_help = class::EXAMPLES)]
    Class(ClassVerb),

    /// Make, change and remove fabrics: Ethernet over shared memory or any network
    #[command(subcommand, after_help = fabric::EXAMPLES)]
    Fabric(FabricVerb),

    /// Make bonds and fabrics what a file says
    #[command(after_help = apply::EXAMPLES)]
    Apply(ApplyArgs),

    /// Run a command whose traffic is of a class
    #[command(after_help = "\
Examples:
  linkbraid run --class voice -- baresip
  linkbraid run --class voice -- runuser -u ann -- baresip
  linkbraid run --bond bond0 --class backup -- rsync -a /srv 198.18.0.7:/srv

All that the command sends is of the class, and so is what its children send,
whatever other rules say. The exit status is the command's; nothing is run if
the daemon refuses. Only root may ask the daemon; runuser and the like give
that up again. A service is better chosen by a rule, such as
cgroup=/system.slice/nginx.service.")]
    Run(RunArgs),

    /// Show bonds and fabrics, and what is in them; the first line says whether all is well
    #[command(after_help = "\
Examples:
  linkbraid show
  linkbraid show bond0
  linkbraid show bond0 --json")]
    Show {
        /// One bond or fabric; all of them if left out
        #[arg(value_parser = linkbraid_api::value::interface)]
        name: Option<String>,
    },

    /// Show the hosts that speak ARP+
    #[command(after_help = "\
Examples:
  linkbraid peers
  linkbraid peers bond0 --json

A host that is not listed is a plain host. It works too: frames to it leave
over all members.")]
    Peers {
        /// One bond; all of them if left out
        #[arg(value_parser = linkbraid_api::value::interface)]
        bond: Option<String>,
    },

    /// Show the (own member, peer's member) pairs, their states and shares
    #[command(after_help = "\
Examples:
  linkbraid lanes
  linkbraid lanes bond0 --json

up       probes are answered
suspect  they are no longer, but no other lane of the peer is any better
init     they are, but not long enough yet
down     they are not
cut      the member at one end is down
heard    not probed: frames of the peer's member arrive

A lane that is not used now has '-' as its share. A class has lanes of its own
where it has members of its own; lanes without a class are those of all other
traffic.")]
    Lanes {
        /// One bond; all of them if left out
        #[arg(value_parser = linkbraid_api::value::interface)]
        bond: Option<String>,
    },

    /// Show the counters: every frame passed or dropped, by numbered reason
    #[command(after_help = "\
Examples:
  linkbraid stats bond0
  linkbraid stats bond0 --all
  linkbraid stats --json
  linkbraid stats --latency bond0

--latency tells where the time goes, class by class, once it is measured:
'linkbraid bond set bond0 --latency on'. Two stages are told apart:

application  from the application's send call to the bond
driver       from the bond to the member's driver: what waits in queues")]
    Stats(StatsArgs),

    /// Show what changes as it happens, and why, until Ctrl-C
    #[command(after_help = "\
Examples:
  linkbraid monitor
  linkbraid monitor bond0
  linkbraid monitor --json

Each event is one line, or with --json one JSON object a line. Ctrl-C ends it
with status 0, the end of the daemon with status 3. 'linkbraid show' tells the
last events, too.")]
    Monitor {
        /// One bond or fabric; all of them if left out
        #[arg(value_parser = linkbraid_api::value::interface)]
        bond: Option<String>,
    },

    /// Look for what will get in the way, on this machine and its links
    #[command(after_help = "\
Examples:
  linkbraid check
  linkbraid check eth1 eth2
  linkbraid check eth1 --json

Each line begins with ok, warning (works, but will hurt) or error (will not
work). One error or more make exit status 1.")]
    Check {
        /// Links to look at, in a bond or not; the members of all bonds if left out
        #[arg(value_name = "IF", value_parser = linkbraid_api::value::interface)]
        interfaces: Vec<String>,
    },

    /// Try it: hosts in network namespaces, with shaped links and a switch
    #[command(subcommand, after_help = lab::EXAMPLES)]
    Lab(LabVerb),

    /// Measure it: experiments in namespaces, results as JSON and SVG
    #[command(subcommand, after_help = bench::EXAMPLES)]
    Bench(BenchVerb),

    /// Write the man pages into DIR
    #[command(hide = true)]
    Man {
        /// An existing directory
        dir: PathBuf,
    },

    /// Print the completions of one shell (bash, zsh, fish), or write those of all shells into DIR
    #[command(hide = true)]
    Completions {
        /// A shell's name, or an existing directory
        target: String,
    },
}

/// `bond set` and `fabric set`: a request writes addresses that are all taken away as an empty list.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Change<S: clap::Args> {
    /// What is given.
    #[command(flatten)]
    pub set: S,

    /// Take all addresses that it was given with --address away
    #[arg(long, conflicts_with = "addresses", group = "change")]
    pub no_addresses: bool,
}

/// `daemon`
#[derive(Debug, clap::Args)]
pub struct DaemonArgs {
    /// A file to apply at the start, as 'linkbraid apply' does, but that nothing is removed; what is missing is waited
    /// for, and a file that is bad or not there changes nothing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    /// Where to keep what must outlive a restart of the daemon [default: the socket's path with .state]
    #[arg(long, value_name = "DIR", env = STATE_ENV, hide_env_values = true, value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,

    /// What to log: error, warn, info, debug, trace, or MODULE=LEVEL,...
    #[arg(long, value_name = "FILTER", default_value = "info")]
    pub log: String,

    /// The kernel hook for the programs: auto (tcx where the kernel has it), tcx or clsact
    #[arg(long, value_name = "HOOK", default_value = "auto", value_enum, hide_possible_values = true)]
    pub hook: HookArg,
}

/// A choice of the kernel's hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HookArg {
    /// The best one the kernel has
    Auto,
    /// Links of kernel 6.6 and newer
    Tcx,
    /// Filters of any kernel
    Clsact,
}

#[cfg(test)]
mod tests;
