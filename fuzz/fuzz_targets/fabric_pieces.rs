//! What it does is in `steps/fabric_pieces.rs`.

#![no_main]

#[path = "../steps/fabric_pieces.rs"]
mod steps;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steps::run(bytes));
