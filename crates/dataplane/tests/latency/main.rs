//! The latency meter on real frames, which leave through the bond of a network namespace.
//!
//! Needs root: BPF programs are loaded and put on interfaces. Every test runs with each way to notice send calls that the
//! kernel allows.

// The fixtures are made for the tests of the data path, which use more of them.
#[allow(dead_code)]
#[path = "../data_path/lent.rs"]
mod lent;
#[allow(dead_code)]
#[path = "../data_path/rig.rs"]
mod rig;
mod stages;
mod stream;
#[allow(dead_code)]
#[path = "../data_path/undisturbed.rs"]
mod undisturbed;
mod wire;
