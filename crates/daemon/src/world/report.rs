//! What happens to a fabric, in words.

use crate::world::history::Change;
use linkbraid_api::EventKind;
use linkbraid_fabric::Loss;
use linkbraid_proto::session::{self, Down, Mismatch, Side, Verdict};
use std::{net::SocketAddr, process::ExitStatus};

/// What the threads of a fabric report, and which start of it.
pub(crate) struct Event {
    pub start: u64,
    pub report: Report,
}

/// What happened to a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// A link to another node is another one.
    Link { node: u16, old: Verdict, new: Verdict },
    /// Something that changes no link.
    Event(session::Event),
    /// The carrier of the interface came or went.
    Carrier(bool),
    /// One of its threads failed, or the program that carries its frames, which ended like this.
    Failed(Option<ExitStatus>),
    /// What its frames travelled through is gone.
    Memory(Loss),
    /// Of a node, or of the fabric, there were so many more events than are reported; its state now.
    Limited { node: Option<u16>, count: u64, state: &'static str },
    /// So many things were not reported because the loop was behind.
    Lost(u64),
}

impl Report {
    /// As an event of the fabric.
    pub(crate) fn change(&self, fabric: &str) -> Change<'static> {
        match *self {
            Report::Link { node, old, new } => {
                Change::new(EventKind::Node, node.to_string(), reason(new), text(new))
                    .states(Some(word(old)), Some(word(new)))
            }
            Report::Event(event) => {
                let (object, reason) = match event {
                    session::Event::Duplicate { node, .. } => (format!("node {node}"), "duplicate"),
                    session::Event::OwnNumber { .. } => (fabric.to_owned(), "own_number"),
                };
                Change::new(EventKind::Conflict, object, reason, event.to_string())
            }
            Report::Carrier(true) => {
                Change::fabric(fabric, "carrier", "a node is up").states(Some("down"), Some("up"))
            }
            Report::Carrier(false) => {
                Change::fabric(fabric, "no_carrier", "no node is up").states(Some("up"), Some("down"))
            }
            Report::Failed(how) => Change::fabric(fabric, "failed", failure(how)),
            Report::Memory(loss) => {
                Change::fabric(fabric, loss_reason(loss), format!("{loss}; it is restarted"))
            }
            Report::Limited { node, count, state } => {
                let kind = node.map_or(EventKind::Fabric, |_| EventKind::Node);
                let object = node.map_or_else(|| fabric.to_owned(), |node| node.to_string());
                let text = format!("{count} events were not reported: there were too many");
                Change::new(kind, object, "limited", text).states(None, Some(state))
            }
            Report::Lost(count) => {
                let text = format!("{count} events were not reported: the daemon was busy");
                Change::fabric(fabric, "lost", text)
            }
        }
    }
}

/// So many nodes that move together are named.
const NAMED_MAX: usize = 4;

/// Which nodes have other addresses, in words.
pub(crate) fn moved(nodes: &[(u16, Option<SocketAddr>)]) -> String {
    if nodes.len() > NAMED_MAX {
        let known = nodes.iter().filter(|(_, address)| address.is_some()).count();
        return format!("{known} nodes have other addresses now, and {} have none", nodes.len() - known);
    }
    let one = |(node, address): &(u16, Option<SocketAddr>)| match address {
        Some(address) => format!("node {node} is at {address} now"),
        None => format!("node {node} has no address any more"),
    };
    nodes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What ended a start of a fabric, in words.
pub(crate) fn failure(how: Option<ExitStatus>) -> String {
    let what = how.map_or_else(
        || "a thread of it failed".to_owned(),
        |status| format!("the program that carries its frames ended ({status})"),
    );
    format!("{what}; it is restarted")
}

/// The state in one word.
pub(crate) const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Up { .. } => "up",
        Verdict::Down(_) => "down",
        Verdict::Refused { .. } => "refused",
    }
}

const fn loss_reason(loss: Loss) -> &'static str {
    match loss {
        Loss::Cut => "memory_cut",
        Loss::Overwritten => "memory_overwritten",
        Loss::Removed => "memory_removed",
    }
}

const fn reason(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Up { .. } => "connected",
        Verdict::Down(down) => match down {
            Down::Unheard => "unheard",
            Down::Silent => "silent",
            Down::Deaf => "deaf",
            Down::Left => "left",
            Down::Restarted => "restarted",
            Down::Gone => "gone",
            Down::Stopped => "stopped",
        },
        Verdict::Refused { why, .. } => match why {
            Mismatch::Nodes { .. } => "nodes_differ",
            Mismatch::Mtu { .. } => "mtu_differs",
            Mismatch::Queues { .. } => "queues_differ",
            Mismatch::Encryption { .. } => "encryption_differs",
            Mismatch::Taken => "taken",
        },
    }
}

/// Why it is so, as half a sentence.
pub(crate) fn text(verdict: Verdict) -> String {
    match verdict {
        Verdict::Up { epoch } => format!("connected, epoch {epoch:016x}"),
        Verdict::Down(down) => down.to_string(),
        Verdict::Refused { by: Side::Local, why } => why.to_string(),
        Verdict::Refused { by: Side::Peer, why } => format!("refused by it: {why}"),
    }
}
