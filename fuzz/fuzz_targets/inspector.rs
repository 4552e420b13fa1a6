//! What it does is in `steps/inspector.rs`.

#![no_main]

#[path = "../steps/inspector.rs"]
mod steps;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steps::run(bytes));
