//! Any bytes as an ARP+ frame: no panic, and what is read can be written and read again as the same.
//! Shared by the fuzz target and the replay of the corpus in `crates/wire/tests/corpus.rs`.

use linkbraid_wire::{emit_frame, parse_frame};

/// Panics where a rule is broken.
pub fn run(bytes: &[u8]) {
    let Ok(frame) = parse_frame(bytes) else { return };
    let again =
        emit_frame(frame.dst, frame.src, &frame.parsed.message).expect("what was read keeps the rules");
    let reread = parse_frame(&again).expect("what was written can be read");
    assert_eq!(reread.parsed.message, frame.parsed.message);
}
