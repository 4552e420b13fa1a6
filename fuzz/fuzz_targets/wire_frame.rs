//! What it does is in `steps/wire_frame.rs`.

#![no_main]

#[path = "../steps/wire_frame.rs"]
mod steps;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steps::run(bytes));
