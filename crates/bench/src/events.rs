//! What a daemon says has happened: when it knew that a link is lost.

use linkbraid_api::{EventKind, EventRecord};

/// The first event from `since_ms` on that says that a link is lost: of this member, or of a lane that ends at this
/// MAC of the peer.
pub fn first_loss<'a>(
    events: &'a [EventRecord],
    since_ms: u64,
    member: Option<&str>,
    mac: &str,
) -> Option<&'a EventRecord> {
    events.iter().filter(|event| event.time_ms >= since_ms && is_loss(event)).find(|event| {
        let ours = event.object.split(" > ").next();
        match (event.kind, member) {
            (EventKind::Member | EventKind::Lane, Some(member)) => ours == Some(member),
            (EventKind::Lane, None) => event.object.to_lowercase().contains(&mac.to_lowercase()),
            _ => false,
        }
    })
}

fn is_loss(event: &EventRecord) -> bool {
    matches!(event.new.as_deref(), Some("down" | "cut" | "gone" | "held") | None)
}

#[cfg(test)]
mod tests;
