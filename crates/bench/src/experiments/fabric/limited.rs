//! One TCP flow over UDP and over VXLAN where the link is the limit, as it is between machines: what is left of it.

use super::stage::{in_turns, put_beside};
use super::subject::{Subject, UDP, UDP_QUEUES, UDP_VXLAN, VETH, VXLAN};
use super::testbed::Testbed;
use super::throughput::{self, UDP_GOALS};
use crate::report::Bound;
use crate::run::{CCS, Run};
use linkbraid_api::Error;

/// Rates of the link, Mbit/s. A quick run has the first.
pub(super) const RATES: [u32; 3] = [1000, 2500, 10_000];
pub(super) const SUBJECTS: [Subject; 5] = [VETH, VXLAN, UDP_VXLAN, UDP, UDP_QUEUES];

pub(super) fn id(rate: u32, subject: &str, cc: &str) -> String {
    format!("limited-{rate}mbit/{subject}/{cc}")
}

/// The rates that are wanted: each with all subjects, which are little without each other.
fn rates(run: &Run<'_>) -> Vec<u32> {
    let all = if run.settings.quick { &RATES[..1] } else { &RATES[..] };
    let named = |rate: &u32| {
        SUBJECTS.iter().any(|subject| CCS.iter().any(|(cc, _)| run.wants(&id(*rate, subject.word, cc))))
    };
    all.iter().copied().filter(named).collect()
}

/// How many steps it takes.
pub(super) fn steps(run: &Run<'_>) -> usize {
    rates(run).len() * SUBJECTS.len() * run.settings.repeat as usize
}

pub(super) fn run(run: &mut Run<'_>, testbed: &mut Testbed) -> Result<(), Error> {
    for rate in rates(run) {
        testbed.limit(Some(rate))?;
        let stage = format!("limited-{rate}mbit");
        let done = in_turns(run, testbed, &stage, &SUBJECTS, |run, testbed, subject, turn, _| {
            throughput::measure(run, testbed, subject, turn, run.ccs(), |cc| id(rate, subject.word, cc))
        });
        testbed.limit(None)?;
        done?;
        for (cc, _) in run.ccs() {
            put_beside(run, &SUBJECTS, |subject| id(rate, subject, cc), &["mbit"]);
            let case = id(rate, UDP.word, cc);
            let value = run.report.times(&case, "mbit", &id(rate, VXLAN.word, cc));
            for limit in UDP_GOALS {
                run.judge(&case, "of VXLAN's throughput", Bound::AtLeast, limit, value);
            }
        }
    }
    Ok(())
}
