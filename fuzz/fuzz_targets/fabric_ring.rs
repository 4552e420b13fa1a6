//! What it does is in `steps/fabric_ring.rs`.

#![no_main]

#[path = "../steps/fabric_ring.rs"]
mod steps;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steps::run(bytes));
