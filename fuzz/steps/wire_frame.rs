//! Any bytes as an ARP+ frame, a message, a probe or a plain host's answer to one: no panic, and what is read can be
//! written and read again as the same.
//! Shared by the fuzz target and the replay of the corpus in `crates/wire/tests/corpus.rs`.

use linkbraid_wire::{
    emit_frame, emit_plain_probe, emit_probe, is_plain_answer, is_probe, parse_frame, parse_plain_answer,
    parse_probe,
};

/// Panics where a rule is broken.
pub fn run(bytes: &[u8]) {
    probe(bytes);
    answer(bytes);
    let Ok(frame) = parse_frame(bytes) else { return };
    let again =
        emit_frame(frame.dst, frame.src, &frame.parsed.message).expect("what was read keeps the rules");
    let reread = parse_frame(&again).expect("what was written can be read");
    assert_eq!(reread.parsed.message, frame.parsed.message);
}

fn probe(bytes: &[u8]) {
    let Ok(frame) = parse_probe(bytes) else { return };
    assert!(is_probe(bytes) && parse_frame(bytes).is_err(), "a probe is not a message");
    let again = emit_probe(frame.dst, frame.src, &frame.probe).expect("what was read keeps the rules");
    assert_eq!(parse_probe(&again).expect("what was written can be read").probe, frame.probe);
}

fn answer(bytes: &[u8]) {
    let read = parse_plain_answer(bytes);
    assert_eq!(is_plain_answer(bytes), read.is_ok());
    let Ok(reply) = read else { return };
    assert!(!is_probe(bytes) && parse_frame(bytes).is_err(), "an answer is not ARP+");
    emit_plain_probe(reply.host, reply.to, reply.ip).expect("who answers can be asked");
}
