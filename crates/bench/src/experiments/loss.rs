//! Real loss, ECN marks and a competing flow: what damping does where TCP's own signals matter.

use crate::experiments::prelude::*;
use crate::planned::{Against, Planned};
use crate::run::CCS;
use crate::sample::Rival;
use linkbraid_lab::Options;

const RATE: u32 = 20;
const LINKS: usize = 4;
/// Pairs of medians this far below 1 are within what repeated runs differ by.
const GOAL: f64 = 0.98;

struct Trouble {
    word: &'static str,
    name: &'static str,
    /// Each wire frame is lost with this chance, once on its way, in parts of a million.
    loss_ppm: u32,
    /// Each ECN-capable packet is marked with this chance, in parts of a million.
    mark_ppm: u32,
    /// A plain host sends to the bonded one over one of its links.
    rival: bool,
}

const TROUBLES: [Trouble; 5] = [
    Trouble { word: "none", name: "none", loss_ppm: 0, mark_ppm: 0, rival: false },
    Trouble { word: "loss-0.1", name: "loss 0.1 %", loss_ppm: 1_000, mark_ppm: 0, rival: false },
    Trouble { word: "loss-1", name: "loss 1 %", loss_ppm: 10_000, mark_ppm: 0, rival: false },
    Trouble { word: "ecn-1", name: "ECN 1 %", loss_ppm: 0, mark_ppm: 10_000, rival: false },
    Trouble { word: "rival", name: "rival flow", loss_ppm: 0, mark_ppm: 0, rival: true },
];

/// The places of those of a quick run, with cubic alone: what damping could spoil most.
const QUICK_TROUBLES: [usize; 2] = [1, 4];

const ROWS: [(&str, &str); 3] = [("single", "bare link"), ("undamped", "no damping"), ("damped", "damping")];

fn lab(links: usize) -> Topology {
    let host = || vec![LinkSpec::switch(0, Some(RATE)); links];
    // Frames as on a wire: a lost buffer would be many segments at once.
    let options = Options { segment: true, ..Options::default() };
    let two = Topology::empty("lab", 1).host(host()).host(host());
    two.plain_host([LinkSpec::switch(0, Some(RATE))]).with(options)
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let quick = run.settings.quick;
    let troubles: Vec<&Trouble> =
        if quick { QUICK_TROUBLES.map(|place| &TROUBLES[place]).into() } else { TROUBLES.iter().collect() };
    let ccs = run.ccs();
    run.plan(troubles.len() * ccs.len() * ROWS.len());
    let single = run.bare("single", lab(1))?;
    let bond = run.bonded("bond", lab(LINKS))?;
    for trouble in troubles {
        let around = |bed: &Bed, on: bool| set(bed, trouble, on);
        for &(word, cc) in ccs {
            let id = |row: &str| format!("{}/{word}/{row}", trouble.word);
            let traffic = run.tcp(cc);
            let long = Traffic { omit: 0, seconds: traffic.seconds + traffic.omit + 1, ..run.tcp(cc) };
            let rival = || trouble.rival.then(|| Rival { from: "c", to: "b", traffic: long.clone() });
            let case = |row, bed| Planned {
                around: Some(&around),
                condition: trouble.name.into(),
                rival: rival(),
                ..Planned::new(id(row), bed, traffic.clone())
            };
            let ideal = LINKS as f64;
            let single_base = || Against::mbit("single", [id("single")], ideal);
            run.interleave(&[
                case("single", &single),
                Planned { damping: false, ..case("undamped", &bond) }.against(single_base()),
                case("damped", &bond).against(single_base()).against(Against::mbit(
                    "undamped",
                    [id("undamped")],
                    1.0,
                )),
            ])?;
            let value = run.report.mid_ratio(&id("damped"), "undamped");
            let what = format!("of the same without damping ({})", trouble.name);
            run.judge(&id("damped"), &what, Bound::AtLeast, GOAL, value);
        }
    }
    Ok(())
}

/// Makes the links bad, or good again. Frames meet the chance once: at the port they leave the switch by.
fn set(bed: &Bed, trouble: &Trouble, on: bool) -> Result<(), Error> {
    for name in ["a", "b"] {
        let host = bed.host(name)?;
        for link in host.links()? {
            link.set(|conf| {
                conf.loss_out_ppm = if on { trouble.loss_ppm } else { 0 };
                conf.mark_out_ppm = if on { trouble.mark_ppm } else { 0 };
            })?;
        }
        if trouble.mark_ppm > 0 {
            // 2 is the kernel's default: accept ECN, do not ask for it.
            let set = || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", if on { "1" } else { "2" });
            host.make("set 'net/ipv4/tcp_ecn'", set)?;
        }
    }
    Ok(())
}

pub(super) fn figure(report: &Report) -> Figure {
    let panel = |(word, _): (&str, Cc)| {
        let mut panel = Panel::groups(TROUBLES.iter().map(|trouble| (trouble.name.to_owned(), trouble.word)));
        for (row, name) in ROWS {
            panel = panel.bar(name, |trouble| report.spread(&format!("{trouble}/{word}/{row}"), "mbit"));
        }
        if let Some(base) = report.median(&format!("none/{word}/single"), "mbit") {
            panel = panel.flat(format!("{LINKS} x good bare link"), base * LINKS as f64);
        }
        let title = format!("TCP {word}, {LINKS} links of {RATE} Mbit/s");
        panel.panel(title, "what is wrong with the links", "Mbit/s")
    };
    let panels = CCS.map(panel).into_iter();
    Figure { title: "loss: damping under loss, marks and competition".into(), panels: panels.collect() }
}
