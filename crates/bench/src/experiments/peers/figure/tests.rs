use super::*;
use crate::report::tests::{case, empty, measure};

#[test]
fn only_what_was_measured_is_drawn() {
    let mut report = empty();
    case(&mut report, "cubic-1/n2/linkbraid", 2, &[38.0], &[("single", 1.99)]);
    report.measures.push(measure("failover/silent-ours/mptcp", "stall_ms", 0.2, None));
    let figure = draw(&report);
    let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["One TCP flow, cubic", "Silent failure: time without new data"]);
    assert_eq!(figure.panels[0].ticks, [(0.0, "ours".to_owned())]);
    assert_eq!(figure.panels[0].references.len(), 1);
    assert_eq!(figure.panels[1].series[0].points, [(0.0, Spread::one(SHORTEST_MS))]);
}
