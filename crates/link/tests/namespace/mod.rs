//! A network namespace that a test makes and runs things in.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    fs::File,
    os::fd::AsRawFd,
    process::Command,
    time::{Duration, Instant},
};

use nix::{
    sched::{CloneFlags, setns, unshare},
    unistd::geteuid,
};

/// Longest wait for a condition.
const DEADLINE: Duration = Duration::from_secs(10);

/// A network namespace; it goes when this is dropped and nothing is left in it.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// # Panics
    /// Without root: a test that cannot run has failed.
    pub fn new() -> Self {
        assert!(geteuid().is_root(), "this test makes network namespaces: run it as root");
        let made = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("needs CAP_SYS_ADMIN to make a network namespace");
            File::open("/proc/thread-self/ns/net").unwrap()
        });
        let space = Self(made.join().unwrap());
        space.run("ip link set lo up");
        space
    }

    /// Its descriptor in this process.
    pub fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Runs `job` inside, on a thread of its own.
    pub fn enter<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
                job()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs one command inside; its output.
    pub fn run(&self, command: &str) -> String {
        self.enter(|| {
            let mut words = command.split_whitespace();
            let output = Command::new(words.next().unwrap()).args(words).output().expect("it is installed");
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{command}: {text}{}", String::from_utf8_lossy(&output.stderr));
            text
        })
    }

    /// Runs one command inside until its output is as wanted.
    pub fn until(&self, command: &str, wanted: impl Fn(&str) -> bool) {
        let start = Instant::now();
        loop {
            let text = self.run(command);
            if wanted(&text) {
                return;
            }
            assert!(start.elapsed() < DEADLINE, "waited in vain; last seen: {text}");
        }
    }
}
