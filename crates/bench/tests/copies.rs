//! Copies at once, on real namespaces and a real disk; needs root, nginx, curl, and the command (see
//! `linkbraid_lab::daemon::binary`).

use linkbraid_bench::{Guard, Options, find, run};

#[test]
fn remote_copies_are_measured_over_both_labs_and_nothing_is_left() {
    let guard = Guard::new().expect("holds signals back");
    let options = Options { quick: true, only: Some("copies/two-8/1MB".into()), ..Options::default() };
    let mut progress = Vec::new();
    let report = run(find("copies").expect("there"), &options, &mut progress, &guard);
    let progress = String::from_utf8_lossy(&progress).into_owned();
    let report = report.unwrap_or_else(|error| panic!("{error}\n{progress}"));
    assert_eq!((&report.failed[..], &report.skipped[..]), (&[][..], &[][..]), "{progress}");
    let rate = |kind: &str, remote: usize| {
        let measure = report.measure(&format!("copies/{kind}-{remote}/1MB"), "copy_mbyte");
        measure.and_then(|m| m.spread).unwrap_or_else(|| panic!("{kind} {remote}: {progress}")).median
    };
    // The links bound what is remote (a tenth more for what they let through at once). Others may use the disk, which
    // bounds what is local.
    let rate_mbit = report.labs[0].topology.hosts[0].links[0].rate_mbit.expect("limited");
    let carried = |used: u32| f64::from(used * rate_mbit) / 8.0 * 1.1;
    assert!(rate("one", 8) < carried(1) && rate("two", 8) < carried(2), "{progress}");
    assert!(rate("one", 8) > 0.0 && rate("two", 8) > 0.0 && rate("two", 0) > 0.0, "{progress}");
    // The base was measured too.
    let remote = report.measure("copies/two-8/1MB", "copy_mbyte").expect("measured");
    assert!(remote.beside("copies/one-8/1MB").is_some() && remote.beside("copies/two-0/1MB").is_some());
    assert!(remote.command.contains("curl") && remote.command.contains("oflag=dsync"), "{}", remote.command);
    let left = format!("/var/tmp/linkbraid-copies-{}", std::process::id());
    assert!(!std::path::Path::new(&left).exists());
}
