//! What the papers measured, beside what was measured here.

use crate::experiments::{cpu_limit::guest, multicast::even};
use crate::report::{CASES, DELIVERIES, FAILOVERS, Report};
use crate::stats::Spread;
use maud::{Markup, html};
use std::fmt::Display;

/// One value of a paper: its figure, what it is, what the paper has, and the same measured here, if it was.
type Row = (&'static str, &'static str, &'static str, fn(&Report) -> Option<String>);

/// The values of the papers that an experiment repeats, and what was changed, and why.
struct Paper {
    experiment: &'static str,
    changed: &'static str,
    rows: &'static [Row],
}

const PAPERS: [Paper; 12] = [
    Paper {
        experiment: "scaling",
        changed: "Two hosts with four NICs of 100 Mbit/s each on one unmanaged switch were two machines; here they are namespaces, links are \
                  token buckets of the same rate, and more rates and numbers of members are tried. netperf is iperf3.",
        rows: &[
            (
                "BondingPlus, Fig. 4",
                "goodput of 2, 3 and 4 NICs of 100 Mbit/s over that of one, TCP",
                "proportional to the number of NICs",
                |r| multiples(r, "100mbit/cubic-1"),
            ),
            ("BondingPlus, Fig. 4", "the same, UDP", "a little above TCP", |r| multiples(r, "100mbit/udp")),
            ("BondingPlus, Fig. 4", "two NIC models", "proportional with both", |_| {
                Some("not measured: a veth is of one kind".to_owned())
            }),
            ("BondingPlus, Fig. 5", "how far the shares of four NICs are apart, TCP", "almost equal", |r| {
                Some(format!("{:.1} %", r.median("100mbit/cubic-1/n4", "tx_imbalance")? * 100.0))
            }),
        ],
    },
    Paper {
        experiment: "overhead",
        changed: "The paper's NIC carried 100 Mbit/s, so that its CPU was not the limit; here the link has no rate, and all that is \
                  between one and the other is CPU. At 100 Mbit/s (the last rows) the time is that of the whole machine: both hosts, the switch and \
                  the daemons, with interrupts; the paper's was one host's.",
        rows: &[
            (
                "BondingPlus, Table 2",
                "throughput with one NIC, with over without",
                "0.9996 (94.01 of 94.05 Mbit/s)",
                |r| of_loads(r, "single"),
            ),
            ("BondingPlus, Table 2", "CPU, with over without", "1.066 (2.40 of 2.25 s)", |r| {
                of_loads(r, "cpu")
            }),
            ("BondingPlus, Table 2", "throughput at 100 Mbit/s", "0.9996 (94.01 of 94.05 Mbit/s)", |r| {
                at_rate(r, "mbit", 1.0, "Mbit/s")
            }),
            ("BondingPlus, Table 2", "system time of 60 s at 100 Mbit/s", "1.066 (2.40 of 2.25 s)", |r| {
                at_rate(r, "system", 60.0 / 1000.0, "s")
            }),
        ],
    },
    Paper {
        experiment: "cpu-limit",
        changed: "Three machines of different speed (Pentium II 300, III 700, 4 1600 MHz) are one host whose processes may use a share of a core only, by a control \
              group's quota. NICs that cost much CPU are NICs without offloads: the CPU makes every frame of 1514 bytes. The links have 250 Mbit/s each, so that the CPU is the \
              limit at the least share and the links are at the largest; the paper's had 100, of which one NIC carried 94.05. A quota limits what processes do and what the kernel does in \
              their context; what ACKs and timers set going runs in interrupts and is not limited. The shares are no clock rates, so rows cannot be put side by side one by one. In the guest \
              interrupts are limited too: its one processor does so many instructions a second, for both hosts and the switch between them, where a host of the paper's had one for itself.",
        rows: &[
            (
                "BondingPlus, Table 1",
                "two NICs over one, from the slowest machine to the fastest",
                "1.41, 1.82, 1.91 (133, 171.5, 180 of 94.05 Mbit/s)",
                |r| shares(r, "full"),
            ),
            ("BondingPlus, Table 1", "two links over one with the same share of the CPU", "not given", |r| {
                shares(r, "same")
            }),
            (
                "BondingPlus, Table 1",
                "two links over one in a guest, by million instructions a second",
                "1.41, 1.82, 1.91 of 94.05 Mbit/s (300, 700, 1600 MHz)",
                |r| found(guest::gains(r), ", ", |(speed, gain)| Some(format!("{gain:.2} ({speed})"))),
            ),
        ],
    },
    Paper {
        experiment: "plain",
        changed: "netperf for 10 minutes is iperf3 for seconds, several times in turns; the CPU is that of both hosts and the switch.",
        rows: &[
            (
                "ELT, Table 1",
                "two NICs, one of them off, over one NIC",
                "0.952 (89.40 of 93.91 Mbit/s)",
                |r| Some(format!("{:.3}", r.mid_ratio("cubic/to-plain/two-one-off", "single")?)),
            ),
            ("ELT, Table 1", "two NICs over one NIC", "1.878 (176.35 of 93.91 Mbit/s)", |r| {
                Some(format!("{:.3}", r.mid_ratio("cubic/to-plain/two", "single")?))
            }),
            ("ELT, Table 1", "CPU for each byte, two NICs over one", "0.53 (38 % at both rates)", |r| {
                Some(format!("{:.3}", r.mid_ratio("cubic/to-plain/two", "cpu")?))
            }),
        ],
    },
    Paper {
        experiment: "urgent",
        changed: "The paper timed messages inside its driver; here whole round trips are timed, and in a turn of its own, by 'linkbraid stats --latency', the way out.",
        rows: &[
            (
                "BondingPlus, Figs. 6 to 9",
                "median round trip beside bulk traffic: one channel with priority 0, with priority 6, a channel of their own",
                "very long, much shorter but jittery, shortest",
                |r| round_trips(r, &["one-0", "one-6", "two"]),
            ),
            (
                "BondingPlus, Figs. 6 to 9",
                "application to driver, mean: one channel with priority 0, a class on it with precedence, a channel of their own",
                "42 to 49 us in all three",
                |r| stages(r, "application"),
            ),
            (
                "BondingPlus, Figs. 6 to 9",
                "driver to NIC, mean (and deviation): the same",
                "very long, much shorter but jittery, shortest",
                |r| stages(r, "driver"),
            ),
            (
                "BondingPlus, Figs. 6 to 9",
                "application to NIC, mean (and deviation): the same",
                "very long, much shorter but jittery, shortest",
                |r| stages(r, "total"),
            ),
            (
                "BondingPlus, second scenario",
                "the same on one channel: with priority 0, and in a class with precedence",
                "very long, much shorter but jittery",
                |r| round_trips(r, &["one-0", "one-class"]),
            ),
        ],
    },
    Paper {
        experiment: "tokens",
        changed: "A host that does not bond reaches one of the server's links at a time, so each pair has a client of its own, on a link as fast as one of the server's. The paper \
                  had tokens up to 8 KiB and two links. The same is measured between two hosts that both bond, too.",
        rows: &[(
            "ELT, Fig. 5",
            "the best of one link and of two, MB/s: six plain hosts; hosts that both bond",
            "8.9 and 16.4",
            |r| {
                let best = |links: &str| {
                    let own = format!("tokens/{links}/");
                    let measured =
                        r.measures.iter().filter(|m| m.id.starts_with(&own)).filter_map(|m| m.spread);
                    Some(format!("{:.1}", measured.map(|spread| spread.median).max_by(f64::total_cmp)?))
                };
                all([["one", "two"], ["peer-one", "peer-two"]], "; ", |pair| all(pair, " and ", best))
            },
        )],
    },
    Paper {
        experiment: "copies",
        changed: "The paper does not name the protocol of its remote copies. A kernel here need not have a network file system, so a web server (nginx) sends the files and curl takes them; those of 8 MB are also served by samba and by an NFS server (nfs-ganesha), and taken by clients without the kernel's. \
                  The paper's disks were some three times as fast as one of its links; those of today are far faster, so each copy writes blocks of 4 KiB through to the disk, and the \
                  links get the rate that makes local copies 3.2 times as fast as one link, measured before. The peer is a plain host with ten times the rate, as in the paper. Two links carry \
                  no more than twice what one does, so a gain above 2 cannot come from links alone, and two links leave a drop of at least 1 - 2 / 3.2 = 37 %; the paper does not say where its larger gain comes from.",
        rows: &[
            (
                "ELT, Fig. 6",
                "how far the rate drops from no remote copy to eight, one link, by size",
                "67 to 71 %",
                |r| drops(r, "one"),
            ),
            ("ELT, Fig. 6", "the same, two links", "13 to 27 %", |r| drops(r, "two")),
            ("ELT, Table 2", "two links over one, eight remote copies, by size", "2.3 to 3.0", |r| {
                by_size(|size| {
                    let [one, two] = ["one", "two"].map(|kind| copies(kind, size, ALL));
                    Some(format!("{:.2}", r.times(&two, COPIED, &one)?))
                })
            }),
            ("ELT, Table 2", "the same, files of 8 MB from a file server", "2.3 to 3.0", |r| {
                let gain = |by: &str| {
                    let [one, two] = ["one", "two"].map(|kind| copies(kind, LARGEST, ALL) + by);
                    r.times(&two, COPIED, &one)
                };
                all(["-smb", "-nfs"], ", ", |by| {
                    Some(format!("{:.2} ({})", gain(by)?, by.trim_start_matches('-').to_uppercase()))
                })
            }),
        ],
    },
    Paper {
        experiment: "failover",
        changed: "A wire that is pulled is a veth whose carrier goes, or a switch's port that drops what it should forward. FTP, web pages, SMB and NFS during a failure are tests (tests/netns), with \
                  vsftpd, nginx, samba and nfs-ganesha; here one TCP flow and numbered datagrams tell how long it takes.",
        rows: &[
            (
                "ELT, text",
                "FTP, web and SMB transfers while a wire is pulled; connections lost here",
                "transfers go on",
                |r| {
                    let cases = r.ids(FAILOVERS);
                    let lost: f64 = cases.iter().filter_map(|id| r.sum(id, "connections_lost")).sum();
                    (!cases.is_empty()).then(|| format!("{lost} lost in {} cases", cases.len()))
                },
            ),
            (
                "ELT, text",
                "how long TCP stands still when the sender's link loses its carrier",
                "so short that applications do not notice",
                |r| {
                    let Spread { median, min, max } = r.spread("carrier-ours/cubic/n2", "gap_ms")?;
                    Some(format!("{median:.0} ms ({min:.0} to {max:.0})"))
                },
            ),
        ],
    },
    Paper {
        experiment: "multicast",
        changed: "The paper says how ELT spreads broadcasts and has no figure of it.",
        rows: &[
            ("ELT, text", "broadcast and multicast to a host with several links", "arrive once", |r| {
                let ways = r.ids(DELIVERIES);
                let [once, more, never] =
                    ["once", "more", "never"].map(|m| ways.iter().filter_map(|id| r.sum(id, m)).sum::<f64>());
                (!ways.is_empty()).then(|| format!("{once} came once, {more} more than once, {never} never"))
            }),
            (
                "ELT, text; BondingPlus, Fig. 5",
                "broadcast and multicast from a host with several links: how far shares of the links are apart",
                "spread evenly over the links",
                even::apart,
            ),
        ],
    },
    Paper {
        experiment: "fabric",
        changed: "SCI, Dolphin DX and InfiniBand are memory that two namespaces share, UDP over a veth pair, and libfabric's TCP providers over that pair; \
                  Gigabit Ethernet is the pair itself, and the kernel's VXLAN over it is there as what people would use otherwise.",
        rows: &[
            (
                "ETHOM, Fig. 5",
                "RTT/2 of 64 bytes: Ethernet; ETHOM; ETHOS",
                "ETHOM half of Gigabit Ethernet or less; ETHOS 10 to 15 us more than ETHOM",
                |r| {
                    let of = |subject| {
                        Some(format!(
                            "{:.1} us {subject}",
                            r.median(&format!("latency/{subject}/64"), "half_us")?
                        ))
                    };
                    all(["veth", "shm", "udp"], "; ", of)
                },
            ),
            (
                "ETHOM, Fig. 6",
                "throughput: ETHOM; ETHOS",
                "1.5 Gbit/s SCI, 3 Gbit/s DX; 5 Gbit/s on InfiniBand",
                |r| {
                    let of =
                        |subject| Some(format!("{:.1} Gbit/s {subject}", flow(r, subject, "mbit")? / 1000.0));
                    Some(format!("{}; {}", of("shm")?, all(["udp", "ofi-net"], ", ", of)?))
                },
            ),
            (
                "ETHOM, text",
                "throughput of ETHOM with an MTU of 1500, 4000, 8000, 16,000 and 65,521, Gbit/s",
                "an MTU below 8 KB is named as a shortcoming",
                |r| {
                    all(["1500", "4000", "8000", "16000", "65521"], ", ", |mtu| {
                        Some(format!("{:.1}", r.median(&format!("mtu/shm/{mtu}"), "mbit")? / 1000.0))
                    })
                },
            ),
            (
                "ETHOM, Figs. 7 and 8",
                "interrupts and system time while messages of 64 bytes bounce: Ethernet; ETHOM",
                "no interrupts; one core busy all the time",
                |r| {
                    let of = |subject| {
                        let of = |metric| r.median(&format!("latency/{subject}/64"), metric);
                        Some(format!(
                            "{:.0} a second and {:.2} s {subject}",
                            of("interrupts")?,
                            of("system")?
                        ))
                    };
                    all(["veth", "shm"], "; ", of)
                },
            ),
            (
                "ETHOM, Figs. 7 and 8",
                "what waiting costs: processor time of an idle node",
                "one core busy all the time",
                |r| {
                    let of = |poll| {
                        Some(format!("{:.2} % {poll}", r.median(&format!("idle/shm/{poll}"), "percent")?))
                    };
                    all(["adaptive", "busy"], ", ", of)
                },
            ),
            (
                "ETHOM, Figs. 7 and 8",
                "interrupts a second of the whole machine while one flow is sent: Ethernet; ETHOM",
                "many; none",
                |r| {
                    let of = |subject| Some(format!("{:.0} {subject}", flow(r, subject, "interrupts")?));
                    all(["veth", "shm"], "; ", of)
                },
            ),
        ],
    },
    Paper {
        experiment: "tipc",
        changed: "The paper's nodes are two guests with a stock kernel on one machine, since between two namespaces of one kernel TIPC goes around the interface. Their processors are emulated, \
              so the times are tens to hundreds of times those of a real machine, and what costs much or little is not the same: look at how ways compare, no further. \
              SCI and Dolphin DX are a PCI device whose memory both guests see (ivshmem), Gigabit Ethernet is a virtio cable. No wake-up crosses guests: a reader looks from time to time.",
        rows: &[
            (
                "ETHOM, Fig. 9",
                "RTT/2 of 64 bytes by TIPC: Ethernet; ETHOM; ETHOS",
                "not given; 14 us DX, 19 us SCI; 20 us on InfiniBand",
                |r| ways(r, 64, "guest_half_us", "us"),
            ),
            (
                "ETHOM, Fig. 10",
                "throughput of 8 KiB by TIPC: Ethernet; ETHOM; ETHOS",
                "Ethernet under 500 Mbit/s; ETHOM falls off at 8 KB and more",
                |r| ways(r, 8192, "guest_mbit", "Mbit/s"),
            ),
            ("ETHOM, Fig. 10", "the same, 65,000 bytes", "not given", |r| {
                ways(r, 65_000, "guest_mbit", "Mbit/s")
            }),
        ],
    },
    Paper {
        experiment: "mpi",
        changed: "The paper says that applications profit, those with MPI among them, and measures none. Here two processes of Open MPI (TCP) exchange messages over one link of 100 Mbit/s, over a bond of four such \
                  links, over a udp: fabric on such a bond, and over such a bond of which one link fails silently and another one loses its carrier meanwhile. Both processes wait by spinning, on the processors that both hosts share.",
        rows: &[
            ("ETHOM, last section", "NetPIPE, 1 MiB, largest bandwidth", "not measured", |r| {
                by_network(r, "netpipe-1048576", "mbit", "Mbit/s")
            }),
            ("ETHOM, last section", "NetPIPE, 1 byte, half a round trip", "not measured", |r| {
                by_network(r, "netpipe-1", "half_us", "us")
            }),
            ("ETHOM, last section", "the HPC Challenge, from its start to its end", "not measured", |r| {
                by_network(r, "hpcc", "seconds", "s")
            }),
        ],
    },
];

/// MB in a file, the number of copies, and the metric, as `copies` names them.
const SIZES: [u32; 5] = [1, 2, 4, 6, 8];
const LARGEST: u32 = SIZES[SIZES.len() - 1];
const ALL: u32 = 8;
const COPIED: &str = "copy_mbyte";

/// The values of the paper beside ours; nothing where there is no paper.
pub(super) fn beside(report: &Report) -> Markup {
    let Some(paper) = PAPERS.iter().find(|paper| paper.experiment == report.experiment) else {
        return html! {};
    };
    html! {
        p { b { "Changed against the paper: " } (paper.changed) }
        div.scroll {
            table {
                thead { tr { th { "figure" } th { "what" } th { "the paper" } th { "here" } } }
                tbody {
                    @for (figure, what, theirs, ours) in paper.rows {
                        tr {
                            td { (figure) }
                            td { (what) }
                            td { (theirs) }
                            td { (ours(report).unwrap_or_else(|| "not measured".to_owned())) }
                        }
                    }
                }
            }
        }
    }
}

/// The texts of things, if all of them were measured.
fn all<K>(
    keys: impl IntoIterator<Item = K>,
    between: &str,
    of: impl Fn(K) -> Option<String>,
) -> Option<String> {
    Some(keys.into_iter().map(of).collect::<Option<Vec<_>>>()?.join(between))
}

/// The texts of those that were measured, if one was.
fn found<K>(
    keys: impl IntoIterator<Item = K>,
    between: &str,
    of: impl Fn(K) -> Option<String>,
) -> Option<String> {
    let found: Vec<String> = keys.into_iter().filter_map(of).collect();
    (!found.is_empty()).then(|| found.join(between))
}

/// Goodput with two, three and four members over that of one bare link.
fn multiples(report: &Report, load: &str) -> Option<String> {
    let of = |n| Some(format!("{:.2} with {n}", report.mid_ratio(&format!("{load}/n{n}"), "single")?));
    found(2..=4, ", ", of)
}

/// A ratio of each bonded case, with the load's name.
fn of_loads(report: &Report, name: &str) -> Option<String> {
    let of = |id: &str| Some(format!("{:.3} ({})", report.mid_ratio(id, name)?, report.word(id, "load")));
    found(report.ids(CASES), ", ", of)
}

/// A ratio at the link's rate, and both numbers, so many times.
fn at_rate(report: &Report, metric: &str, times: f64, unit: &str) -> Option<String> {
    let [with, without] = ["line/bond", "line/bare"].map(|id| report.median(id, metric));
    let (with, without) = (with? * times, without? * times);
    Some(format!("{:.4} ({with:.2} of {without:.2} {unit})", report.times("line/bond", metric, "line/bare")?))
}

/// A ratio of the bond with each share of a core, the least share first.
fn shares(report: &Report, name: &str) -> Option<String> {
    let of = |share| Some(format!("{:.2} ({share})", report.mid_ratio(&format!("two/{share}"), name)?));
    found(["0.5%", "1%", "2%", "3%", "5%", "20%", "100%", "full"], ", ", of)
}

fn copies(kind: &str, size: u32, remote: u32) -> String {
    format!("copies/{kind}-{remote}/{size}MB")
}

fn drops(report: &Report, kind: &str) -> Option<String> {
    by_size(|size| {
        let ratio = report.times(&copies(kind, size, ALL), COPIED, &copies(kind, size, 0))?;
        Some(format!("{:.0} %", (1.0 - ratio) * 100.0))
    })
}

fn by_size(value: impl Fn(u32) -> Option<String>) -> Option<String> {
    found(SIZES, ", ", |size| Some(format!("{} ({size} MB)", value(size)?)))
}

fn flow(report: &Report, subject: impl Display, metric: &str) -> Option<f64> {
    report.median(&format!("throughput/{subject}/cubic"), metric)
}

/// TIPC's figure over the cable, over memory with both MTUs and with threads that never sleep, and over UDP on the cable.
fn ways(report: &Report, bytes: usize, metric: &str, unit: &str) -> Option<String> {
    let of = |way: &str| {
        Some(format!("{:.0} {unit} {way}", report.median(&format!("tipc/{way}/{bytes}"), metric)?))
    };
    let memory = found(["shm", "shm-65521", "shm-busy", "shm-65521-busy"], ", ", of).unwrap_or_default();
    Some(format!("{}; {memory}; {}", of("cable")?, of("udp")?))
}

/// What a program of MPI measured over each network that it was run over.
fn by_network(report: &Report, program: &str, metric: &str, unit: &str) -> Option<String> {
    found(["one", "four", "fabric", "failing"], ", ", |network| {
        let value = report.median(&format!("mpi/{network}/{program}"), metric)?;
        Some(format!("{value:.0} {unit} ({network})"))
    })
}

/// The median round trip of each of these scenarios, over TCP and over UDP.
fn round_trips(report: &Report, scenarios: &[&str]) -> Option<String> {
    let of = |load: &str| {
        let median =
            |word: &&str| Some(format!("{:.0} us", report.median(&format!("{load}/{word}"), "median_us")?));
        Some(format!("{}: {}", load.to_uppercase(), all(scenarios, ", ", median)?))
    };
    found(["tcp", "tcp-4", "udp"], "; ", of)
}

/// The mean of a stage on the way out, and its deviation, over TCP and over UDP.
fn stages(report: &Report, stage: &str) -> Option<String> {
    let of = |load: &str| {
        let mean = |word: &&str| {
            let of = |figure: &str| {
                report.median(&format!("{load}/{word}"), &format!("stages.{stage}.{figure}_us"))
            };
            Some(format!("{:.1} us ({:.1})", of("mean")?, of("stddev")?))
        };
        Some(format!("{}: {}", load.to_uppercase(), all(&["one-0", "one-class", "two"], ", ", mean)?))
    };
    found(["tcp", "tcp-4", "udp"], "; ", of)
}
