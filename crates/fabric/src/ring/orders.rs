//! Every order in which the two sides can run, as far as loom explores it: no byte is read while it is written, no frame
//! is lost, none comes twice, and nobody sleeps while there is something to do.
//!
//!     RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --release -p linkbraid-fabric --lib

use super::{Consumer, Data, Place, Producer, ToConsumer, ToProducer, full_fence};
use crate::{Refused, Taken};
use loom::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    thread,
};

/// Longest frame here: a record of it is one cache line.
const FRAME_MAX: usize = 56;

fn pair(size: u64) -> (Producer, Consumer) {
    let to_consumer = Place::new(ToConsumer { head: AtomicU64::new(0), wants_room: AtomicU32::new(0) });
    let to_producer = Place::new(ToProducer { tail: AtomicU64::new(0), sleeps: AtomicU32::new(0) });
    let data = Data::new(size);
    let producer = Producer::attach(to_consumer.clone(), to_producer.clone(), data.clone(), FRAME_MAX);
    let consumer = Consumer::attach(to_consumer, to_producer, data, FRAME_MAX);
    (producer.expect("the size fits"), consumer.expect("the size fits"))
}

/// Three frames through a ring that holds two: the producer waits for room, the places are used again.
#[test]
fn frames_arrive_whole_and_in_order() {
    loom::model(|| {
        let (mut producer, mut consumer) = pair(128);
        let sender = thread::spawn(move || {
            for number in 1..=3u8 {
                while producer.send(&[number], &[number; 7]) == Err(Refused::Full) {
                    thread::yield_now();
                }
            }
        });
        let mut next = 1;
        while next <= 3 {
            let (taken, _) = consumer.receive(2, |bytes| {
                assert_eq!(bytes.to_vec(), [next; 8]);
                next += 1;
                Taken::Yes
            });
            if taken == 0 {
                thread::yield_now();
            }
        }
        sender.join().expect("the producer ends");
    });
}

/// A consumer that restarts while the producer sends gets whole frames, in order, perhaps not the first ones.
#[test]
fn a_consumer_may_start_anew() {
    loom::model(|| {
        let (mut producer, consumer) = pair(128);
        drop(consumer);
        let (to_consumer, to_producer, data) = producer.shared();
        let sender = thread::spawn(move || {
            for number in 1..=2u8 {
                assert_eq!(producer.send(&[number], &[]), Ok(()), "there is room for two");
            }
        });
        let mut consumer =
            Consumer::attach(to_consumer, to_producer, data, FRAME_MAX).expect("the size fits");
        let mut last = 0;
        consumer.receive(2, |bytes| {
            let number = bytes.to_vec()[0];
            assert!(number > last, "in order");
            last = number;
            Taken::Yes
        });
        sender.join().expect("the producer ends");
        assert_eq!((consumer.bad_position(), consumer.bad_record()), (0, 0));
    });
}

/// Either the consumer sees the frame in its last look before it sleeps, or the producer sees that it sleeps.
#[test]
fn no_wake_up_for_a_frame_is_lost() {
    loom::model(|| {
        let (mut producer, mut consumer) = pair(128);
        let sender = thread::spawn(move || {
            producer.send(&[1], &[]).expect("there is room");
            producer.must_wake()
        });
        consumer.say_asleep();
        full_fence();
        let seen = consumer.has_frames();
        let woken = sender.join().expect("the producer ends");
        assert!(seen || woken);
    });
}

/// The same for a producer that waits for room.
#[test]
fn no_wake_up_for_room_is_lost() {
    loom::model(|| {
        let (mut producer, mut consumer) = pair(128);
        while producer.send(&[1], &[]).is_ok() {}
        let receiver = thread::spawn(move || {
            let (taken, all) = consumer.receive(8, |_| Taken::Yes);
            assert_eq!((taken, all), (2, true));
            consumer.must_wake()
        });
        producer.want_room();
        full_fence();
        let seen = producer.has_room();
        let woken = receiver.join().expect("the consumer ends");
        assert!(seen || woken);
    });
}

/// Asleep twice in a row: the wake-up meant for the first sleep may come late, the second sleep still ends.
#[test]
fn a_late_wake_up_does_not_hide_the_next() {
    loom::model(|| {
        let (mut producer, mut consumer) = pair(256);
        let wakes = Place::new(AtomicU32::new(0));
        let counted = wakes.clone();
        let sender = thread::spawn(move || {
            for number in 1..=2u8 {
                producer.send(&[number], &[]).expect("there is room");
                if producer.must_wake() {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        let mut got = consumer.receive(8, |_| Taken::Yes).0;
        consumer.say_asleep();
        full_fence();
        let seen = consumer.has_frames();
        if seen {
            consumer.say_awake();
            got += consumer.receive(8, |_| Taken::Yes).0;
            consumer.say_asleep();
            full_fence();
        }
        let ready = consumer.has_frames();
        sender.join().expect("the producer ends");
        let all = got == 2;
        assert!(all || ready || wakes.load(Ordering::SeqCst) > 0, "asleep for good with a frame waiting");
    });
}
