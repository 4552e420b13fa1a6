//! What one member costs, without any limit but the CPU.

use super::Experiment;
use crate::planned::{Against, Planned};
use crate::plot::{Figure, Panel, Reference, Series};
use crate::report::{Bound, Case, Goal, Metric, Report};
use crate::run::Run;
use crate::stats::Spread;
use linkbraid_api::Error;
use linkbraid_lab::Topology;
use linkbraid_lab::iperf::{Cc, Traffic};
use nix::{
    sched::{CpuSet, sched_getaffinity},
    unistd::Pid,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "overhead",
    about: "one member without a rate limit against the bare link, in turns: throughput, and CPU for each byte",
    paper: "BondingPlus, Table 2",
    run,
    figure,
};

const CCS: [(&str, Cc); 2] = [("cubic", Cc::Cubic), ("bbr", Cc::Bbr)];
/// Repeats are cheap here, and the CPU's noise is what is measured: this many times as many.
const MORE: u32 = 4;
const QUICK_MORE: u32 = 1;
const MBIT_GOAL: f64 = 0.98;
const CPU_GOAL: f64 = 1.05;

fn run(run: &mut Run<'_>) -> Result<(), Error> {
    run.settings.repeat *= if run.settings.quick { QUICK_MORE } else { MORE };
    run.report.settings = run.settings;
    run.plan(2 * CCS.len());
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
        let ratio = |name| run.report.case(&id).and_then(|case| case.ratio(name));
        let (mbit, cpu) = (ratio("single"), ratio("cpu"));
        run.goal(Goal::new(&id, "of the bare link's throughput", Bound::AtLeast, MBIT_GOAL, mbit));
        run.goal(Goal::new(&id, "of the bare link's CPU for each byte", Bound::AtMost, CPU_GOAL, cpu));
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
        [client, server] => traffic.pinned([client as u32, server as u32]),
        _ => traffic,
    }
}

fn figure(report: &Report) -> Figure {
    let names: Vec<String> = CCS.iter().map(|(word, _)| format!("TCP {word}")).collect();
    let bars = |kind: &str, value: fn(&Case) -> Option<Spread>| {
        let points = CCS.iter().enumerate().filter_map(|(i, (word, _))| {
            Some((i as f64, report.case(&format!("{word}/{kind}")).and_then(value)?))
        });
        points.collect::<Vec<_>>()
    };
    let pair = |value: fn(&Case) -> Option<Spread>| {
        vec![
            Series { name: "bare link".into(), points: bars("bare", value) },
            Series { name: "bond of one".into(), points: bars("bond", value) },
        ]
    };
    let ratio = |metric: Metric| {
        let points = CCS.iter().enumerate().filter_map(|(i, (word, _))| {
            let case = report.case(&format!("{word}/bond"))?;
            Some((i as f64, case.ratios.iter().find(|ratio| ratio.metric == metric)?.spread?))
        });
        points.collect::<Vec<_>>()
    };
    let flat =
        |name: &str, y| Reference { name: name.into(), points: vec![(-0.5, y), (CCS.len() as f64 - 0.5, y)] };
    let panels = vec![
        Panel {
            title: "Throughput of one flow".into(),
            y_label: "Mbit/s".into(),
            ..Panel::bars(names.clone(), pair(|case| case.medians.mbit))
        },
        Panel {
            title: "CPU of both hosts and the switch".into(),
            y_label: "seconds per GB".into(),
            ..Panel::bars(names.clone(), pair(|case| case.medians.cpu_s_per_gb))
        },
        Panel {
            title: "Bond over bare link, pair by pair".into(),
            y_label: "ratio".into(),
            references: vec![
                flat(&format!("throughput: at least {MBIT_GOAL}"), MBIT_GOAL),
                flat(&format!("CPU: at most {CPU_GOAL}"), CPU_GOAL),
            ],
            ..Panel::bars(
                names,
                vec![
                    Series { name: "throughput".into(), points: ratio(Metric::Mbit) },
                    Series { name: "CPU per byte".into(), points: ratio(Metric::CpuPerByte) },
                ],
            )
        },
    ];
    Figure { title: "overhead: one member without a rate limit".into(), panels }
}
