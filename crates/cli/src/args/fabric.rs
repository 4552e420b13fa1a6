//! `fabric add`, `fabric set`, `fabric del`, `fabric show`.

use super::Change;
use clap::Subcommand;
use linkbraid_api::{FabricAdd, FabricDel, FabricSet, LinkName, Request};

/// Shown below the help of the object.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid fabric add fab0 --node 0 --nodes 2 --transport shm:/run/linkbraid/f0
  linkbraid fabric set fab0 --poll busy
  linkbraid fabric show
  linkbraid fabric del fab0

A fabric is an Ethernet interface whose frames travel over what its nodes share:
memory, or any network. It can have addresses and VLANs, be a port of a bridge,
and be a member of a bond.";

/// The subcommands of `fabric`.
#[derive(Debug, Subcommand)]
pub enum FabricVerb {
    /// Add a fabric: an Ethernet interface over memory or a network
    #[command(after_help = "\
Examples:
  linkbraid fabric add fab0 --node 0 --nodes 2 --transport shm:/run/linkbraid/f0
  linkbraid fabric add fab0 --node 1 --nodes 2 --transport shm:/run/linkbraid/f0
  linkbraid fabric add fab1 --node 3 --nodes 16 --transport udp:/etc/fab1
  linkbraid fabric add fab2 --node 0 --nodes 4 --transport ofi:tcp,/etc/fab2
  linkbraid fabric add f3 --node 5 --nodes 64 --transport udp:etcd://db:2379/lab

Each node has its own number. All nodes need the same number of nodes, MTU and
number of queues, and should use the same name. They may start in any order.

  shm:PATH[,ring=SIZE]  shared memory: a file below /run/linkbraid or on huge
                        pages, which the first node makes
  shm:PATH,fixed        memory that exists, such as an ivshmem device's
                        /sys/bus/pci/devices/.../resource2
  udp:FILE[,mtu=BYTES][,vxlan=PORT|off]
                        any network; FILE has a line 'NODE ADDRESS:PORT' for
                        each node. The kernel's own VXLAN carries TCP between
                        nodes that can, on a UDP port that 'fabric show' has,
                        nearly as fast as VXLAN alone; everything else too
                        with an MTU that leaves room, 1450 if that of the
                        path is 1500. vxlan= chooses the port, for all nodes,
                        or forbids it. FILE may change at any time; a node
                        without a line is not missed
  udp:etcd://HOST:PORT/NAME[,own=ADDRESS:PORT][,login=FILE][,cache=FILE]
                        the same without a list to copy: each node registers
                        in etcd, under NAME. own= is this node's address
                        [default: port 7000 of that towards etcd]; login= has
                        further servers, certificates and a password
  ofi:PROVIDER,FILE     a provider of libfabric (fi_info -t FI_EP_RDM prints
                        them), FILE as above; needs package libfabric1. Over
                        TCP, 'tcp' needs less processor time when idle and
                        answers sooner, 'net' carries more. Quote
                        'verbs;ofi_rxm'

The interface outlives the daemon. Without a daemon it has no carrier, but keeps
its addresses, its routes and its place in a bridge or bond. A restart of the
daemon loses the frames in transit. A reboot removes the fabric, unless it is in
the configuration file.")]
    Add(FabricAdd),

    /// Change options of a fabric; options that are not given stay
    #[command(
        override_usage = "linkbraid fabric set [OPTIONS] <NAME>",
        after_help = "\
Examples:
  linkbraid fabric set fab0 --mtu 9000
  linkbraid fabric set fab0 --poll adaptive
  linkbraid fabric set fab1 --nodes 17
  linkbraid fabric set fab0 --address 198.18.0.1/24 --address 2001:db8::1/64

Nodes with different MTUs are not connected until all have the new one. A new
number of nodes restarts this node's session. Over shm: all nodes must leave
first."
    )]
    Set(Change<FabricSet>),

    /// Remove a fabric and its interface
    #[command(after_help = "\
Example:
  linkbraid fabric del fab0")]
    Del(FabricDel),

    /// Show fabrics and their other nodes; the first line says whether all is well
    #[command(after_help = "\
Examples:
  linkbraid fabric show
  linkbraid fabric show fab0 --json

up       frames flow
down     nothing is received from the node
refused  the node answers, but one of the two refuses the other; the reason
         names what each has")]
    Show {
        /// One fabric [default: all]
        name: Option<LinkName>,
    },
}

impl From<FabricVerb> for Request {
    fn from(verb: FabricVerb) -> Self {
        match verb {
            FabricVerb::Add(add) => Self::FabricAdd(add),
            FabricVerb::Set(Change { mut set, no_addresses }) => {
                set.addresses = if no_addresses { Some(Vec::new()) } else { set.addresses };
                Self::FabricSet(set)
            }
            FabricVerb::Del(del) => Self::FabricDel(del),
            FabricVerb::Show { name } => Self::FabricShow { name },
        }
    }
}
