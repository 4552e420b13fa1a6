//! The engine's hot path allocates nothing.

mod toy;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use linkbraid_fabric::engine::{Config, ControlMessage, Counter, Step, derive_mac, engines};
use linkbraid_wire::fabric::{Header, Kind};
use toy::{Kernel, Net};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Counts what this thread allocates.
struct Counting;

// SAFETY: everything is passed on to the system's allocator; the counting touches only a plain thread-local number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the rules of `alloc`, which are the same there.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `System.alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn moving_frames_allocates_nothing() {
    let net = Net::new(3, 32);
    let mut all: Vec<_> = (0..3u16)
        .map(|number| {
            let kernel = Kernel::new(256);
            let (control, mut made) =
                engines(Config::default(), 10 + u64::from(number), vec![(net.node(number), kernel.port())])
                    .unwrap();
            (0..3)
                .filter(|peer| *peer != number)
                .for_each(|peer| control.set_link(peer, Some(10 + u64::from(peer))));
            (made.pop().unwrap(), kernel, control)
        })
        .collect();
    let mut frames = Vec::new();
    for (to, from) in
        [(derive_mac(0, 1), derive_mac(0, 0)), ([0xff; 6], [2; 6]), ([2, 9, 9, 9, 9, 9], [2, 1, 1, 1, 1, 1])]
    {
        for len in [60, 1514, 65_549] {
            let mut frame = [to, from].concat();
            frame.resize(len, 0);
            frames.push(frame);
        }
    }
    let header = Header {
        kind: Kind::Control,
        sender: 0,
        receiver: 1,
        stream: 0,
        sender_epoch: 10,
        receiver_epoch: 11,
        sequence: 0,
        length: 32,
    };
    let message = ControlMessage::new(1, &[&header.emit()[..], &[0; 32]].concat()).unwrap();
    assert!(ALLOCATIONS.get() > 0, "the counter counts");

    let mut round = |links: bool| {
        for frame in &frames {
            assert!(all[0].1.sends(frame));
        }
        if links {
            all[0].2.send(message);
            all[0].2.set_link(2, None);
            all[0].2.set_link(2, Some(12));
        }
        for _ in 0..8 {
            for (engine, kernel, control) in &mut all {
                assert!(!matches!(engine.step(), Step::Ended(_)));
                kernel.discard();
                while control.receive().is_some() {}
            }
        }
    };
    round(true);
    let before = ALLOCATIONS.get();
    for number in 0..1_000 {
        round(number % 10 == 0);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert!(all[1].2.shared().total(0, Counter::RxFrames) >= 9_000);
    assert!(all[1].2.shared().total(0, Counter::ControlIn) > 50);
}
