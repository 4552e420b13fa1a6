//! `fabric show`, and `stats` of fabrics.

use super::bonds::{keys, lately};
use super::stats;
use super::{Clock, Style, WIDTH, each, facts, health};
use linkbraid_api::{
    Encrypt, FabricPeerRecord, FabricPeerStats, FabricRecord, FabricStatsRecord, FabricVxlanRecord,
    NodeState, value::Value as _,
};
use linkbraid_terminal::{Table, human};

/// Fabrics, an empty line between two; the first line of each says whether it is well.
pub fn fabrics(records: &[FabricRecord], style: &Style, clock: &Clock) -> String {
    each(records, "no fabrics", |record| fabric(record, style, clock))
}

fn fabric(record: &FabricRecord, style: &Style, clock: &Clock) -> String {
    let mut out = headline(record, style);
    let (mtu, poll) = (record.settings.mtu.0, record.settings.poll.text());
    let cpu = format!("{} of a processor, {} s so far", human::percent(record.cpu_ppm), record.cpu_ms / 1000);
    let encrypts = record.settings.encrypt == Encrypt::On;
    let vxlan = record.vxlan.as_ref().map_or_else(String::new, vxlan);
    out += &facts(&[
        ("address", record.addresses.join(", ")),
        ("mac", format!("{}, mtu {mtu}", record.mac)),
        ("over", record.transport.clone()),
        ("keys", keys(record.settings.auth, &record.keys)),
        ("frames", if encrypts { "encrypted (ChaCha20-Poly1305)".to_owned() } else { String::new() }),
        ("poll", format!("{poll}, {}", human::count(record.queues.into(), "queue"))),
        ("memory", record.memory_bytes.map_or_else(String::new, |all| memory(record, all))),
        ("offload", record.offloads.join(", ")),
        ("vxlan", human::wrap(&vxlan, WIDTH - 12).join(&format!("\n{:12}", ""))),
        ("cpu", if record.epoch.is_some() { cpu } else { String::new() }),
        ("absent", absent_in_words(record)),
    ]);
    if record.peers.iter().any(|peer| peer.state != NodeState::Absent) {
        out.push('\n');
        out.push_str(&peers(&record.peers));
    }
    out + &lately(&record.events, style, clock)
}

/// `UDP port 4789, by tcx`, or why not.
fn vxlan(record: &FabricVxlanRecord) -> String {
    match &record.hook {
        Some(hook) => format!("UDP port {}, by {hook}", record.port),
        None => format!("not used: {}", record.reason),
    }
}

/// Whether frames to a node go by VXLAN; nothing where that is no question.
fn way(peer: &FabricPeerRecord) -> String {
    match &peer.vxlan {
        Some(way) if way.taken && way.reason.is_empty() => "by VXLAN".into(),
        Some(way) if way.taken => format!("by VXLAN {}", way.reason),
        Some(way) if !way.reason.is_empty() => format!("not by VXLAN: {}", way.reason),
        _ => String::new(),
    }
}

/// `525 kB a node, 1,052,672 bytes in all`: what the file must have.
fn memory(record: &FabricRecord, all: u64) -> String {
    let node = record.node_memory_bytes.unwrap_or(0);
    format!("{} for each node, {all} bytes in total", human::bytes(node))
}

/// `fab0: ok, node 0, 1 of 1 other node up`
fn headline(record: &FabricRecord, style: &Style) -> String {
    let up = record.peers.iter().filter(|peer| peer.state == NodeState::Up).count();
    let others = usize::from(record.nodes.saturating_sub(1)).saturating_sub(absent(record).count());
    let reason = if record.reason.is_empty() { String::new() } else { format!(": {}", record.reason) };
    format!(
        "{}: {}, node {}, {up} of {} up{reason}\n",
        record.name,
        health(record.health, style),
        record.node,
        human::count(others, "other node"),
    )
}

/// The nodes that the directory does not have.
fn absent(record: &FabricRecord) -> impl Iterator<Item = u16> {
    record.peers.iter().filter(|peer| peer.state == NodeState::Absent).map(|peer| peer.node)
}

fn absent_in_words(record: &FabricRecord) -> String {
    match ranges(absent(record)) {
        none if none.is_empty() => none,
        nodes => {
            let text = format!("{nodes}: not in the directory");
            human::wrap(&text, WIDTH - 12).join(&format!("\n{:12}", ""))
        }
    }
}

/// `3, 5 to 7`
fn ranges(numbers: impl Iterator<Item = u16>) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let words = ranges.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first} to {last}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn peers(records: &[FabricPeerRecord]) -> String {
    let mut table = Table::new(
        "  ",
        &[">node", "state", ">since", ">heard", ">sent", ">received", ">dropped", ">waiting"],
    );
    for peer in records {
        let state = match peer.state {
            NodeState::Up => "up",
            NodeState::Down => "down",
            NodeState::Refused => "refused",
            NodeState::Absent => continue,
        };
        table.row([
            peer.node.to_string(),
            state.to_owned(),
            human::span(peer.since_ms),
            peer.heard_ms.map_or_else(|| "never".to_owned(), human::span),
            human::bytes(peer.tx_bytes),
            human::bytes(peer.rx_bytes),
            human::frames(peer.dropped_frames),
            human::bytes(peer.queued_bytes),
        ]);
        for text in [&peer.reason, &way(peer)] {
            for line in human::wrap(text, WIDTH / 2) {
                table.note(&line);
            }
        }
    }
    table.render()
}

/// Counters, a table a fabric, and then one for each other node; those at zero only with `all`.
pub fn fabric_stats(records: &[FabricStatsRecord], all: bool) -> String {
    let tables = records.iter().flat_map(|record| {
        let name = &record.fabric;
        let cpu = format!("  cpu         {} of a processor\n", human::percent(record.cpu_ppm));
        let whole = stats::counters(name, &record.counters, all) + &cpu;
        let peers = record.peers.iter().map(move |peer| {
            stats::counters(&format!("{name} node {}", peer.node), &peer.counters, all) + &waits(peer, all)
        });
        std::iter::once(whole).chain(peers)
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// What is no counter: how much waits for the node, and how long a message takes there and back; with `all` how many took how long.
fn waits(peer: &FabricPeerStats, all: bool) -> String {
    let waiting = format!("  waiting     {}\n", human::bytes(peer.queued_bytes));
    let Some(trip) = &peer.round_trip else { return waiting };
    let [p50, p90, p99, p999, max] =
        [trip.p50_ns, trip.p90_ns, trip.p99_ns, trip.p999_ns, trip.max_ns].map(human::microseconds);
    let count = human::frames(trip.count);
    let mut out = format!(
        "{waiting}  round trip  p50 {p50}, p90 {p90}, p99 {p99}, p99.9 {p999}, longest {max} us of {count}\n"
    );
    for bucket in trip.histogram.iter().filter(|_| all) {
        let below = human::microseconds(bucket.below_ns);
        out.push_str(&format!("              below {below:>8} us: {}\n", human::frames(bucket.count)));
    }
    out
}
