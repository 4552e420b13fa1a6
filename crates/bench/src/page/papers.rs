//! What the papers measured, beside what was measured here.

mod bonding_plus;
mod elt;
mod ethom;

use crate::report::{CASES, Report};
use maud::{Markup, html};

/// One value of a paper.
struct Row {
    figure: &'static str,
    what: &'static str,
    paper: &'static str,
    /// The same, measured here; nothing if it was not.
    ours: fn(&Report) -> Option<String>,
}

/// The values of the papers that an experiment repeats, and what was changed, and why.
struct Paper {
    experiment: &'static str,
    changed: &'static str,
    rows: &'static [Row],
}

const PAPERS: [Paper; 6] = [
    Paper {
        experiment: "scaling",
        changed: "Two hosts with four NICs of 100 Mbit/s each on one unmanaged switch were two machines; here they are namespaces, links are \
                  token buckets of the same rate, and more rates and numbers of members are tried. netperf is iperf3.",
        rows: &[
            Row {
                figure: "BondingPlus, Fig. 4",
                what: "goodput of 2, 3 and 4 NICs of 100 Mbit/s over that of one, TCP",
                paper: "proportional to the number of NICs",
                ours: |report| multiples(report, "100mbit/cubic-1"),
            },
            Row {
                figure: "BondingPlus, Fig. 4",
                what: "the same, UDP",
                paper: "a little above TCP",
                ours: |report| multiples(report, "100mbit/udp"),
            },
            Row {
                figure: "BondingPlus, Fig. 4",
                what: "two NIC models",
                paper: "proportional with both",
                ours: |_| Some("not measured: a veth is of one kind".to_owned()),
            },
            Row {
                figure: "BondingPlus, Fig. 5",
                what: "how far the shares of four NICs are apart, TCP",
                paper: "almost equal",
                ours: |report| {
                    let apart = report.median("100mbit/cubic-1/n4", "tx_imbalance")?;
                    Some(format!("{:.1} %", apart * 100.0))
                },
            },
        ],
    },
    Paper {
        experiment: "overhead",
        changed: "The paper's NIC carried 100 Mbit/s, so that its CPU was not the limit; here the link has no rate, and all that is \
                  between one and the other is CPU.",
        rows: &[
            Row {
                figure: "BondingPlus, Table 2",
                what: "throughput with one NIC, with over without",
                paper: "0.9996 (94.01 of 94.05 Mbit/s)",
                ours: |report| ratio(report, "single"),
            },
            Row {
                figure: "BondingPlus, Table 2",
                what: "CPU, with over without",
                paper: "1.066 (2.40 of 2.25 s)",
                ours: |report| ratio(report, "cpu"),
            },
        ],
    },
    Paper {
        experiment: "plain",
        changed: "netperf for 10 minutes is iperf3 for seconds, several times in turns; the CPU is that of both hosts and the switch.",
        rows: &[
            Row {
                figure: "ELT, Table 1",
                what: "two NICs, one of them off, over one NIC",
                paper: "0.952 (89.40 of 93.91 Mbit/s)",
                ours: |report| {
                    Some(format!("{:.3}", report.ratio("cubic/to-plain/two-one-off", "single")?.median))
                },
            },
            Row {
                figure: "ELT, Table 1",
                what: "two NICs over one NIC",
                paper: "1.878 (176.35 of 93.91 Mbit/s)",
                ours: |report| Some(format!("{:.3}", report.ratio("cubic/to-plain/two", "single")?.median)),
            },
            Row {
                figure: "ELT, Table 1",
                what: "CPU for each byte, two NICs over one",
                paper: "0.53 (38 % at both rates)",
                ours: |report| Some(format!("{:.3}", report.ratio("cubic/to-plain/two", "cpu")?.median)),
            },
        ],
    },
    Paper {
        experiment: "urgent",
        changed: "The paper timed messages inside its driver; here whole round trips are timed, and 'linkbraid stats --latency' shows where the time went on a bond in use.",
        rows: &[Row {
            figure: "BondingPlus, Figs. 6 to 9",
            what: "median round trip beside bulk traffic: one channel with priority 0, with priority 6, a channel of their own",
            paper: "very long, much shorter but jittery, shortest",
            ours: |report| {
                let of = |load: &str, row: &str| {
                    Some(format!("{:.0} us", report.median(&format!("{load}/{row}"), "median_us")?))
                };
                let all = |load: &str| {
                    let [bulk, first, own] = ["one-0", "one-6", "two"].map(|row| of(load, row));
                    Some(format!("{}: {}, {}, {}", load.to_uppercase(), bulk?, first?, own?))
                };
                let found: Vec<String> = ["tcp", "udp"].into_iter().filter_map(all).collect();
                (!found.is_empty()).then(|| found.join("; "))
            },
        }],
    },
    Paper {
        experiment: "tokens",
        changed: "The paper does not say how its peer, with one gigabit NIC and one address of the server to send to, reached the server over both of its \
                  links; a plain host here reaches one. So the same is measured between two hosts that both bond, too.",
        rows: &[Row {
            figure: "ELT, Fig. 5",
            what: "the best of one link and of two, MB/s: a plain host; hosts that both bond",
            paper: "8.9 and 16.4",
            ours: |report| {
                let best = |links: &str| {
                    let own = format!("tokens/{links}/");
                    let found =
                        report.measures.iter().filter(|m| m.id.starts_with(&own)).filter_map(|m| m.spread);
                    found.map(|spread| spread.median).max_by(f64::total_cmp)
                };
                let pair = |one, two| Some(format!("{:.1} and {:.1}", best(one)?, best(two)?));
                Some(format!("{}; {}", pair("one", "two")?, pair("peer-one", "peer-two")?))
            },
        }],
    },
    Paper {
        experiment: "fabric",
        changed: "SCI, Dolphin DX and InfiniBand are memory that two namespaces share, UDP over a veth pair, and libfabric's TCP providers over that pair; \
                  Gigabit Ethernet is the pair itself, and the kernel's VXLAN over it is there as what people would use otherwise.",
        rows: &[
            Row {
                figure: "ETHOM, Fig. 5",
                what: "RTT/2 of 64 bytes: Ethernet; ETHOM; ETHOS",
                paper: "ETHOM half of Gigabit Ethernet or less; ETHOS 10 to 15 us more than ETHOM",
                ours: |report| {
                    let of = |subject: &str| {
                        let half = report.measure(&format!("latency/{subject}/64"), "half_us")?.spread?;
                        Some(format!("{:.1} us {subject}", half.median))
                    };
                    Some(format!("{}; {}; {}", of("veth")?, of("shm")?, of("udp")?))
                },
            },
            Row {
                figure: "ETHOM, Fig. 6",
                what: "throughput: ETHOM; ETHOS",
                paper: "1.5 Gbit/s SCI, 3 Gbit/s DX; 5 Gbit/s on InfiniBand",
                ours: |report| {
                    let of = |subject: &str| {
                        let mbit = report.measure(&format!("throughput/{subject}/cubic"), "mbit")?.spread?;
                        Some(format!("{:.1} Gbit/s {subject}", mbit.median / 1000.0))
                    };
                    Some(format!("{}; {}, {}", of("shm")?, of("udp")?, of("ofi-net")?))
                },
            },
            Row {
                figure: "ETHOM, Figs. 7 and 8",
                what: "what waiting costs: processor time of an idle node",
                paper: "one core busy all the time",
                ours: |report| {
                    let of = |poll: &str| {
                        let idle = report.measure(&format!("idle/shm/{poll}"), "percent")?.spread?;
                        Some(format!("{:.2} % {poll}", idle.median))
                    };
                    Some(format!("{}, {}", of("adaptive")?, of("busy")?))
                },
            },
            Row {
                figure: "ETHOM, Figs. 7 and 8",
                what: "interrupts a second of the whole machine while one flow is sent: Ethernet; ETHOM",
                paper: "many; none",
                ours: |report| {
                    let of = |subject: &str| {
                        let found =
                            report.measure(&format!("throughput/{subject}/cubic"), "interrupts")?.spread?;
                        Some(format!("{:.0} {subject}", found.median))
                    };
                    Some(format!("{}; {}", of("veth")?, of("shm")?))
                },
            },
        ],
    },
];

/// The values of the paper beside ours; nothing where there is no paper.
pub(super) fn beside(report: &Report) -> Markup {
    let all = PAPERS.iter().chain(&bonding_plus::PAPERS).chain(&elt::PAPERS).chain(&ethom::PAPERS);
    let Some(paper) = all.into_iter().find(|paper| paper.experiment == report.experiment) else {
        return html! {};
    };
    html! {
        p { b { "Changed against the paper: " } (paper.changed) }
        div.scroll {
            table {
                thead { tr { th { "figure" } th { "what" } th { "the paper" } th { "here" } } }
                tbody {
                    @for row in paper.rows {
                        tr {
                            td { (row.figure) }
                            td { (row.what) }
                            td { (row.paper) }
                            td { ((row.ours)(report).unwrap_or_else(|| "not measured".to_owned())) }
                        }
                    }
                }
            }
        }
    }
}

/// Goodput with two, three and four members over that of one bare link.
fn multiples(report: &Report, load: &str) -> Option<String> {
    let of = |n: u32| report.ratio(&format!("{load}/n{n}"), "single");
    let found: Vec<String> = (2..=4).filter_map(|n| Some(format!("{:.2} with {n}", of(n)?.median))).collect();
    (!found.is_empty()).then(|| found.join(", "))
}

/// A ratio of each bonded case, with the load's name.
fn ratio(report: &Report, name: &str) -> Option<String> {
    let of = |id: &&str| Some(format!("{:.3} ({})", report.ratio(id, name)?.median, report.word(id, "load")));
    let found: Vec<String> = report.ids(CASES).iter().filter_map(of).collect();
    (!found.is_empty()).then(|| found.join(", "))
}
