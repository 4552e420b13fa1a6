//! The program as the daemon starts it.

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::{
    fs::{self, File},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(20);

#[test]
fn it_keeps_no_file_and_no_privilege_of_who_started_it() {
    let left_open = File::open("/dev/null").expect("it is there");
    fcntl(&left_open, FcntlArg::F_SETFD(FdFlag::empty())).expect("an open file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_linkbraid-etcd"));
    // It waits for an order, which does not come.
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let own = format!("/proc/{}", child.id());
    let files = || fs::read_dir(format!("{own}/fd")).map_or(0, Iterator::count);
    let start = Instant::now();
    while files() != 3 && start.elapsed() < DEADLINE {
        sleep(Duration::from_millis(5));
    }
    let (files, status) = (files(), fs::read_to_string(format!("{own}/status")).expect("it runs"));
    drop(child.stdin.take());
    child.wait().expect("it ends with its input");
    assert_eq!(files, 3, "input, output and errors");
    for line in ["NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000"] {
        assert!(status.contains(line), "{line}: {status}");
    }
}
