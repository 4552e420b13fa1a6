use super::*;
use crate::iperf::Way;

fn outcome(mbit: f64) -> Outcome {
    Outcome {
        command: String::new(),
        way: Way { mbit, ..Way::default() },
        back: None,
        client_cpu: 0.0,
        server_cpu: 0.0,
        segments: 0,
        segments_again: 0,
        each_second: Vec::new(),
    }
}

#[test]
fn the_sentence_has_both_rates_and_their_ratio() {
    let summary =
        Summary { demo: Demo::default(), single: outcome(95.5), bonded: outcome(382.0), links: Vec::new() };
    assert_eq!(
        summary.sentence(),
        "One TCP flow (cubic): 95.5 Mbit/s over one link of 100 Mbit/s, 382.0 Mbit/s over 4 of them bonded, \
         4.00 times as much."
    );
}
