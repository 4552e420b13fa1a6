//! One TCP flow over each network by the length of its frames.

use super::subject::*;
use super::testbed::Testbed;
use super::throughput::measure;
use super::{in_turns, wanted};
use crate::experiments::prelude::*;
use crate::run::CCS;

pub(super) const MTUS: [u32; 5] = [1500, 4000, 8000, 16_000, 65_521];
pub(super) const SUBJECTS: [Subject; 5] = [VETH, GIGABIT, SHM, UDP_QUEUES, OFI_TCP];

pub(super) fn id(subject: &str, mtu: u32) -> String {
    format!("mtu/{subject}/{mtu}")
}

/// A quick run has none.
fn subjects(run: &Run<'_>) -> Vec<Subject> {
    let all = wanted(run, &SUBJECTS, |subject| MTUS.iter().any(|mtu| run.wants(&id(subject.word, *mtu))));
    if run.settings.quick { Vec::new() } else { all }
}

pub(super) fn steps(run: &Run<'_>) -> usize {
    subjects(run).len() * MTUS.len() * run.settings.repeat as usize
}

pub(super) fn run(run: &mut Run<'_>, testbed: &mut Testbed) -> Result<(), Error> {
    let subjects = subjects(run);
    for mtu in MTUS {
        let longer: Vec<Subject> = subjects.iter().map(|subject| subject.mtu(mtu)).collect();
        in_turns(run, testbed, "mtu", &longer, 0..run.settings.repeat, |run, testbed, at| {
            measure(run, testbed, at, &CCS[..1], |_| id(at.subject.word, mtu))
        })?;
    }
    Ok(())
}
