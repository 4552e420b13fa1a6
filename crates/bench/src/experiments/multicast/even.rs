//! How evenly the links of a bond share what goes to all: Fig. 5 of BondingPlus, with datagrams that every host hears.

use super::{DATAGRAMS, QUICK_DATAGRAMS, RATE};
use crate::deliver::{self, Kind};
use crate::experiments::prelude::*;
use crate::sample::delta;
use crate::stats::{imbalance, shares};

const LINKS: [usize; 4] = [1, 2, 3, 4];
const KINDS: [Kind; 2] = [Kind::Broadcast, Kind::Multicast];
/// The share of what the sender's NICs sent that the one that sent most took, and the one that sent least.
const MOST: &str = "tx_most";
const LEAST: &str = "tx_least";
/// How far shares of equal members may be apart.
const APART: &str = "tx_imbalance";
const APART_GOAL: f64 = 0.02;

fn id(kind: Kind, links: usize) -> String {
    format!("even/{}/n{links}", kind.name())
}

/// How many cases there are.
pub(super) fn cases() -> usize {
    LINKS.len() * KINDS.len()
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    for links in LINKS {
        if !KINDS.iter().any(|kind| run.wants(&id(*kind, links))) {
            continue;
        }
        let name = format!("even-{links}");
        let bed = run.bonded(&name, Topology::symmetric(2, links, Some(RATE)));
        let Some(bed) = run.noted(name, bed)? else { continue };
        for turn in 0..run.settings.repeat {
            for kind in KINDS {
                one(run, &bed, kind, (links, turn))?;
            }
        }
    }
    let mut goals = Vec::new();
    for links in LINKS.into_iter().filter(|links| *links > 1) {
        for id in KINDS.map(|kind| id(kind, links)) {
            let apart = run.report.median(&id, APART);
            let what = "difference of the members' shares, TX";
            goals.push(Goal::new(&id, what, Bound::AtMost, APART_GOAL, apart));
        }
    }
    run.goals(goals);
    Ok(())
}

fn one(run: &mut Run<'_>, bed: &Bed, kind: Kind, (links, turn): (usize, u32)) -> Result<(), Error> {
    let id = id(kind, links);
    run.check()?;
    run.step(&id);
    let datagrams = if run.settings.quick { QUICK_DATAGRAMS } else { DATAGRAMS };
    let host = bed.host("a")?;
    let before = host.nic_counts()?;
    let sent = deliver::send(bed, kind, "a", &["b"], datagrams);
    if run.noted(&id, sent)?.is_none() {
        return Ok(());
    }
    let shares = shares(&delta(&before, &host.nic_counts()?, |nic| nic.tx_packets));
    let Some(spread) = Spread::of(shares.iter().copied()) else { return Ok(()) };
    let mut values = vec![(MOST, "of the frames", spread.max), (LEAST, "of the frames", spread.min)];
    values.extend(imbalance(&shares, &vec![RATE; links]).map(|apart| (APART, "of an even share", apart)));
    let what = format!("{datagrams} datagrams, {}", kind.name());
    run.note(&id, &what, turn, &values)
}

/// The shares with so many links, in percent of what is even.
pub(super) fn panel(report: &Report) -> Panel {
    let all = Panel::over(LINKS.map(|links| links as f64));
    let panel = KINDS.into_iter().fold(all, |panel, kind| {
        [("most", MOST), ("least", LEAST)].into_iter().fold(panel, |panel, (word, metric)| {
            panel.line(format!("{}, {word}", kind.name()), |links| {
                Some(report.spread(&id(kind, links as usize), metric)?.over(0.01))
            })
        })
    });
    let even = LINKS.map(|links| (links as f64, 100.0 / links as f64));
    let panel = panel.reference("even", even.to_vec());
    panel.titled("The link that sent most, and least", "links", "% of the sender's frames")
}

/// How far shares are apart with so many links, in words.
pub(crate) fn apart(report: &Report) -> Option<String> {
    let of = |links: &usize| {
        let apart = KINDS.iter().filter_map(|kind| report.median(&id(*kind, *links), APART));
        Some(format!("{:.4} with {links}", apart.reduce(f64::max)?))
    };
    let found: Vec<String> = LINKS.iter().filter_map(of).collect();
    (!found.is_empty()).then(|| found.join(", "))
}
