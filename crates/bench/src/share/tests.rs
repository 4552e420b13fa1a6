use super::*;

const BOTH: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                    cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                    cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
                    cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";

#[test]
fn the_hierarchy_with_the_controller_is_found() {
    let of = |text: &str| {
        use procfs::FromBufRead;
        hierarchies(&Vec::from_buf_read(text.as_bytes()).expect("parses"))
    };
    assert_eq!(of(BOTH), [Some("/sys/fs/cgroup/cpu,cpuacct".into()), Some("/sys/fs/cgroup/unified".into())]);
    assert_eq!(of("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"), [None, Some("/sys/fs/cgroup".into())]);
    assert_eq!(of("proc /proc proc rw 0 0\n"), [None, None]);
}

#[test]
fn used_up_quotas_are_counted() {
    let text = "usage_usec 17\nnr_periods 2401\nnr_throttled 1205\nthrottled_usec 4\n";
    assert_eq!(periods(text), Periods { all: 2401, throttled: 1205 });
    assert_eq!(periods("nr_periods many\n"), Periods::default());
}

/// A process that wants a whole core uses a small share up again and again, and one without a limit never.
#[test]
fn a_process_that_wants_more_uses_its_share_up() {
    let share = Share::make().unwrap_or_else(|e| panic!("{e}"));
    let mut busy =
        std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("started");
    share.add(busy.id()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(share.periods().throttled, 0);
    share.limit(Some(100)).unwrap_or_else(|e| panic!("{e}"));
    let used_up = |periods: &Periods| periods.throttled >= 3 && periods.all >= periods.throttled;
    let waited = wait_until(Duration::from_secs(30), "a quota to be used up", || share.periods(), used_up);
    busy.kill().and_then(|()| busy.wait()).expect("ended");
    waited.unwrap_or_else(|e| panic!("{e}"));
    let folder = share.folder.clone();
    drop(share);
    assert!(!folder.exists());
}
