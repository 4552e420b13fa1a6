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

/// By how much of the larger one two rates may differ that are believed.
const ALIKE: f64 = 0.03;

/// The goodput of one TCP flow now, in Mbit/s: taken before there is a bond, that of one link. What two runs in a row
/// agree on, since all that follows is held against it: a machine that stalls lets a link send faster afterwards. Where no two
/// do, the median.
///
/// # Panics
/// When a run fails.
#[track_caller]
pub fn measure(from: Host<'_>, to: Host<'_>) -> f64 {
    let mut seen: Vec<f64> = Vec::new();
    for _ in 0..=TRIES {
        let now = iperf::run(from, to, &tcp()).expect("the flow runs").mbit();
        if let Some(last) = seen.last()
            && (now - last).abs() <= ALIKE * now.max(*last)
        {
            return (now + last) / 2.0;
        }
        seen.push(now);
    }
    seen.sort_by(f64::total_cmp);
    seen[seen.len() / 2]
}
