//! `linkbraid lab demo`, as its user runs it.

use linkbraid_lab::{Running, daemon, netns, wait_until};
use linkbraid_netns_tests::{SOON, Said};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Beyond this a demo of some seconds hangs.
const LIMIT: Duration = Duration::from_secs(60);

fn demo(options: &[&str]) -> Command {
    let mut command = Command::new(daemon::binary().expect("linkbraid is built"));
    command.args(["lab", "demo"]).args(options).stdin(Stdio::null());
    command
}

/// The namespaces of a lab that process `pid` has up.
fn traces(pid: u32) -> BTreeSet<PathBuf> {
    let names = netns::names(&format!("lb-{pid}-"));
    names.iter().map(|name| Path::new(netns::FOLDER).join(name)).collect()
}

/// Watches a demo until `enough` holds for its output, then gives it `signal`, and waits for its end; its status, its
/// output, and every trace of it that was ever seen.
fn watch(mut command: Command, output: &Path, signal: Option<Signal>) -> (i32, String, BTreeSet<PathBuf>) {
    let file = fs::File::create(output).expect("creates");
    command.stdout(file.try_clone().expect("an open file")).stderr(file);
    let mut running = Running::start(command).expect("starts");
    let mut seen = BTreeSet::new();
    let mut sent = false;
    let status = wait_until(
        LIMIT,
        "the demo to end",
        || {
            seen.extend(traces(running.id()));
            let text = fs::read_to_string(output).unwrap_or_default();
            if let Some(signal) = signal.filter(|_| !sent && text.contains("bonded\n")) {
                running.signal(signal).expect("it runs");
                sent = true;
            }
            running.ended()
        },
        Option::is_some,
    );
    let status = status.unwrap_or_else(|e| panic!("{e}")).and_then(|status| status.code());
    let text = fs::read_to_string(output).expect("reads");
    (status.unwrap_or_else(|| panic!("ended by a signal: {text}")), text, seen)
}

#[track_caller]
fn nothing_left(seen: &BTreeSet<PathBuf>, text: &str) {
    assert!(seen.len() >= 3, "no namespaces were seen: {seen:?}\n{text}");
    let left = || seen.iter().filter(|path| path.exists()).cloned().collect::<Vec<_>>();
    wait_until(SOON, "nothing to be left", left, Vec::is_empty).unwrap_or_else(|e| panic!("{e}\n{text}"));
}

fn output(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("linkbraid-demo-{name}-{}", std::process::id()))
}

#[test]
fn the_demo_says_one_sentence_and_leaves_nothing() {
    let file = output("whole");
    // A machine that is busy for some seconds gets another try.
    let mut said = Vec::new();
    for _ in 0..5 {
        let options = ["--links", "3", "--rate", "20mbit", "--seconds", "3"];
        let (status, text, seen) = watch(demo(&options), &file, None);
        assert_eq!(status, 0, "{text}");
        nothing_left(&seen, &text);
        let sentence = text.trim_end().lines().last().expect("says something").to_owned();
        let numbers: Vec<f64> = sentence.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
        let &[single, rate, bonded, links, ratio] = &numbers[..] else { panic!("five numbers: {sentence}") };
        assert!(sentence.starts_with("One TCP flow (cubic): ") && sentence.ends_with(" times as much."));
        assert_eq!((rate, links), (20.0, 3.0), "{sentence}");
        assert!((ratio - bonded / single).abs() < 0.02, "{sentence}");
        // The rate of every link was shown while the flow ran.
        for nic in ["eth0", "eth1", "eth2"] {
            assert!(text.matches(nic).count() > 3, "{text}");
        }
        // Two links carry 40 Mbit/s, so all three were used; how much exactly is a matter of benchmarks.
        if bonded > 40.0 {
            fs::remove_file(&file).expect("removes");
            return;
        }
        said.push(sentence);
    }
    panic!("never more than two links carry: {said:#?}");
}

#[test]
fn a_demo_that_is_interrupted_leaves_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let file = output(signal.as_str());
        let options = ["--links", "2", "--rate", "20mbit", "--seconds", "3"];
        let (status, text, seen) = watch(demo(&options), &file, Some(signal));
        assert_eq!(status, 1, "{text}");
        assert!(text.contains("linkbraid: error: "), "{text}");
        nothing_left(&seen, &text);
        fs::remove_file(&file).expect("removes");
    }
}

#[test]
fn bad_options_are_refused_before_anything_is_built() {
    for options in [["--links", "0"], ["--rate", "20"], ["--seconds", "none"], ["--cc", "reno2"]] {
        let said = Said::by(&mut demo(&options));
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{said:?}");
        assert_eq!(said.err.lines().count(), 2, "{said:?}");
    }
}
