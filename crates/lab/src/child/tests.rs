use super::*;
use std::time::Duration;

#[test]
fn a_child_hears_the_signals_that_its_parent_holds_back() {
    let held = SigSet::from_iter([Signal::SIGTERM]);
    held.thread_block().expect("blocks");
    let mut command = Command::new("sleep");
    command.arg("600");
    let mut child = Running::start(command).expect("starts");
    held.thread_unblock().expect("unblocks");
    child.signal(Signal::SIGTERM).expect("signals");
    let ended = || child.ended().ok_or("it still runs");
    crate::wait::wait_for(Duration::from_secs(10), "it to end", ended).expect("ends");
}
