//! `linkbraid bench` on real namespaces; needs root.

use std::process::{Command, Output};

fn linkbraid(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linkbraid")).args(words).output().unwrap()
}

#[test]
fn the_smallest_scaling_stands_beside_its_bare_link() {
    let folder = std::env::temp_dir().join(format!("linkbraid-bench-smoke-{}", std::process::id()));
    let out = folder.to_str().unwrap();
    let words = ["bench", "run", "scaling", "--quick", "--only", "20mbit/cubic-1/n2", "--out", out, "--json"];
    let output = linkbraid(&words);
    let progress = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{progress}");
    assert!(progress.contains("20mbit/cubic-1/n2 "), "{progress}");

    let reports: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cases = reports[0]["cases"].as_array().unwrap();
    let ids: Vec<&str> = cases.iter().filter_map(|case| case["id"].as_str()).collect();
    assert_eq!(ids, ["20mbit/cubic-1/single", "20mbit/cubic-1/n2"], "what was asked for, and its base");
    let ratio = cases[1]["ratios"][0]["spread"]["median"].as_f64().unwrap();
    assert!(ratio > 1.5 && ratio < 2.2, "two links carry {ratio} times as much as one: {progress}");
    assert_eq!(cases[1]["samples"][0]["tx_shares"].as_array().unwrap().len(), 2);
    assert!(reports[0]["machine"]["kernel"].as_str().is_some_and(|kernel| !kernel.is_empty()));

    let mut files: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let ends: Vec<&str> = files.iter().filter_map(|name| name.rsplit('.').next()).collect();
    assert_eq!(ends, ["json", "svg"], "{files:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_experiment_that_is_not_there_is_wrong_usage() {
    let output = linkbraid(&["bench", "run", "speed"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("no such experiment; there are scaling,"), "{error}");
}
