//! Broadcasts on real namespaces; needs root, and the command (see `linkbraid_lab::daemon::binary`).

use linkbraid_bench::{Guard, Options, find, run};

#[test]
fn each_broadcast_is_heard_once_and_every_one_is_counted() {
    let guard = Guard::new().expect("holds signals back");
    let options = Options { quick: true, ..Options::default() };
    let mut progress = Vec::new();
    let report = run(find("multicast").expect("there"), &options, &mut progress, &guard);
    let progress = String::from_utf8_lossy(&progress).into_owned();
    let report = report.unwrap_or_else(|error| panic!("{error}\n{progress}"));
    assert_eq!(report.failed, [], "{progress}");
    for kind in ["broadcast", "multicast", "multicast ipv6"] {
        for way in ["a -> b", "a -> c", "c -> a", "c -> b"] {
            let of = |metric| report.sum(&format!("{kind} {way}"), metric);
            let counts = ["sent", "once", "more", "never"].map(of);
            assert_eq!(counts, [1000.0, 1000.0, 0.0, 0.0].map(Some), "{kind} {way}: {progress}");
        }
    }
    assert_eq!(report.sum("silence", "flooded"), Some(0.0), "{progress}");
}
