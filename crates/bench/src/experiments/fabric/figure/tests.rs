use super::*;
use crate::report::tests::report;

#[test]
fn only_what_was_measured_is_drawn() {
    let figure = draw(&report());
    let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
    let wanted = [
        "Throughput of one TCP flow",
        "RTT/2 over message size (Fig. 5)",
        "RTT/2 by how a fabric's threads wait",
    ];
    assert_eq!(titles, wanted);
    assert_eq!(figure.panels[1].ticks, [(6.0, "64".to_owned())]);
    assert_eq!(figure.panels[0].series[0].points, [(0.0, Spread::one(9.0))]);
}

#[test]
fn sizes_that_are_close_to_each_other_are_not_all_named() {
    let names: Vec<String> = super::ticks(&latency::BYTES).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["1", "4", "16", "64", "256", "1K", "4K", "16K", "64K", "256K", "1M", "8M"]);
}
