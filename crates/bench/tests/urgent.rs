//! Messages beside bulk traffic and cuts, on real namespaces; needs root, and the command (see
//! `linkbraid_lab::daemon::binary`). Round trips of a machine with other work say little, so the limits are far from the goals.

use linkbraid_bench::{CutCase, Guard, MessageCase, Options, Report, find, run};

fn report(only: &str) -> (Report, String) {
    let guard = Guard::new().expect("holds signals back");
    let options = Options { quick: true, only: Some(only.into()), ..Options::default() };
    let mut progress = Vec::new();
    let report = run(find("urgent").expect("there"), &options, &mut progress, &guard);
    let progress = String::from_utf8_lossy(&progress).into_owned();
    (report.unwrap_or_else(|error| panic!("{error}\n{progress}")), progress)
}

fn median(case: &MessageCase) -> f64 {
    case.medians.median_us.expect("measured").median
}

#[test]
fn messages_wait_behind_bulk_in_one_channel_and_not_in_two() {
    let (report, progress) = report("udp/");
    assert_eq!(report.failed, [], "{progress}");
    let case = |word: &str| {
        let id = format!("udp/{word}");
        report.message_case(&id).unwrap_or_else(|| panic!("no '{id}': {progress}"))
    };
    let [bare, idle, one, prior, two] = ["bare", "idle", "one-0", "one-6", "two"].map(case);
    for case in [bare, idle, one, prior, two] {
        let sample = &case.samples[0];
        assert!(sample.sent > 500, "{}: {sample:?}", case.id);
        assert_eq!(sample.twice, 0, "{}", case.id);
        assert!(sample.min_us > 0.0 && sample.min_us <= sample.median_us, "{}: {sample:?}", case.id);
    }
    assert!(median(one) > median(bare) * 4.0, "one channel: {progress}");
    assert!(median(prior) < median(one) / 2.0, "one channel, by priority: {progress}");
    assert!(median(two) < median(one) / 4.0, "two channels: {progress}");
    // The class has the last link to itself: nothing but small messages is on it.
    let shares = &two.samples[0].tx_shares;
    assert!(shares[2] < 0.05 && shares[..2].iter().all(|share| *share > 0.3), "{shares:?}");
    let queues: Vec<&str> = [one, two, prior].map(|case| case.queue.as_str()).into();
    assert_eq!(queues[..2], ["tbf, bfifo"; 2]);
    assert!(["tbf, prio", "tbf, pfifo_fast"].contains(&queues[2]), "{queues:?}");
}

fn cuts(only: &str) -> (CutCase, String) {
    let (report, progress) = report(only);
    assert_eq!(report.failed, [], "{progress}");
    let [case] = &report.cuts[..] else { panic!("one case: {progress}") };
    assert_eq!(case.cuts.len(), 8, "two links, two ways, two bonds: {progress}");
    assert_eq!(case.twice, 0, "{progress}");
    let lost_before = case.sum(|cut| cut.before.lost);
    assert_eq!(lost_before, 0, "no link was cut: {progress}");
    (case.clone(), progress)
}

#[test]
fn a_cut_loses_messages_unless_they_are_mirrored() {
    let (plain, progress) = cuts("unmirrored/udp");
    let lost = plain.sum(|cut| cut.during.lost);
    assert!(lost > 100, "a silent cut alone swallows 150 ms of one link: {lost} {progress}");
    let (mirrored, progress) = cuts("mirror/udp");
    assert_eq!(mirrored.sum(|cut| cut.during.lost + cut.after.lost), 0, "{progress}");
}
