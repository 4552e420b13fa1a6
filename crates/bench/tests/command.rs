//! `linkbraid bench` on real namespaces; needs root.

use std::process::{Command, Output};

fn linkbraid(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linkbraid-bench")).args(words).output().unwrap()
}

/// How often a figure is measured again that other programs on the machine may have spoiled.
const TRIES: usize = 4;

#[test]
fn the_smallest_scaling_stands_beside_its_bare_link() {
    let mut ratios = Vec::new();
    let is_plausible = |ratio: &f64| (1.5..2.2).contains(ratio);
    while !ratios.last().is_some_and(is_plausible) {
        assert!(ratios.len() < TRIES, "two links carry {ratios:?} times as much as one");
        ratios.push(measure_smallest_scaling());
    }
}

/// Runs it and looks at all that it writes; how many times as much as one link two carry.
fn measure_smallest_scaling() -> f64 {
    let folder = std::env::temp_dir().join(format!("linkbraid-bench-smoke-{}", std::process::id()));
    let out = folder.to_str().unwrap();
    let words =
        ["bench", "run", "scaling", "--quick", "--only", "100mbit/cubic-1/n2", "--out", out, "--json"];
    let output = linkbraid(&words);
    let progress = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{progress}");
    assert!(progress.contains("100mbit/cubic-1/n2 "), "{progress}");

    let reports: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let measures = reports[0]["measures"].as_array().unwrap();
    let mut ids: Vec<&str> = measures.iter().filter_map(|measure| measure["id"].as_str()).collect();
    ids.dedup();
    assert_eq!(ids, ["100mbit/cubic-1/single", "100mbit/cubic-1/n2"], "what was asked for, and its base");
    let of = |metric: &str| {
        let found = measures.iter().find(|one| one["id"] == ids[1] && one["metric"] == metric);
        found.unwrap_or_else(|| panic!("no {metric}: {reports}"))
    };
    let ratio = of("mbit")["against"][0]["ratio"]["median"].as_f64().unwrap();
    let shares: f64 =
        ["tx_shares.0", "tx_shares.1"].map(|share| of(share)["values"][0].as_f64().unwrap()).iter().sum();
    assert!((shares - 1.0).abs() < 0.01, "each link has its share: {shares}");
    assert!(reports[0]["machine"]["kernel"].as_str().is_some_and(|kernel| !kernel.is_empty()));

    let mut files: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let ends: Vec<&str> = files.iter().filter_map(|name| name.rsplit('.').next()).collect();
    assert_eq!(ends, ["json", "svg"], "{files:?}");
    std::fs::remove_dir_all(&folder).unwrap();
    ratio
}

#[test]
fn an_experiment_that_is_not_there_is_wrong_usage() {
    let output = linkbraid(&["bench", "run", "speed"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("no such experiment; there are scaling,"), "{error}");
}

/// One that cannot be run leaves a report with the reason, the others run, and the page says so.
#[test]
fn what_cannot_be_measured_is_named_and_does_not_stop_the_rest() {
    let folder = std::env::temp_dir().join(format!("linkbraid-bench-none-{}", std::process::id()));
    let out = folder.to_str().unwrap();
    let nowhere = folder.join("nowhere");
    let without_tools = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_linkbraid-bench"))
            .args(words)
            .env("PATH", &nowhere)
            .output()
            .unwrap()
    };
    let output = without_tools(&["bench", "run", "copies", "plain", "unequal", "--quick", "--out", out]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("not everything could be measured: unequal, plain"), "{error}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("left out: copies: ") && text.contains("apt-get install nginx"), "{text}");
    for name in ["plain", "unequal"] {
        assert!(text.contains(&format!("failed: {name}: ")), "{name}: {text}");
    }
    assert_eq!(text.matches("apt-get install iperf3").count(), 2, "{text}");

    let output = without_tools(&["bench", "report", "--in", out]);
    assert!(output.status.success(), "{output:?}");
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    let named = page.split("Not measured").nth(1).unwrap().split("</ul>").next().unwrap();
    for word in [
        "plain</b>: failed: ",
        "unequal</b>: failed: ",
        "iperf3",
        "copies</b>: lab: cannot run 'nginx'",
        "scaling</b>: not run",
    ] {
        assert!(named.contains(word), "{word}: {named}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
