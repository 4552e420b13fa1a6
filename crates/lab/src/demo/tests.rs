use super::*;
use crate::iperf::Way;

fn outcome(mbit: f64, each_second: &[f64]) -> Outcome {
    Outcome {
        command: String::new(),
        way: Way { mbit, ..Way::default() },
        back: None,
        client_cpu: 0.0,
        server_cpu: 0.0,
        segments: 0,
        segments_again: 0,
        each_second: each_second.to_vec(),
    }
}

#[test]
fn the_sentence_has_both_rates_and_their_ratio() {
    // The machine stood still for a second: its rate says nothing of the links.
    let (single, bonded) = (outcome(95.5, &[]), outcome(340.0, &[382.0, 382.0, 214.0, 382.1]));
    assert_eq!(rate(&bonded), "382.0 Mbit/s in the median second, 214.0 in the slowest");
    let summary = Summary { demo: Demo::default(), single, bonded, links: Vec::new(), stolen: 0.0 };
    assert_eq!(
        summary.sentence(),
        "One TCP flow (cubic): 95.5 Mbit/s over one link of 100 Mbit/s, 382.0 Mbit/s over 4 of them bonded, \
         4.00 times as much."
    );
}
