//! One TCP flow over UDP and over VXLAN where the link is the limit, as it is between machines: what is left of it.

use super::subject::{Subject, UDP, UDP_VXLAN, VETH, VXLAN};
use super::testbed::Testbed;
use super::throughput::{self, CCS, UDP_FIRST, UDP_THEN};
use crate::experiments::note;
use crate::report::{Bound, Goal};
use crate::run::Run;
use linkbraid_api::Error;
use linkbraid_lab::iperf::Cc;

/// Rates of the link, Mbit/s. A quick run has the first.
pub(super) const RATES: [u32; 3] = [1000, 2500, 10_000];
pub(super) const SUBJECTS: [Subject; 4] = [VETH, VXLAN, UDP_VXLAN, UDP];

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

/// The ways of congestion control; a quick run has one.
fn ccs(run: &Run<'_>) -> &'static [(&'static str, Cc)] {
    if run.settings.quick { &CCS[..1] } else { &CCS }
}

/// How many steps it takes.
pub(super) fn steps(run: &Run<'_>) -> usize {
    rates(run).len() * SUBJECTS.len() * run.settings.repeat as usize
}

pub(super) fn run(run: &mut Run<'_>, testbed: &Testbed) -> Result<(), Error> {
    for rate in rates(run) {
        testbed.limit(Some(rate))?;
        let done = measure(run, testbed, rate);
        testbed.limit(None)?;
        done?;
        judge(run, rate);
    }
    Ok(())
}

fn measure(run: &mut Run<'_>, testbed: &Testbed, rate: u32) -> Result<(), Error> {
    let stage = format!("limited-{rate}mbit");
    let mut given_up: Vec<&str> = Vec::new();
    for turn in 0..run.settings.repeat {
        for subject in SUBJECTS {
            if given_up.contains(&subject.word) {
                continue;
            }
            run.step(&format!("{stage}/{}", subject.word));
            let done =
                throughput::measure(run, testbed, subject, turn, ccs(run), |cc| id(rate, subject.word, cc));
            if let Err(error) = done {
                given_up.push(subject.word);
                testbed.del(subject);
                throughput::give_up(run, &stage, subject, error)?;
            }
        }
    }
    Ok(())
}

fn judge(run: &mut Run<'_>, rate: u32) {
    for (cc, _) in ccs(run) {
        for subject in SUBJECTS {
            for base in subject.bases() {
                note::compare(run, &id(rate, subject.word, cc), &id(rate, base, cc), "mbit");
            }
        }
        let case = id(rate, UDP.word, cc);
        let value = note::ratio(run, &case, &id(rate, VXLAN.word, cc), "mbit");
        for limit in [UDP_FIRST, UDP_THEN] {
            note::goal(run, Goal::new(&case, "of VXLAN's throughput", Bound::AtLeast, limit, value));
        }
    }
}
