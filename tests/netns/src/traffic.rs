//! Flows between hosts, held against one link in the same run.

use linkbraid_lab::Host;
use linkbraid_lab::iperf::{self, Cc, Outcome, Traffic};

/// How many tries a rate gets: the machine may be busy with something else for a while, and only the code under
/// test can make it fail each time.
const TRIES: usize = 5;

/// Runs `traffic` until `good` holds for its outcome, a few times; the last outcome.
///
/// # Panics
/// When it never holds, or a run fails.
#[track_caller]
pub fn reaches(from: Host<'_>, to: Host<'_>, traffic: &Traffic, good: impl Fn(&Outcome) -> bool) -> Outcome {
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let outcome = iperf::run(from, to, traffic).expect("the flow runs");
        if good(&outcome) {
            return outcome;
        }
        seen.push(outcome);
    }
    panic!("never good in {TRIES} runs: {seen:#?}");
}

/// One TCP flow of two seconds.
pub fn tcp() -> Traffic {
    Traffic::tcp(Cc::Cubic, 2)
}

/// The goodput of one TCP flow now, in Mbit/s: taken before there is a bond, that of one link.
///
/// # Panics
/// When the run fails.
#[track_caller]
pub fn measure(from: Host<'_>, to: Host<'_>) -> f64 {
    iperf::run(from, to, &tcp()).expect("the flow runs").mbit()
}
