//! `doctor`

use super::{Style, Tone};
use linkbraid_doctor::{Cause, Diagnosis, Direction, FlowTest};
use linkbraid_terminal::{Table, human, report::one_line};
use std::net::IpAddr;

/// Narrower than this, text is left to the terminal.
const TEXT_WIDTH_MIN: usize = 20;

/// What one flow has in the first line, then the figures, then the bottleneck and what else costs something.
pub fn diagnosis(record: &Diagnosis, peer: IpAddr, style: &Style) -> String {
    let [up, down] = Direction::BOTH.map(|way| {
        let (one, links) = (record.one_flow_mbit[way as usize], record.links_mbit[way as usize]);
        format!("{one:.0} of {links:.0} Mbit/s {}", way.word())
    });
    let bond = one_line(&record.examination.own.bond);
    let mut out = format!("{bond} with {peer}: one flow of TCP has {up}, {down}\n\n{}", lanes(record));
    out.push_str(&format!("\n{}\n", flows(record)));
    match record.causes.split_first() {
        None => {
            let text = "bottleneck: none, the links are full; more links carry more\n";
            out.push_str(&style.paint(Tone::Good, text));
        }
        Some((first, others)) => {
            out.push_str(&cause(&style.paint(Tone::Bad, "bottleneck"), "bottleneck".len(), first, style));
            others.iter().for_each(|other| out.push_str(&cause("also", "also".len(), other, style)));
        }
    }
    out
}

fn rate(mbit: f64) -> String {
    human::measured_rate((mbit * 1000.0) as u32)
}

fn lanes(record: &Diagnosis) -> String {
    let mut table = Table::new("  ", &["member", "peer's member", ">alone, up", ">down"]);
    for lane in &record.examination.lanes {
        let [up, down] = Direction::BOTH.map(|way| {
            let more = if lane.is_at_least(way) { "at least " } else { "" };
            format!("{more}{}", rate(lane.mbit(way)))
        });
        table.row([lane.member.clone(), lane.peer_member.clone(), up, down]);
    }
    table.render()
}

fn flows(record: &Diagnosis) -> String {
    let columns =
        ["TCP over all", "", ">rate", ">sent again", ">window full", ">buffer full", ">CPU at both ends"];
    let mut table = Table::new("  ", &columns);
    for flow in &record.examination.flows {
        table.row(row(flow));
    }
    table.render()
}

fn row(flow: &FlowTest) -> [String; 7] {
    let percent = |part: f64| format!("{:.0} %", part * 100.0);
    let sender = &flow.sender;
    let waited = |us: u64| percent(us as f64 / sender.busy_us.max(1) as f64);
    [
        human::count(flow.flows.into(), "flow"),
        flow.way.word().to_owned(),
        rate(flow.mbit),
        format!("{:.2} %", sender.again as f64 * 100.0 / sender.segments.max(1) as f64),
        waited(sender.window_us),
        waited(sender.buffer_us),
        flow.load.map(|load| percent(load.busy)).join(", "),
    ]
}

fn cause(word: &str, width: usize, cause: &Cause, style: &Style) -> String {
    let text = one_line(&cause.text);
    let text = match cause.costs_mbit {
        costs if costs < 0.1 => text,
        costs => format!("{text} (costs {})", rate(costs)),
    };
    let lines = match style.width {
        Some(columns) => human::wrap(&text, columns.saturating_sub(width + 2).max(TEXT_WIDTH_MIN)),
        None => vec![text],
    };
    let indent = width + 2;
    let mut out = format!("{word}: {}\n", lines.join(&format!("\n{:indent$}", "")));
    if let Some(hint) = &cause.hint {
        out.push_str(&format!("  hint: {}\n", one_line(hint)));
    }
    out
}
