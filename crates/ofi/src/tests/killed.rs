use super::{DEADLINE, Net, PROVIDERS, frame, take};
use crate::{children, open};
use linkbraid_fabric::{Address, Join, Taken};
use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// What the process of [`a_killed_node_harms_nobody_and_is_heard_again`] does.
#[test]
#[ignore = "a part of another test"]
fn node_that_is_killed() {
    let address = std::env::var("LINKBRAID_TEST_ADDRESS").expect("set by the other test");
    let epoch: u8 = std::env::var("LINKBRAID_TEST_EPOCH").expect("set by the other test").parse().unwrap();
    let join = Join { node: 1, nodes: 3, queues: 1 };
    let mut port = open(&address.parse::<Address>().unwrap(), &join).expect("it opens").remove(0);
    let mut number = 0u32;
    loop {
        let body = frame(number as usize, number as usize * 7919 % 9000);
        if port.send(0, &[&[epoch][..], &number.to_ne_bytes()].concat(), &body).is_ok() {
            number += 1;
        }
        port.flush();
        take(&mut port);
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
fn a_killed_node_harms_nobody_and_is_heard_again() {
    for provider in PROVIDERS {
        let net = Net::new(provider, 3);
        let (mut port, mut third) = (net.node(0), net.node(2));
        let mut slowest = Duration::ZERO;
        let mut bystander = 0u32;
        for epoch in 0..12u8 {
            let child = children::start(
                Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "tests::killed::node_that_is_killed", "--ignored"])
                    .env("LINKBRAID_TEST_ADDRESS", format!("ofi:{provider},{}", net.directory.display()))
                    .env("LINKBRAID_TEST_EPOCH", epoch.to_string())
                    .stdout(Stdio::null()),
            );
            let _child = Killed(child);
            let (begun, mut next, mut came) = (Instant::now(), 0u32, 0u32);
            // Killed after another number of frames each time, in the middle of whatever it does then.
            while next < 300 + 37 * u32::from(epoch) {
                let last = port.stats(1);
                assert!(begun.elapsed() < DEADLINE, "{provider}, epoch {epoch}: {next} frames, {last:?}");
                if third.send(0, &bystander.to_ne_bytes(), &[1; 500]).is_ok() {
                    bystander += 1;
                }
                third.flush();
                take(&mut third);
                // The dead one is sent to, too.
                let _ = port.send(1, &[1], &[1; 100]);
                port.flush();
                port.receive(16, &mut |peer, bytes| {
                    let bytes = bytes.to_vec();
                    if peer == 1 && bytes[0] == epoch {
                        let number = u32::from_ne_bytes(bytes[1..5].try_into().unwrap());
                        assert_eq!(number, next, "{provider}");
                        assert!(bytes[5..] == frame(next as usize, next as usize * 7919 % 9000), "whole");
                        if next == 0 {
                            slowest = slowest.max(begun.elapsed());
                        }
                        next += 1;
                    } else if peer == 2 {
                        came += 1;
                    }
                    Taken::Yes
                });
            }
            assert!(came > 0, "{provider}: the third node is heard meanwhile");
        }
        println!("{provider}: heard {slowest:?} after its start at the latest");
        assert_eq!((third.stats(0).lost, port.stats(2).bad_record), (0, 0), "{provider}");
        assert!(slowest < Duration::from_secs(15), "{provider}: {slowest:?}");
    }
}
