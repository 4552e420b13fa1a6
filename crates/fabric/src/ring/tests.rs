use super::*;
use crate::{Refused, Taken};
use proptest::prelude::*;
use std::{collections::VecDeque, sync::Arc};

const SIZE: usize = 4096;
const FRAME_MAX: usize = 1500;

/// A ring in memory of its own: first the two lines, then the records.
struct Shared(Arc<Map>);

const HEAD: usize = 0;
const TAIL: usize = 128;
const RECORDS: usize = 4096;

impl Shared {
    fn new() -> Self {
        Self(Map::anonymous(RECORDS + SIZE).expect("there is memory"))
    }

    fn data(&self) -> Data {
        self.0.data(RECORDS, SIZE).expect("in range")
    }

    fn producer(&self) -> Producer {
        let places = (self.0.place(HEAD), self.0.place(TAIL));
        let (Some(head), Some(tail)) = places else { panic!("in range") };
        Producer::attach(head, tail, self.data(), FRAME_MAX).expect("the size fits")
    }

    fn consumer(&self) -> Consumer {
        let places = (self.0.place(HEAD), self.0.place(TAIL));
        let (Some(head), Some(tail)) = places else { panic!("in range") };
        Consumer::attach(head, tail, self.data(), FRAME_MAX).expect("the size fits")
    }
}

fn take_all(consumer: &mut Consumer) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while consumer.has_frames() {
        consumer.receive(64, |bytes| {
            frames.push(bytes.to_vec());
            Taken::Yes
        });
    }
    frames
}

#[test]
fn a_frame_is_head_then_body() {
    let shared = Shared::new();
    let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
    producer.send(b"he", b"llo").unwrap();
    assert_eq!(take_all(&mut consumer), [b"hello"]);
    assert_eq!(producer.queued(), 0);
}

#[test]
fn lengths_are_limited() {
    let shared = Shared::new();
    let mut producer = shared.producer();
    assert_eq!(producer.send(&[], &[]), Err(Refused::Length));
    assert_eq!(producer.send(&[0; 1], &[0; FRAME_MAX]), Err(Refused::Length));
    assert_eq!(producer.send(&[0; 1], &[0; FRAME_MAX - 1]), Ok(()));
}

#[test]
fn a_full_ring_refuses_and_loses_nothing() {
    let shared = Shared::new();
    let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
    let mut sent = Vec::new();
    let refusal = loop {
        let frame = vec![sent.len() as u8; 1000];
        match producer.send(&[], &frame) {
            Ok(()) => sent.push(frame),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!((refusal, sent.len()), (Refused::Full, 4));
    producer.want_room();
    assert!(!producer.has_room());
    assert_eq!(take_all(&mut consumer), sent);
    assert!(producer.has_room() && consumer.must_wake(), "there is room, and that is reported once");
    assert!(!consumer.must_wake());
}

#[test]
fn a_frame_that_is_not_taken_comes_again() {
    let shared = Shared::new();
    let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
    producer.send(b"one", &[]).unwrap();
    producer.send(b"two", &[]).unwrap();
    let mut looks = 0;
    let (taken, all) = consumer.receive(8, |_| {
        looks += 1;
        if looks == 1 { Taken::Yes } else { Taken::Later }
    });
    assert_eq!((taken, all), (1, false));
    assert_eq!(take_all(&mut consumer), [b"two"]);
}

#[test]
fn a_new_producer_goes_on_and_a_new_consumer_drops_what_waits() {
    let shared = Shared::new();
    let mut consumer = shared.consumer();
    shared.producer().send(b"before", &[]).unwrap();
    let mut producer = shared.producer();
    producer.send(b"after", &[]).unwrap();
    assert_eq!(take_all(&mut consumer), [&b"before"[..], b"after"]);
    producer.send(b"lost", &[]).unwrap();
    let mut consumer = shared.consumer();
    producer.send(b"new", &[]).unwrap();
    assert_eq!(take_all(&mut consumer), [b"new"]);
}

#[test]
fn the_same_frame_fits_wherever_the_ring_stands() {
    let shared = Shared::new();
    let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
    for step in 0..500 {
        producer.send(&[7], &vec![1; step % 50]).unwrap();
        producer.send(&[9; FRAME_MAX], &[]).unwrap();
        assert_eq!(take_all(&mut consumer).len(), 2, "step {step}");
    }
}

#[test]
fn a_position_that_makes_no_sense_costs_only_what_waits() {
    let shared = Shared::new();
    let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
    producer.send(b"one", &[]).unwrap();
    shared.0.write(HEAD, &u64::to_ne_bytes(1 << 40));
    assert!(take_all(&mut consumer).is_empty());
    assert_eq!(consumer.bad_position(), 1);
    // The honest producer goes on from its own position, which the consumer now refuses once and then follows.
    producer.send(b"two", &[]).unwrap();
    assert!(take_all(&mut consumer).is_empty());
    producer.send(b"three", &[]).unwrap();
    assert_eq!(take_all(&mut consumer), [b"three"]);

    shared.0.write(TAIL, &u64::to_ne_bytes(1 << 40));
    while producer.send(&[1; 1000], &[]).is_ok() {}
    assert!(producer.bad_position() > 0);
    assert!(!take_all(&mut consumer).is_empty());
    producer.send(b"four", &[]).unwrap();
}

#[test]
fn a_length_that_makes_no_sense_is_refused() {
    for word in [0, FRAME_MAX as u64 + 1, 1 << 32, u64::MAX - 1, SKIP, 1400] {
        let shared = Shared::new();
        let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
        producer.send(b"one", &[]).unwrap();
        shared.0.write(RECORDS, &word.to_ne_bytes());
        assert!(take_all(&mut consumer).is_empty(), "{word}");
        assert_eq!(consumer.bad_record(), 1, "{word}");
        producer.send(b"two", &[]).unwrap();
        assert_eq!(take_all(&mut consumer), [b"two"], "{word}");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Send { head: usize, body: usize },
    Receive { budget: usize, takes: usize },
    NewProducer,
    NewConsumer,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..30usize, 0..=FRAME_MAX + 10).prop_map(|(head, body)| Step::Send { head, body }),
        6 => (0..9usize, 0..9usize).prop_map(|(budget, takes)| Step::Receive { budget, takes }),
        1 => Just(Step::NewProducer),
        1 => Just(Step::NewConsumer),
    ]
}

proptest! {
    /// Against a queue of frames: the same frames, whole, in order; refused only where the ring really has no room.
    #[test]
    fn it_is_a_queue(steps in prop::collection::vec(step(), 1..200)) {
        let shared = Shared::new();
        let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
        let mut model: VecDeque<Vec<u8>> = VecDeque::new();
        let mut number = 0u8;
        for step in steps {
            match step {
                Step::Send { head, body } => {
                    number = number.wrapping_add(1);
                    let frame = vec![number; head + body];
                    match producer.send(&frame[..head], &frame[head..]) {
                        Ok(()) => model.push_back(frame),
                        Err(Refused::Full) => {
                            let waits: u64 = model.iter().map(|frame| record_bytes(frame.len())).sum();
                            // At worst a record less one line is lost at the end of the ring, once for what waits and
                            // once for this one.
                            let lost = 2 * record_bytes(FRAME_MAX);
                            prop_assert!(waits + record_bytes(frame.len()) + lost > SIZE as u64);
                            prop_assert!(!model.is_empty(), "an empty ring has room");
                        }
                        Err(refused) => {
                            prop_assert_eq!(refused, Refused::Length);
                            prop_assert!(frame.is_empty() || frame.len() > FRAME_MAX);
                        }
                    }
                }
                Step::Receive { budget, takes } => {
                    let mut looked = 0;
                    let mut got = Vec::new();
                    let (taken, all) = consumer.receive(budget, |bytes| {
                        looked += 1;
                        if looked > takes {
                            return Taken::Later;
                        }
                        got.push(bytes.to_vec());
                        Taken::Yes
                    });
                    let expected: Vec<_> = model.drain(..model.len().min(budget).min(takes)).collect();
                    prop_assert_eq!(taken, got.len());
                    prop_assert_eq!(got, expected);
                    prop_assert!(!all || model.is_empty());
                }
                Step::NewProducer => producer = shared.producer(),
                Step::NewConsumer => {
                    consumer = shared.consumer();
                    model.clear();
                }
            }
            prop_assert_eq!(consumer.has_frames(), !model.is_empty());
        }
        prop_assert_eq!((consumer.bad_position(), consumer.bad_record(), producer.bad_position()), (0, 0, 0));
    }

    /// Whatever the other side writes, and whenever: frames of legal length, a bounded number of them, no panic.
    #[test]
    fn any_bytes_are_survived(
        writes in prop::collection::vec((0..RECORDS + SIZE - 8, any::<u64>(), 0..4u8), 1..200),
    ) {
        let shared = Shared::new();
        let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
        for (at, value, how) in writes {
            let (at, value) = match how {
                0 => (at, value),
                1 => (HEAD, value % (4 * SIZE as u64)),
                2 => (TAIL, value % (4 * SIZE as u64)),
                _ => (RECORDS + at % SIZE / 64 * 64, value % (FRAME_MAX as u64 + 100)),
            };
            shared.0.write(at.min(RECORDS + SIZE - 8), &value.to_ne_bytes());
            let mut lent = 0;
            let (taken, _) = consumer.receive(usize::MAX, |bytes| {
                assert!((1..=FRAME_MAX).contains(&bytes.len()));
                assert_eq!(bytes.to_vec().len(), bytes.len());
                lent += 1;
                Taken::Yes
            });
            prop_assert!(taken == lent && lent <= SIZE / 64);
            let _ = producer.send(&[1; 100], &[]);
            prop_assert!(producer.queued() <= SIZE as u64);
        }
    }
}
