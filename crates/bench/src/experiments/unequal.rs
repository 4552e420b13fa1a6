//! Two links of different rates: what they carry together, against what they carry alone.

use crate::experiments::prelude::*;
use crate::planned::{Against, Planned};
use crate::run::CCS;

/// Pairs of rates in Mbit/s, faster first; the slowest alone in a quick run.
const PAIRS: [(u32, u32); 4] = [(100, 20), (100, 50), (500, 100), (500, 250)];
const QUICK_PAIRS: usize = 1;
/// Of the sum of both, at 5:1.
const SUM_GOAL: f64 = 0.90;
/// Of the faster link alone.
const FASTER_GOAL: f64 = 1.0;

fn case_id(fast: u32, slow: u32, word: &str) -> String {
    format!("{fast}+{slow}/{word}")
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let pairs = if run.settings.quick { &PAIRS[..QUICK_PAIRS] } else { &PAIRS };
    let ccs = run.ccs();
    run.plan(pairs.len() * ccs.len() * 3);
    for &(fast, slow) in pairs {
        if !run.wants(&format!("{fast}+{slow}/")) {
            continue;
        }
        let host = || [fast, slow].map(|rate| LinkSpec::switch(0, Some(rate)));
        let name = format!("{fast}+{slow}");
        let alone = |rate| Topology::symmetric(2, 1, Some(rate));
        let fast_bed = run.bare(&format!("{name}/faster"), alone(fast))?;
        let slow_bed = run.bare(&format!("{name}/slower"), alone(slow))?;
        let bed = run.bonded(&name, Topology::empty("lab", 1).host(host()).host(host()));
        let Some(bed) = run.noted(&name, bed)? else { continue };
        for &(word, cc) in ccs {
            let id = case_id(fast, slow, word);
            let [faster, slower] = ["faster", "slower"].map(|end| format!("{id}/{end}"));
            let ideal = f64::from(fast + slow) / f64::from(fast);
            run.interleave(&[
                Planned::new(&faster, &fast_bed, run.tcp(cc)),
                Planned::new(&slower, &slow_bed, run.tcp(cc)),
                Planned::new(&id, &bed, run.tcp(cc))
                    .against(Against::mbit("sum", [faster.clone(), slower], 1.0))
                    .against(Against::mbit("faster", [faster], ideal)),
            ])?;
            let [sum, alone] = ["sum", "faster"].map(|name| run.report.mid_ratio(&id, name));
            if fast == 5 * slow {
                run.judge(&id, "of the sum of both links", Bound::AtLeast, SUM_GOAL, sum);
            }
            run.judge(&id, "of the faster link alone", Bound::AtLeast, FASTER_GOAL, alone);
        }
    }
    Ok(())
}

pub(super) fn figure(report: &Report) -> Figure {
    let measured =
        PAIRS.into_iter().filter(|(f, s)| report.measure(&case_id(*f, *s, "cubic"), "mbit").is_some());
    let pairs: Vec<(u32, u32)> = measured.collect();
    let groups =
        || Panel::groups(pairs.iter().map(|(fast, slow)| (format!("{fast} + {slow}"), (*fast, *slow))));
    let (mut goodput, mut ratios) = (groups(), groups());
    for (word, _) in CCS {
        for (name, end) in [("slower alone", "/slower"), ("faster alone", "/faster"), ("bonded", "")] {
            goodput = goodput.bar(format!("{word}, {name}"), |(fast, slow)| {
                report.spread(&format!("{}{end}", case_id(fast, slow, word)), "mbit")
            });
        }
        for (name, key) in [("sum", "sum"), ("faster alone", "faster")] {
            ratios = ratios.bar(format!("{word}, of {name}"), |(fast, slow)| {
                report.ratio(&case_id(fast, slow, word), key)
            });
        }
    }
    let rates = "rates of the two links, Mbit/s";
    let ratios = ratios.flat("all of it", 1.0).flat("goal at 5:1, of the sum", SUM_GOAL);
    let panels = vec![
        goodput.panel("Goodput of one flow", rates, "Mbit/s"),
        ratios.panel("Bonded over the links alone", rates, "ratio"),
    ];
    Figure { title: "unequal: two links of different rates".into(), panels }
}
