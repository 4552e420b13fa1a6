//! What it does is in `steps/auth.rs`.

#![no_main]

#[path = "../steps/auth.rs"]
mod steps;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steps::run(bytes));
