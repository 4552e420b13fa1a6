//! What a daemon says has happened, from `linkbraid show --json`.

use crate::bed::BOND;
use linkbraid_api::Error;
use linkbraid_lab::Host;
use serde::Deserialize;

/// One event, as far as experiments look at it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Event {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// `member`, `lane`, and others.
    pub kind: String,
    /// `MEMBER`, or `MEMBER > PEER (MAC)`.
    pub object: String,
    /// What it is now.
    pub new: Option<String>,
    /// Why, as a word.
    pub reason: String,
}

/// The latest events of a host's bond, oldest first; none from a daemon that tells none.
pub fn read(host: Host<'_>) -> Result<Vec<Event>, Error> {
    let bonds: Vec<Bond> = host.ask(&format!("show {BOND}"))?;
    Ok(bonds.into_iter().flat_map(|bond| bond.events).collect())
}

#[derive(Debug, Deserialize)]
struct Bond {
    #[serde(default)]
    events: Vec<Event>,
}

/// The first event from `since_ms` on that says that a link is lost: of this member, or of a lane that ends at this
/// MAC of the peer.
pub fn first_loss<'a>(
    events: &'a [Event],
    since_ms: u64,
    member: Option<&str>,
    mac: &str,
) -> Option<&'a Event> {
    events.iter().filter(|event| event.time_ms >= since_ms && is_loss(event)).find(|event| {
        let ours = event.object.split(" > ").next();
        match (event.kind.as_str(), member) {
            ("member" | "lane", Some(member)) => ours == Some(member),
            ("lane", None) => event.object.to_lowercase().contains(&mac.to_lowercase()),
            _ => false,
        }
    })
}

fn is_loss(event: &Event) -> bool {
    matches!(event.new.as_deref(), Some("down" | "cut" | "gone" | "held") | None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOW: &str = r#"[{"name": "bond0", "members": [], "events": [
        {"time_ms": 100, "bond": "bond0", "kind": "member", "object": "eth0", "old": "up", "new": "down",
         "reason": "no_carrier", "text": "no carrier", "took_us": 900},
        {"time_ms": 190, "bond": "bond0", "kind": "member", "object": "eth1", "old": "down", "new": "up",
         "reason": "waited", "text": "", "took_us": null},
        {"time_ms": 200, "bond": "bond0", "kind": "lane", "object": "eth1 > 198.18.0.2 (02:4C:42:00:01:00)",
         "old": "up", "new": "down", "reason": "no_answer", "text": "", "took_us": null}]}]"#;

    #[test]
    fn the_loss_of_a_link_is_found_by_member_and_by_the_peers_mac() {
        let bonds: Vec<Bond> = serde_json::from_str(SHOW).expect("parses");
        let events = &bonds[0].events;
        let at = |since, member, mac| first_loss(events, since, member, mac).map(|event| event.time_ms);
        assert_eq!(at(0, Some("eth0"), ""), Some(100));
        assert_eq!(at(101, Some("eth0"), ""), None, "what was before is not this failure");
        assert_eq!(at(0, Some("eth1"), ""), Some(200), "coming back is no loss");
        assert_eq!(at(0, None, "02:4c:42:00:01:00"), Some(200));
        assert_eq!(at(0, None, "02:4c:42:00:01:01"), None);
    }

    #[test]
    fn a_daemon_without_events_has_none() {
        let bond: Bond = serde_json::from_str(r#"{"name": "bond0"}"#).expect("parses");
        assert_eq!(bond.events, []);
    }
}
