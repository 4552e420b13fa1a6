//! The programs on single frames: fixture by fixture, the verdict, the frame and the reason that counted it.
//!
//! Needs root: BPF programs are loaded and run by the kernel (`BPF_PROG_TEST_RUN`), each test in a network namespace of
//! its own. Frames shorter than an Ethernet header and refused rewrites (tx_short, rx_short, tx_rewrite, rx_rewrite)
//! cannot be made there.

mod answer;
mod any_frames;
mod borrow;
mod by_id;
mod class;
mod damp;
mod damp_overtaken;
mod damp_tolerated;
mod delivery;
mod earlier;
mod explain;
mod failed;
mod first;
mod frames;
mod given_back;
mod guest;
mod hosts;
mod late;
mod lent;
mod lifecycle;
mod live;
mod live_guests;
mod mirror;
mod outsiders;
mod pairs;
mod plain;
mod policy;
mod probe;
mod quarantine;
mod renew;
mod rig;
mod seen;
mod steer;
mod take;
mod tunnel;
mod undisturbed;
