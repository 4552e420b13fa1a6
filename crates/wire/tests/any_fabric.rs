//! The decoder of fabric messages against arbitrary, almost right, and right ones.

use linkbraid_wire::fabric::{
    CONTROL_LEN, Control, ControlKind, DATA_MAX, DATA_MIN, FABRIC_AUTH_FEATURE, FAST_PATH_FEATURE, FastPath,
    HEADER_LEN, Header, Kind, MTU_MAX, MTU_MIN, NODES_MAX, NODES_MIN, Offer, RefuseReason, STREAMS_MAX, Tag,
    emit_control, parse_control, parse_message,
};
use proptest::prelude::*;

prop_compose! {
    fn offer()(
        nodes in NODES_MIN..=NODES_MAX, mtu in MTU_MIN..=MTU_MAX,
        interval_us in 1u32.., multiplier in 1u8.., queues in 1..=STREAMS_MAX as u8, features: u16,
    ) -> Offer {
        let features = features & !FAST_PATH_FEATURE & !FABRIC_AUTH_FEATURE;
        Offer { nodes, mtu, interval_us, multiplier, queues, features }
    }
}

prop_compose! {
    fn fast_path()(port in 1u16.., random: u64, heard: bool) -> FastPath {
        FastPath { port, tag: Tag::of_random(random), heard }
    }
}

prop_compose! {
    fn control()(
        kind in prop::sample::select(&ControlKind::ALL[..]),
        reason in prop::sample::select(&RefuseReason::ALL[..]),
        offer in offer(), cookie in 1u64.., number: u32, echo in 1u64..,
        fast_path in prop::option::of(fast_path()),
    ) -> Control {
        let reason = (kind == ControlKind::Refuse).then_some(reason);
        Control { kind, reason, offer, cookie, number, echo, fast_path }
    }
}

prop_compose! {
    fn data()(
        sender in 0..NODES_MAX, receiver in 0..NODES_MAX, stream in 0..STREAMS_MAX,
        sender_epoch in 1u64.., receiver_epoch in 1u64..,
        sequence: u32, length in DATA_MIN..=DATA_MAX,
    ) -> Header {
        let length = length as u32;
        Header { kind: Kind::Data, sender, receiver, stream, sender_epoch, receiver_epoch, sequence, length }
    }
}

type End = (u16, u64);

fn end() -> impl Strategy<Value = End> {
    (0..NODES_MAX, 1u64..)
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse_message(&bytes);
        if let Ok((header, control)) = parse_control(&bytes) {
            let (sender, receiver) = ((header.sender, header.sender_epoch), (header.receiver, header.receiver_epoch));
            let again = emit_control(sender, receiver, &control).expect("what was read keeps the rules");
            prop_assert_eq!(parse_control(&again).expect("what was written can be read").1, control);
        }
    }

    #[test]
    fn headers_come_back(header in data()) {
        prop_assert_eq!(Header::parse(&header.emit()), Ok(header));
        let whole = [&header.emit()[..], &vec![7; header.length as usize]].concat();
        prop_assert_eq!(parse_message(&whole), Ok((header, &whole[HEADER_LEN..])));
    }

    #[test]
    fn control_messages_come_back(sender in end(), receiver in end(), control in control()) {
        let bytes = emit_control(sender, receiver, &control).expect("a good message");
        let (header, read) = parse_control(&bytes).expect("a good message");
        prop_assert_eq!(read, control);
        prop_assert_eq!((header.sender, header.sender_epoch), sender);
        prop_assert_eq!((header.receiver, header.receiver_epoch), receiver);
    }

    #[test]
    fn a_changed_byte_is_read_as_what_it_says(
        sender in end(), receiver in end(), control in control(), at in 0..HEADER_LEN + CONTROL_LEN, value: u8,
    ) {
        let mut bytes = emit_control(sender, receiver, &control).expect("a good message").to_vec();
        bytes[at] = value;
        if let Ok((header, read)) = parse_control(&bytes) {
            let again = emit_control(
                (header.sender, header.sender_epoch), (header.receiver, header.receiver_epoch), &read,
            ).expect("what was read keeps the rules");
            // That a code follows is looked at elsewhere.
            bytes[HEADER_LEN + 14] &= !FABRIC_AUTH_FEATURE.to_be_bytes()[0];
            // What a receiver must ignore is written as 0, the stream, or not at all: a fast path without its bit.
            let cut = read.fast_path != control.fast_path;
            let ignored = |at: usize| matches!(at, 6..8 | 45) || (cut && at == 31);
            for (at, (was, is)) in bytes.iter().zip(again.iter()).enumerate() {
                prop_assert!(was == is || ignored(at), "byte {} is {} and was {}", at, is, was);
            }
        }
    }
}
