//! Links that do not tell their rate, or a wrong one: what they carry together, against what they carry alone.

mod changing;

use crate::experiments::prelude::*;
use crate::planned::{Against, Planned};
use crate::run::CCS;

/// What a veth tells, Mbit/s.
const UNTOLD: u32 = 10_000;

/// Links and what is told of them, in Mbit/s, of host a and of host b.
struct Case {
    name: &'static str,
    real: [&'static [u32]; 2],
    told: [&'static [u32]; 2],
    /// Of the sum of the links alone.
    goal: f64,
}

/// The first ones alone in a quick run.
const CASES: [Case; 11] = [
    Case { name: "4x20", real: [&[20; 4]; 2], told: [&[UNTOLD; 4]; 2], goal: 0.97 },
    Case { name: "100+20", real: [&[100, 20]; 2], told: [&[UNTOLD; 2]; 2], goal: 0.95 },
    Case { name: "2-to-4x100", real: [&[100; 2], &[100; 4]], told: [&[UNTOLD; 2], &[UNTOLD; 4]], goal: 0.95 },
    Case { name: "4x200", real: [&[200; 4]; 2], told: [&[UNTOLD; 4]; 2], goal: 0.97 },
    Case { name: "4x100-one-high", real: [&[100; 4]; 2], told: [&[1000, 100, 100, 100]; 2], goal: 0.95 },
    Case {
        name: "4x100-one-high-at-a",
        real: [&[100; 4]; 2],
        told: [&[UNTOLD, 100, 100, 100], &[100; 4]],
        goal: 0.95,
    },
    Case {
        name: "4x100-one-high-at-b",
        real: [&[100; 4]; 2],
        told: [&[100; 4], &[UNTOLD, 100, 100, 100]],
        goal: 0.95,
    },
    Case { name: "4x100-one-low", real: [&[100; 4]; 2], told: [&[10, 100, 100, 100]; 2], goal: 0.95 },
    Case { name: "500+100-told-equal", real: [&[500, 100]; 2], told: [&[500, 500]; 2], goal: 0.95 },
    Case {
        name: "3-to-4x100-told-at-b",
        real: [&[100; 3], &[100; 4]],
        told: [&[UNTOLD; 3], &[100; 4]],
        goal: 0.95,
    },
    Case {
        name: "4-to-3x100-told-at-b",
        real: [&[100; 4], &[100; 3]],
        told: [&[UNTOLD; 4], &[100; 3]],
        goal: 0.95,
    },
];
const QUICK_CASES: usize = 3;

impl Case {
    /// Those of the host that has less: no more gets through.
    fn least(&self) -> &'static [u32] {
        let [a, b] = self.real;
        if a.iter().sum::<u32>() <= b.iter().sum() { a } else { b }
    }
}

fn case_id(name: &str, word: &str, how: &str) -> String {
    format!("{name}/{word}/{how}")
}

/// Says of each member of both hosts that its rate is this one.
fn tell(bed: &Bed, mbit: [&[u32]; 2]) -> Result<(), Error> {
    for (host, mbit) in ["a", "b"].into_iter().zip(mbit) {
        for (number, mbit) in mbit.iter().enumerate() {
            bed.member(host, "set", &format!("eth{number}"), Some(*mbit))?;
        }
    }
    Ok(())
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let cases = if run.settings.quick { &CASES[..QUICK_CASES] } else { &CASES };
    let ccs = run.ccs();
    run.plan(cases.iter().map(|case| ccs.len() * (kinds(case.least()).len() + 2)).sum());
    run.plan(ccs.len());
    for case in cases {
        if !run.wants(&format!("{}/", case.name)) {
            continue;
        }
        let [a, b] = case.real.map(|real| real.iter().map(|rate| LinkSpec::switch(0, Some(*rate))));
        let alone = kinds(case.least()).into_iter().map(|rate| {
            let bed = run.bare(&format!("{}/{rate}", case.name), Topology::symmetric(2, 1, Some(rate)))?;
            Ok((rate, bed))
        });
        let alone = alone.collect::<Result<Vec<_>, Error>>()?;
        let bed = run.bonded(case.name, Topology::empty("lab", 1).host(a).host(b));
        let Some(bed) = run.noted(case.name, bed)? else { continue };
        let wrong = |bed: &Bed, wrong: bool| tell(bed, if wrong { case.told } else { case.real });
        for &(word, cc) in ccs {
            let id = |how: &str| case_id(case.name, word, how);
            let base = |rate: &u32| id(&format!("{rate}-alone"));
            let sum = || Against::mbit("sum", case.least().iter().map(base), 1.0);
            let mut planned: Vec<Planned<'_>> =
                alone.iter().map(|(rate, bed)| Planned::new(base(rate), bed, run.tcp(cc))).collect();
            planned.push(Planned::new(id("told"), &bed, run.tcp(cc)).against(sum()));
            planned.push(Planned {
                around: Some(&wrong),
                condition: format!("{:?} Mbit/s told at a, {:?} at b", case.told[0], case.told[1]),
                ..Planned::new(id("wrong"), &bed, run.tcp(cc)).against(sum())
            });
            run.interleave(&planned)?;
            let ratio = run.report.mid_ratio(&id("wrong"), "sum");
            run.judge(&id("wrong"), "of the sum of the links, told wrong", Bound::AtLeast, case.goal, ratio);
        }
    }
    changing::run(run)
}

fn kinds(rates: &[u32]) -> Vec<u32> {
    let mut rates = rates.to_vec();
    rates.sort_unstable();
    rates.dedup();
    rates
}

pub(super) fn figure(report: &Report) -> Figure {
    let measured =
        CASES.iter().filter(|case| report.measure(&case_id(case.name, "cubic", "wrong"), "mbit").is_some());
    let names: Vec<&str> = measured.map(|case| case.name).collect();
    let mut ratios = Panel::groups(names.iter().map(|name| ((*name).to_owned(), *name)));
    for (word, _) in CCS {
        for (how, label) in [("told", "told right"), ("wrong", "untold or wrong")] {
            ratios =
                ratios.bar(format!("{word}, {label}"), |name| report.ratio(&case_id(name, word, how), "sum"));
        }
    }
    let panel =
        ratios.flat("all of it", 1.0).panel("Bonded over the sum of the links alone", "links", "ratio");
    Figure { title: "rates: links that do not tell their rate, or a wrong one".into(), panels: vec![panel] }
}
