//! The shapes on the socket, which commands and daemons of other versions rely on.

use crate::{
    BondAdd, BondClass, BondRecord, BondSet, Borrow, ClassAdd, ClassDel, ClassRecord, ClassSet, Error,
    EventKind, EventRecord, FabricAdd, FabricDel, FabricRecord, FabricSet, Fallback, FindingRecord,
    InspectorSet, LaneRecord, LatencyRecord, MemberAdd, MemberDel, MemberRecord, NodeState, PeerMemberRecord,
    Policy, Poll, REST, Records, Reply, Request, RuleRecord, Run, Severity, Stripe, Weight, check_class_name,
    default_rules, limits,
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
        classes: vec![],
    };
    assert_eq!(add, expected);
    let set: BondSet = serde_json::from_str(r#"{"name":"bond0"}"#).unwrap();
    assert_eq!(set, BondSet { name: "bond0".into(), ..BondSet::default() });
    let add: MemberAdd = serde_json::from_str(r#"{"bond":"bond0","interface":"eth1"}"#).unwrap();
    assert_eq!((add.weight, add.move_address, add.force, add.class), (Weight::Auto, false, false, None));
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
        r#"{"class_add":{"bond":"bond0","name":"voice"}}"#,
        r#"{"class_add":{"bond":"bond0","name":"voice","rules":["tcp-port=0"]}}"#,
        r#"{"class_set":{"bond":"bond0","name":"voice","fallback":"drop"}}"#,
        r#"{"run":{"class":"voice","pid":1}}"#,
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
        EventKind::Fabric,
        EventKind::Node,
    ];
    let words = kinds.map(|kind| line(&kind));
    assert_eq!(
        words,
        ["bond", "member", "lane", "peer", "conflict", "lost", "fabric", "node"]
            .map(|word| format!("\"{word}\""))
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
        r#""probe_interval_ms":50,"probe_multiplier":3,"up_delay_ms":100,"latency":false,"events":[]}"#
    );
    let bond: BondRecord = serde_json::from_str(text).unwrap();
    assert_eq!(line(&bond), text);
}

#[test]
fn classes_are_asked_for_in_the_words_of_the_options() {
    let add = ClassAdd {
        bond: "bond0".into(),
        name: "voice".into(),
        members: vec!["eth4".into()],
        rules: vec!["dscp=46".parse().unwrap(), "udp-port=5004-5005,host=198.18.0.7/24".parse().unwrap()],
        policy: Policy::Mirror,
        fallback: Fallback::Block,
        borrow: Borrow::Idle,
    };
    assert_eq!(
        line(&Request::ClassAdd(add)),
        concat!(
            r#"{"class_add":{"bond":"bond0","name":"voice","members":["eth4"],"rules":["dscp=ef","#,
            r#""udp-port=5004-5005,host=198.18.0.0/24"],"policy":"mirror","fallback":"block","borrow":"idle"}}"#
        )
    );
    let short: ClassAdd =
        serde_json::from_str(r#"{"bond":"bond0","name":"voice","rules":["priority=6"]}"#).unwrap();
    assert_eq!(
        (short.members, short.policy, short.fallback, short.borrow),
        (vec![], Policy::Spread, Fallback::Share, Borrow::Never)
    );
    // No list leaves the old one, an empty one takes all away.
    let set = |members: &str| -> ClassSet {
        serde_json::from_str(&format!(r#"{{"bond":"bond0","name":"voice"{members}}}"#)).unwrap()
    };
    assert_eq!((set("").members, set(r#","members":[]"#).members), (None, Some(vec![])));
    let del = ClassDel { bond: "bond0".into(), name: "voice".into() };
    assert_eq!(line(&Request::ClassDel(del)), r#"{"class_del":{"bond":"bond0","name":"voice"}}"#);
    assert_eq!(line(&Request::ClassShow { bond: None }), r#"{"class_show":{"bond":null}}"#);
    assert_eq!(
        line(&Request::Run(Run { bond: None, class: "voice".into() })),
        r#"{"run":{"bond":null,"class":"voice"}}"#
    );
    assert_eq!(line(&Request::Latency { name: None }), r#"{"latency":{"name":null}}"#);
    let class = BondClass { name: "urgent".into(), members: vec!["eth4".into()] };
    assert_eq!(line(&class), r#"{"name":"urgent","members":["eth4"]}"#);
}

#[test]
fn classes_are_told_with_their_rules_in_order() {
    let rule = RuleRecord { number: 3, matches: "dscp=ef".into(), frames: 7, bytes: 700 };
    let class = ClassRecord {
        bond: "bond0".into(),
        name: "voice".into(),
        members: vec!["eth4".into()],
        uses: vec!["eth1".into()],
        policy: Policy::ActiveBackup,
        fallback: Fallback::Share,
        borrow: Borrow::Never,
        rules: vec![rule],
        tx_frames: 7,
        tx_bytes: 700,
    };
    assert_eq!(
        line(&Reply::Records(Records::Classes(vec![class]))),
        concat!(
            r#"{"records":{"classes":[{"bond":"bond0","name":"voice","members":["eth4"],"uses":["eth1"],"#,
            r#""policy":"active-backup","fallback":"share","borrow":"never","rules":[{"number":3,"#,
            r#""match":"dscp=ef","frames":7,"bytes":700}],"tx_frames":7,"tx_bytes":700}]}}"#
        )
    );
    let latency = LatencyRecord {
        bond: "bond0".into(),
        class: "rest".into(),
        stage: "driver".into(),
        count: 9,
        min_ns: 1,
        mean_ns: 2,
        stddev_ns: 3,
        p50_ns: 4,
        p90_ns: 5,
        p99_ns: 6,
        p999_ns: 7,
        max_ns: 8,
    };
    assert_eq!(
        line(&Reply::Records(Records::Latency(vec![latency]))),
        concat!(
            r#"{"records":{"latency":[{"bond":"bond0","class":"rest","stage":"driver","count":9,"min_ns":1,"#,
            r#""mean_ns":2,"stddev_ns":3,"p50_ns":4,"p90_ns":5,"p99_ns":6,"p999_ns":7,"max_ns":8}]}}"#
        )
    );
}

#[test]
fn records_of_a_host_without_classes_are_as_they_always_were() {
    let member = concat!(
        r#"{"interface":"eth1","mac":"","live":true,"reason":"","speed_mbit":null,"weight_mbit":1000,"segment":0,"#,
        r#""elected":true,"tx_frames":0,"tx_bytes":0,"rx_frames":0,"rx_bytes":0}"#
    );
    assert_eq!(line(&serde_json::from_str::<MemberRecord>(member).unwrap()), member);
    let theirs = r#"{"mac":"","live":true,"weight_mbit":null}"#;
    assert_eq!(line(&serde_json::from_str::<PeerMemberRecord>(theirs).unwrap()), theirs);
    let lane = concat!(
        r#"{"bond":"bond0","peer":"","member":"eth1","peer_mac":null,"state":"up","share_ppm":1,"tx_frames":0,"#,
        r#""tx_bytes":0}"#
    );
    assert_eq!(line(&serde_json::from_str::<LaneRecord>(lane).unwrap()), lane);
    let add = r#"{"bond":"bond0","interface":"eth1","weight":"auto","move_address":false,"force":false}"#;
    assert_eq!(line(&serde_json::from_str::<MemberAdd>(add).unwrap()), add);
}

#[test]
fn names_of_classes_have_a_shape() {
    for name in ["a", "voice", "real-time_2", "0", "exactly15bytes_"] {
        check_class_name(name).unwrap_or_else(|error| panic!("{error}"));
    }
    for name in ["", "sixteen-letters-", "Voice", "a b", "a/b", ".", "..", "cgroup.procs", "é"] {
        let error = check_class_name(name).expect_err(name);
        let cause = "not a name for a class: 1 to 15 of a-z, 0-9, '-' and '_'";
        assert_eq!(error.to_string(), format!("class '{name}': {cause}"));
        assert!(error.hint.is_some());
    }
    let error = check_class_name(REST).expect_err("the name of what is in no class");
    assert_eq!(
        error.to_string(),
        "class 'rest': not a name for a class: it is what all other traffic is called"
    );
}

#[test]
fn a_class_that_comes_with_the_bond_takes_what_is_marked_urgent() {
    let rules = default_rules().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(rules, ["priority=6", "dscp=ef"]);
}

#[test]
fn limits_leave_room_for_the_defaults() {
    assert!((limits::PROBE_INTERVAL_MS_MIN..=limits::PROBE_INTERVAL_MS_MAX).contains(&50));
    assert!((limits::PROBE_MULTIPLIER_MIN..=limits::PROBE_MULTIPLIER_MAX).contains(&3));
    assert!((0..=limits::UP_DELAY_MS_MAX).contains(&100));
    // The command writes the upper ends in whole seconds.
    assert_eq!((limits::PROBE_INTERVAL_MS_MAX % 1000, limits::UP_DELAY_MS_MAX % 1000), (0, 0));
}

#[test]
fn fabrics_are_asked_for_in_the_words_of_the_options() {
    let text = r#"{"name":"fab0","node":0,"nodes":2,"transport":"shm:/dev/shm/x"}"#;
    let short: FabricAdd = serde_json::from_str(text).unwrap();
    assert_eq!((short.mtu, short.poll, short.mac.clone(), short.queues), (None, Poll::Adaptive, None, None));
    let add = FabricAdd { mtu: Some(9000), poll: Poll::Busy, queues: Some(2), ..short };
    assert_eq!(
        line(&Request::FabricAdd(add)),
        concat!(
            r#"{"fabric_add":{"name":"fab0","node":0,"nodes":2,"transport":"shm:/dev/shm/x","mtu":9000,"#,
            r#""poll":"busy","mac":null,"queues":2,"addresses":[]}}"#
        )
    );
    let set: FabricSet = serde_json::from_str(r#"{"name":"fab0","poll":"sleep"}"#).unwrap();
    assert_eq!((set.mtu, set.poll, set.nodes), (None, Some(Poll::Sleep), None));
    let del = Request::FabricDel(FabricDel { name: "fab0".into() });
    assert_eq!(line(&del), r#"{"fabric_del":{"name":"fab0"}}"#);
    assert_eq!(line(&Request::FabricShow { name: None }), r#"{"fabric_show":{"name":null}}"#);
    assert_eq!(line(&Request::FabricStats { name: None }), r#"{"fabric_stats":{"name":null}}"#);
    for text in [
        r#"{"fabric_add":{"name":"fab0","node":-1,"nodes":2,"transport":"shm:/x"}}"#,
        r#"{"fabric_add":{"name":"fab0","node":0,"nodes":2,"transport":"shm:/x","poll":"often"}}"#,
        r#"{"fabric_set":{"name":"fab0","node":1}}"#,
    ] {
        assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
    }
}

#[test]
fn a_fabric_tells_its_settings_and_its_nodes() {
    let text = concat!(
        r#"{"name":"fab0","health":"ok","reason":"","node":0,"nodes":2,"transport":"shm:/x","#,
        r#""mac":"02:6c:62:8a:00:00","mtu":1500,"addresses":[],"poll":"adaptive","queues":1,"epoch":5,"#,
        r#""offloads":["tso"],"cpu_ms":0,"cpu_ppm":0,"peers":[{"node":1,"state":"up","reason":"","epoch":7,"#,
        r#""since_ms":1,"heard_ms":null,"send_queue":1,"receive_queue":2,"tx_frames":0,"tx_bytes":0,"#,
        r#""rx_frames":0,"rx_bytes":0,"dropped_frames":0,"queued_bytes":0}],"events":[]}"#
    );
    let fabric: FabricRecord = serde_json::from_str(text).unwrap();
    assert_eq!(line(&fabric), text);
    let words = [NodeState::Up, NodeState::Down, NodeState::Refused].map(|state| line(&state));
    assert_eq!(words, [r#""up""#, r#""down""#, r#""refused""#]);
}
