use crate::{
    message::{HEAD, Head, Kind, WINDOW_MAX, frame_at},
    talk::{Heard, Talk},
};
use proptest::prelude::*;

fn head(talk: &Talk, kind: Kind) -> Head {
    talk.head(kind, 0, 2, 0)
}

/// Says hello back and forth until nobody wants an answer.
fn meet(a: &mut Talk, b: &mut Talk) {
    let (mut from_a, mut hellos) = (true, 0);
    loop {
        let (from, to) = if from_a { (&*a, &mut *b) } else { (&*b, &mut *a) };
        let Heard::Hello { answer, .. } = to.hear(&head(from, Kind::Hello)) else { panic!("a hello") };
        hellos += 1;
        assert!(hellos < 6, "it goes on for ever");
        if !answer {
            break;
        }
        from_a = !from_a;
    }
    assert!(a.is_up() && b.is_up());
}

#[test]
fn both_meet_whoever_begins_and_whoever_starts_anew() {
    let (mut a, mut b) = (Talk::new(5, 8), Talk::new(6, 8));
    meet(&mut a, &mut b);
    meet(&mut b, &mut a);
    a.end_life();
    assert!(!a.is_up());
    meet(&mut a, &mut b);
    b = Talk::new(99, 4);
    meet(&mut a, &mut b);
    b.end_life();
    meet(&mut a, &mut b);
    assert!(a.has_room() && b.has_room());
}

#[test]
fn no_more_is_sent_than_there_is_room_for_and_nothing_of_an_earlier_life_is_taken() {
    let (mut a, mut b) = (Talk::new(5, 8), Talk::new(6, 4));
    meet(&mut a, &mut b);
    let mut sent = Vec::new();
    while a.has_room() {
        sent.push(head(&a, Kind::Data));
        a.sent(Kind::Data);
    }
    assert_eq!(sent.len(), 4);
    // Long messages may be completed later than short ones.
    for (ahead, message) in sent.iter().enumerate().rev() {
        assert_eq!(b.hear(message), Heard::Frames(ahead as u32));
    }
    assert_eq!(b.clone().hear(&sent[1]), Heard::Broken);
    assert!(!b.owes());
    b.took();
    b.took();
    assert!(b.owes());
    let credit = head(&b, Kind::Credit);
    b.sent(Kind::Credit);
    assert!(!b.owes());
    assert_eq!(a.hear(&credit), Heard::Nothing);
    let next = head(&a, Kind::Data);
    assert!(a.has_room());
    a.end_life();
    assert_eq!(a.hear(&credit), Heard::Old);
    meet(&mut a, &mut b);
    assert_eq!(b.hear(&next), Heard::Old);
    assert_eq!(b.hear(&head(&a, Kind::Data)), Heard::Frames(0));
    let lie = Head { taken: 77_777, ..head(&b, Kind::Credit) };
    assert_eq!(a.hear(&lie), Heard::Broken);
}

#[test]
fn heads_that_make_no_sense_are_refused() {
    let talk = Talk::new(5, 8);
    let good = head(&talk, Kind::Hello);
    assert_eq!(Head::parse(&good.emit()), Some(good));
    let with = |at: usize, byte: u8| {
        let mut bad = good.emit();
        bad[at] = byte;
        bad.to_vec()
    };
    let none = Head { life: 0, ..good }.emit().to_vec();
    let wide = Head { window: WINDOW_MAX + 1, ..good }.emit().to_vec();
    let frames = [&good.emit()[..], &[0; 9]].concat();
    let empty = Head { kind: Kind::Data, ..good }.emit().to_vec();
    let short = good.emit()[..HEAD - 1].to_vec();
    for bad in [
        with(0, 0),
        with(3, 2),
        with(6, 0),
        with(6, 4),
        with(7, 2),
        with(31, 1),
        none,
        wide,
        frames,
        empty,
        short,
    ] {
        assert_eq!(Head::parse(&bad), None, "{bad:?}");
    }
}

proptest! {
    #[test]
    fn hostile_messages_are_survived(
        messages in prop::collection::vec((any::<[u8; HEAD]>(), 0u8..4, any::<bool>(), 0u32..12), 1..200),
        took in prop::collection::vec(any::<bool>(), 200),
    ) {
        let mut talk = Talk::new(7, 8);
        for ((bytes, kind, ours, number), took) in messages.iter().zip(took) {
            let mut bytes = *bytes;
            bytes[..4].copy_from_slice(b"LBO\x01");
            bytes[6] = *kind;
            bytes[7] &= 1;
            bytes[30..].fill(0);
            bytes[28] &= 3;
            if *ours {
                bytes[12..16].copy_from_slice(&9u32.to_be_bytes());
                bytes[16..20].copy_from_slice(&talk.life().to_be_bytes());
                bytes[20..24].copy_from_slice(&number.to_be_bytes());
                bytes[24..28].fill(0);
            }
            let message = [&bytes[..], if *kind == 2 { &[0; 8] } else { &[] }].concat();
            if let Some(head) = Head::parse(&message) {
                match talk.hear(&head) {
                    Heard::Frames(ahead) => prop_assert!(ahead < 8),
                    Heard::Broken => talk.end_life(),
                    _ => {}
                }
            }
            if took {
                talk.took();
            }
        }
    }

    #[test]
    fn frames_lie_within_their_message(message in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..400) {
        let mut message = message;
        if let Some(length) = message.get_mut(at..at + 3) {
            length.fill(0);
        }
        if let Some((start, end)) = frame_at(&message, at) {
            prop_assert!(at < start && start < end && end <= message.len());
        }
    }
}
