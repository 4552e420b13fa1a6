use super::{DEADLINE, Name, node};
use crate::Taken;
use std::{
    process::{Child, Command, Stdio},
    time::Instant,
};

/// What the process of [`a_killed_node_harms_nobody`] does.
#[test]
#[ignore = "a part of another test"]
fn node_that_is_killed() {
    let address = std::env::var("LINKBRAID_TEST_ADDRESS").expect("set by the other test");
    let epoch: u8 = std::env::var("LINKBRAID_TEST_EPOCH").expect("set by the other test").parse().unwrap();
    let mut port = node(&address, 1, 2);
    let mut number = 0u32;
    loop {
        let body = vec![number as u8; (number as usize * 7919) % 9000];
        if port.send(0, &[&[epoch][..], &number.to_ne_bytes()].concat(), &body).is_ok() {
            number += 1;
        }
        port.flush();
        // So many at most: the other side never stops, and who takes until nothing is left may never be done.
        port.receive(64, &mut |_, _| Taken::Yes);
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

#[test]
fn a_killed_node_harms_nobody() {
    let name = Name::new();
    let mut port = node(&name.address(), 0, 2);
    for epoch in 0..20u8 {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "shm::tests::killed::node_that_is_killed", "--ignored"])
            .env("LINKBRAID_TEST_ADDRESS", name.address())
            .env("LINKBRAID_TEST_EPOCH", epoch.to_string())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let child = Killed(child);
        let begun = Instant::now();
        let mut next = 0u32;
        // Killed after another number of frames each time, in the middle of whatever it does then.
        while next < 500 + 37 * u32::from(epoch) {
            assert!(begun.elapsed() < DEADLINE, "epoch {epoch}: {next} frames");
            port.receive(16, &mut |peer, bytes| {
                let frame = bytes.to_vec();
                // The last frames of the one before come first.
                if frame[0] == epoch {
                    let number = u32::from_ne_bytes(frame[1..5].try_into().unwrap());
                    assert_eq!((peer, number, frame.len()), (1, next, 5 + (next as usize * 7919) % 9000));
                    assert!(frame[5..].iter().all(|byte| *byte == next as u8), "whole");
                    next += 1;
                } else {
                    assert_eq!(frame[0], epoch.wrapping_sub(1));
                }
                Taken::Yes
            });
            let _ = port.send(1, b"to a node that may be dead", &[]);
            port.flush();
        }
        drop(child);
    }
    let stats = port.stats(1);
    assert_eq!((stats.bad_position, stats.bad_record), (0, 0));
}
