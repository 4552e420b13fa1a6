use super::*;
use std::time::Duration;

#[test]
fn work_is_all_but_idle_waiting_and_stolen() {
    let look = |text: &str| {
        use procfs::FromBufReadSI;
        let stat =
            KernelStats::from_buf_read(text.as_bytes(), procfs::current_system_info()).expect("parses");
        Activity { at: Instant::now(), cpu: stat.total, interrupts: 0, switches: stat.ctxt }
    };
    let before = look("cpu  10 1 5 100 7 2 3 50 0 0\nctxt 400\nbtime 1\nprocesses 1\n");
    let mut after = look("cpu  110 1 55 200 57 12 43 950 9 9\nctxt 600\nbtime 1\nprocesses 1\n");
    (after.at, after.interrupts) = (before.at + Duration::from_secs(2), 4000);
    let work = after.since(&before);
    assert_eq!((work.busy_s, work.user_s, work.system_s, work.interrupt_s), (2.0, 0.5, 0.25, 0.25));
    assert!((work.share - 200.0 / 350.0).abs() < 1e-9, "{work:?}");
    assert!((work.stolen_share - 900.0 / 1100.0).abs() < 1e-9, "{work:?}");
    assert_eq!((work.interrupts, work.switches), (2000.0, 100.0));
    assert_eq!(before.since(&before).share, 0.0);
}

#[test]
fn this_machine_works_and_is_interrupted() {
    let first = Activity::now().expect("readable");
    let later = linkbraid_lab::wait_until(
        Duration::from_secs(10),
        "work and an interrupt",
        || Activity::now().expect("readable").since(&first),
        |work| work.busy_s > 0.0 && work.interrupts > 0.0 && work.switches > 0.0,
    );
    later.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn this_process_has_run_and_has_memory() {
    let id = std::process::id();
    // The kernel counts the time of a thread that runs at the scheduler's ticks only; and what other tests' threads had
    // goes with them.
    let worked = linkbraid_lab::wait_until(
        Duration::from_secs(10),
        "work to be counted",
        || {
            let before = ProcessActivity::of(id).expect("looks");
            let sum: u64 = (0..3_000_000_u64).map(|n| std::hint::black_box(n) % 7).sum();
            (ProcessActivity::of(id).expect("looks").since(before).0, sum)
        },
        |(percent, _)| *percent > 0.0,
    );
    worked.unwrap_or_else(|e| panic!("{e}"));
    assert!(anonymous_bytes(id).expect("looks") > 100_000);
}
