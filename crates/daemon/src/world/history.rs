//! What happened lately, for `show`; and whoever wants to hear of it as it happens, for `monitor`.

use linkbraid_api::{EventKind, EventRecord};
use std::{
    collections::VecDeque,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::broadcast;

/// Events kept of each bond; the oldest make room.
const EVENTS_MAX: usize = 100;
/// Events waiting for a client of `monitor` that reads slowly; beyond it the client hears that some were lost.
const FEED_MAX: usize = 1024;

/// Where events go as they happen.
pub(crate) type Feed = broadcast::Sender<EventRecord>;

/// A feed that nobody listens to yet.
pub(crate) fn new_feed() -> Feed {
    broadcast::Sender::new(FEED_MAX)
}

/// What changed, from what to what.
pub(crate) struct Change<'a> {
    pub kind: EventKind,
    pub object: String,
    pub old: Option<&'a str>,
    pub new: Option<&'a str>,
    /// A word that is never renamed.
    pub reason: &'a str,
    /// The same for people.
    pub text: String,
    pub took: Option<Duration>,
}

impl<'a> Change<'a> {
    /// Something that happened, without a state before and after it.
    pub(crate) fn new(
        kind: EventKind,
        object: impl Into<String>,
        reason: &'a str,
        text: impl Into<String>,
    ) -> Self {
        Self { kind, object: object.into(), old: None, new: None, reason, text: text.into(), took: None }
    }

    /// With the states before and after it.
    pub(crate) fn states(self, old: Option<&'a str>, new: Option<&'a str>) -> Self {
        Self { old, new, ..self }
    }

    /// With how long it took, where that is known.
    pub(crate) fn took(self, took: Duration) -> Self {
        Self { took: Some(took).filter(|took| !took.is_zero()), ..self }
    }

    /// Something about a fabric as a whole.
    pub(crate) fn fabric(name: &str, reason: &'a str, text: impl Into<String>) -> Self {
        Self::new(EventKind::Fabric, name, reason, text)
    }
}

/// The events of one bond.
pub(crate) struct History {
    bond: String,
    feed: Feed,
    events: VecDeque<EventRecord>,
}

impl History {
    pub(crate) fn new(bond: &str, feed: Feed) -> Self {
        Self { bond: bond.to_owned(), feed, events: VecDeque::with_capacity(EVENTS_MAX) }
    }

    /// Keeps an event, and hands it to whoever listens.
    pub(crate) fn add(&mut self, change: Change<'_>) {
        let event = record(&self.bond, change);
        let took =
            event.took_us.map(|us| format!(" ({}.{:03} ms)", us / 1000, us % 1000)).unwrap_or_default();
        let change = match (&event.old, &event.new) {
            (Some(old), Some(new)) => format!("{old} -> {new}: "),
            (None, Some(new)) => format!("{new}: "),
            (Some(old), None) => format!("no longer {old}: "),
            (None, None) => String::new(),
        };
        let line = format!("{}: {change}{}{took}", event.object, event.text);
        match weight(&event) {
            Weight::NeedsAHand => tracing::warn!(bond = %event.bond, reason = %event.reason, "{line}"),
            Weight::News => tracing::info!(bond = %event.bond, reason = %event.reason, "{line}"),
            Weight::Detail => tracing::debug!(bond = %event.bond, reason = %event.reason, "{line}"),
        }
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event.clone());
        // Nobody listens: that is no loss.
        let _ = self.feed.send(event);
    }

    /// Something about the bond as a whole.
    pub(crate) fn bond(&mut self, new: Option<&str>, reason: &str, text: impl Into<String>) {
        self.add(Change::new(EventKind::Bond, self.bond.clone(), reason, text).states(None, new));
    }

    /// Something about a member.
    pub(crate) fn member(&mut self, name: &str, reason: &str, text: impl Into<String>) {
        self.add(Change::new(EventKind::Member, name, reason, text));
    }

    /// Oldest first.
    pub(crate) fn events(&self) -> impl Iterator<Item = &EventRecord> {
        self.events.iter()
    }
}

/// How much an event matters to whoever reads the log; `show` and `monitor` have all of them.
#[derive(Debug, PartialEq, Eq)]
enum Weight {
    /// Somebody should look at the machine.
    NeedsAHand,
    News,
    Detail,
}

fn weight(event: &EventRecord) -> Weight {
    let is_down = event.new.as_deref() == Some("down");
    // One that has no carrier yet when it joins will get one.
    let has_failed = is_down && event.old.is_some();
    let is_serious = ["half_duplex", "table_full"].contains(&event.reason.as_str());
    match event.kind {
        EventKind::Conflict => Weight::NeedsAHand,
        EventKind::Member if has_failed => Weight::NeedsAHand,
        // A bond of four members has sixteen of them to each peer.
        EventKind::Lane if !is_down => Weight::Detail,
        _ if is_serious || event.reason.ends_with("_refused") => Weight::NeedsAHand,
        _ => Weight::News,
    }
}

/// The event as a record, stamped now.
pub(crate) fn record(bond: &str, change: Change<'_>) -> EventRecord {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let whole = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
    EventRecord {
        time_ms: whole(since.as_millis()),
        bond: bond.to_owned(),
        kind: change.kind,
        object: change.object,
        old: change.old.map(str::to_owned),
        new: change.new.map(str::to_owned),
        reason: change.reason.to_owned(),
        text: change.text,
        took_us: change.took.map(|took| whole(took.as_micros())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_hand_is_a_warning_and_lanes_that_come_up_are_details() {
        let of = |kind, reason, old, new| {
            weight(&record("bond0", Change::new(kind, "x", reason, "text").states(old, new)))
        };
        let (up, down) = (Some("up"), Some("down"));
        assert_eq!(of(EventKind::Member, "no_carrier", up, down), Weight::NeedsAHand);
        assert_eq!(of(EventKind::Member, "no_carrier", None, down), Weight::News);
        assert_eq!(of(EventKind::Member, "carrier", down, up), Weight::News);
        assert_eq!(of(EventKind::Lane, "admitted", Some("init"), up), Weight::Detail);
        assert_eq!(of(EventKind::Lane, "lost", up, down), Weight::News);
        assert_eq!(of(EventKind::Bond, "mtu_refused", None, None), Weight::NeedsAHand);
        assert_eq!(of(EventKind::Conflict, "conflict", None, None), Weight::NeedsAHand);
    }

    #[test]
    fn the_oldest_events_make_room_and_listeners_hear_all() {
        let feed = new_feed();
        let mut heard = feed.subscribe();
        let mut history = History::new("bond0", feed);
        for n in 0..EVENTS_MAX + 5 {
            history.member("eth0", "no_carrier", format!("event {n}"));
        }
        assert_eq!(history.events().count(), EVENTS_MAX);
        assert_eq!(history.events().next().map(|event| event.text.as_str()), Some("event 5"));
        assert_eq!(heard.try_recv().map(|event| event.text), Ok("event 0".to_owned()));
    }
}
