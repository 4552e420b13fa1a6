//! Hosts in network namespaces: for the lab command, tests and benchmarks.
//!
//! A [`Topology`] says what there is; [`Lab::up`] builds it from namespaces, veth pairs, bridges and `tbf`, and takes it
//! away on drop. Nothing is ever made in the namespace the caller runs in.
//!
//! Links behave like links: a token bucket with a burst of a few hundred microseconds at each end ([`shape`]), and
//! no back-pressure through the switch, which veth alone would give (`bpf/port.bpf.c`), so overload is lost at the
//! switch's port, as in a real one.

mod base;
mod build;
mod child;
pub mod counters;
pub mod daemon;
pub mod demo;
mod flags;
pub mod flow;
mod host;
pub mod hostile;
mod interrupt;
pub mod iperf;
mod lab;
mod link;
pub mod netns;
pub mod packet;
mod port;
mod queue;
pub mod serve;
pub mod shape;
mod spec;
mod state;
pub mod stolen;
pub mod tool;
mod wait;

pub use base::{BaseRate, check_base_rate};
pub use build::mac;
pub use child::Running;
pub use daemon::Daemon;
pub use host::Host;
pub use interrupt::Interrupt;
pub use lab::{FOLDER, Lab, PROGRAMS, down};
pub use link::{Fault, Link, Way};
pub use port::{PortConf, PortCount};
pub use queue::Order;
pub use spec::{
    DEFAULT_MTU, End, HostSpec, LinkSpec, NAME_BYTES_MAX, Options, PORT_MARGIN_MAX, SWITCHES_MAX, Switch,
    Topology,
};
pub use wait::{wait_for, wait_until};
