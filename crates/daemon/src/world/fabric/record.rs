//! Records for `fabric show`, and for `show` and `stats` where they are about fabrics.

use super::{Fabric, State, ends::Ends, fast_path::FastPath, node::Node, worker::Worker};
use crate::world::{
    keys::{Keys, why},
    report,
};
use linkbraid_api::{
    Auth, CounterRecord, FabricPeerRecord, FabricPeerStats, FabricPeerVxlanRecord, FabricRecord,
    FabricStatsRecord, FabricVxlanRecord, Health, NodeState, Records,
};
use linkbraid_dataplane::PathCounts;
use linkbraid_fabric::{
    Address, Join, Live, Stats,
    engine::{Counter, Shared},
};
use linkbraid_link::TapOffloads;
use linkbraid_proto::{
    Time,
    session::{PeerSnapshot, Verdict},
};
use linkbraid_wire::MacAddr;
use std::time::Duration;

/// Counters of the session are numbered after those of the queues, those of the transport after them, and after those what
/// ended starts of the fabric.
const SESSION_NUMBERS_FROM: u32 = 100;
const TRANSPORT_NUMBERS_FROM: u32 = 200;
const END_NUMBERS_FROM: u32 = 300;
/// What went over the fast path, and, after that, why frames did not.
const FAST_PATH_NUMBERS_FROM: u32 = 400;
const FAST_PATH_REASONS_FROM: u32 = 410;

/// `fabric show`
pub(crate) fn records(fabrics: &[&Fabric], now: Time) -> Records {
    Records::Fabrics(fabrics.iter().map(|fabric| one(fabric, now)).collect())
}

fn one(fabric: &Fabric, now: Time) -> FabricRecord {
    let saved = &fabric.saved;
    let address = saved.transport.parse::<Address>().ok();
    let join = Join { node: saved.node, nodes: saved.nodes, queues: saved.queues };
    let memory = address.and_then(|address| address.memory(&join));
    let mut record = FabricRecord {
        name: saved.name.to_string(),
        health: Health::Down,
        reason: String::new(),
        node: saved.node,
        nodes: saved.nodes,
        transport: saved.transport.clone(),
        mac: MacAddr(saved.mac).to_string(),
        settings: saved.settings.clone(),
        keys: fabric.keys.records.clone(),
        addresses: fabric.addresses.clone(),
        queues: saved.queues,
        epoch: None,
        node_memory_bytes: memory.map(|memory| memory.node),
        memory_bytes: memory.map(|memory| memory.total),
        offloads: Vec::new(),
        vxlan: None,
        cpu_ms: 0,
        cpu_ppm: 0,
        peers: Vec::new(),
        events: fabric.history.events().cloned().collect(),
    };
    match &fabric.state {
        State::Waits { error, .. } | State::Joins { error, .. } => record.reason = error.to_string(),
        State::Runs(node) => running(&mut record, node, now),
    }
    say_keys(&mut record, &fabric.keys);
    record
}

/// What is to be said of keys first: that those of the file are not in use, or that they protect nothing.
fn say_keys(record: &mut FabricRecord, keys: &Keys) {
    match (&keys.error, record.settings.auth) {
        (Some(error), _) => degrade(record, format!("{}: {}", error.what, error.cause)),
        (None, Auth::Permit) => say_first(record, "auth is permit, which protects nothing"),
        (None, Auth::Off | Auth::Require) => {}
    }
}

/// All is not well, though it may carry frames.
fn degrade(record: &mut FabricRecord, text: String) {
    if record.health == Health::Ok {
        record.health = Health::Degraded;
    }
    say_first(record, &text);
}

fn say_first(record: &mut FabricRecord, text: &str) {
    let rest = if record.reason.is_empty() { String::new() } else { format!("; {}", record.reason) };
    record.reason = format!("{text}{rest}");
}

fn running(record: &mut FabricRecord, node: &Node, now: Time) {
    let mut worker = node.worker();
    let snapshot = worker.session.snapshot(now);
    worker.cpu.look(now);
    record.epoch = Some(snapshot.epoch);
    record.offloads = words(worker.tap.offloads());
    record.cpu_ms = worker.cpu.total() / 1_000_000;
    record.cpu_ppm = worker.cpu.ppm;
    record.vxlan = worker.fast_path.as_ref().map(|fast_path| FabricVxlanRecord {
        port: fast_path.wanted(),
        hook: fast_path.hook().map(|hook| hook.to_string()),
        reason: fast_path.off().unwrap_or_default().to_owned(),
    });
    let paths: Vec<_> = snapshot.peers.iter().map(|seen| path(&worker, seen.node)).collect();
    drop(worker);
    let peers = snapshot.peers.iter().zip(paths);
    record.peers = peers.map(|(seen, path)| peer(seen, node.shared(), path, now)).collect();
    find_absent(record, node);
    let present: Vec<_> = record.peers.iter().filter(|peer| peer.state != NodeState::Absent).collect();
    let (up, bad): (Vec<_>, Vec<_>) =
        present.iter().copied().partition::<Vec<_>, _>(|peer| peer.state == NodeState::Up);
    record.health = match (up.len(), bad.len()) {
        (0, _) => Health::Down,
        (_, 0) => Health::Ok,
        _ => Health::Degraded,
    };
    // What is refused says more than who has not come yet.
    let worst = bad.iter().find(|peer| peer.state == NodeState::Refused).or_else(|| bad.first()).copied();
    // Where keys are permitted a node without them is up.
    let worst = worst.or_else(|| present.iter().copied().find(|peer| !peer.reason.is_empty()));
    record.reason = match worst {
        Some(peer) => format!("node {}: {}", peer.node, peer.reason),
        None if present.is_empty() => "the directory has no address of another node".to_owned(),
        None => String::new(),
    };
    let unread =
        node.directory().and_then(Live::error).map(|error| format!("{}: {}", error.what, error.cause));
    let unregistered = node.unregistered().map(|cause| format!("etcd: {cause}"));
    for text in unread.into_iter().chain(unregistered) {
        degrade(record, text);
    }
}

/// Nodes that are not up, and that the directory does not have, have not joined yet, or have left.
fn find_absent(record: &mut FabricRecord, node: &Node) {
    let Some(directory) = node.directory().map(Live::directory) else { return };
    for peer in record.peers.iter_mut().filter(|peer| peer.state == NodeState::Down) {
        if directory.address(peer.node).is_none() {
            peer.state = NodeState::Absent;
            peer.reason = "it has no address in the directory".to_owned();
        }
    }
}

/// What goes over the fast path between this node and another one.
fn path(worker: &Worker, node: u16) -> Option<FabricPeerVxlanRecord> {
    let fast_path = worker.fast_path.as_ref()?;
    let (taken, reason) = fast_path.says(&worker.session, node);
    let PathCounts { tx_frames, tx_bytes, rx_frames, rx_bytes, probes: _ } = fast_path.counts(node);
    Some(FabricPeerVxlanRecord { taken, reason, tx_frames, tx_bytes, rx_frames, rx_bytes })
}

fn words(offloads: TapOffloads) -> Vec<String> {
    let words = [(offloads.checksum, "checksum"), (offloads.tso, "tso"), (offloads.uso, "uso")];
    words.into_iter().filter(|(on, _)| *on).map(|(_, word)| word.to_owned()).collect()
}

fn peer(
    seen: &PeerSnapshot,
    shared: &Shared,
    vxlan: Option<FabricPeerVxlanRecord>,
    now: Time,
) -> FabricPeerRecord {
    let total = |counter| shared.total(seen.node, counter);
    let by_vxlan = |count: fn(&FabricPeerVxlanRecord) -> u64| vxlan.as_ref().map_or(0, count);
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let dropped = Counter::ALL.iter().filter(|counter| verdict(**counter) == "drop").map(|c| total(*c));
    FabricPeerRecord {
        node: seen.node,
        state: match (seen.verdict, seen.unkeyed) {
            (Verdict::Up { .. }, _) => NodeState::Up,
            (Verdict::Down(_), None) => NodeState::Down,
            (Verdict::Down(_), Some(_)) | (Verdict::Refused { .. }, _) => NodeState::Refused,
        },
        reason: match (seen.verdict, seen.unkeyed) {
            (_, Some(refused)) => why(refused).to_owned(),
            (Verdict::Up { .. }, None) => String::new(),
            (verdict, None) => report::text(verdict),
        },
        epoch: match seen.verdict {
            Verdict::Up { epoch } => Some(epoch),
            Verdict::Down(_) | Verdict::Refused { .. } => None,
        },
        since_ms: millis(now.since(seen.since)),
        heard_ms: seen.heard.map(|heard| millis(now.since(heard))),
        send_queue: seen.queues.send,
        receive_queue: seen.queues.receive,
        tx_frames: total(Counter::TxFrames) + by_vxlan(|path| path.tx_frames),
        tx_bytes: total(Counter::TxBytes) + by_vxlan(|path| path.tx_bytes),
        rx_frames: total(Counter::RxFrames) + by_vxlan(|path| path.rx_frames),
        rx_bytes: total(Counter::RxBytes) + by_vxlan(|path| path.rx_bytes),
        dropped_frames: dropped.sum(),
        queued_bytes: shared.transport(seen.node).queued,
        vxlan,
    }
}

/// What a counter says of a frame.
fn verdict(counter: Counter) -> &'static str {
    match counter.name() {
        name if name.starts_with("control") => "protocol",
        name if name.contains("_drop_") => "drop",
        "tx_frames" | "tx_bytes" | "tx_copies" => "sent",
        "rx_frames" | "rx_bytes" => "pass",
        _ => "protocol",
    }
}

/// `stats`
pub(crate) fn stats(fabrics: &[&Fabric], now: Time) -> Records {
    Records::FabricStats(fabrics.iter().map(|fabric| of_fabric(fabric, now)).collect())
}

fn of_fabric(fabric: &Fabric, now: Time) -> FabricStatsRecord {
    let name = fabric.saved.name.to_string();
    let State::Runs(node) = &fabric.state else {
        let (counters, peers) = (of_ends(&fabric.ends), Vec::new());
        return FabricStatsRecord { fabric: name, cpu_ms: 0, cpu_ppm: 0, counters, peers };
    };
    let shared = node.shared();
    let all = |counter| (0..shared.nodes()).map(|node| shared.total(node, counter)).sum();
    let mut counters = of_queues(all);
    let mut worker = node.worker();
    worker.cpu.look(now);
    let (cpu_ms, cpu_ppm) = (worker.cpu.total() / 1_000_000, worker.cpu.ppm);
    for (counter, count) in worker.session.snapshot(now).counters {
        let number = SESSION_NUMBERS_FROM + counter.number();
        let name = format!("session_{}", counter.name());
        counters.push(record(number, name, counter.description(), "protocol", count, 0));
    }
    let total = (0..shared.nodes()).map(|node| shared.transport(node)).fold(Stats::default(), Stats::and);
    counters.extend(of_transport(total));
    counters.extend(of_ends(&fabric.ends));
    if let Some(fast_path) = &worker.fast_path {
        let counts = (0..shared.nodes()).map(|node| fast_path.counts(node));
        counters.extend(of_fast_path(counts.fold(PathCounts::default(), PathCounts::and)));
        counters.extend(reasons_of(fast_path));
    }
    let others = (0..shared.nodes()).filter(|node| *node != shared.node());
    let peers = others.map(|node| {
        let mut counters = of_queues(|counter| shared.total(node, counter));
        counters.extend(of_transport(shared.transport(node)));
        if let Some(fast_path) = &worker.fast_path {
            counters.extend(of_fast_path(fast_path.counts(node)));
        }
        let queued_bytes = shared.transport(node).queued;
        FabricPeerStats { node, queued_bytes, round_trip: worker.trips.of(node), counters }
    });
    let peers = peers.collect();
    drop(worker);
    FabricStatsRecord { fabric: name, cpu_ms, cpu_ppm, counters, peers }
}

fn record(
    number: u32,
    name: String,
    description: &str,
    verdict: &str,
    frames: u64,
    bytes: u64,
) -> CounterRecord {
    CounterRecord { name, number, description: description.into(), verdict: verdict.into(), frames, bytes }
}

/// What ended starts of a fabric, in the order of their numbers.
pub(super) fn of_ends(ends: &Ends) -> Vec<CounterRecord> {
    let rows = [
        (
            "end_failed",
            "times it was restarted because one of its threads or its program failed",
            ends.failed,
        ),
        ("end_memory_cut", "times its shared memory was truncated", ends.cut),
        ("end_memory_overwritten", "times its shared memory was overwritten", ends.overwritten),
        ("end_memory_removed", "times its shared memory was removed or replaced", ends.removed),
    ];
    let one = |(number, (name, text, count)): (u32, (&str, &str, u64))| {
        record(number, name.to_owned(), text, "protocol", count, 0)
    };
    (END_NUMBERS_FROM..).zip(rows).map(one).collect()
}

/// Bytes stand beside the frames that they are of.
fn of_queues(count: impl Fn(Counter) -> u64) -> Vec<CounterRecord> {
    let shown = Counter::ALL.iter().filter(|c| !matches!(c, Counter::TxBytes | Counter::RxBytes));
    let one = |counter: &Counter| {
        let bytes = match counter {
            Counter::TxFrames => count(Counter::TxBytes),
            Counter::RxFrames => count(Counter::RxBytes),
            _ => 0,
        };
        let name = counter.name().to_owned();
        record(counter.number(), name, counter.description(), verdict(*counter), count(*counter), bytes)
    };
    shown.map(one).collect()
}

fn of_transport(stats: Stats) -> Vec<CounterRecord> {
    let Stats { sent, full, received, wakes, bad_position, bad_record, incomplete, lost, .. } = stats;
    let Stats { plain, other_key, bad_tag, repeated, .. } = stats;
    let rows = [
        ("sent", "messages given to the transport", "protocol", sent),
        ("full", "messages that had to wait because the transport's queue was full", "protocol", full),
        ("received", "messages taken from the transport", "protocol", received),
        ("wakes", "times a node was woken", "protocol", wakes),
        ("bad_position", "times a node's position in its queue was invalid", "drop", bad_position),
        ("bad_record", "messages whose frame in the transport was invalid", "drop", bad_record),
        (
            "incomplete",
            "messages that were incomplete because a part was lost on the way",
            "drop",
            incomplete,
        ),
        ("lost", "messages that the transport accepted and could not send", "drop", lost),
        ("plain", "datagrams that were not encrypted, with a part of a message", "drop", plain),
        ("other_key", "datagrams encrypted with a key that this node does not have", "drop", other_key),
        ("bad_tag", "encrypted datagrams that no holder of the key has written", "drop", bad_tag),
        ("repeated", "encrypted datagrams that are duplicates, or very late", "drop", repeated),
    ];
    (TRANSPORT_NUMBERS_FROM..)
        .zip(rows)
        .map(|(number, (name, text, verdict, count))| {
            record(number, format!("transport_{name}"), text, verdict, count, 0)
        })
        .collect()
}

fn of_fast_path(counts: PathCounts) -> Vec<CounterRecord> {
    let PathCounts { tx_frames, tx_bytes, rx_frames, rx_bytes, probes } = counts;
    let rows = [
        ("tx_frames", "frames sent over the VXLAN fast path", "sent", tx_frames, tx_bytes),
        ("rx_frames", "frames received over the VXLAN fast path", "pass", rx_frames, rx_bytes),
        ("probes", "probes of the VXLAN fast path received", "protocol", probes, 0),
    ];
    (FAST_PATH_NUMBERS_FROM..)
        .zip(rows)
        .map(|(number, (name, text, verdict, frames, bytes))| {
            record(number, format!("vxlan_{name}"), text, verdict, frames, bytes)
        })
        .collect()
}

fn reasons_of(fast_path: &FastPath) -> Vec<CounterRecord> {
    (FAST_PATH_REASONS_FROM..)
        .zip(fast_path.reasons())
        .map(|(number, (name, drops, text, count))| {
            let verdict = if drops { "drop" } else { "protocol" };
            record(number, format!("vxlan_{name}"), text, verdict, count, 0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkbraid_fabric::Loss;

    #[test]
    fn each_loss_has_a_counter_of_its_own() {
        let mut ends = Ends { failed: 4, ..Ends::default() };
        for (loss, times) in Loss::ALL.into_iter().zip(1..) {
            (0..times).for_each(|_| ends.lost(loss));
        }
        let records = of_ends(&ends);
        assert!(records.iter().map(|record| record.number).eq(300..304));
        assert!(records.iter().map(|record| record.frames).eq([4, 1, 2, 3]));
        for loss in Loss::ALL {
            assert!(records.iter().any(|record| record.name == format!("end_memory_{}", loss.name())));
        }
    }
}
