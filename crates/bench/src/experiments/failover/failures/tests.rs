use super::*;

const EVENTS: &str = r#"[
    {"time_ms": 100, "bond": "bond0", "kind": "member", "object": "eth0", "old": "up", "new": "down",
     "reason": "no_carrier", "text": "no carrier", "took_us": 900},
    {"time_ms": 190, "bond": "bond0", "kind": "member", "object": "eth1", "old": "down", "new": "up",
     "reason": "waited", "text": "", "took_us": null},
    {"time_ms": 200, "bond": "bond0", "kind": "lane", "object": "eth1 > 198.18.0.2 (02:4C:42:00:01:00)",
     "old": "up", "new": "down", "reason": "no_answer", "text": "", "took_us": null}]"#;

#[test]
fn the_loss_of_a_link_is_found_by_member_and_by_the_peers_mac() {
    let events: Vec<EventRecord> = serde_json::from_str(EVENTS).expect("parses");
    let at = |since, member, mac| first_loss(&events, since, member, mac).map(|event| event.time_ms);
    assert_eq!(at(0, Some("eth0"), ""), Some(100));
    assert_eq!(at(101, Some("eth0"), ""), None, "what was before is not this failure");
    assert_eq!(at(0, Some("eth1"), ""), Some(200), "coming back is no loss");
    assert_eq!(at(0, None, "02:4c:42:00:01:00"), Some(200));
    assert_eq!(at(0, None, "02:4c:42:00:01:01"), None);
}
