//! `fabric add`, `fabric set`, `fabric del`, `fabric show`.

use crate::units;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use linkbraid_api::{FabricAdd, FabricDel, FabricSet, Poll, Request};

/// Shown below the help of the object.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid fabric add fab0 --node 0 --nodes 2 --transport shm:/dev/shm/fab0
  linkbraid fabric set fab0 --poll busy
  linkbraid fabric show
  linkbraid fabric del fab0

A fabric is an Ethernet interface whose frames travel over whatever its nodes
share: memory, or any network. It can be given addresses, be bridged, carry
VLANs, and be a member of a bond.";

/// What to do with a fabric.
#[derive(Debug, Subcommand)]
pub enum FabricVerb {
    /// Make an Ethernet interface over what the nodes share
    #[command(after_help = "\
Examples:
  linkbraid fabric add fab0 --node 0 --nodes 2 --transport shm:/dev/shm/fab0
  linkbraid fabric add fab0 --node 1 --nodes 2 --transport shm:/dev/shm/fab0
  linkbraid fabric add fab1 --node 3 --nodes 16 --transport udp:/etc/fab1
  linkbraid fabric add fab2 --node 0 --nodes 4 --transport ofi:tcp,/etc/fab2

Each node gives its own number; all give the same count, MTU and queues, and
should give the fabric the same name. They may be started in any order.

  shm:PATH[,ring=SIZE]  memory that the nodes share: a file that the first one
                        makes, below /dev/shm or on huge pages
  shm:PATH,fixed        memory that is there, such as an ivshmem device's
                        /sys/bus/pci/devices/.../resource2
  udp:FILE[,mtu=BYTES][,vxlan=PORT]
                        any network; FILE has a line 'NODE ADDRESS:PORT' for
                        each node. With vxlan= the kernel's own VXLAN, on
                        this UDP port, carries frames between nodes that have
                        the option: nearly as fast as VXLAN alone. Take an
                        MTU that leaves room, 1450 where the path takes 1500
  ofi:PROVIDER,FILE     a provider of libfabric (fi_info -t FI_EP_RDM prints
                        them), FILE as above; needs package libfabric1. Over
                        TCP 'tcp' takes less of an idle processor and answers
                        sooner, 'net' carries more. Quote 'verbs;ofi_rxm'

The interface outlives the daemon: without a daemon it has no carrier, but
keeps its addresses, its routes and its place in a bridge or bond. A restart
of the daemon costs the frames that are on the way. After a reboot it is gone,
unless it is in the configuration file.")]
    Add(FabricAddArgs),

    /// Change a fabric; what is not named stays
    #[command(
        override_usage = "linkbraid fabric set [OPTIONS] <NAME>",
        after_help = "\
Examples:
  linkbraid fabric set fab0 --mtu 9000
  linkbraid fabric set fab0 --poll adaptive
  linkbraid fabric set fab1 --nodes 17
  linkbraid fabric set fab0 --address 198.18.0.1/24 --address 2001:db8::1/64

Nodes with different MTUs are not connected until all have the new one. With
more nodes than before this node starts anew; over udp: the file must have a
line for each of them, over shm: all nodes must leave first."
    )]
    Set(FabricSetArgs),

    /// Remove a fabric and its interface
    #[command(after_help = "\
Example:
  linkbraid fabric del fab0")]
    Del {
        /// The fabric
        #[arg(value_parser = units::interface)]
        name: String,
    },

    /// Show fabrics and their other nodes; the first line says whether all is well
    #[command(after_help = "\
Examples:
  linkbraid fabric show
  linkbraid fabric show fab0 --json

up       frames flow
down     nothing is heard of the node
refused  it lives, but one of the two does not want the other; the reason
         names what each has")]
    Show {
        /// One fabric; all of them if left out
        #[arg(value_parser = units::interface)]
        name: Option<String>,
    },
}

/// How the threads wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PollArg {
    /// Look for as long as that has paid off lately, then sleep
    Adaptive,
    /// Always look: lowest latency, a whole processor a queue
    Busy,
    /// Sleep whenever there is nothing to do
    Sleep,
}

impl From<PollArg> for Poll {
    fn from(poll: PollArg) -> Self {
        match poll {
            PollArg::Adaptive => Self::Adaptive,
            PollArg::Busy => Self::Busy,
            PollArg::Sleep => Self::Sleep,
        }
    }
}

/// `fabric add`
#[derive(Debug, Args)]
pub struct FabricAddArgs {
    /// Name of the interface to make
    #[arg(value_parser = units::interface)]
    pub name: String,

    /// The number of this node, from 0
    #[arg(long, value_name = "N", value_parser = units::node)]
    pub node: u16,

    /// How many nodes there are, 2 to 512
    #[arg(long, value_name = "M", value_parser = units::nodes)]
    pub nodes: u16,

    /// What carries the frames: shm:PATH, udp:FILE or ofi:PROVIDER,FILE
    #[arg(long, value_name = "URL")]
    pub transport: String,

    /// MTU in bytes, 1280 to 65521, the same on all nodes [default: 1500]
    #[arg(long, value_name = "BYTES", value_parser = units::fabric_mtu)]
    pub mtu: Option<u32>,

    /// How its threads wait: adaptive, busy or sleep
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_enum, hide_possible_values = true)]
    pub poll: PollArg,

    /// Queues, each with a thread of its own, 1 to 64, the same on all nodes [default: 1]
    #[arg(long, value_name = "N", value_parser = units::queues)]
    pub queues: Option<u16>,

    /// Its MAC [default: made from the fabric's name and the node's number]
    #[arg(long, value_name = "MAC")]
    pub mac: Option<String>,

    /// An address for the interface, IPv4 or IPv6. May be repeated
    #[arg(long, value_name = "CIDR", value_parser = units::cidr)]
    pub address: Vec<String>,
}

/// `fabric set`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("change").required(true).multiple(true).args(["mtu", "poll", "nodes", "address", "no_addresses"])))]
pub struct FabricSetArgs {
    /// The fabric
    #[arg(value_parser = units::interface)]
    pub name: String,

    /// MTU in bytes, 1280 to 65521, the same on all nodes
    #[arg(long, value_name = "BYTES", value_parser = units::fabric_mtu)]
    pub mtu: Option<u32>,

    /// How its threads wait: adaptive, busy or sleep
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    pub poll: Option<PollArg>,

    /// More nodes than before, up to 512
    #[arg(long, value_name = "M", value_parser = units::nodes, conflicts_with_all = ["address", "no_addresses"])]
    pub nodes: Option<u16>,

    /// An address instead of those that it was given with this option before; others stay. May be repeated
    #[arg(long, value_name = "CIDR", value_parser = units::cidr)]
    pub address: Vec<String>,

    /// Take all addresses that it was given with --address away
    #[arg(long, conflicts_with = "address")]
    pub no_addresses: bool,
}

impl From<FabricVerb> for Request {
    fn from(verb: FabricVerb) -> Self {
        match verb {
            FabricVerb::Add(add) => Self::FabricAdd(FabricAdd {
                name: add.name,
                node: add.node,
                nodes: add.nodes,
                transport: add.transport,
                mtu: add.mtu,
                poll: add.poll.into(),
                mac: add.mac,
                queues: add.queues,
                addresses: add.address,
            }),
            FabricVerb::Set(set) => Self::FabricSet(FabricSet {
                name: set.name,
                mtu: set.mtu,
                poll: set.poll.map(Into::into),
                nodes: set.nodes,
                addresses: match set.no_addresses {
                    true => Some(Vec::new()),
                    false => (!set.address.is_empty()).then_some(set.address),
                },
            }),
            FabricVerb::Del { name } => Self::FabricDel(FabricDel { name }),
            FabricVerb::Show { name } => Self::FabricShow { name },
        }
    }
}
