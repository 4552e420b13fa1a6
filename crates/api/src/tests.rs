//! The shapes on the socket, which commands and daemons of other versions rely on.

use crate::{
    Auth, BondAdd, BondClass, BondOptions, BondRecord, BondSet, BondSettings, Borrow, ClassAdd, ClassDel,
    ClassOptions, ClassRecord, ClassSet, ClassSettings, Encrypt, Error, EventKind, EventRecord, FabricAdd,
    FabricDel, FabricOptions, FabricRecord, FabricSet, FabricSettings, Fallback, FindingRecord,
    InspectorOptions, InspectorSettings, KeySource, LaneRecord, LatencyRecord, MemberAdd, MemberDel,
    MemberOptions, MemberRecord, MemberSettings, NodeState, PeerMemberRecord, Policy, Poll, Precedence,
    QueueRecord, Records, Reply, Request, RuleRecord, Run, Severity, Stripe, Weight, default_rules,
    value::{Millis, Number},
    varlink::Refusal,
};
use serde::{Serialize, de::DeserializeOwned};
use std::str::FromStr;

/// What `value` is on the socket; it must read back as the same.
fn line<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> String {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value);
    text
}

/// What a client says.
pub fn read(text: &str) -> Result<Request, Error> {
    let call = serde_json::from_str(text).map_err(|error| Error::new("client", "no call", error.to_string()));
    call.and_then(Request::read)
}

pub fn name<T: FromStr<Err = String>>(text: &str) -> T {
    text.parse().unwrap()
}

/// Settings none of which is the default.
fn other_bond() -> BondSettings {
    BondSettings {
        policy: Policy::Flow,
        stripe: Stripe::Us(10),
        damping: false,
        latency: true,
        published_only: true,
        key: KeySource::File("/etc/linkbraid/bond0.key".into()),
        auth: Auth::Require,
        inspector: InspectorSettings {
            probes: false,
            probe_interval: Millis(1),
            probe_multiplier: Number(1),
            up_delay: Millis(1),
            hold_max: Millis(1),
        },
    }
}

fn other_class() -> ClassSettings {
    ClassSettings {
        policy: Policy::Mirror,
        fallback: Fallback::Block,
        borrow: Borrow::Idle,
        precedence: Precedence::On,
    }
}

fn other_fabric() -> FabricSettings {
    let key = KeySource::File("/etc/linkbraid/fab0.key".to_owned());
    FabricSettings { mtu: Number(9000), poll: Poll::Busy, key, auth: Auth::Require, encrypt: Encrypt::On }
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
    assert_eq!(line(&Request::Monitor { bond: None }), r#"{"method":"Monitor","parameters":{"bond":null}}"#);
    assert_eq!(
        line(&Request::Monitor { bond: Some(name("bond0")) }),
        r#"{"method":"Monitor","parameters":{"bond":"bond0"}}"#
    );
    assert_eq!(
        line(&Request::Check { interfaces: vec![name("eth1")] }),
        r#"{"method":"Check","parameters":{"interfaces":["eth1"]}}"#
    );
    let inspector = InspectorOptions {
        probes: Some(false),
        probe_interval: Some(Millis(20)),
        probe_multiplier: Some(Number(5)),
        up_delay: Some(Millis(0)),
        hold_max: Some(Millis(5000)),
    };
    assert_eq!(
        line(&inspector),
        r#"{"probes":false,"probe_interval_ms":20,"probe_multiplier":5,"up_delay_ms":0,"hold_max_ms":5000}"#
    );
    assert_eq!(line(&InspectorOptions::default()), "{}");
}

#[test]
fn what_older_commands_leave_out_changes_nothing() {
    let add: BondAdd = serde_json::from_str(r#"{"name":"bond0","members":["eth1"]}"#).unwrap();
    let expected = BondAdd {
        name: name("bond0"),
        members: vec![name("eth1")],
        addresses: Vec::new(),
        options: BondOptions::default(),
        move_address: false,
        classes: Vec::new(),
    };
    assert_eq!(add, expected);
    let settings = BondSettings::default().with(&add.options);
    assert_eq!((settings.policy, settings.stripe), (Policy::Spread, Stripe::Auto));
    assert!(settings.damping && settings.inspector.probes && !settings.latency);
    let old = r#"{"name":"bond0","members":["eth1"],"addresses":[],"policy":"flow","mtu":null,"stripe":{"us":200},"damping":false,"move_address":false,"inspector":{"up_delay_ms":5}}"#;
    let add: BondAdd = serde_json::from_str(old).unwrap();
    assert_eq!((add.options.policy, add.options.mtu), (Some(Policy::Flow), None));
    assert_eq!(add.options.stripe, Some(Stripe::Us(200)));
    assert_eq!((add.options.damping, add.options.inspector.up_delay), (Some(false), Some(Millis(5))));
    let set: BondSet = serde_json::from_str(r#"{"name":"bond0"}"#).unwrap();
    assert_eq!((set.options, set.addresses), (BondOptions::default(), None));
    let add: MemberAdd = serde_json::from_str(r#"{"bond":"bond0","interface":"eth1"}"#).unwrap();
    assert_eq!((add.options.weight, add.move_address, add.force, add.class), (None, false, false, None));
    let del: MemberDel = serde_json::from_str(r#"{"bond":"bond0","interface":"eth1"}"#).unwrap();
    assert!(!del.force);
}

#[test]
fn what_the_daemon_does_not_know_is_refused_and_not_ignored() {
    for text in [
        r#"{"method":"Monitor","parameters":{"bond":null,"since":0}}"#,
        r#"{"method":"Check","parameters":{"interfaces":[],"deep":true}}"#,
        r#"{"method":"BondSet","parameters":{"name":"bond0","probes":true}}"#,
        r#"{"method":"BondSet","parameters":{"name":"bond0","inspector":{"interval":50}}}"#,
        r#"{"method":"BondSet","parameters":{"name":"bond0","inspector":{"probe_multiplier":256}}}"#,
        r#"{"method":"BondSet","parameters":{"name":"bond0","inspector":{"up_delay_ms":-1}}}"#,
        r#"{"method":"MemberDel","parameters":{"bond":"bond0","interface":"eth1","forced":true}}"#,
        r#"{"method":"Watch","parameters":{}}"#,
        r#"{"method":"ClassAdd","parameters":{"bond":"bond0","name":"voice"}}"#,
        r#"{"method":"ClassAdd","parameters":{"bond":"bond0","name":"voice","rules":["tcp-port=0"]}}"#,
        r#"{"method":"ClassSet","parameters":{"bond":"bond0","name":"voice","fallback":"drop"}}"#,
        r#"{"method":"Run","parameters":{"class":"voice","pid":1}}"#,
        "\"monitor\"",
        "",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn an_event_is_a_reply_of_its_own() {
    assert_eq!(
        line(&Reply::Event { event: event() }),
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
    assert_eq!(line(&Reply::Done { warnings: vec![] }), r#"{"warnings":[]}"#);
    let error = Error::new("bond0", "no such bond", "there are no bonds");
    assert_eq!(
        line(&Refusal::Refused(error)),
        r#"{"error":"org.linkbraid.Daemon.Refused","parameters":{"object":"bond0","what":"no such bond","cause":"there are no bonds"}}"#
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
            r#"{"findings":[{"severity":"warning","object":"eth1","name":"duplex","#,
            r#""text":"half duplex"}]}"#
        )
    );
    assert!(Severity::Ok < Severity::Warning && Severity::Warning < Severity::Error);
}

#[test]
fn a_bond_tells_its_settings_under_the_names_of_the_options() {
    let text = concat!(
        r#"{"name":"bond0","health":"ok","reason":"","mac":"02:00:00:00:00:01","mtu":1500,"addresses":[],"#,
        r#""policy":"spread","stripe":"auto","damping":true,"latency":false,"published_only":false,"key":"none","auth":"off","#,
        r#""probes":true,"probe_interval_ms":50,"probe_multiplier":3,"up_delay_ms":100,"hold_max_ms":60000,"stripe_bytes":4400,"hook":"tcx","#,
        r#""host_id":"","arp_plus_state":"S1","peers":0,"members":[],"absent":[],"moved":[],"conflicts":[],"events":[]}"#
    );
    let bond: BondRecord = serde_json::from_str(text).unwrap();
    assert_eq!(line(&bond), text);
}

#[test]
fn classes_are_asked_for_in_the_words_of_the_options() {
    let add = ClassAdd {
        bond: name("bond0"),
        name: name("voice"),
        members: vec![name("eth4")],
        rules: vec!["dscp=46".parse().unwrap(), "udp-port=5004-5005,host=198.18.0.7/24".parse().unwrap()],
        options: ClassOptions {
            policy: Some(Policy::Mirror),
            fallback: Some(Fallback::Block),
            borrow: Some(Borrow::Idle),
            precedence: Some(Precedence::Off),
        },
    };
    assert_eq!(
        line(&Request::ClassAdd(add)),
        concat!(
            r#"{"method":"ClassAdd","parameters":{"bond":"bond0","name":"voice","members":["eth4"],"rules":["dscp=ef","#,
            r#""udp-port=5004-5005,host=198.18.0.0/24"],"policy":"mirror","fallback":"block","borrow":"idle","precedence":"off"}}"#
        )
    );
    let short: ClassAdd =
        serde_json::from_str(r#"{"bond":"bond0","name":"voice","rules":["priority=6"]}"#).unwrap();
    assert_eq!((short.members, short.options), (vec![], ClassOptions::default()));
    let settings = ClassSettings::default();
    assert_eq!(
        (settings.policy, settings.fallback, settings.borrow, settings.precedence),
        (Policy::Spread, Fallback::Share, Borrow::Never, Precedence::Auto)
    );
    // No list leaves the old one, an empty one takes all away.
    let set = |members: &str| -> ClassSet {
        serde_json::from_str(&format!(r#"{{"bond":"bond0","name":"voice"{members}}}"#)).unwrap()
    };
    assert_eq!((set("").members, set(r#","members":[]"#).members), (None, Some(vec![])));
    let del = ClassDel { bond: name("bond0"), name: name("voice") };
    assert_eq!(
        line(&Request::ClassDel(del)),
        r#"{"method":"ClassDel","parameters":{"bond":"bond0","name":"voice"}}"#
    );
    assert_eq!(
        line(&Request::ClassShow { bond: None }),
        r#"{"method":"ClassShow","parameters":{"bond":null}}"#
    );
    assert_eq!(
        line(&Request::Run(Run { bond: None, class: name("voice") })),
        r#"{"method":"Run","parameters":{"bond":null,"class":"voice"}}"#
    );
    assert_eq!(line(&Request::Latency { name: None }), r#"{"method":"Latency","parameters":{"name":null}}"#);
    let class = BondClass { name: name("urgent"), members: vec![name("eth4")] };
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
        settings: ClassSettings { policy: Policy::ActiveBackup, ..ClassSettings::default() },
        queues: vec![QueueRecord { member: "eth1".into(), kind: "mq".into(), ours: false }],
        rules: vec![rule],
        tx_frames: 7,
        tx_bytes: 700,
        tx_over: 1,
    };
    assert_eq!(
        line(&Reply::Records(Records::Classes(vec![class]))),
        concat!(
            r#"{"classes":[{"bond":"bond0","name":"voice","members":["eth4"],"uses":["eth1"],"#,
            r#""policy":"active-backup","fallback":"share","borrow":"never","precedence":"auto","queues":[{"member":"eth1","kind":"mq","ours":false}],"rules":[{"number":3,"#,
            r#""match":"dscp=ef","frames":7,"bytes":700}],"tx_frames":7,"tx_bytes":700,"tx_over":1}]}"#
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
            r#"{"latency":[{"bond":"bond0","class":"rest","stage":"driver","count":9,"min_ns":1,"#,
            r#""mean_ns":2,"stddev_ns":3,"p50_ns":4,"p90_ns":5,"p99_ns":6,"p999_ns":7,"max_ns":8}]}"#
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
fn a_class_that_comes_with_the_bond_takes_what_is_marked_urgent() {
    let rules = default_rules().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(rules, ["priority=6", "dscp=ef"]);
}

fn other_member() -> MemberSettings {
    MemberSettings { weight: Weight::Mbit(1), weight_fixed: true }
}

#[test]
fn limits_leave_room_for_the_defaults() {
    let mut given = BondSettings::default().besides(&other_bond()).given();
    given.extend(MemberSettings::default().besides(&other_member()).given());
    given.extend(ClassSettings::default().besides(&other_class()).given());
    given.extend(FabricSettings::default().besides(&other_fabric()).given());
    let all = BondOptions::ids().len() - 1
        + MemberOptions::ids().len()
        + ClassOptions::ids().len()
        + FabricOptions::ids().len();
    assert_eq!(given.len(), all, "{given:?}");
    for given in given {
        assert_eq!(given.refused, None, "{} {}", given.option, given.value);
    }
}

#[test]
fn fabrics_are_asked_for_in_the_words_of_the_options() {
    let text = r#"{"name":"fab0","node":0,"nodes":2,"transport":"shm:/dev/shm/x"}"#;
    let short: FabricAdd = serde_json::from_str(text).unwrap();
    assert_eq!(
        (short.options.clone(), short.mac.clone(), short.queues),
        (FabricOptions::default(), None, None)
    );
    assert_eq!((short.settings().mtu.0, short.settings().poll), (1500, Poll::Adaptive));
    let options =
        FabricOptions { mtu: Some(Number(9000)), poll: Some(Poll::Busy), ..FabricOptions::default() };
    let add = FabricAdd { options, queues: Some(2), ..short };
    assert_eq!(
        line(&Request::FabricAdd(add)),
        concat!(
            r#"{"method":"FabricAdd","parameters":{"name":"fab0","node":0,"nodes":2,"transport":"shm:/dev/shm/x","mtu":9000,"#,
            r#""poll":"busy","mac":null,"queues":2,"addresses":[]}}"#
        )
    );
    let set: FabricSet = serde_json::from_str(r#"{"name":"fab0","poll":"sleep"}"#).unwrap();
    assert_eq!((set.options.mtu, set.options.poll, set.nodes), (None, Some(Poll::Sleep), None));
    let del = Request::FabricDel(FabricDel { name: name("fab0") });
    assert_eq!(line(&del), r#"{"method":"FabricDel","parameters":{"name":"fab0"}}"#);
    assert_eq!(
        line(&Request::FabricShow { name: None }),
        r#"{"method":"FabricShow","parameters":{"name":null}}"#
    );
    assert_eq!(
        line(&Request::FabricStats { name: None }),
        r#"{"method":"FabricStats","parameters":{"name":null}}"#
    );
    for text in [
        r#"{"method":"FabricAdd","parameters":{"name":"fab0","node":-1,"nodes":2,"transport":"shm:/x"}}"#,
        r#"{"method":"FabricAdd","parameters":{"name":"fab0","node":0,"nodes":2,"transport":"shm:/x","poll":"often"}}"#,
        r#"{"method":"FabricSet","parameters":{"name":"fab0","node":1}}"#,
    ] {
        assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
    }
}

#[test]
fn a_fabric_tells_its_settings_and_its_nodes() {
    let text = concat!(
        r#"{"name":"fab0","health":"ok","reason":"","node":0,"nodes":2,"transport":"shm:/x","#,
        r#""mac":"02:6c:62:8a:00:00","mtu":1500,"poll":"adaptive","key":"none","auth":"off","encrypt":"off","keys":[],"addresses":[],"queues":1,"epoch":5,"#,
        r#""offloads":["tso"],"cpu_ms":0,"cpu_ppm":0,"peers":[{"node":1,"state":"up","reason":"","epoch":7,"#,
        r#""since_ms":1,"heard_ms":null,"send_queue":1,"receive_queue":2,"tx_frames":0,"tx_bytes":0,"#,
        r#""rx_frames":0,"rx_bytes":0,"dropped_frames":0,"queued_bytes":0}],"events":[]}"#
    );
    let fabric: FabricRecord = serde_json::from_str(text).unwrap();
    assert_eq!(line(&fabric), text);
    let words = [NodeState::Up, NodeState::Down, NodeState::Refused].map(|state| line(&state));
    assert_eq!(words, [r#""up""#, r#""down""#, r#""refused""#]);
}

/// Requests that only somebody else than the command sends: what they would put into a path, or out of range.
#[test]
fn names_and_values_that_cannot_be_are_refused_at_the_door() {
    let refused = [
        (
            r#"{"method":"BondAdd","parameters":{"name":"../x","members":["eth1"]}}"#,
            "request",
            "'../x' cannot be an interface name",
        ),
        (
            r#"{"method":"BondAdd","parameters":{"name":"b%d","members":["eth1"]}}"#,
            "request",
            "'b%d' cannot be an interface name",
        ),
        (
            r#"{"method":"BondAdd","parameters":{"name":"b","members":["a/b"]}}"#,
            "request",
            "'a/b' cannot be an interface name",
        ),
        (
            r#"{"method":"BondAdd","parameters":{"name":"b","members":["a"],"classes":[{"name":"../x","members":["a"]}]}}"#,
            "request",
            "'../x' is not a name for a class",
        ),
        (
            r#"{"method":"BondAdd","parameters":{"name":"b","members":["a"],"addresses":["1.2.3.4"]}}"#,
            "b",
            "has no prefix length",
        ),
        (
            r#"{"method":"BondAdd","parameters":{"name":"b","members":["a"],"policy":"mirror"}}"#,
            "b",
            "of classes only",
        ),
        (
            r#"{"method":"BondSet","parameters":{"name":"b","mtu":9}}"#,
            "b",
            "'9' is outside the allowed range 1280 to 65535",
        ),
        (
            r#"{"method":"BondSet","parameters":{"name":"b","stripe":{"us":1}}}"#,
            "b",
            "'1us' is outside the allowed range",
        ),
        (
            r#"{"method":"BondSet","parameters":{"name":"b","inspector":{"up_delay_ms":60001}}}"#,
            "b",
            "'60001ms' is outside the allowed range; allowed are 0ms to 60s",
        ),
        (r#"{"method":"BondDel","parameters":{"name":".."}}"#, "request", "'..' cannot be an interface name"),
        (
            r#"{"method":"MemberAdd","parameters":{"bond":"b","interface":"a","class":"../x"}}"#,
            "request",
            "not a name for a class",
        ),
        (
            r#"{"method":"MemberSet","parameters":{"bond":"b","interface":"a","weight":{"mbit":0}}}"#,
            "b",
            "would leave the member without traffic",
        ),
        (
            r#"{"method":"MemberDel","parameters":{"bond":"b","interface":"/"}}"#,
            "request",
            "cannot be an interface name",
        ),
        (
            r#"{"method":"ClassAdd","parameters":{"bond":"b","name":"../../x","rules":["dscp=ef"]}}"#,
            "request",
            "'../../x' is not a name for a class",
        ),
        (
            r#"{"method":"ClassSet","parameters":{"bond":"b","name":"c","members":["a b"]}}"#,
            "request",
            "cannot be an interface name",
        ),
        (
            r#"{"method":"ClassDel","parameters":{"bond":"b","name":"../x"}}"#,
            "request",
            "'../x' is not a name for a class",
        ),
        (r#"{"method":"Run","parameters":{"class":"../x"}}"#, "request", "'../x' is not a name for a class"),
        (
            r#"{"method":"FabricAdd","parameters":{"name":"../f","node":0,"nodes":2,"transport":"shm:/x"}}"#,
            "request",
            "'../f' cannot be an interface name",
        ),
        (
            r#"{"method":"FabricAdd","parameters":{"name":"f","node":0,"nodes":1,"transport":"shm:/x"}}"#,
            "f",
            "'1' is outside the allowed range 2 to 512",
        ),
        (
            r#"{"method":"FabricAdd","parameters":{"name":"f","node":0,"nodes":2,"transport":"shm:/x","queues":65}}"#,
            "f",
            "'65' is outside the allowed range 1 to 64",
        ),
        (
            r#"{"method":"FabricSet","parameters":{"name":"f","mtu":65522}}"#,
            "f",
            "'65522' is outside the allowed range 1280 to 65521",
        ),
        (
            r#"{"method":"FabricDel","parameters":{"name":"a\u0000b"}}"#,
            "request",
            "cannot be an interface name",
        ),
        (
            r#"{"method":"Check","parameters":{"interfaces":["../../etc"]}}"#,
            "request",
            "cannot be an interface name",
        ),
        (r#"{"method":"Show","parameters":{"name":"../x"}}"#, "request", "cannot be an interface name"),
    ];
    for (text, object, cause) in refused {
        let error = read(text).expect_err(text);
        assert_eq!(error.object, object, "{text}: {error}");
        assert!(error.cause.contains(cause), "{text}: {error}");
        let has_hint = error.hint.is_some_and(|hint| hint.ends_with("--help"));
        assert_eq!(has_hint, object != "request", "{text}");
    }
    assert!(
        read(r#"{"method":"BondSet","parameters":{"name":"b","inspector":{"up_delay_ms":60000}}}"#).is_ok()
    );
}
