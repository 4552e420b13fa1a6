//! The panels of a run; those of stages that were not measured are left out.

use super::subject::{FABRICS, OFI_NET, OFI_TCP, SHM, SHM_LARGE, Subject, UDP, UDP_VXLAN, VETH, VXLAN};
use super::{idle, latency, limited, netpipe, nodes, restart, sockperf, throughput};
use crate::plot::{Figure, Panel, Reference, Series};
use crate::report::Report;
use crate::stats::Spread;

/// The networks whose latency and throughput over message size are drawn, as in the paper's Figs. 5 and 6.
const SIZED: [&str; 7] = ["veth", "shm", "vxlan", "udp-vxlan", "udp", "ofi-net", "ofi-tcp"];
/// The networks whose flow is drawn; more names do not fit under an axis.
const FLOWS: [Subject; 8] = [VETH, SHM, SHM_LARGE, VXLAN, UDP_VXLAN, UDP, OFI_NET, OFI_TCP];
/// The ways to wait.
const WAITING: [&str; 6] = ["veth", "shm", "shm-busy", "shm-sleep", "udp", "udp-busy"];

pub(super) fn draw(report: &Report) -> Figure {
    let of = |title: &str, subjects: &[&str], id: fn(&str, usize) -> String, metric: &str| {
        sized(report, title, subjects, &latency::BYTES, id, metric)
    };
    let mut panels = vec![
        throughput(report),
        limited(report),
        of("RTT/2 over message size (Fig. 5)", &SIZED, latency::id, "half_us"),
        of("Throughput over message size, one at a time (Fig. 6)", &SIZED, latency::id, "mbit"),
        of("RTT/2 by how a fabric's threads wait", &WAITING, latency::id, "half_us"),
        of("RTT/2 as NPtcp tells it, the best of seven", &SIZED, netpipe::id, "half_us"),
        sized(report, "RTT/2 of UDP as sockperf tells it", &SIZED, &sockperf::BYTES, sockperf::id, "half_us"),
        cost(report),
        happenings(report),
        idle(report),
        restarts(report),
        memory(report),
    ];
    panels.retain(|panel| panel.series.iter().any(|series| !series.points.is_empty()));
    Figure { title: "fabric: beside what the kernel has".into(), panels }
}

fn spread(report: &Report, id: &str, metric: &str) -> Option<Spread> {
    report.measure(id, metric)?.spread
}

/// Groups that have a value, and a series of bars for each of `names`, `of` being the value of a group and a name.
fn bars(
    groups: &[String],
    names: &[&str],
    of: impl Fn(&str, &str) -> Option<Spread>,
) -> (Vec<String>, Vec<Series>) {
    let there = groups.iter().filter(|group| names.iter().any(|name| of(group, name).is_some()));
    let groups: Vec<String> = there.cloned().collect();
    let series = names.iter().map(|name| Series {
        name: (*name).to_owned(),
        points: groups
            .iter()
            .enumerate()
            .filter_map(|(i, group)| Some((i as f64, of(group, name)?)))
            .collect(),
    });
    let series = series.filter(|series| !series.points.is_empty()).collect();
    (groups, series)
}

fn words(subjects: &[Subject]) -> Vec<String> {
    subjects.iter().map(|subject| subject.word.to_owned()).collect()
}

fn throughput(report: &Report) -> Panel {
    let names = throughput::CCS.map(|(word, _)| word);
    let of = |subject: &str, cc: &str| {
        Some(spread(report, &format!("throughput/{subject}/{cc}"), "mbit")?.over(1000.0))
    };
    let (groups, series) = bars(&words(&FLOWS), &names, of);
    Panel {
        title: "Throughput of one TCP flow".into(),
        y_label: "Gbit/s".into(),
        ..Panel::bars(groups, series)
    }
}

/// In parts of the link, so that all rates have room beside each other.
fn limited(report: &Report) -> Panel {
    let of = |group: &str, subject: &str| {
        let (rate, cc) = group.split_once(' ')?;
        let rate: u32 = rate.parse().ok()?;
        Some(spread(report, &limited::id(rate, subject, cc), "mbit")?.over(f64::from(rate) / 100.0))
    };
    let of_rate = |rate: &u32| throughput::CCS.map(|(cc, _)| format!("{rate} {cc}"));
    let groups: Vec<String> = limited::RATES.iter().flat_map(of_rate).collect();
    let (groups, series) = bars(&groups, &limited::SUBJECTS.map(|subject| subject.word), of);
    Panel {
        title: "Throughput of one TCP flow over a link with a rate".into(),
        x_label: "rate in Mbit/s, congestion control".into(),
        y_label: "% of the rate".into(),
        ..Panel::bars(groups, series)
    }
}

/// Lines over the logarithm of the message size, decades upwards.
pub(in crate::experiments) fn sized(
    report: &Report,
    title: &str,
    subjects: &[&str],
    sizes: &[usize],
    id: impl Fn(&str, usize) -> String,
    metric: &str,
) -> Panel {
    let at = |bytes: usize| (bytes as f64).log2();
    let series: Vec<Series> = subjects
        .iter()
        .map(|subject| Series {
            name: (*subject).to_owned(),
            points: sizes
                .iter()
                .filter_map(|bytes| Some((at(*bytes), spread(report, &id(subject, *bytes), metric)?)))
                .collect(),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let measured = |bytes: &usize| series.iter().any(|s| s.points.iter().any(|(x, _)| *x == at(*bytes)));
    let ticks =
        sizes.iter().filter(|bytes| measured(bytes)).map(|bytes| (at(*bytes), size(*bytes))).collect();
    Panel {
        title: title.into(),
        x_label: "bytes in a message".into(),
        y_label: if metric.ends_with("mbit") { "Mbit/s" } else { "us" }.into(),
        decades: true,
        ticks,
        ..Panel::lines(series)
    }
}

fn size(bytes: usize) -> String {
    if bytes >= 1024 { format!("{}K", bytes / 1024) } else { bytes.to_string() }
}

fn cost(report: &Report) -> Panel {
    let of = |subject: &str, metric: &str| spread(report, &format!("throughput/{subject}/cubic"), metric);
    let (groups, series) = bars(&words(&FLOWS), &["user", "system", "interrupt"], of);
    Panel {
        title: "Time of all processors during the flow, cubic (Fig. 8)".into(),
        y_label: "seconds a second".into(),
        ..Panel::bars(groups, series)
    }
}

fn happenings(report: &Report) -> Panel {
    let of = |subject: &str, metric: &str| spread(report, &format!("throughput/{subject}/cubic"), metric);
    let (groups, series) = bars(&words(&FLOWS), &["interrupts", "switches"], of);
    Panel {
        title: "Interrupts and context switches during the flow, cubic (Fig. 7)".into(),
        y_label: "a second".into(),
        decades: true,
        ..Panel::bars(groups, series)
    }
}

fn idle(report: &Report) -> Panel {
    // What took nothing at all has no place on an axis of decades.
    let of = |subject: &str, poll: &str| {
        spread(report, &idle::id(subject, poll), "percent").filter(|spread| spread.min > 0.0)
    };
    let (groups, series) = bars(&words(&FABRICS), &idle::POLLS, of);
    let line = |name: &str, y: f64| Reference {
        name: name.into(),
        points: vec![(-0.5, y), (groups.len() as f64 - 0.5, y)],
    };
    let mut references = vec![line("goal of adaptive", 1.0)];
    let none = spread(report, idle::NONE, "percent").filter(|spread| spread.median > 0.0);
    references.extend(none.map(|spread| line("daemon without a fabric", spread.median)));
    Panel {
        title: "Idle: what a node's daemon takes".into(),
        y_label: "% of a core".into(),
        decades: true,
        references,
        ..Panel::bars(groups, series)
    }
}

fn restarts(report: &Report) -> Panel {
    let of = |subject: &str, way: &str| spread(report, &restart::id(subject, way), "ms");
    let (groups, series) = bars(&words(&FABRICS), &restart::WAYS, of);
    let goal =
        Reference { name: "goal".into(), points: vec![(-0.5, 500.0), (groups.len() as f64 - 0.5, 500.0)] };
    Panel {
        title: "From a killed node's start until frames go both ways".into(),
        y_label: "ms".into(),
        references: vec![goal],
        ..Panel::bars(groups, series)
    }
}

fn memory(report: &Report) -> Panel {
    let groups = nodes::COUNTS.map(|nodes| nodes.to_string());
    let of = |nodes: &str, what: &str| {
        let count = nodes.parse().unwrap_or(0);
        let (subject, metric, each) = match what {
            "shared, formula" => ("shm", "formula_kib", count as f64),
            "shared, measured" => ("shm", "held_kib", count as f64),
            "own, shm" => ("shm", "own_kib", 1.0),
            _ => ("udp", "own_kib", 1.0),
        };
        Some(spread(report, &nodes::id(subject, count), metric)?.over(1024.0 * each))
    };
    let (groups, series) =
        bars(&groups, &["shared, formula", "shared, measured", "own, shm", "own, udp"], of);
    Panel {
        title: "Memory of a node".into(),
        x_label: "nodes".into(),
        y_label: "MiB a node".into(),
        ..Panel::bars(groups, series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report;

    #[test]
    fn only_what_was_measured_is_drawn() {
        let figure = draw(&report());
        let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
        let wanted = [
            "Throughput of one TCP flow",
            "RTT/2 over message size (Fig. 5)",
            "RTT/2 by how a fabric's threads wait",
        ];
        assert_eq!(titles, wanted);
        assert_eq!(figure.panels[1].ticks, [(6.0, "64".to_owned())]);
        assert_eq!(figure.panels[0].series[0].points, [(0.0, Spread::one(9.0))]);
    }
}
