//! One TCP flow over each network, in turns, and what the machine does meanwhile.

use super::subject::{
    OFI_NET, OFI_TCP, SHM, SHM_BUSY, SHM_LARGE, SHM_SLEEP, Subject, UDP, UDP_VXLAN, VETH, VXLAN,
};
use super::testbed::Testbed;
use crate::activity::{Activity, Work};
use crate::experiments::note::{self, What};
use crate::report::{Bound, Goal};
use crate::run::Run;
use linkbraid_api::Error;
use linkbraid_lab::iperf::{self, Cc};
use std::time::Duration;

pub(super) const SUBJECTS: [Subject; 10] =
    [VETH, SHM, SHM_LARGE, SHM_BUSY, SHM_SLEEP, VXLAN, UDP_VXLAN, UDP, OFI_NET, OFI_TCP];
pub(super) static CCS: [(&str, Cc); 2] = [("cubic", Cc::Cubic), ("bbr", Cc::Bbr)];

/// How often the end of a flow is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// A metric, its unit, and its value.
type Rate = (&'static str, &'static str, fn(&Work) -> f64);

/// What [`Work`] has, as results have it.
const RATES: [Rate; 5] = [
    ("user", "s/s", |rates| rates.user_s),
    ("system", "s/s", |rates| rates.system_s),
    ("interrupt", "s/s", |rates| rates.interrupt_s),
    ("interrupts", "1/s", |rates| rates.interrupts),
    ("switches", "1/s", |rates| rates.switches),
];

/// What TCP over a fabric of libfabric is to reach on two cores, Mbit/s.
const OFI_MBIT: f64 = 5000.0;
/// What `udp:` is to reach of VXLAN: at first, and then.
pub(super) const UDP_FIRST: f64 = 0.8;
pub(super) const UDP_THEN: f64 = 1.0;

pub(super) fn run(run: &mut Run<'_>, testbed: &Testbed) -> Result<(), Error> {
    if !run.wants("throughput") {
        return Ok(());
    }
    let mut given_up: Vec<&str> = Vec::new();
    for turn in 0..run.settings.repeat {
        for subject in SUBJECTS {
            if !wanted(run, subject) || given_up.contains(&subject.word) {
                continue;
            }
            run.step(&format!("throughput/{}", subject.word));
            let ccs = &CCS[..ccs(run, subject)];
            if let Err(error) = measure(run, testbed, subject, turn, ccs, |cc| id(subject, cc)) {
                given_up.push(subject.word);
                testbed.del(subject);
                give_up(run, "throughput", subject, error)?;
            }
        }
    }
    judge(run);
    Ok(())
}

/// How many steps it takes.
pub(super) fn steps(run: &Run<'_>) -> usize {
    SUBJECTS.iter().filter(|subject| wanted(run, **subject)).count() * run.settings.repeat as usize
}

/// A subject that cannot be measured is left out, if the machine lacks what it needs, or has failed.
pub(super) fn give_up(run: &mut Run<'_>, stage: &str, subject: Subject, error: Error) -> Result<(), Error> {
    let id = format!("{stage}/{}", subject.word);
    let text = error.to_string();
    if subject.is_optional() && text.contains("cannot join") && text.contains("libfabric") {
        run.skip(id, text);
        return Ok(());
    }
    run.fail(id, error)
}

fn id(subject: Subject, cc: &str) -> String {
    format!("throughput/{}/{cc}", subject.word)
}

/// Whether a subject or what is compared with it is to be measured.
fn wanted(run: &Run<'_>, subject: Subject) -> bool {
    let named = |other: &Subject| CCS.iter().any(|(cc, _)| run.wants(&id(*other, cc)));
    (subject.quick || !run.settings.quick)
        && SUBJECTS
            .iter()
            .any(|other| named(other) && (*other == subject || other.bases().contains(&subject.word)))
}

/// How many ways of congestion control a subject is measured with.
fn ccs(run: &Run<'_>, subject: Subject) -> usize {
    let one = run.settings.quick || [SHM_BUSY, SHM_SLEEP].contains(&subject);
    if one { 1 } else { CCS.len() }
}

/// One flow over a subject for each of `ccs`, noted under its `id`.
pub(super) fn measure(
    run: &mut Run<'_>,
    testbed: &Testbed,
    subject: Subject,
    turn: u32,
    ccs: &[(&str, Cc)],
    id: impl Fn(&str) -> String,
) -> Result<(), Error> {
    run.check()?;
    testbed.add(subject)?;
    for (word, cc) in ccs {
        let traffic = run.tcp(*cc).to(&testbed.address(subject, 1));
        let before = Activity::now()?;
        let mut flow = iperf::start(testbed.host(0)?, testbed.host(1)?, &traffic)?;
        while !flow.ended() {
            run.pause(LOOK)?;
        }
        let rates = Activity::now()?.since(&before);
        let outcome = flow.finish()?;
        let id = id(word);
        let mut note = |metric, unit, value| {
            note::value(run, What { id: &id, metric, unit }, &outcome.command, turn, value);
        };
        note("mbit", "Mbit/s", outcome.mbit());
        note("again_per_10k", "segments", outcome.again_per_10k());
        for (metric, unit, of) in RATES {
            note(metric, unit, of(&rates));
        }
        run.say(&format!(
            "  {id:<32} #{} {:>9.0} Mbit/s  {:.2} user {:.2} system {:.2} interrupt s/s  {:.0} switches/s",
            turn + 1,
            outcome.mbit(),
            rates.user_s,
            rates.system_s,
            rates.interrupt_s,
            rates.switches
        ))?;
    }
    testbed.del(subject);
    Ok(())
}

fn judge(run: &mut Run<'_>) {
    for (cc, _) in &CCS[..ccs(run, SHM)] {
        for subject in SUBJECTS {
            let id = id(subject, cc);
            for base in subject.bases() {
                let base = format!("throughput/{base}/{cc}");
                note::compare(run, &id, &base, "mbit");
            }
        }
        let beside = |run: &Run<'_>, subject, base| {
            note::ratio(run, &id(subject, cc), &format!("throughput/{base}/{cc}"), "mbit")
        };
        // A quick run has not all of them, and asks nothing of what it does not measure.
        for subject in [SHM, SHM_LARGE] {
            if !wanted(run, subject) {
                continue;
            }
            let value = beside(run, subject, "veth");
            note::goal(
                run,
                Goal::new(&id(subject, cc), "of the veth pair's throughput", Bound::AtLeast, 1.0, value),
            );
        }
        for subject in [UDP, UDP_VXLAN] {
            let value = beside(run, subject, "vxlan");
            for limit in [UDP_FIRST, UDP_THEN] {
                let goal = Goal::new(&id(subject, cc), "of VXLAN's throughput", Bound::AtLeast, limit, value);
                note::goal(run, goal);
            }
        }
        let providers = [OFI_NET, OFI_TCP].map(|s| (s, note::median(run, &id(s, cc), "mbit").unwrap_or(0.0)));
        let best = providers.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, mbit)| *mbit > 0.0);
        if let Some((subject, mbit)) = best {
            let what = "Mbit/s over the best TCP provider";
            note::goal(run, Goal::new(&id(subject, cc), what, Bound::AtLeast, OFI_MBIT, Some(mbit)));
        }
    }
}
