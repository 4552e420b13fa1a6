use super::*;
use crate::report::tests::report;

#[test]
fn every_experiment_draws_whatever_a_report_has() {
    for experiment in &experiments::EXPERIMENTS {
        let report = Report { experiment: experiment.name.into(), ..report() };
        let text = svg(&report).expect("draws");
        let document = roxmltree::Document::parse(&text).expect("well-formed XML");
        let title = document.descendants().find(|node| node.has_tag_name("text")).expect("there");
        assert!(title.text().is_some_and(|text| text.trim().starts_with(experiment.name)), "{text}");
    }
}

#[test]
fn a_report_is_saved_as_both_files_and_read_again() {
    let folder = std::env::temp_dir().join(format!("linkbraid-bench-{}", std::process::id()));
    let report = report();
    let saved = save(&report, &folder.join("new")).expect("saves");
    let text = std::fs::read_to_string(&saved.json).expect("readable");
    assert_eq!(Report::parse(&text).expect("parses"), report);
    assert!(std::fs::read_to_string(&saved.svg).expect("readable").contains("</svg>"));
    let in_the_way = save(&report, &saved.json).expect_err("a file is no folder");
    assert!(in_the_way.to_string().contains("cannot write"), "{in_the_way}");
    std::fs::remove_dir_all(&folder).expect("removes");
}

#[test]
fn a_report_of_something_else_is_refused() {
    let error = svg(&Report { experiment: "other".into(), ..report() }).expect_err("unknown");
    assert!(error.to_string().contains("there is none of this name"), "{error}");
}

#[test]
fn the_small_print_says_how_often_what_was_done() {
    let mut report = report();
    assert_eq!(what_was_run(&report), "runs of 0 steps, seed 0");
    report.measures.retain(|measure| measure.id != "soak");
    assert_eq!(what_was_run(&report), "runs, medians of up to 1");
    report.measures.retain(|measure| measure.metric != "gap_ms");
    assert_eq!(what_was_run(&report), "runs of 1 s, medians of 3");
}
