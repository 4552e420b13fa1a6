//! BondingPlus' table of slow machines.

use super::{Paper, Row};
use crate::report::Report;

pub(super) const PAPERS: [Paper; 1] = [Paper {
    experiment: "cpu-limit",
    changed: "Three machines of different speed (Pentium II 300, III 700, 4 1600 MHz) are one host whose processes may use a share of a core only, by a control \
              group's quota. NICs that cost much CPU are NICs without offloads: the CPU makes every frame of 1514 bytes. The links have 250 Mbit/s each, so that the CPU is the \
              limit at the least share and the links are at the largest; the paper's had 100, of which one NIC carried 94.05. A quota limits what processes do and what the kernel does in \
              their context; what ACKs and timers set going runs in interrupts and is not limited. The shares are no clock rates, so rows cannot be put side by side one by one.",
    rows: &[
        Row {
            figure: "BondingPlus, Table 1",
            what: "two NICs over one, from the slowest machine to the fastest",
            paper: "1.41, 1.82, 1.91 (133, 171.5, 180 of 94.05 Mbit/s)",
            ours: |report| shares(report, "full"),
        },
        Row {
            figure: "BondingPlus, Table 1",
            what: "two links over one with the same share of the CPU",
            paper: "not given",
            ours: |report| shares(report, "same"),
        },
    ],
}];

/// A ratio of the bond with each share, the least share first.
fn shares(report: &Report, name: &str) -> Option<String> {
    let of = |share: &str| {
        let ratio = report.ratio(&format!("two/{share}"), name)?.median;
        Some(format!("{ratio:.2} ({share})"))
    };
    let all = ["0.5%", "1%", "2%", "3%", "5%", "20%", "100%", "full"];
    let found: Vec<String> = all.into_iter().filter_map(of).collect();
    (!found.is_empty()).then(|| found.join(", "))
}
