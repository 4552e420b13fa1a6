//! A bonded server and a plain host with one faster link: the table of the ELT paper.

use super::beside_plain;
use crate::experiments::prelude::*;
use crate::planned::{Against, Planned};
use crate::run::CCS;
use linkbraid_lab::iperf::Direction;

const SLOW: u32 = 100;
const FAST: u32 = 1000;
/// The link that is taken off.
const OFF: usize = 1;
/// What the paper reached against one NIC: two NICs with one off (89.40 over 93.91), and two (176.35 over 93.91).
const PAPER_OFF: f64 = 0.952;
const PAPER_TWO: f64 = 1.878;
/// What the way back may lose against one NIC: a plain host knows one MAC, so more than one NIC it cannot have.
const BACK_GOAL: f64 = 0.97;

const ROWS: [(&str, &str); 4] = [
    ("one", "one NIC"),
    ("two-one-off", "two, one off"),
    ("two", "two NICs"),
    ("two-undamped", "two, no damping"),
];

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    // The paper's systems had nothing like bbr.
    let ccs = run.ccs();
    run.plan(ccs.len() * (ROWS.len() + 3));
    let lab = |links| beside_plain(links, SLOW, FAST);
    let one = run.bare("one", lab(1))?;
    let two = run.bonded("two", lab(2))?;
    let off = |bed: &Bed, on: bool| bed.set_carrier("a", OFF, !on);
    for &(word, cc) in ccs {
        for (way, direction) in [("to-plain", Direction::Forward), ("from-plain", Direction::Reverse)] {
            let traffic = || Traffic { direction, ..run.tcp(cc) };
            let id = |row: &str| format!("{word}/{way}/{row}");
            let against = |ideal| Against::mbit("single", [id("one")], ideal);
            let ideal = if direction == Direction::Forward { 2.0 } else { 1.0 };
            let mut cases = vec![
                Planned::new(id("one"), &one, traffic()),
                Planned {
                    around: Some(&off),
                    condition: format!("carrier of eth{OFF} off"),
                    ..Planned::new(id("two-one-off"), &two, traffic()).against(against(1.0))
                },
                Planned::new(id("two"), &two, traffic())
                    .against(against(ideal))
                    .against(Against::cpu(id("one"))),
            ];
            if direction == Direction::Forward {
                let case = Planned::new(id("two-undamped"), &two, traffic()).against(against(ideal));
                cases.push(Planned { damping: false, ..case });
            }
            run.interleave(&cases)?;
        }
    }
    goals(run, ccs);
    Ok(())
}

fn goals(run: &mut Run<'_>, ccs: &[(&str, Cc)]) {
    for (word, _) in ccs {
        for (row, what, limit) in [
            ("to-plain/two-one-off", "of one NIC, with one of two off (the paper's ratio)", PAPER_OFF),
            ("to-plain/two", "of one NIC (the paper's ratio)", PAPER_TWO),
            ("from-plain/two", "of one NIC, from the plain host", BACK_GOAL),
        ] {
            let id = format!("{word}/{row}");
            let value = run.report.mid_ratio(&id, "single");
            run.judge(&id, what, Bound::AtLeast, limit, value);
        }
    }
}

pub(super) fn figure(report: &Report) -> Figure {
    let all = |metric: &'static str| {
        let mut panel = Panel::groups(ROWS.map(|(row, name)| (name.to_owned(), row)));
        for (word, _) in CCS {
            for (way, name) in [("to-plain", "to plain host"), ("from-plain", "from plain host")] {
                panel = panel.bar(format!("{word}, {name}"), |row| {
                    report.spread(&format!("{word}/{way}/{row}"), metric)
                });
            }
        }
        panel
    };
    let links = "links of the server";
    let panels = vec![
        all("mbit").panel(format!("Goodput, server links of {SLOW} Mbit/s"), links, "Mbit/s"),
        all("cpu_s_per_gb").panel("CPU of both hosts and the switch", links, "seconds per GB"),
    ];
    Figure { title: "plain: a bonded server and one plain host with a faster link".into(), panels }
}
