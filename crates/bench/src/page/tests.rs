mod browser;

use super::*;
use crate::report::tests::report;

fn of(reports: Vec<Report>) -> String {
    let missing = vec![Reason { id: "soak".into(), reason: "not run; linkbraid bench run soak".into() }];
    page(&Collected { reports, missing, unread: Vec::new() }).expect("drawn")
}

/// As a browser's parser sees it: every element ended, every entity known.
fn elements(page: &str, name: &str) -> usize {
    let body = page.strip_prefix("<!DOCTYPE html>").expect("a document type");
    // Elements without an end are written as HTML wants them; XML wants their end.
    let body =
        body.replace("<meta charset=\"utf-8\">", "").replace("initial-scale=1\">", "initial-scale=1\"/>");
    let document = roxmltree::Document::parse(&body).unwrap_or_else(|e| panic!("{e}: {body}"));
    document.descendants().filter(|node| node.has_tag_name(name) || node.tag_name().name() == name).count()
}

#[test]
fn a_page_has_all_of_a_report_and_needs_nothing_else() {
    let page = of(vec![Report { experiment: "scaling".into(), ..report() }]);
    assert!(elements(&page, "svg") > 0);
    assert!(elements(&page, "table") > 2);
    assert_eq!(elements(&page, "script"), 0);
    for outside in ["src=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for word in ["100mbit/cubic-1/n2", "iperf3 -c 198.18.0.2", "too slow", "linkbraid bench run soak"] {
        assert!(page.contains(word), "{word}: {page}");
    }
}

#[test]
fn the_worst_of_a_claim_is_what_the_summary_says() {
    let mut report = Report { experiment: "overhead".into(), ..report() };
    let goal = |case: &str, value| {
        crate::Goal::new(case, "of the bare link's throughput", crate::Bound::AtLeast, 0.98, value)
    };
    report.goals = vec![goal("cubic", Some(0.99)), goal("bbr", Some(0.91)), goal("reno", Some(0.95))];
    let page = of(vec![report]);
    for word in [
        "0.91",
        "<span class=\"small\"> (bbr)</span>",
        "missed in 2 of 3",
        "at least 0.98",
        "1 claims, 1 of them missed",
    ] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn a_claim_that_is_met_or_unknown_is_not_said_to_be_missed() {
    let mut report = Report { experiment: "overhead".into(), ..report() };
    let goal = |value| crate::Goal::new("cubic", "of it", crate::Bound::AtMost, 1.05, value);
    report.goals = vec![goal(Some(1.01))];
    assert!(of(vec![report.clone()]).contains("<td class=\"met\">met</td>"));
    report.goals = vec![goal(Some(1.01)), goal(None)];
    assert!(of(vec![report]).contains("met in 1, not known in 1"));
}

#[test]
fn what_a_result_says_is_text_and_never_markup() {
    let mut report = Report { experiment: "scaling".into(), ..report() };
    report.about = "<script>alert(1)</script>".into();
    report.measures.iter_mut().for_each(|measure| measure.id = "<b>&\"".into());
    let page = of(vec![report]);
    assert!(!page.contains("<script>") && !page.contains("<b>&\""));
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn an_experiment_that_was_left_out_or_broke_is_named_with_the_reason() {
    let reason = |id: &str, reason: &str| Reason { id: id.into(), reason: reason.into() };
    let left =
        Report { experiment: "copies".into(), skipped: vec![reason("copies", "no nginx")], ..report() };
    let broke = Report { experiment: "plain".into(), failed: vec![reason("plain", "no iperf3")], ..report() };
    let page = of(vec![left, broke]);
    let named = page.split("Not measured").nth(1).expect("a list").split("</ul>").next().expect("its end");
    for word in ["<b>copies</b>: no nginx", "<b>plain</b>: failed: no iperf3", "<b>soak</b>: not run"] {
        assert!(named.contains(word), "{word}: {named}");
    }
}

#[test]
fn every_figure_of_the_papers_is_listed_with_its_place_or_a_reason() {
    let page = of(vec![Report { experiment: "scaling".into(), ..report() }]);
    let list = page.split("figure by figure").nth(1).expect("a table");
    for word in ["BondingPlus, Table 1", "ELT, Table 2", "ETHOM, Fig. 10", "linkbraid bench run tipc"] {
        assert!(list.contains(word), "{word}");
    }
    assert!(list.contains("<a href=\"#scaling\">") && list.contains("linkbraid bench run copies"), "{list}");
}

#[test]
fn every_experiment_of_a_paper_has_values_beside_ours() {
    for experiment in crate::EXPERIMENTS.iter().filter(|experiment| !experiment.paper.is_empty()) {
        let report = Report { experiment: experiment.name.into(), ..report() };
        let beside = papers::beside(&report).into_string();
        assert!(beside.contains("Changed against the paper"), "{}", experiment.name);
    }
}
