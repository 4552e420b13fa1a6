//! What it does is in `steps/wire_fabric.rs`.

#![no_main]

#[path = "../steps/wire_fabric.rs"]
mod steps;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steps::run(bytes));
