//! One TCP flow over each network, in turns, and what the machine does meanwhile; and the same where the link is the limit,
//! as it is between machines.

use super::subject::*;
use super::testbed::Testbed;
use super::{Turn, in_turns, put_beside, wanted};
use crate::activity::Activity;
use crate::experiments::prelude::*;
use crate::run::CCS;
use linkbraid_lab::iperf;

const SUBJECTS: [Subject; 12] = [
    VETH,
    SHM,
    SHM_LARGE,
    SHM_BUSY,
    SHM_SLEEP,
    VXLAN,
    UDP_VXLAN,
    UDP,
    UDP_QUEUES,
    UDP_ENCRYPTED,
    OFI_NET,
    OFI_TCP,
];

/// How often the end of a flow is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// What TCP over a fabric of libfabric is to reach on two cores, Mbit/s.
const OFI_MBIT: f64 = 5000.0;
/// What `udp:` is to reach of VXLAN: at first, and then.
const UDP_GOALS: [f64; 2] = [0.9, 1.0];

pub(super) fn run(run: &mut Run<'_>, testbed: &mut Testbed) -> Result<(), Error> {
    let subjects = subjects(run);
    in_turns(run, testbed, "throughput", &subjects, 0..run.settings.repeat, |run, testbed, at| {
        measure(run, testbed, at, ccs(run, at.subject), |cc| id(at.subject.word, cc))
    })?;
    judge(run, &subjects);
    Ok(())
}

pub(super) fn steps(run: &Run<'_>) -> usize {
    subjects(run).len() * run.settings.repeat as usize
}

fn id(subject: &str, cc: &str) -> String {
    format!("throughput/{subject}/{cc}")
}

fn subjects(run: &Run<'_>) -> Vec<Subject> {
    wanted(run, &SUBJECTS, |subject| CCS.iter().any(|(cc, _)| run.wants(&id(subject.word, cc))))
}

/// The ways of congestion control that a subject is measured with.
fn ccs(run: &Run<'_>, subject: Subject) -> &'static [(&'static str, Cc)] {
    if [SHM_BUSY, SHM_SLEEP].contains(&subject) { &CCS[..1] } else { run.ccs() }
}

/// One flow over a subject that is up for each of `ccs`, noted under its `id`.
pub(super) fn measure(
    run: &mut Run<'_>,
    testbed: &Testbed,
    Turn { subject, turn, .. }: Turn<'_>,
    ccs: &[(&str, Cc)],
    id: impl Fn(&str) -> String,
) -> Result<(), Error> {
    run.step(id("").trim_end_matches('/'));
    for (word, cc) in ccs {
        let traffic = run.tcp(*cc).to(&testbed.address(subject, 1));
        let before = Activity::now()?;
        let mut flow = iperf::start(testbed.host(0)?, testbed.host(1)?, &traffic)?;
        while !flow.ended() {
            run.pause(LOOK)?;
        }
        let work = Activity::now()?.since(&before);
        let outcome = flow.finish()?;
        let id = id(word);
        let values = [
            ("mbit", "Mbit/s", outcome.mbit()),
            ("again_per_10k", "segments", outcome.again_per_10k()),
            ("user", "s/s", work.user_s),
            ("system", "s/s", work.system_s),
            ("interrupt", "s/s", work.interrupt_s),
            ("interrupts", "1/s", work.interrupts),
            ("switches", "1/s", work.switches),
        ];
        run.note(&id, &outcome.command, turn, &values)?;
    }
    Ok(())
}

fn judge(run: &mut Run<'_>, subjects: &[Subject]) {
    for (cc, _) in ccs(run, SHM).iter().filter(|_| !subjects.is_empty()) {
        put_beside(run, &SUBJECTS, |subject| id(subject, cc), &["mbit"]);
        let of =
            |run: &Run<'_>, subject: &str, base| run.report.times(&id(subject, cc), "mbit", &id(base, cc));
        // A quick run has not all of them, and asks nothing of what it does not measure.
        for subject in [SHM, SHM_LARGE].into_iter().filter(|subject| subjects.contains(subject)) {
            let what = "of the veth pair's throughput";
            run.judge(&id(subject.word, cc), what, Bound::AtLeast, 1.0, of(run, subject.word, "veth"));
        }
        for word in [UDP, UDP_VXLAN].map(|subject| subject.word) {
            for limit in UDP_GOALS {
                let what = "of VXLAN's throughput";
                run.judge(&id(word, cc), what, Bound::AtLeast, limit, of(run, word, "vxlan"));
            }
        }
        let providers = [OFI_NET, OFI_TCP].map(|subject| id(subject.word, cc));
        let measured = providers.iter().filter_map(|id| Some((id, run.report.median(id, "mbit")?)));
        if let Some((id, mbit)) = measured.max_by(|a, b| a.1.total_cmp(&b.1)) {
            run.judge(id, "Mbit/s over the best TCP provider", Bound::AtLeast, OFI_MBIT, Some(mbit));
        }
    }
}

/// Rates of the link, Mbit/s. A quick run has the first.
pub(super) const LIMITS: [u32; 3] = [1000, 2500, 10_000];
pub(super) const LIMITED: [Subject; 5] = [VETH, VXLAN, UDP_VXLAN, UDP, UDP_QUEUES];

pub(super) fn limited_id(rate: u32, subject: &str, cc: &str) -> String {
    format!("limited-{rate}mbit/{subject}/{cc}")
}

/// The rates that are wanted: each with all subjects, which are little without each other.
fn rates(run: &Run<'_>) -> Vec<u32> {
    let all = if run.settings.quick { &LIMITS[..1] } else { &LIMITS[..] };
    let named = |rate: &u32| {
        LIMITED
            .iter()
            .any(|subject| CCS.iter().any(|(cc, _)| run.wants(&limited_id(*rate, subject.word, cc))))
    };
    all.iter().copied().filter(named).collect()
}

pub(super) fn limited_steps(run: &Run<'_>) -> usize {
    rates(run).len() * LIMITED.len() * run.settings.repeat as usize
}

pub(super) fn run_limited(run: &mut Run<'_>, testbed: &mut Testbed) -> Result<(), Error> {
    for rate in rates(run) {
        testbed.limit(Some(rate))?;
        let stage = format!("limited-{rate}mbit");
        let done = in_turns(run, testbed, &stage, &LIMITED, 0..run.settings.repeat, |run, testbed, at| {
            measure(run, testbed, at, run.ccs(), |cc| limited_id(rate, at.subject.word, cc))
        });
        testbed.limit(None)?;
        done?;
        for (cc, _) in run.ccs() {
            put_beside(run, &LIMITED, |subject| limited_id(rate, subject, cc), &["mbit"]);
            let case = limited_id(rate, UDP.word, cc);
            let value = run.report.times(&case, "mbit", &limited_id(rate, VXLAN.word, cc));
            for limit in UDP_GOALS {
                run.judge(&case, "of VXLAN's throughput", Bound::AtLeast, limit, value);
            }
        }
    }
    Ok(())
}
