//! A peer that writes anything into the shared memory, at any moment, against both sides of a ring: no panic, frames of
//! legal length only, a bounded number of them a call; and once both sides start again, a frame crosses.
//!
//! The input is a list of steps: one byte for what, and three for where and how much.
//! Shared by the fuzz target and the replay of the corpus in `crates/fabric/tests/corpus_ring.rs`.

use linkbraid_fabric::{
    Refused, Taken,
    ring::{ALIGN, Consumer, Map, Producer, SKIP},
};
use std::sync::Arc;

const SIZE: usize = 4096;
const FRAME_MAX: usize = 1500;

/// What the producer writes, what the consumer writes, the records.
const HEAD: usize = 0;
const TAIL: usize = 128;
const RECORDS: usize = 256;

struct Course {
    map: Arc<Map>,
    producer: Producer,
    consumer: Consumer,
    sent: u8,
}

fn producer(map: &Arc<Map>) -> Producer {
    let (head, tail, data) = (map.place(HEAD), map.place(TAIL), map.data(RECORDS, SIZE));
    let (Some(head), Some(tail), Some(data)) = (head, tail, data) else { panic!("in range") };
    Producer::attach(head, tail, data, FRAME_MAX).expect("the size fits")
}

fn consumer(map: &Arc<Map>) -> Consumer {
    let (head, tail, data) = (map.place(HEAD), map.place(TAIL), map.data(RECORDS, SIZE));
    let (Some(head), Some(tail), Some(data)) = (head, tail, data) else { panic!("in range") };
    Consumer::attach(head, tail, data, FRAME_MAX).expect("the size fits")
}

impl Course {
    fn write(&self, at: usize, value: u64) {
        self.map.write(at.min(RECORDS + SIZE - 8), &value.to_ne_bytes());
    }

    fn send(&mut self, len: usize) {
        self.sent = self.sent.wrapping_add(1);
        let frame = vec![self.sent; len];
        let (head, body) = frame.split_at(len.min(24));
        match self.producer.send(head, body) {
            Ok(()) | Err(Refused::Full) => assert!((1..=FRAME_MAX).contains(&len)),
            Err(refused) => assert!(refused == Refused::Length && !(1..=FRAME_MAX).contains(&len)),
        }
        let _ = self.producer.must_wake();
        assert!(self.producer.queued() <= SIZE as u64);
    }

    fn receive(&mut self, budget: usize, later: usize) {
        let mut lent = 0;
        let (taken, _) = self.consumer.receive(budget, |bytes| {
            assert!((1..=FRAME_MAX).contains(&bytes.len()));
            assert_eq!(bytes.to_vec().len(), bytes.len());
            lent += 1;
            if lent == later { Taken::Later } else { Taken::Yes }
        });
        assert!(taken <= lent && lent <= budget && lent <= SIZE / ALIGN as usize);
        let _ = self.consumer.must_wake();
    }
}

/// Panics where a rule is broken.
pub fn run(bytes: &[u8]) {
    let map = Map::anonymous(RECORDS + SIZE).expect("there is memory");
    let mut course =
        Course { producer: producer(&map), consumer: consumer(&map), sent: 0, map: Arc::clone(&map) };
    for step in bytes.chunks_exact(4) {
        let (amount, much) = (usize::from(step[1]), usize::from(u16::from_le_bytes([step[2], step[3]])));
        let lines = much as u64 * (ALIGN / 4);
        match step[0] % 10 {
            0 => course.write(much, u64::from_le_bytes([step[1]; 8])),
            1 => course.write(HEAD, lines),
            2 => course.write(TAIL, lines),
            3 => course.write(RECORDS + amount % (SIZE / 64) * 64, much as u64),
            4 => course.write(RECORDS + amount % (SIZE / 64) * 64, SKIP.wrapping_sub(much as u64 % 3)),
            5 => course.write(if amount % 2 == 0 { HEAD } else { TAIL }, u64::MAX.wrapping_sub(lines)),
            6 => course.send(much % (FRAME_MAX + 100)),
            7 => course.receive(amount, much % 8),
            8 => course.producer = producer(&map),
            _ => course.consumer = consumer(&map),
        }
    }
    let mut producer = producer(&map);
    let mut consumer = consumer(&map);
    assert_eq!(producer.send(b"a frame", b" of both"), Ok(()));
    let mut got = Vec::new();
    consumer.receive(8, |bytes| {
        got.push(bytes.to_vec());
        Taken::Yes
    });
    assert_eq!(got, [b"a frame of both"]);
}
