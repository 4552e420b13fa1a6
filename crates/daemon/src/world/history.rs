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
        tracing::info!(bond = %event.bond, reason = %event.reason, "{}: {change}{}{took}", event.object, event.text);
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
