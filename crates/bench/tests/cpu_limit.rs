//! A host with little CPU, on real namespaces; needs root, a CPU controller, and the command (see
//! `linkbraid_lab::daemon::binary`).

use linkbraid_bench::{Guard, Options, find, run};

#[test]
fn a_small_share_of_the_cpu_is_used_up_and_is_what_limits() {
    let guard = Guard::new().expect("holds signals back");
    let options = Options { quick: true, only: Some("two/1%".into()), ..Options::default() };
    let mut progress = Vec::new();
    let report = run(find("cpu-limit").expect("there"), &options, &mut progress, &guard);
    let progress = String::from_utf8_lossy(&progress).into_owned();
    let report = report.unwrap_or_else(|error| panic!("{error}\n{progress}"));
    assert_eq!((&report.failed[..], &report.skipped[..]), (&[][..], &[][..]), "{progress}");
    let throttled =
        report.measure("two/1%", "throttled_share").and_then(|m| m.spread).expect("counted").median;
    assert!(throttled > 0.5, "{throttled} {progress}");
    // Far from what two links carry, and both bases are there.
    let ratio = |name| report.ratio("two/1%", name).map(|ratio| ratio.median);
    let full = ratio("full").expect("its base was measured");
    assert!(full < 1.6, "{full} {progress}");
    assert!(ratio("same").is_some(), "{progress}");
    let left = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    let own = format!("linkbraid-bench-{}", std::process::id());
    assert!(left.map(|entry| entry.path()).all(|path| !path.join(&own).exists() && !path.ends_with(&own)));
}
