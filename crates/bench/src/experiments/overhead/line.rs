//! What one member costs where its link is the limit, as in Table 2 of BondingPlus: the time of the whole machine, second by second.

use crate::activity::{Activity, Work};
use crate::experiments::prelude::*;
use crate::stats::Spread;
use linkbraid_lab::iperf;

/// The rate of the paper's link, and how long it was measured.
const MBIT: u32 = 100;
const SECONDS: u32 = 60;
const QUICK_SECONDS: u32 = 5;
/// What is looked at by itself.
const LOOK: Duration = Duration::from_secs(1);

pub(super) const BARE: &str = "line/bare";
pub(super) const BOND: &str = "line/bond";
/// The paper's ratios, of a bond of one to the bare link: 94.01 of 94.05 Mbit/s, and 2.40 of 2.25 s.
const MBIT_GOAL: f64 = 0.9996;
const CPU_GOAL: f64 = 1.066;

/// One after the other: what daemons do that wait would be counted for both.
pub(super) fn run(run: &mut Run<'_>, turns: u32) -> Result<(), Error> {
    if !run.wants(BARE) && !run.wants(BOND) {
        return Ok(());
    }
    for turn in 0..turns {
        let topology = || Topology::symmetric(2, 1, Some(MBIT));
        let bed = run.bare("line-bare", topology())?;
        measure(run, &bed, BARE, turn)?;
        drop(bed);
        let bed = run.bonded("line-bond", topology())?;
        measure(run, &bed, BOND, turn)?;
    }
    run.report.put_beside(BOND, BARE, &["mbit", "system"]);
    let [mbit, cpu] = ["mbit", "system"].map(|metric| run.report.times(BOND, metric, BARE));
    run.judge(
        BOND,
        "of the bare link's throughput at its rate (the paper's)",
        Bound::AtLeast,
        MBIT_GOAL,
        mbit,
    );
    run.judge(BOND, "of the bare link's system time at its rate (the paper's)", Bound::AtMost, CPU_GOAL, cpu);
    Ok(())
}

fn measure(run: &mut Run<'_>, bed: &Bed, id: &str, turn: u32) -> Result<(), Error> {
    run.step(id);
    let seconds = if run.settings.quick { QUICK_SECONDS } else { SECONDS };
    let (client, server) = (bed.host("a")?, bed.host("b")?);
    let traffic = Traffic { seconds, ..run.tcp(Cc::Cubic) }.to(server.ipv4());
    let mut flow = iperf::start(client, server, &traffic)?;
    run.pause(Duration::from_secs(u64::from(traffic.omit)) + LOOK)?;
    let mut looks = vec![Activity::now()?];
    // The last second is the flow's end.
    for _ in 0..seconds.saturating_sub(2) {
        run.pause(LOOK)?;
        looks.push(Activity::now()?);
    }
    while !flow.ended() {
        run.pause(LOOK / 10)?;
    }
    let outcome = flow.finish()?;
    let works: Vec<Work> = looks.windows(2).map(|pair| pair[1].since(&pair[0])).collect();
    let all = looks[looks.len() - 1].since(&looks[0]);
    let of = |value: fn(&Work) -> f64| -> (f64, f64) {
        Spread::of(works.iter().map(|work| value(work) * 1000.0))
            .map_or((0.0, 0.0), |spread| (spread.min, spread.max))
    };
    let (user, system) = (|work: &Work| work.user_s, |work: &Work| work.system_s + work.interrupt_s);
    let ((user_min, user_max), (system_min, system_max)) = (of(user), of(system));
    let values = [
        ("mbit", "Mbit/s", outcome.mbit()),
        ("user", "ms/s", user(&all) * 1000.0),
        ("user_min", "ms/s", user_min),
        ("user_max", "ms/s", user_max),
        ("system", "ms/s", system(&all) * 1000.0),
        ("system_min", "ms/s", system_min),
        ("system_max", "ms/s", system_max),
    ];
    run.note(id, &outcome.command, turn, &values)
}
