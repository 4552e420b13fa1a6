//! The shapes on the socket, which commands and daemons of other versions rely on.

use crate::{
    BondAdd, BondRecord, BondSet, Error, EventKind, EventRecord, FindingRecord, InspectorSet, MemberAdd,
    MemberDel, Policy, Records, Reply, Request, Severity, Stripe, Weight, limits,
};
use serde::{Serialize, de::DeserializeOwned};

/// What `value` is on the socket; it must read back as the same.
fn line<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> String {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value);
    text
}

fn event() -> EventRecord {
    EventRecord {
        time_ms: 1,
        bond: "bond0".into(),
        kind: EventKind::Member,
        object: "eth1".into(),
        old: None,
        new: Some("up".into()),
        reason: "joined".into(),
        text: "it has joined the bond".into(),
        took_us: Some(3200),
    }
}

#[test]
fn requests_have_the_shapes_they_always_had() {
    assert_eq!(line(&Request::Monitor { bond: None }), r#"{"monitor":{"bond":null}}"#);
    assert_eq!(line(&Request::Monitor { bond: Some("bond0".into()) }), r#"{"monitor":{"bond":"bond0"}}"#);
    assert_eq!(
        line(&Request::Check { interfaces: vec!["eth1".into()] }),
        r#"{"check":{"interfaces":["eth1"]}}"#
    );
    let inspector = InspectorSet {
        probes: Some(false),
        probe_interval_ms: Some(20),
        probe_multiplier: Some(5),
        up_delay_ms: Some(0),
    };
    assert_eq!(
        line(&inspector),
        r#"{"probes":false,"probe_interval_ms":20,"probe_multiplier":5,"up_delay_ms":0}"#
    );
    assert_eq!(line(&InspectorSet::default()), "{}");
}

#[test]
fn what_older_commands_leave_out_changes_nothing() {
    let add: BondAdd = serde_json::from_str(r#"{"name":"bond0","members":["eth1"]}"#).unwrap();
    let expected = BondAdd {
        name: "bond0".into(),
        members: vec!["eth1".into()],
        addresses: vec![],
        policy: Policy::Spread,
        mtu: None,
        stripe: Stripe::Auto,
        damping: true,
        move_address: false,
        inspector: InspectorSet::default(),
    };
    assert_eq!(add, expected);
    let set: BondSet = serde_json::from_str(r#"{"name":"bond0"}"#).unwrap();
    assert_eq!(set, BondSet { name: "bond0".into(), ..BondSet::default() });
    let add: MemberAdd = serde_json::from_str(r#"{"bond":"bond0","interface":"eth1"}"#).unwrap();
    assert_eq!((add.weight, add.move_address, add.force), (Weight::Auto, false, false));
    let del: MemberDel = serde_json::from_str(r#"{"bond":"bond0","interface":"eth1"}"#).unwrap();
    assert!(!del.force);
}

#[test]
fn what_the_daemon_does_not_know_is_refused_and_not_ignored() {
    for text in [
        r#"{"monitor":{"bond":null,"since":0}}"#,
        r#"{"check":{"interfaces":[],"deep":true}}"#,
        r#"{"bond_set":{"name":"bond0","probes":true}}"#,
        r#"{"bond_set":{"name":"bond0","inspector":{"interval":50}}}"#,
        r#"{"bond_set":{"name":"bond0","inspector":{"probe_multiplier":256}}}"#,
        r#"{"bond_set":{"name":"bond0","inspector":{"up_delay_ms":-1}}}"#,
        r#"{"member_del":{"bond":"bond0","interface":"eth1","forced":true}}"#,
        r#"{"watch":{}}"#,
        "\"monitor\"",
        "",
    ] {
        assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
    }
}

#[test]
fn an_event_is_a_reply_of_its_own() {
    assert_eq!(
        line(&Reply::Event(event())),
        concat!(
            r#"{"event":{"time_ms":1,"bond":"bond0","kind":"member","object":"eth1","old":null,"new":"up","#,
            r#""reason":"joined","text":"it has joined the bond","took_us":3200}}"#
        )
    );
    let kinds = [
        EventKind::Bond,
        EventKind::Member,
        EventKind::Lane,
        EventKind::Peer,
        EventKind::Conflict,
        EventKind::Lost,
    ];
    let words = kinds.map(|kind| line(&kind));
    assert_eq!(
        words,
        ["bond", "member", "lane", "peer", "conflict", "lost"].map(|word| format!("\"{word}\""))
    );
    assert_eq!(line(&Reply::Done { warnings: vec![] }), r#"{"done":{"warnings":[]}}"#);
    let error = Error::new("bond0", "no such bond", "there are no bonds");
    assert_eq!(
        line(&Reply::Error(error)),
        r#"{"error":{"object":"bond0","what":"no such bond","cause":"there are no bonds"}}"#
    );
}

#[test]
fn findings_are_records_and_errors_are_the_worst() {
    let finding = FindingRecord {
        severity: Severity::Warning,
        object: "eth1".into(),
        name: "duplex".into(),
        text: "half duplex".into(),
        hint: None,
    };
    assert_eq!(
        line(&Reply::Records(Records::Findings(vec![finding]))),
        concat!(
            r#"{"records":{"findings":[{"severity":"warning","object":"eth1","name":"duplex","#,
            r#""text":"half duplex"}]}}"#
        )
    );
    assert!(Severity::Ok < Severity::Warning && Severity::Warning < Severity::Error);
}

#[test]
fn a_bond_tells_its_settings_under_the_names_of_the_options() {
    let text = concat!(
        r#"{"name":"bond0","health":"ok","reason":"","mac":"02:00:00:00:00:01","mtu":1500,"addresses":[],"#,
        r#""policy":"spread","stripe":"auto","stripe_bytes":4400,"damping":true,"hook":"tcx","host_id":"","#,
        r#""arp_plus_state":"S1","peers":0,"members":[],"moved":[],"conflicts":[],"probes":true,"#,
        r#""probe_interval_ms":50,"probe_multiplier":3,"up_delay_ms":100,"events":[]}"#
    );
    let bond: BondRecord = serde_json::from_str(text).unwrap();
    assert_eq!(line(&bond), text);
}

#[test]
fn limits_leave_room_for_the_defaults() {
    assert!((limits::PROBE_INTERVAL_MS_MIN..=limits::PROBE_INTERVAL_MS_MAX).contains(&50));
    assert!((limits::PROBE_MULTIPLIER_MIN..=limits::PROBE_MULTIPLIER_MAX).contains(&3));
    assert!((0..=limits::UP_DELAY_MS_MAX).contains(&100));
    // The command writes the upper ends in whole seconds.
    assert_eq!((limits::PROBE_INTERVAL_MS_MAX % 1000, limits::UP_DELAY_MS_MAX % 1000), (0, 0));
}
