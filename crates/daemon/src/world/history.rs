//! What happened lately, for `show`; and whoever wants to hear of it as it happens, for `monitor`.

use linkbraid_api::{EventKind, EventRecord};
use std::{
    collections::VecDeque,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::broadcast;

/// Events kept of each bond; the oldest make room.
const EVENTS_MAX: usize = 100;
/// Events kept of hosts that never proved that they are there: anybody on the wire can make them up.
const UNPROVEN_MAX: usize = 20;
/// Events at once, and the time for each one after these, of such hosts and of all that is known; those beyond are only counted.
const UNPROVEN_RATE: (u32, Duration) = (40, Duration::from_secs(5));
const KNOWN_RATE: (u32, Duration) = (4000, Duration::from_millis(10));
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
    /// Of a host that never proved that it is there.
    pub unproven: bool,
}

impl<'a> Change<'a> {
    /// Something that happened, without a state before and after it.
    pub(crate) fn new(
        kind: EventKind,
        object: impl Into<String>,
        reason: &'a str,
        text: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            object: object.into(),
            old: None,
            new: None,
            reason,
            text: text.into(),
            took: None,
            unproven: false,
        }
    }

    /// With the states before and after it.
    pub(crate) fn states(self, old: Option<&'a str>, new: Option<&'a str>) -> Self {
        Self { old, new, ..self }
    }

    /// Of a host that never proved that it is there, if so.
    pub(crate) fn unproven(self, unproven: bool) -> Self {
        Self { unproven, ..self }
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
    /// Those of hosts that never proved that they are there: they push out none of the others.
    unproven: VecDeque<EventRecord>,
    known_rate: Bucket,
    unproven_rate: Bucket,
}

impl History {
    pub(crate) fn new(bond: &str, feed: Feed) -> Self {
        Self {
            bond: bond.to_owned(),
            feed,
            events: VecDeque::with_capacity(EVENTS_MAX),
            unproven: VecDeque::with_capacity(UNPROVEN_MAX),
            known_rate: Bucket::new(KNOWN_RATE),
            unproven_rate: Bucket::new(UNPROVEN_RATE),
        }
    }

    /// Keeps an event, and hands it to whoever listens, unless there are too many.
    pub(crate) fn add(&mut self, change: Change<'_>) {
        self.add_at(Instant::now(), change);
    }

    fn add_at(&mut self, now: Instant, change: Change<'_>) {
        let (unproven, word) =
            (change.unproven, if change.unproven { "of hosts that never answered a probe " } else { "" });
        let bucket = if unproven { &mut self.unproven_rate } else { &mut self.known_rate };
        let Some(left_out) = bucket.take(now) else { return };
        if left_out > 0 {
            let text = format!("{left_out} events {word}were left out: too many in a short time");
            self.tell(Change::new(EventKind::Bond, self.bond.clone(), "left_out", text).unproven(unproven));
        }
        self.tell(change);
    }

    fn tell(&mut self, change: Change<'_>) {
        let unproven = change.unproven;
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
        self.keep(event.clone(), unproven);
        // Nobody listens: that is no loss.
        let _ = self.feed.send(event);
    }

    fn keep(&mut self, event: EventRecord, unproven: bool) {
        let (events, most) =
            if unproven { (&mut self.unproven, UNPROVEN_MAX) } else { (&mut self.events, EVENTS_MAX) };
        if events.len() >= most {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// The host of that name has proven that it is there: what is kept of it stays.
    pub(crate) fn is_proven(&mut self, object: &str) {
        let its = |event: &EventRecord| event.kind == EventKind::Peer && event.object == object;
        if self.unproven.iter().any(its) {
            let (its, others) = std::mem::take(&mut self.unproven).into_iter().partition(its);
            self.unproven = others;
            VecDeque::into_iter(its).for_each(|event| self.keep(event, false));
        }
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
        let mut events: Vec<&EventRecord> = self.events.iter().chain(&self.unproven).collect();
        events.sort_by_key(|event| event.time_ms);
        events.into_iter()
    }
}

/// How many events may be told.
struct Bucket {
    at_once: Duration,
    each: Duration,
    full_at: Option<Instant>,
    left_out: u64,
}

impl Bucket {
    fn new((at_once, each): (u32, Duration)) -> Self {
        Self { at_once: each * at_once, each, full_at: None, left_out: 0 }
    }

    /// How many were left out before this one, which may be told; none if it may not.
    fn take(&mut self, now: Instant) -> Option<u64> {
        let full_at = self.full_at.map_or(now, |at| at.max(now)) + self.each;
        if full_at - now > self.at_once {
            self.left_out += 1;
            return None;
        }
        self.full_at = Some(full_at);
        Some(std::mem::take(&mut self.left_out))
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
        EventKind::Lane if !is_down && event.reason != "short" => Weight::Detail,
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
        assert_eq!(of(EventKind::Lane, "short", up, Some("short")), Weight::News);
        assert_eq!(of(EventKind::Lane, "full_length", Some("short"), up), Weight::Detail);
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

    #[test]
    fn what_strangers_make_up_is_bounded_and_pushes_out_nothing_of_others() {
        let feed = new_feed();
        let mut heard = feed.subscribe();
        let mut history = History::new("bond0", feed);
        let began = Instant::now();
        let peer = |name: &str| {
            Change::new(EventKind::Peer, name, "joined", "heard for the first time").unproven(true)
        };
        history.add_at(began, peer("198.18.0.2"));
        history.is_proven("198.18.0.2");
        history.member("eth0", "no_carrier", "no carrier");
        // 60,000 in 6 s.
        for n in 0..60_000_u32 {
            history.add_at(began + Duration::from_micros(100) * n, peer("198.18.9.9"));
        }
        let mut lines = 0;
        while heard.try_recv().is_ok() {
            lines += 1;
        }
        assert!((40..60).contains(&lines), "{lines}");
        assert_eq!(history.events().count(), 2 + UNPROVEN_MAX);
        assert!(history.events().any(|event| event.object == "198.18.0.2"), "it has proven that it is there");
        assert!(history.events().any(|event| event.object == "eth0"));
        history.add_at(began + Duration::from_secs(10), peer("198.18.0.3"));
        assert!(history.events().any(|event| event.reason == "left_out"), "how many were not told");
    }
}
