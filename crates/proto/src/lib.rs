//! Pure state machines: ARP+, the inspector, the plan, the answers to plain hosts and the session of a fabric. No clock, no
//! socket, no log, no global random numbers.
//!
//! Time comes in with every input, random numbers come from a seed or a secret, and all that is to be done comes out as
//! actions; so the same inputs give the same outputs, in the daemon, in a simulator and in a fuzzer.
#![forbid(unsafe_code)]

pub mod answers;
pub mod arp_plus;
pub mod auth;
mod counter;
pub mod host;
pub mod inspector;
pub mod limits;
pub mod plan;
mod random;
mod secret;
pub mod session;
mod time;

pub use secret::Secret;
pub use time::Time;
