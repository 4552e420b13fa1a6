//! ELT's copies, its failing wires, and its broadcasts.

use super::{Paper, Row};
use crate::report::{DELIVERIES, FAILOVERS, Report};

/// MB in a file, and the number of copies, as `copies` names them.
const SIZES: [u32; 5] = [1, 2, 4, 6, 8];
const ALL: u32 = 8;

pub(super) const PAPERS: [Paper; 3] = [
    Paper {
        experiment: "copies",
        changed: "The paper does not name the protocol of its remote copies. A kernel here need not have a network file system, so a web server (nginx) sends the files and curl takes them. \
                  The paper's disks were some three times as fast as one of its links; those of today are far faster, so each copy writes blocks of 4 KiB through to the disk, and the \
                  links get the rate that makes local copies 3.2 times as fast as one link, measured before. The peer is a plain host with ten times the rate, as in the paper. Two links carry \
                  no more than twice what one does, so a gain above 2 cannot come from links alone, and two links leave a drop of at least 1 - 2 / 3.2 = 37 %; the paper does not say where its larger gain comes from.",
        rows: &[
            Row {
                figure: "ELT, Fig. 6",
                what: "how far the rate drops from no remote copy to eight, one link, by size",
                paper: "67 to 71 %",
                ours: |report| drops(report, "one"),
            },
            Row {
                figure: "ELT, Fig. 6",
                what: "the same, two links",
                paper: "13 to 27 %",
                ours: |report| drops(report, "two"),
            },
            Row {
                figure: "ELT, Table 2",
                what: "two links over one, eight remote copies, by size",
                paper: "2.3 to 3.0",
                ours: |report| {
                    by_size(|size| {
                        let [one, two] = ["one", "two"].map(|kind| id(kind, size, ALL));
                        let ratio = report.measure(&two, METRIC)?.beside(&one)?.ratio?;
                        Some(format!("{:.2}", ratio.median))
                    })
                },
            },
        ],
    },
    Paper {
        experiment: "failover",
        changed: "A wire that is pulled is a veth whose carrier goes, or a switch's port that drops what it should forward. FTP, web pages and SMB during a failure are tests (tests/netns), with \
                  vsftpd, nginx and samba; here one TCP flow and numbered datagrams tell how long it takes.",
        rows: &[
            Row {
                figure: "ELT, text",
                what: "FTP, web and SMB transfers while a wire is pulled; connections lost here",
                paper: "transfers go on",
                ours: |report| {
                    let cases = report.ids(FAILOVERS);
                    let lost: f64 = cases.iter().filter_map(|id| report.sum(id, "connections_lost")).sum();
                    (!cases.is_empty()).then(|| format!("{lost} lost in {} cases", cases.len()))
                },
            },
            Row {
                figure: "ELT, text",
                what: "how long TCP stands still when the sender's link loses its carrier",
                paper: "so short that applications do not notice",
                ours: |report| {
                    let gap = report.spread("carrier-ours/cubic/n2", "gap_ms")?;
                    Some(format!("{:.0} ms ({:.0} to {:.0})", gap.median, gap.min, gap.max))
                },
            },
        ],
    },
    Paper {
        experiment: "multicast",
        changed: "The paper says how ELT spreads broadcasts and has no figure of it.",
        rows: &[Row {
            figure: "ELT, text",
            what: "broadcast and multicast to a host with several links",
            paper: "spread evenly over the links",
            ours: |report| {
                let ways = report.ids(DELIVERIES);
                let sum = |metric| ways.iter().filter_map(|id| report.sum(id, metric)).sum::<f64>();
                let (once, more, never) = (sum("once"), sum("more"), sum("never"));
                (!ways.is_empty()).then(|| format!("{once} came once, {more} more than once, {never} never"))
            },
        }],
    },
];

/// What `copies` measures.
const METRIC: &str = "copy_mbyte";

fn id(kind: &str, size: u32, remote: u32) -> String {
    format!("copies/{kind}-{remote}/{size}MB")
}

fn drops(report: &Report, kind: &str) -> Option<String> {
    by_size(|size| {
        let ratio = report.measure(&id(kind, size, ALL), METRIC)?.beside(&id(kind, size, 0))?.ratio?;
        Some(format!("{:.0} %", (1.0 - ratio.median) * 100.0))
    })
}

fn by_size(value: impl Fn(u32) -> Option<String>) -> Option<String> {
    let found: Vec<String> =
        SIZES.into_iter().filter_map(|size| Some(format!("{} ({size} MB)", value(size)?))).collect();
    (!found.is_empty()).then(|| found.join(", "))
}
