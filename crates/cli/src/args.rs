//! The words and options of the command, once: parsing, help, man pages and completions all come from here.

mod apply;
mod bond;
mod class;
mod confirm;
mod doctor;
mod fabric;
mod key;
mod member;
mod records;
mod run;
mod support;

pub use apply::ApplyArgs;
pub use bond::BondVerb;
pub use class::ClassVerb;
pub use confirm::{Changes, Within};
pub use doctor::DoctorArgs;
pub use fabric::FabricVerb;
pub use key::KeyVerb;
pub use member::MemberVerb;
pub use records::StatsArgs;
pub use run::RunArgs;
pub use support::SupportArgs;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use linkbraid_api::{Confirm, Explain, LinkName, MetricsAddress};
use linkbraid_terminal::args::bench::{self, BenchVerb};
use linkbraid_terminal::args::lab::{self, LabVerb};
use linkbraid_terminal::args::{Anywhere, STATE_ENV};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  linkbraid lab demo                                 see it work, in namespaces
  systemctl enable --now linkbraid                   or: linkbraid daemon
  linkbraid bond add bond0 --member eth1,eth2        one interface over two NICs
  linkbraid class show                               classes and their links
  linkbraid show                                     is everything well?
  linkbraid monitor                                  what changes, and why
  linkbraid bond del bond0                           restore what was before
  linkbraid apply                                    the configuration in /etc

Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 no daemon.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "linkbraid",
    version,
    about = "Many cheap links, one fast Ethernet interface",
    long_about = "Many cheap links, one fast Ethernet interface.\n\n\
        linkbraid joins several NICs on ordinary switches into one interface with one IP address and one MAC. It \
        distributes even a single TCP flow over all of them. A daemon does the work; the other commands talk to it.",
    after_help = EXAMPLES,
    disable_help_subcommand = true,
    subcommand_required = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Options that may stand anywhere.
    #[command(flatten)]
    pub anywhere: Anywhere,

    /// The command.
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
  linkbraid daemon --config /etc/linkbraid.toml --config /etc/linkbraid
  linkbraid daemon --metrics 127.0.0.1:9919
  linkbraid daemon --socket /run/lab.sock --log debug

Several daemons can run on one machine, one in each network namespace. Give
each its own socket. Bonds carry traffic while a daemon stops or restarts.")]
    Daemon(DaemonArgs),

    /// Add, change and remove bonds
    #[command(after_help = bond::EXAMPLES)]
    Bond(Changes<BondVerb>),

    /// Add, change and remove members of a bond
    #[command(after_help = member::EXAMPLES)]
    Member(Changes<MemberVerb>),

    /// Choose traffic by rules, and reserve members of a bond for it
    #[command(subcommand, after_help = class::EXAMPLES)]
    Class(ClassVerb),

    /// Add, change and remove fabrics: Ethernet over shared memory or any network
    #[command(subcommand, after_help = fabric::EXAMPLES)]
    Fabric(FabricVerb),

    /// Make and change the key files by which hosts know each other
    #[command(subcommand, after_help = key::EXAMPLES)]
    Key(KeyVerb),

    /// Apply configuration files of bonds and fabrics
    #[command(after_help = apply::EXAMPLES)]
    Apply(ApplyArgs),

    /// Keep a change that was made with --confirm, or undo it
    #[command(after_help = confirm::EXAMPLES)]
    Confirm(Confirm),

    /// Run a command whose traffic belongs to a class
    #[command(after_help = "\
Examples:
  linkbraid run --class voice -- baresip
  linkbraid run --class voice -- runuser -u ann -- baresip
  linkbraid run --bond bond0 --class backup -- rsync -a /srv 198.18.0.7:/srv

All that the command and its children send belongs to the class, whatever
other rules say. The exit status is the command's. If the daemon refuses, the
command is not run. Only root may ask the daemon; use runuser to run the
command as another user. For a service use a rule instead, such as
cgroup=/system.slice/nginx.service.")]
    Run(RunArgs),

    /// Tell peers that this host leaves, before it is switched off
    #[command(after_help = "\
Examples:
  linkbraid leave
  linkbraid leave bond0
  linkbraid leave --undo                             join again

The service does this when the machine shuts down or reboots. Peers then forget
this host at once. Otherwise they would send to it for up to 10 s. The bond
stays, and peers and this host are plain hosts to each other. A daemon that
starts joins again, too.")]
    Leave {
        /// One bond [default: all]
        bond: Option<LinkName>,

        /// Join again
        #[arg(long)]
        undo: bool,
    },

    /// Show bonds and fabrics; the first line says whether all is well
    #[command(after_help = "\
Examples:
  linkbraid show
  linkbraid show bond0
  linkbraid show bond0 --json")]
    Show {
        /// One bond or fabric [default: all]
        name: Option<LinkName>,
    },

    /// Show the other hosts that run linkbraid
    #[command(after_help = "\
Examples:
  linkbraid peers
  linkbraid peers bond0 --peer 198.18.0.2
  linkbraid peers bond0 --json

A host that is not listed is a plain host. Frames to it leave over all members,
too.")]
    Peers {
        /// One bond [default: all]
        bond: Option<LinkName>,
        /// Only the one that has this address, MAC or host id
        #[arg(long, value_name = "HOST")]
        peer: Option<String>,
    },

    /// Show the lanes: pairs of an own member and a peer's member, with state and share
    #[command(after_help = "\
Examples:
  linkbraid lanes
  linkbraid lanes bond0 --peer 198.18.0.2
  linkbraid lanes bond0 --json

up       probes are answered
suspect  probes are not answered, but no other lane of the peer is better; used
init     probes are answered again, but not long enough to use the lane
down     probes are not answered
cut      the member at one end is down
heard    not probed; frames of the peer's member arrive

A lane that is not used now has '-' as its share. A class with members of its
own has lanes of its own. Lanes without a class are those of the default class.")]
    Lanes {
        /// One bond [default: all]
        bond: Option<LinkName>,
        /// Only those to the peer that has this address, MAC or host id
        #[arg(long, value_name = "HOST")]
        peer: Option<String>,
    },

    /// Show the counters: frames passed and dropped, by reason
    #[command(after_help = "\
Examples:
  linkbraid stats bond0
  linkbraid stats bond0 --all
  linkbraid stats --json
  linkbraid stats --latency bond0

--latency shows how long frames took on their way out, by class. Switch the
measurement on with 'linkbraid bond set bond0 --latency on'. It has two stages
and their sum:

application  from the application's send call to the bond
driver       from the bond to the member's driver, which includes queueing
total        from the send call to the driver, of frames that have a send call")]
    Stats(StatsArgs),

    /// Show events as they happen, with their reasons, until Ctrl-C
    #[command(after_help = "\
Examples:
  linkbraid monitor
  linkbraid monitor bond0
  linkbraid monitor --json

Each event is one line, with --json one JSON object. Ctrl-C ends the command
with status 0, the end of the daemon with status 3. 'linkbraid show' shows the
last events, too.")]
    Monitor {
        /// One bond or fabric [default: all]
        bond: Option<LinkName>,
    },

    /// Explain what becomes of one frame of a flow, and why
    #[command(after_help = "\
Examples:
  linkbraid explain bond0 'tcp 198.18.0.1 > 198.18.0.2:445'
  linkbraid explain bond0 'udp 198.18.0.1 > 198.18.0.7:5004' --dscp ef
  linkbraid explain bond0 'tcp [2001:db8::1]:40000 > [2001:db8::2]:22' --json

The kernel is asked for the route and the MAC, and the loaded data path runs
one frame. Nothing is sent, and no counter changes. A port that is not given is
49152 at the source and 9 at the destination. The frame has 128 bytes of data.

Rules that name a control group are tried with the group of the daemon, since no
process sends the frame.")]
    Explain(Explain),

    /// Watch bonds and fabrics on the whole screen: rates, lanes, latency, events
    #[command(after_help = "\
Examples:
  linkbraid top
  linkbraid top bond0

Keys: tab, left and right change the page (members, lanes, latency, events), up
and down scroll, / filters lines by a text, p pauses, q quits. Rates are those
of the last second. Latency is shown where it is measured; switch it on with
'linkbraid bond set bond0 --latency on'.")]
    Top {
        /// One bond or fabric [default: all]
        bond: Option<LinkName>,
    },

    /// Check this machine and its links for problems
    #[command(after_help = "\
Examples:
  linkbraid check
  linkbraid check eth1 eth2
  linkbraid check eth1 --json

Each line begins with ok, warning (works, but badly) or error (does not work).
The exit status is 1 if there is at least one error. No daemon has to run.")]
    Check {
        /// Links to check, in a bond or not [default: the members of all bonds]
        #[arg(value_name = "IF")]
        interfaces: Vec<LinkName>,
    },

    /// Find out, together with a peer, why a bond carries less than its links
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(DoctorArgs),

    /// Write a file for those who help: state, configuration and log, without addresses and keys
    #[command(after_help = support::EXAMPLES)]
    Support(SupportArgs),

    /// Try linkbraid: hosts in network namespaces, with shaped links and a switch
    #[command(subcommand, after_help = lab::EXAMPLES)]
    Lab(LabVerb),

    /// Measure linkbraid: experiments in namespaces, results as JSON and SVG
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

/// `bond set` and `fabric set`. In the request, `--no-addresses` is an empty list of addresses.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Change<S: clap::Args> {
    /// The other options.
    #[command(flatten)]
    pub set: S,

    /// Remove all addresses that were given with --address
    #[arg(long, conflicts_with = "addresses", group = "change")]
    pub no_addresses: bool,
}

/// `daemon`
#[derive(Debug, clap::Args)]
pub struct DaemonArgs {
    /// A file to apply at the start, or a folder of files whose names end in .toml. May be repeated; all are applied as
    /// one, as by 'linkbraid apply', except that nothing is removed. The daemon waits for links that are missing. What is
    /// missing or invalid changes nothing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub config: Vec<PathBuf>,

    /// Directory for the state that outlives a restart of the daemon [default: the socket's path with .state]
    #[arg(long, value_name = "DIR", env = STATE_ENV, hide_env_values = true, value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,

    /// Serve metrics for Prometheus at http://ADDRESS:PORT/metrics, or on a Unix socket [default: the key metrics of the
    /// configuration files; without it, no metrics are served]
    #[arg(long, value_name = "ADDRESS:PORT|PATH", value_parser = MetricsAddress::read)]
    pub metrics: Option<MetricsAddress>,

    /// What to log: error, warn, info, debug, trace, or MODULE=LEVEL,...
    #[arg(long, value_name = "FILTER", default_value = "info")]
    pub log: String,

    /// The kernel hook for the BPF programs: auto (tcx if the kernel has it), tcx or clsact
    #[arg(long, value_name = "HOOK", default_value = "auto", value_enum, hide_possible_values = true)]
    pub hook: HookArg,
}

/// The kernel hook for the BPF programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HookArg {
    /// tcx if the kernel has it, else clsact
    Auto,
    /// tcx links, from kernel 6.6 on
    Tcx,
    /// Filters on a clsact qdisc, on any kernel
    Clsact,
}

#[cfg(test)]
mod tests;
