//! What it does is in `steps/arp_plus.rs`.

#![no_main]

#[path = "../steps/arp_plus.rs"]
mod steps;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steps::run(bytes));
