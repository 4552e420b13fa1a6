//! Any bytes as a message of a fabric: no panic, and what is read can be written and read again as the same.
//! `crates/wire/tests/any_fabric.rs` asks the same of random bytes.

use linkbraid_wire::fabric::{HEADER_LEN, emit_control, parse_control, parse_message};

/// Panics where a rule is broken.
pub fn run(bytes: &[u8]) {
    let message = parse_message(bytes);
    if let Ok((header, rest)) = message {
        assert_eq!(header.length as usize, rest.len());
        assert_eq!(header.emit()[..6], bytes[..6]);
        assert_eq!(header.emit()[8..], bytes[8..HEADER_LEN]);
    }
    let Ok((header, control)) = parse_control(bytes) else { return };
    assert_eq!(message.map(|(header, _)| header), Ok(header), "a control message is a message");
    let (sender, receiver) = ((header.sender, header.sender_epoch), (header.receiver, header.receiver_epoch));
    let again = emit_control(sender, receiver, &control).expect("what was read keeps the rules");
    assert_eq!(parse_control(&again).expect("what was written can be read").1, control);
}
