//! ETHOM's TIPC.

use super::{Paper, Row};
use crate::report::Report;

pub(super) const PAPERS: [Paper; 1] = [Paper {
    experiment: "tipc",
    changed: "The paper's nodes are two guests with a stock kernel on one machine, since between two namespaces of one kernel TIPC goes around the interface. Their processors are emulated, \
              so the times are tens to hundreds of times those of a real machine, and what costs much or little is not the same: look at how ways compare, no further. \
              SCI and Dolphin DX are a PCI device whose memory both guests see (ivshmem), Gigabit Ethernet is a virtio cable. No wake-up crosses guests: a reader looks from time to time.",
    rows: &[
        Row {
            figure: "ETHOM, Fig. 9",
            what: "RTT/2 of 64 bytes by TIPC: Ethernet; ETHOM; ETHOS",
            paper: "not given; 14 us DX, 19 us SCI; 20 us on InfiniBand",
            ours: |report| ways(report, 64, "guest_half_us", "us"),
        },
        Row {
            figure: "ETHOM, Fig. 10",
            what: "throughput of 8 KiB by TIPC: Ethernet; ETHOM; ETHOS",
            paper: "Ethernet under 500 Mbit/s; ETHOM falls off at 8 KB and more",
            ours: |report| ways(report, 8192, "guest_mbit", "Mbit/s"),
        },
        Row {
            figure: "ETHOM, Fig. 10",
            what: "the same, 65,000 bytes",
            paper: "not given",
            ours: |report| ways(report, 65_000, "guest_mbit", "Mbit/s"),
        },
    ],
}];

/// TIPC's figure over the cable, over memory with both MTUs, and over UDP on the cable.
fn ways(report: &Report, bytes: usize, metric: &str, unit: &str) -> Option<String> {
    let of = |way: &str| {
        let spread = report.measure(&format!("tipc/{way}/{bytes}"), metric)?.spread?;
        Some(format!("{:.0} {unit} {way}", spread.median))
    };
    let memory: Vec<String> = ["shm", "shm-65521"].into_iter().filter_map(of).collect();
    Some(format!("{}; {}; {}", of("cable")?, memory.join(", "), of("udp")?))
}
