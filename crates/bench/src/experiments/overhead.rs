//! What one member costs, without any limit but the CPU, and where its link is the limit.

use crate::experiments::prelude::*;
use crate::planned::{Against, Planned};
use crate::run::CCS;
use nix::{
    sched::{CpuSet, sched_getaffinity},
    unistd::Pid,
};

mod line;

/// Repeats are cheap here, and the CPU's noise is what is measured: this many times as many.
const MORE: u32 = 4;
const QUICK_MORE: u32 = 1;
const MBIT_GOAL: f64 = 0.98;
const CPU_GOAL: f64 = 1.05;

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let turns = run.settings.repeat;
    run.settings.repeat *= if run.settings.quick { QUICK_MORE } else { MORE };
    run.report.settings = run.settings;
    run.plan(2 * CCS.len());
    run.plan_steps(2 * turns);
    line::run(run, turns)?;
    let bare = run.bare("bare", Topology::symmetric(2, 1, None))?;
    let bond = run.bonded("bond", Topology::symmetric(2, 1, None))?;
    for (word, cc) in CCS {
        let base = format!("{word}/bare");
        run.interleave(&[
            Planned::new(&base, &bare, traffic(run, cc)),
            Planned::new(format!("{word}/bond"), &bond, traffic(run, cc))
                .against(Against::mbit("single", [base.clone()], 1.0))
                .against(Against::cpu(base)),
        ])?;
    }
    for (word, _) in CCS {
        let id = format!("{word}/bond");
        let [mbit, cpu] = ["single", "cpu"].map(|name| run.report.mid_ratio(&id, name));
        run.judge(&id, "of the bare link's throughput", Bound::AtLeast, MBIT_GOAL, mbit);
        run.judge(&id, "of the bare link's CPU for each byte", Bound::AtMost, CPU_GOAL, cpu);
    }
    Ok(())
}

/// Client and server on a core of their own each, where there are two, so that where the scheduler puts them is not what
/// differs between two turns.
fn traffic(run: &Run<'_>, cc: Cc) -> Traffic {
    let traffic = run.tcp(cc);
    let mine = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let cores: Vec<usize> =
        (0..CpuSet::count()).filter(|core| mine.is_set(*core) == Ok(true)).take(2).collect();
    match cores[..] {
        [client, server] => Traffic { cores: Some([client as u32, server as u32]), ..traffic },
        _ => traffic,
    }
}

pub(super) fn figure(report: &Report) -> Figure {
    let groups = || Panel::groups(CCS.map(|(word, _)| (format!("TCP {word}"), word)));
    let pair = |metric: &'static str| {
        groups()
            .bar("bare link", move |word| report.spread(&format!("{word}/bare"), metric))
            .bar("bond of one", move |word| report.spread(&format!("{word}/bond"), metric))
    };
    let ratio = |name: &'static str| move |word| report.ratio(&format!("{word}/bond"), name);
    let at_rate = |name: &'static str| move |what: &'static str| report.spread(name, what);
    let panels = vec![
        Panel::groups([("user", "user"), ("system", "system")].map(|(name, what)| (name.to_owned(), what)))
            .bar("bare link", at_rate(line::BARE))
            .bar("bond of one", at_rate(line::BOND))
            .panel("CPU at the link's rate of 100 Mbit/s", "", "ms a second"),
        pair("mbit").panel("Throughput of one flow", "", "Mbit/s"),
        pair("cpu_s_per_gb").panel("CPU of both hosts and the switch", "", "seconds per GB"),
        groups()
            .bar("throughput", ratio("single"))
            .bar("CPU per byte", ratio("cpu"))
            .flat(format!("throughput: at least {MBIT_GOAL}"), MBIT_GOAL)
            .flat(format!("CPU: at most {CPU_GOAL}"), CPU_GOAL)
            .panel("Bond over bare link, pair by pair", "", "ratio"),
    ];
    Figure { title: "overhead: one member, at its link's rate and without any".into(), panels }
}
