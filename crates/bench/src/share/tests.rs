use super::*;

const BOTH: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                    cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                    cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
                    cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";

#[test]
fn the_hierarchy_with_the_controller_is_found() {
    assert_eq!(of_version_one(BOTH), Some("/sys/fs/cgroup/cpu,cpuacct".into()));
    assert_eq!(of_version_two(BOTH), Some("/sys/fs/cgroup/unified".into()));
    let new = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
    assert_eq!((of_version_one(new), of_version_two(new)), (None, Some("/sys/fs/cgroup".into())));
    assert_eq!(of_version_one("cgroup\n\ncgroup /x\n"), None);
}

#[test]
fn used_up_quotas_are_counted() {
    let text = "usage_usec 17\nnr_periods 2401\nnr_throttled 1205\nthrottled_usec 4\n";
    assert_eq!(periods(text), Periods { all: 2401, throttled: 1205 });
    assert_eq!(periods("nr_periods many\n"), Periods::default());
}

/// What a quota is for: a process that would use a whole core gets its share of one.
#[test]
fn a_process_gets_its_share_of_a_core() {
    let share = Share::make().unwrap_or_else(|e| panic!("{e}"));
    share.limit(Some(10)).unwrap_or_else(|e| panic!("{e}"));
    let mut busy =
        std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("started");
    share.add(busy.id()).unwrap_or_else(|e| panic!("{e}"));
    // In 50 periods of 10 ms.
    let waited = wait_until(
        Duration::from_secs(20),
        "50 periods",
        || share.periods(),
        |periods| periods.throttled >= 50,
    );
    let stat = fs::read_to_string(format!("/proc/{}/stat", busy.id())).expect("read");
    busy.kill().and_then(|()| busy.wait()).expect("ended");
    let periods = waited.unwrap_or_else(|e| panic!("{e}"));
    let ticks: u64 = stat
        .rsplit(") ")
        .next()
        .expect("fields")
        .split(' ')
        .skip(11)
        .take(2)
        .map(|n| n.parse::<u64>().expect("a number"))
        .sum();
    // A tick is 10 ms, a period allows 1 ms.
    assert!(ticks <= periods.all / 10 + 3, "{ticks} ticks in {periods:?}");
    let folder = share.folder.clone();
    drop(share);
    assert!(!folder.exists());
}
