//! The panels of a run; those of stages that were not measured are left out.

use super::programs::{self, SOCKPERF_BYTES};
use super::subject::*;
use super::throughput::{LIMITED, LIMITS, limited_id};
use super::{idle, latency, mtu, nodes, restart};
use crate::experiments::prelude::*;
use crate::plot::Groups;
use crate::run::CCS;

/// The networks whose latency and throughput over message size are drawn, as in the paper's Figs. 5 and 6.
const SIZED: [&str; 9] =
    ["veth", "gigabit", "shm", "vxlan", "udp-vxlan", "udp", "udp-queues", "ofi-net", "ofi-tcp"];
/// The networks whose flow is drawn; more names do not fit under an axis.
const FLOWS: [Subject; 9] = [VETH, SHM, SHM_LARGE, VXLAN, UDP_VXLAN, UDP, UDP_QUEUES, OFI_NET, OFI_TCP];
const WAITING: [&str; 6] = ["veth", "shm", "shm-busy", "shm-sleep", "udp", "udp-busy"];

pub(in crate::experiments) fn draw(report: &Report) -> Figure {
    let of = |title: &str, subjects: &[&str], id: &dyn Fn(&str, usize) -> String, metric: &str| {
        sized(report, title, subjects, &latency::BYTES, id, metric)
    };
    let [netpipe, sockperf] =
        ["netpipe", "sockperf"].map(|word| move |subject: &str, bytes| programs::id(word, subject, bytes));
    let cost = "Time of all processors during the flow, cubic";
    let happenings = "Interrupts and context switches during the flow, cubic";
    let panels = [
        throughput(report),
        limited(report),
        of("RTT/2 over message size (Fig. 5)", &SIZED, &latency::id, "half_us"),
        of("Throughput over message size, one at a time (Fig. 6)", &SIZED, &latency::id, "mbit"),
        of("Interrupts over message size (Fig. 7)", &SIZED, &latency::id, "interrupts"),
        of("Context switches over message size", &SIZED, &latency::id, "switches"),
        of("System time over message size (Fig. 8)", &SIZED, &latency::id, "system"),
        of("RTT/2 by how a fabric's threads wait", &WAITING, &latency::id, "half_us"),
        of("RTT/2 as NPtcp tells it, the best of seven", &SIZED, &netpipe, "half_us"),
        sized(report, "RTT/2 of UDP as sockperf tells it", &SIZED, &SOCKPERF_BYTES, sockperf, "half_us"),
        meanwhile(report, cost, &["user", "system", "interrupt"], "seconds a second"),
        meanwhile(report, happenings, &["interrupts", "switches"], "a second").in_decades(),
        lengths(report),
        idle(report),
        restarts(report),
        memory(report),
    ];
    Figure::of("fabric: beside what the kernel has", panels)
}

/// A group for each network, and a bar in it for each name.
fn by_subject<'a>(
    subjects: &[Subject],
    names: &[&'a str],
    value: impl Fn(&str, &'a str) -> Option<Spread>,
) -> Groups<&'static str> {
    let all = Panel::groups(subjects.iter().map(|subject| (subject.word.to_owned(), subject.word)));
    names.iter().fold(all, |panel, name| panel.bar(*name, |subject| value(subject, name))).measured()
}

fn throughput(report: &Report) -> Panel {
    let of = |subject: &str, cc: &str| {
        Some(report.spread(&format!("throughput/{subject}/{cc}"), "mbit")?.over(1000.0))
    };
    let panel = by_subject(&FLOWS, &CCS.map(|(word, _)| word), of);
    panel.panel("Throughput of one TCP flow", "", "Gbit/s")
}

/// In parts of the link, so that all rates have room beside each other.
fn limited(report: &Report) -> Panel {
    let of_rate = |rate: u32| CCS.map(|(cc, _)| (format!("{rate} {cc}"), (rate, cc)));
    let all = Panel::groups(LIMITS.into_iter().flat_map(of_rate));
    let panel = LIMITED.into_iter().fold(all, |panel, subject| {
        panel.bar(subject.word, |(rate, cc)| {
            Some(report.spread(&limited_id(rate, subject.word, cc), "mbit")?.over(f64::from(rate) / 100.0))
        })
    });
    let title = "Throughput of one TCP flow over a link with a rate";
    panel.measured().panel(title, "rate in Mbit/s, congestion control", "% of the rate")
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
    let at = |bytes: &usize| (*bytes as f64).log2();
    let mut panel = Panel::over(sizes.iter().map(at));
    for subject in subjects {
        // What took nothing at all has no place on an axis of decades.
        let of = |x: f64| report.spread(&id(subject, x.exp2().round() as usize), metric);
        panel = panel.line(*subject, |x| of(x).filter(|spread| spread.min > 0.0));
    }
    panel.ticks = ticks(sizes);
    let unit = match metric {
        "interrupts" | "switches" => "a second",
        "system" => "seconds a second",
        metric if metric.ends_with("mbit") => "Mbit/s",
        _ => "us",
    };
    panel.titled(title, "bytes in a message", unit).in_decades()
}

/// Names of sizes on an axis of their logarithms: each is four times the one before at least, or names would overlap.
pub(in crate::experiments) fn ticks(sizes: &[usize]) -> Vec<(f64, String)> {
    let mut last = 0;
    let named = sizes.iter().filter(|bytes| {
        let is_far = **bytes >= last * 4;
        last = if is_far { **bytes } else { last };
        is_far
    });
    named.map(|bytes| ((*bytes as f64).log2(), size(*bytes))).collect()
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => bytes.to_string(),
        1024..1_048_576 => format!("{}K", bytes / 1024),
        _ => format!("{}M", bytes >> 20),
    }
}

/// One flow by the length of frames.
fn lengths(report: &Report) -> Panel {
    let all = Panel::groups(mtu::MTUS.map(|mtu| (mtu.to_string(), mtu)));
    let panel = mtu::SUBJECTS.iter().fold(all, |panel, subject| {
        panel.bar(subject.word, |mtu| Some(report.spread(&mtu::id(subject.word, mtu), "mbit")?.over(1000.0)))
    });
    panel.measured().panel("Throughput of one TCP flow by MTU, cubic", "MTU", "Gbit/s")
}

/// What the machine did during a flow.
fn meanwhile(report: &Report, title: &str, metrics: &[&str], unit: &str) -> Panel {
    let of = |subject: &str, metric: &str| report.spread(&format!("throughput/{subject}/cubic"), metric);
    by_subject(&FLOWS, metrics, of).panel(title, "", unit)
}

fn idle(report: &Report) -> Panel {
    // What took nothing at all has no place on an axis of decades.
    let of = |subject: &str, poll: &str| {
        report.spread(&idle::id(subject, poll), "percent").filter(|spread| spread.min > 0.0)
    };
    let mut panel = by_subject(&FABRICS, &idle::POLLS, of).flat("goal of adaptive", 1.0);
    if let Some(none) = report.median(idle::NONE, "percent").filter(|percent| *percent > 0.0) {
        panel = panel.flat("daemon without a fabric", none);
    }
    panel.panel("Idle: what a node's daemon takes", "", "% of a core").in_decades()
}

fn restarts(report: &Report) -> Panel {
    let of = |subject: &str, way: &str| report.spread(&restart::id(subject, way), "ms");
    let panel = by_subject(&FABRICS, &restart::WAYS, of).flat("goal", 500.0);
    panel.panel("From a killed node's start until frames go both ways", "", "ms")
}

fn memory(report: &Report) -> Panel {
    let mut panel = Panel::groups(nodes::COUNTS.map(|nodes| (nodes.to_string(), nodes)));
    for (name, subject, metric, is_shared) in [
        ("shared, formula", "shm", "formula_kib", true),
        ("shared, measured", "shm", "held_kib", true),
        ("own, shm", "shm", "own_kib", false),
        ("own, udp", "udp", "own_kib", false),
    ] {
        panel = panel.bar(name, |count| {
            let each = if is_shared { count as f64 } else { 1.0 };
            Some(report.spread(&nodes::id(subject, count), metric)?.over(1024.0 * each))
        });
    }
    panel.measured().panel("Memory of a node", "nodes", "MiB a node")
}

#[cfg(test)]
mod tests;
