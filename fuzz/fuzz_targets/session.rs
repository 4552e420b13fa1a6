//! What it does is in `steps/session.rs`.

#![no_main]

#[path = "../steps/session.rs"]
mod steps;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    steps::run(bytes);
});
