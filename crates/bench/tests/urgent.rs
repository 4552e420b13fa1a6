//! Messages beside bulk traffic and cuts, on real namespaces; needs root, and the command (see
//! `linkbraid_lab::daemon::binary`). Round trips of a machine with other work say little, so the limits are far from the goals.

use linkbraid_bench::{Guard, Options, Report, find, run};

fn report(only: &str) -> (Report, String) {
    let guard = Guard::new().expect("holds signals back");
    let options = Options { quick: true, only: Some(only.into()), ..Options::default() };
    let mut progress = Vec::new();
    let report = run(find("urgent").expect("there"), &options, &mut progress, &guard);
    let progress = String::from_utf8_lossy(&progress).into_owned();
    (report.unwrap_or_else(|error| panic!("{error}\n{progress}")), progress)
}

#[test]
fn messages_wait_behind_bulk_in_one_channel_and_not_in_two() {
    let (report, progress) = report("udp/");
    assert_eq!(report.failed, [], "{progress}");
    let number = |word: &str, metric: &str| {
        let found = report.median(&format!("udp/{word}"), metric);
        found.unwrap_or_else(|| panic!("no {metric} of '{word}': {progress}"))
    };
    for word in ["bare", "idle", "one-0", "one-6", "two"] {
        assert!(number(word, "sent") > 500.0, "{word}: {progress}");
        assert_eq!(number(word, "twice"), 0.0, "{word}: {progress}");
        let (least, median) = (number(word, "min_us"), number(word, "median_us"));
        assert!(least > 0.0 && least <= median, "{word}: {least} {median}");
    }
    let [bare, one, prior, two] = ["bare", "one-0", "one-6", "two"].map(|word| number(word, "median_us"));
    assert!(one > bare * 4.0, "one channel: {progress}");
    assert!(prior < one / 2.0, "one channel, by priority: {progress}");
    assert!(two < one / 4.0, "two channels: {progress}");
    // The class has the last link to itself: nothing but small messages is on it.
    let shares = [0, 1, 2].map(|link| number("two", &format!("tx_shares.{link}")));
    assert!(shares[2] < 0.05 && shares[..2].iter().all(|share| *share > 0.3), "{shares:?}");
    let queues = ["one-0", "two", "one-6"].map(|word| report.word(&format!("udp/{word}"), "queue"));
    assert_eq!(queues[..2], ["tbf, bfifo"; 2]);
    assert!(["tbf, prio", "tbf, pfifo_fast"].contains(&queues[2]), "{queues:?}");
}

/// Messages lost before a link was cut, while it was, and as it came back.
fn lost(id: &str) -> ([f64; 3], String) {
    let (report, progress) = report(id);
    assert_eq!(report.failed, [], "{progress}");
    let cuts = report.measure(id, "during.lost").unwrap_or_else(|| panic!("not measured: {progress}"));
    assert_eq!(cuts.values.len(), 8, "two links, two ways, two bonds: {progress}");
    let sum = |metric| report.sum(id, metric).unwrap_or_else(|| panic!("no {metric}: {progress}"));
    assert_eq!(sum("twice"), 0.0, "{progress}");
    (["before.lost", "during.lost", "after.lost"].map(sum), progress)
}

#[test]
fn a_cut_loses_messages_unless_they_are_mirrored() {
    let ([before, during, _], progress) = lost("unmirrored/udp");
    assert!(during > 100.0, "a silent cut alone swallows 150 ms of one link: {during} {progress}");
    // Where the machine stood still, some that were sent before a cut are on their way at the cut.
    assert!(before < during / 20.0, "no link was cut: {before} of {during} {progress}");
    let (all, progress) = lost("mirror/udp");
    assert_eq!(all, [0.0; 3], "{progress}");
}
