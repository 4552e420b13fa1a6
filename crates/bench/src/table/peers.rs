//! What each system came to beside the others, what it takes, and what a failure costs.

use super::Table;
use crate::experiments::peers::{KINDS, LOADS, NAME, PINGS, SYSTEMS, System, failure_id, rate_id};
use crate::report::Report;
use crate::stats::Spread;

const LINKS: [usize; 3] = [1, 2, 4];
/// Payload bytes of a datagram.
const DATAGRAM: f64 = 1472.0;
/// How a CPU calls itself that is none.
const EMULATED: &str = "QEMU TCG";

/// The tables of a report, if it is of that experiment.
pub(super) fn tables(report: &Report) -> Vec<Table> {
    if report.experiment != NAME {
        return Vec::new();
    }
    let mut tables: Vec<Table> = LINKS.into_iter().filter_map(|links| rates(report, links)).collect();
    tables.extend(failures(report));
    tables.extend(needs(report));
    tables
}

pub(super) fn notes(report: &Report) -> Vec<String> {
    if report.experiment != NAME {
        return Vec::new();
    }
    let mut notes = Vec::new();
    if report.machine.cpu.contains(EMULATED) {
        notes.push(
            "The CPU is emulated and its clock counts instructions: rates and times are those of the labs' links and of protocols, \
             what a real CPU would need is not seen here."
                .into(),
        );
    }
    if !report.measures.is_empty() {
        notes.push(
            "LACP is measured over cables from host to host, since a Linux bridge does not speak it; all else over switches without \
             any configuration. balance-xor and balance-rr would want a trunk set up in a real switch: the bridge relearns \
             a MAC at each frame, which spares them that. 802.3ad's links have no switch, and so no queue of one."
                .into(),
        );
    }
    notes
}

fn systems() -> impl Iterator<Item = (String, &'static System)> {
    SYSTEMS.iter().map(|system| (system.word.to_owned(), system))
}

/// A table of all loads with so many links.
fn rates(report: &Report, links: usize) -> Option<Table> {
    let name = if links == 1 { "1 link".to_owned() } else { format!("{links} links") };
    let loads = LOADS.iter().map(|load| (format!("{}, of one bare link", load.title), load.word));
    let table = Table::matrix(&name, systems(), loads, false, |system, load| {
        let id = rate_id(load, links, system.word);
        report.measure(&id, "mbit").map(|_| rate(report, &id, report.settings.seconds))
    });
    let note =
        "In brackets: the smallest and the largest ratio; segments sent again of 10,000, or datagrams lost.";
    Some(table?.noted(note.into()))
}

/// What did not arrive of the datagrams sent. iperf3 counts losses of the seconds that it does not measure, too.
fn lost(report: &Report, id: &str, seconds: u32) -> Option<Spread> {
    let all = report.measure(id, "mbit")?.values.iter().zip(&report.measure(id, "datagrams")?.values);
    Spread::of(all.filter(|(_, sent)| **sent > 0.0).map(|(mbit, sent)| {
        let arrived = mbit * 1e6 / 8.0 / DATAGRAM * f64::from(seconds);
        (1.0 - arrived / sent).max(0.0)
    }))
}

/// `1.99 (1.98 to 2.00), 0.3 again`.
fn rate(report: &Report, id: &str, seconds: u32) -> String {
    let Some(ratio) = report.ratio(id, "single") else { return "-".into() };
    let spread = if ratio.max > ratio.min {
        format!(" ({:.2} to {:.2})", ratio.min, ratio.max)
    } else {
        String::new()
    };
    let cost = match (lost(report, id, seconds), report.median(id, "again_per_10k")) {
        (Some(lost), _) => format!(", {:.1} % lost", lost.median * 100.0),
        (None, Some(again)) => format!(", {again:.1} again"),
        (None, None) => String::new(),
    };
    format!("{:.3}{spread}{cost}", ratio.median)
}

fn failures(report: &Report) -> Option<Table> {
    let kinds = KINDS.iter().map(|kind| (kind.title.to_owned(), kind.word));
    let table = Table::matrix("one of 2 links fails", systems(), kinds, false, |system, kind| {
        let of = |metric| report.spread(&failure_id(kind, system.word), metric);
        of("stall_ms").map(|stall| failure(stall, of("left_share"), of("pings_lost")))
    });
    let quiet = report.measures.iter().filter(|m| m.metric == "quiet_ms").filter_map(|m| m.spread);
    let quiet = Spread::of(quiet.map(|spread| spread.max)).map_or(0.0, |spread| spread.max);
    Some(table?.noted(format!(
        "The longest time without new data at the receiver of one TCP flow (cubic), in ms; what is left of its rate in the fourth \
         second, while the link is still out; pings lost of {PINGS}, 20 ms apart. The link is the one that carried most. In the \
         second before, the longest time without data was {quiet:.0} ms at most. MPTCP does not carry pings: they take \
         the address of the first link."
    )))
}

/// `120 (110 to 130) ms, 0.99 left, 3 pings`.
fn failure(stall: Spread, left: Option<Spread>, pings: Option<Spread>) -> String {
    let mut text = format!("{:.0}", stall.median);
    if stall.max - stall.min >= 1.0 {
        text += &format!(" ({:.0} to {:.0})", stall.min, stall.max);
    }
    text += " ms";
    if let Some(left) = left {
        text += &format!(", {:.2} left", left.median);
    }
    if let Some(pings) = pings {
        text += &format!(", {:.0} pings", pings.median);
    }
    text
}

/// What each needs that the others do not.
fn needs(report: &Report) -> Option<Table> {
    let needs = [("what it needs".to_owned(), ())];
    let table = Table::matrix("system", systems(), needs, false, |system, ()| {
        let end = format!("/{}", system.word);
        report.measures.iter().any(|m| m.id.ends_with(&end)).then(|| system.needs.to_owned())
    });
    Some(Table { words: &[0, 1], ..table? })
}

#[cfg(test)]
mod tests;
