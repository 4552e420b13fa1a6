//! Every numbered clause of the specification has code that obeys it and a test that shows it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Every specification, and how many clauses it has at least.
const SPECS: [(&str, usize); 2] = [("docs/arp-plus.md", 40), ("docs/fabric.md", 35)];

const ARP_PLUS: &str = SPECS[0].0;
const FABRIC: &str = SPECS[1].0;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Numbers of clauses and their text up to the next blank line.
fn clauses(spec: &str) -> BTreeMap<String, String> {
    let spec = fs::read_to_string(root().join(spec)).expect("the specification");
    let clause = |paragraph: &str| {
        let (number, text) = paragraph.strip_prefix("**")?.split_once("**")?;
        Some((number.to_owned(), text.to_owned()))
    };
    spec.split("\n\n").filter_map(clause).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "rs" || extension == "c" || extension == "h")
        {
            found.push(path);
        }
    }
}

/// Where clauses are obeyed and tested. What the kernel and the daemon do for the fast path, and who carries encrypted frames,
/// stands in the last five.
const FOLDERS: [&str; 9] = [
    "crates/wire/src",
    "crates/wire/tests",
    "crates/proto/src",
    "crates/proto/tests",
    "crates/dataplane/src",
    "crates/dataplane/tests",
    "crates/daemon/src/world/fabric",
    "crates/fabric/src",
    "crates/fabric/tests",
];

/// Clauses cited by code, and by tests.
fn citations(spec: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut files = Vec::new();
    for folder in FOLDERS {
        sources(&root().join(folder), &mut files);
    }
    let (mut code, mut tests) = (BTreeSet::new(), BTreeSet::new());
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        for line in text.lines() {
            let Some(cited) = line.trim_start().strip_prefix(&format!("//= {spec}#")) else { continue };
            match cited.strip_suffix(" type=test") {
                Some(number) => tests.insert(number.to_owned()),
                None => code.insert(cited.to_owned()),
            };
        }
    }
    (code, tests)
}

#[test]
fn every_clause_has_code_and_a_test() {
    SPECS.iter().for_each(|(spec, least)| check(spec, *least));
}

fn check(spec: &str, least: usize) {
    let clauses = clauses(spec);
    assert!(clauses.len() > least, "found {} clauses in {spec}", clauses.len());
    let (code, tests) = citations(spec);
    let numbers: BTreeSet<String> = clauses.keys().cloned().collect();
    let lacking = |cited: &BTreeSet<String>| numbers.difference(cited).cloned().collect::<Vec<_>>();
    assert_eq!(lacking(&code), Vec::<String>::new(), "clauses of {spec} without code");
    assert_eq!(lacking(&tests), Vec::<String>::new(), "clauses of {spec} without test");
    let unknown: Vec<&String> = code.union(&tests).filter(|number| !numbers.contains(*number)).collect();
    assert_eq!(unknown, Vec::<&String>::new(), "citations of clauses that are missing in {spec}");
}

#[test]
fn timing_table_holds_the_defaults() {
    let spec = fs::read_to_string(root().join(ARP_PLUS)).expect("the specification");
    let timing = linkbraid_proto::arp_plus::Timing::default();
    let seconds = |duration: std::time::Duration| format!("{} s unheard", duration.as_secs_f64());
    let millis = |duration: std::time::Duration| duration.as_millis();
    let (low, high) = (millis(timing.announce_min), millis(timing.announce_max));
    let (near, far) = (millis(timing.burst_gap_min), millis(timing.burst_gap_max));
    let (base, host, most) =
        (millis(timing.reply_window), millis(timing.reply_window_host), millis(timing.reply_window_max));
    for row in [
        format!("| announcement of the own mapping | every {low} to {high} ms, at random |"),
        format!("| {} times, {near} to {far} ms apart, at random |", timing.burst_count),
        format!("| {base} ms + {host} ms for each host in the table, at most {most} ms |"),
        format!("| a host is silent | {} |", seconds(timing.silent)),
        format!("| a host is deleted | {} |", seconds(timing.expire)),
        format!("| a (member, member) pair is not heard | {} |", seconds(timing.heard)),
        format!("| a former MAC still leads to its host | {} s |", timing.alias.as_secs()),
        format!("| messages from before a CLEAR are refused | {} s |", timing.tombstone.as_secs()),
    ] {
        assert!(spec.contains(&row), "missing in the specification: {row}");
    }
}

#[test]
fn probe_table_holds_the_defaults_and_limits() {
    use linkbraid_proto::limits::{
        DELAY_MAX, HOLD_MAX, PLAIN_INTERVAL_LATE, PLAIN_PROBED_MAX, PLAIN_RATE, PLAIN_URGENT_MAX,
        PROBE_ADMIT_MAX, PROBE_INTERVAL_MAX, PROBE_INTERVAL_MIN, PROBE_MULTIPLIER_MAX, PROBE_MULTIPLIER_MIN,
        PROBE_RATE, PROBE_RATE_MAX,
    };
    let spec = fs::read_to_string(root().join(ARP_PLUS)).expect("the specification");
    let timing = linkbraid_proto::inspector::Timing::default();
    let millis = |duration: std::time::Duration| duration.as_millis();
    let intervals = format!("{} ms to {} s", millis(PROBE_INTERVAL_MIN), PROBE_INTERVAL_MAX.as_secs());
    let hours = HOLD_MAX.as_secs() / 3600;
    for row in [
        format!(
            "| interval of a lane that carries data, or has light traffic | {} ms | {intervals} |",
            millis(timing.interval)
        ),
        format!(
            "| {} | {PROBE_MULTIPLIER_MIN} to {PROBE_MULTIPLIER_MAX} |",
            format_args!(
                "multiplier: a lane is lost after this many intervals without proof | {}",
                timing.multiplier
            )
        ),
        format!("| answers before a lane carries traffic | {} | 1 to {PROBE_ADMIT_MAX} |", timing.admit),
        format!("carries nothing just now | {} ms | {intervals} |", millis(timing.idle)),
        format!("| interval of a proven lane in no plan | {} ms | {intervals} |", millis(timing.discovery)),
        format!(
            "| interval of a lost lane, for {} s | {} ms | {intervals} |",
            timing.retry_for.as_secs(),
            millis(timing.retry)
        ),
        format!("| the same, later | {} ms | {intervals} |", millis(timing.retry_late)),
        format!("| up-delay of a member | {} ms | 0 to {} s |", millis(timing.up_delay), DELAY_MAX.as_secs()),
        format!("doubled by each further one | {} s | 0 to {hours} h |", timing.hold_base.as_secs()),
        format!("| longest hold-down | {} s | 0 to {hours} h |", timing.hold_max.as_secs()),
        format!("| a failure is forgotten | after {} s without one | |", timing.hold_decay.as_secs()),
        format!("a few at a time (here {PLAIN_PROBED_MAX}), over each"),
        format!("once a second for a minute, then every {} s", PLAIN_INTERVAL_LATE.as_secs()),
        format!("(here {PROBE_RATE}, and {PROBE_RATE_MAX} while lanes"),
        format!("(here {PLAIN_RATE} regular ones, evenly"),
        format!("(here {PLAIN_URGENT_MAX} more at once"),
    ] {
        assert!(spec.contains(&row), "missing in the specification: {row}");
    }
}

#[test]
fn fabric_table_holds_the_defaults_and_limits() {
    use linkbraid_proto::limits::{
        ALIVE_INTERVAL_MAX, ALIVE_INTERVAL_MIN, ALIVE_MULTIPLIER_MAX, ALIVE_MULTIPLIER_MIN, ALIVE_RATE,
        IDLE_ALIVE_RATE, LINK_IN_USE,
    };
    use linkbraid_wire::fabric::{CONTROL_LEN, CONTROL_MAX, DATA_MAX, DATA_MIN};
    let spec = fs::read_to_string(root().join(FABRIC)).expect("the specification");
    let timing = linkbraid_proto::session::Timing::default();
    let millis = |duration: std::time::Duration| duration.as_millis();
    let thousands = |number: usize| format!("{},{:03}", number / 1000, number % 1000);
    let detection = millis(timing.interval) * u128::from(timing.multiplier);
    for row in [
        format!(
            "time between two ALIVEs | {} ms | {} ms to {} s |",
            millis(timing.interval),
            millis(ALIVE_INTERVAL_MIN),
            ALIVE_INTERVAL_MAX.as_secs()
        ),
        format!(
            "this many of its intervals | {} | {ALIVE_MULTIPLIER_MIN} to {ALIVE_MULTIPLIER_MAX} |",
            timing.multiplier
        ),
        format!("first time between two HELLOs | {} ms | from 1 ms |", millis(timing.retry_min)),
        format!(
            "| longest time between two HELLOs | {} s | to {} s |",
            timing.retry_max.as_secs(),
            ALIVE_INTERVAL_MAX.as_secs()
        ),
        format!("more than {} ALIVEs a second", thousands(ALIVE_RATE as usize)),
        format!("no more than {IDLE_ALIVE_RATE} ALIVEs a second"),
        format!("alone, for {} s after the last one", LINK_IN_USE.as_secs()),
        format!("{DATA_MIN} to {} in DATA", thousands(DATA_MAX)),
        format!("and {CONTROL_LEN} to {CONTROL_MAX} in CONTROL"),
        format!("overtaken by {} or more", thousands(linkbraid_proto::session::WINDOW as usize)),
        format!("A peer that dies is found after {detection} ms at most"),
    ] {
        assert!(spec.contains(&row), "missing in the specification: {row}");
    }
}
