//! From records to text: every family, its labels, and what is left out.

use linkbraid_api::{
    BondRecord, BondSettings, ClassRecord, ClassSettings, CounterRecord, EventKind, EventRecord,
    FabricPeerRecord, FabricPeerStats, FabricPeerVxlanRecord, FabricRecord, FabricSettings,
    FabricStatsRecord, FindingRecord, Health, LaneRecord, LatencyBucket, LatencyRecord, MemberRecord,
    NodeState, PeerMemberRecord, PeerRecord, PeerState, Records, RoundTripRecord, Severity, ShareFrom,
    StatsRecord,
};
use linkbraid_metrics::{Events, Format, PEERS_MAX, Snapshot, text};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

/// The page that lists all families.
const PAGE: &str = "../../docs/metrics.md";
/// How many peers the scrape has whose time is measured.
const PEERS: usize = 100;
/// Members of each host there.
const MEMBERS: usize = 4;
/// What such a scrape should take at most, in a build with optimisations and on an idle machine.
const TEXT_MAX: Duration = Duration::from_millis(10);

fn member(name: &str) -> MemberRecord {
    MemberRecord {
        interface: name.into(),
        mac: "02:00:00:00:00:01".into(),
        live: true,
        reason: String::new(),
        speed_mbit: Some(1000),
        weight_mbit: 1000,
        measured_kbit: Some(941_000),
        share_from: Some(ShareFrom::Measured),
        segment: 1,
        elected: true,
        tx_frames: 10,
        tx_bytes: 1000,
        rx_frames: 20,
        rx_bytes: 2000,
        class: None,
    }
}

fn bond(members: Vec<MemberRecord>) -> BondRecord {
    BondRecord {
        name: "bond0".into(),
        health: Health::Degraded,
        reason: String::new(),
        mac: "02:00:00:00:00:01".into(),
        mtu: 1500,
        addresses: vec![],
        settings: BondSettings::default(),
        stripe_bytes: 25_000,
        hook: "tcx".into(),
        host_id: "00".into(),
        keys: vec![],
        arp_plus_state: "S3".into(),
        peers: 1,
        members,
        absent: vec!["eth7".into()],
        guests: vec![],
        moved: vec![],
        conflicts: vec![],
        findings: vec![FindingRecord {
            severity: Severity::Warning,
            object: "eth1".into(),
            name: "address".into(),
            text: String::new(),
            hint: None,
        }],
        events: vec![],
    }
}

/// A member of a peer.
fn end(mac: &str) -> PeerMemberRecord {
    PeerMemberRecord { mac: mac.into(), live: true, weight_mbit: None, class: None }
}

fn peer(address: &str) -> PeerRecord {
    PeerRecord {
        bond: "bond0".into(),
        address: Some(address.into()),
        host_id: Some("ff".into()),
        epoch: Some(3),
        state: PeerState::Alive,
        mac: "02:00:00:00:01:01".into(),
        members: vec![end("02:00:00:00:01:01"), end("02:00:00:00:01:02")],
        heard_ms: 250,
        proven: true,
        guests: vec![],
    }
}

fn lane(member: &str, peer: &str, mac: &str) -> LaneRecord {
    LaneRecord {
        bond: "bond0".into(),
        peer: peer.into(),
        member: member.into(),
        peer_mac: Some(mac.into()),
        state: "up".into(),
        plan: Some(2),
        share_ppm: 500_000,
        tx_frames: 5,
        tx_bytes: 700,
        told_kbit: Some(1_000_000),
        measured_kbit: Some(941_000),
        share_from: Some(ShareFrom::Measured),
        class: None,
        borrowed_from: None,
    }
}

fn counter(name: &str, verdict: &str) -> CounterRecord {
    CounterRecord {
        name: name.into(),
        number: 1,
        description: String::new(),
        verdict: verdict.into(),
        frames: 7,
        bytes: 900,
    }
}

fn fabric() -> FabricRecord {
    FabricRecord {
        name: "fab0".into(),
        health: Health::Ok,
        reason: String::new(),
        node: 0,
        nodes: 2,
        transport: "shm:/run/linkbraid/fab0".into(),
        mac: "02:00:00:00:00:01".into(),
        settings: FabricSettings::default(),
        keys: vec![],
        addresses: vec![],
        queues: 1,
        epoch: Some(1),
        node_memory_bytes: Some(1 << 20),
        memory_bytes: Some(2 << 20),
        offloads: vec![],
        vxlan: None,
        cpu_ms: 1500,
        cpu_ppm: 10,
        peers: vec![FabricPeerRecord {
            node: 1,
            state: NodeState::Up,
            reason: String::new(),
            epoch: Some(1),
            since_ms: 5,
            heard_ms: Some(5),
            send_queue: 2,
            receive_queue: 1,
            tx_frames: 3,
            tx_bytes: 300,
            rx_frames: 4,
            rx_bytes: 400,
            dropped_frames: 1,
            queued_bytes: 64,
            vxlan: Some(FabricPeerVxlanRecord {
                taken: true,
                reason: String::new(),
                tx_frames: 0,
                tx_bytes: 0,
                rx_frames: 0,
                rx_bytes: 0,
            }),
        }],
        events: vec![],
    }
}

fn fabric_stats() -> FabricStatsRecord {
    let trips = RoundTripRecord {
        count: 3,
        min_ns: 900,
        p50_ns: 1500,
        p90_ns: 1500,
        p99_ns: 1500,
        p999_ns: 1500,
        max_ns: 3_000_000_000,
        sum_ns: 3_000_002_400,
        histogram: vec![
            LatencyBucket { below_ns: 1024, count: 1 },
            LatencyBucket { below_ns: 2048, count: 1 },
            LatencyBucket { below_ns: 1 << 32, count: 1 },
        ],
    };
    FabricStatsRecord {
        fabric: "fab0".into(),
        cpu_ms: 1500,
        cpu_ppm: 10,
        counters: vec![counter("rx_drop_epoch", "drop"), counter("transport_full", "protocol")],
        peers: vec![FabricPeerStats { node: 1, queued_bytes: 64, round_trip: Some(trips), counters: vec![] }],
    }
}

/// A bond, a peer whom two lanes lead to, a class without a plan of its own, and a fabric.
fn all() -> Vec<Records> {
    let (p, a, b) = ("198.18.0.2", "02:00:00:00:01:01", "02:00:00:00:01:02");
    let voice = LaneRecord { class: Some("voice".into()), ..lane("eth1", p, a) };
    let plain = LaneRecord {
        peer: "plain hosts".into(),
        peer_mac: None,
        plan: Some(0),
        state: "heard".into(),
        ..lane("eth1", p, a)
    };
    let unused = LaneRecord {
        plan: None,
        told_kbit: None,
        measured_kbit: None,
        state: "down".into(),
        ..lane("eth2", p, a)
    };
    let latency = LatencyRecord {
        bond: "bond0".into(),
        class: "rest".into(),
        stage: "driver".into(),
        count: 9,
        min_ns: 1000,
        mean_ns: 2000,
        stddev_ns: 0,
        p50_ns: 2000,
        p90_ns: 3000,
        p99_ns: 4000,
        p999_ns: 5000,
        max_ns: 6000,
    };
    let class = ClassRecord {
        bond: "bond0".into(),
        name: "voice".into(),
        members: vec![],
        uses: vec![],
        settings: ClassSettings::default(),
        rules: vec![],
        tx_frames: 1,
        tx_bytes: 100,
        tx_over: 0,
        queues: vec![],
    };
    let stats =
        vec![counter("tx_peer", "sent"), counter("rx_ack_damped", "drop"), counter("sent_reply", "protocol")];
    vec![
        Records::Bonds(vec![bond(vec![member("eth1"), member("eth2")])]),
        Records::Peers(vec![peer(p)]),
        Records::Lanes(vec![lane("eth1", p, a), lane("eth2", p, b), unused, voice, plain]),
        Records::Stats(vec![StatsRecord { bond: "bond0".into(), counters: stats }]),
        Records::Classes(vec![class]),
        Records::Latency(vec![latency]),
        Records::Fabrics(vec![fabric()]),
        Records::FabricStats(vec![fabric_stats()]),
    ]
}

fn event(kind: EventKind, bond: &str, took_us: Option<u64>) -> EventRecord {
    EventRecord {
        time_ms: 0,
        bond: bond.into(),
        kind,
        object: "eth1".into(),
        old: Some("up".into()),
        new: Some("down".into()),
        reason: "no_carrier".into(),
        text: String::new(),
        took_us,
    }
}

fn events() -> Events {
    let mut events = Events::default();
    events.note(&event(EventKind::Member, "bond0", Some(12_000)));
    events.note(&event(EventKind::Member, "bond0", Some(20_000_000)));
    events.note(&event(EventKind::Node, "fab0", None));
    events.lost(3);
    events
}

fn written(records: Vec<Records>, format: Format) -> String {
    let snapshot = Snapshot { records, failed: 0, took: Duration::from_micros(1500) };
    text("0.1.0", Arc::new(snapshot), &events(), format).expect("text")
}

/// The value of a series in the older format, if it is there.
#[track_caller]
fn value(text: &str, series: &str) -> Option<f64> {
    let mut found = text.lines().filter_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let value = found.next().map(|value| value.parse().expect("a number"));
    assert_eq!(found.next(), None, "{series} is there twice");
    value
}

#[test]
fn records_become_series() {
    let text = written(all(), Format::Text);
    let lane = r#"{bond="bond0",member="eth1",peer="198.18.0.2",peer_mac="02:00:00:00:01:01"}"#;
    let lost = r#"{bond="bond0",member="eth2",peer="198.18.0.2",peer_mac="02:00:00:00:01:01"}"#;
    for (series, wanted) in [
        (r#"linkbraid_build_info{version="0.1.0"}"#.to_owned(), 1.0),
        ("linkbraid_snapshot_seconds".to_owned(), 0.0015),
        (r#"linkbraid_bond_info{bond="bond0",policy="spread",auth="off",hook="tcx"}"#.to_owned(), 1.0),
        (r#"linkbraid_bond_up{bond="bond0"}"#.to_owned(), 1.0),
        (r#"linkbraid_bond_healthy{bond="bond0"}"#.to_owned(), 0.0),
        (r#"linkbraid_bond_findings{bond="bond0",severity="warning"}"#.to_owned(), 1.0),
        (r#"linkbraid_bond_findings{bond="bond0",severity="error"}"#.to_owned(), 0.0),
        (r#"linkbraid_bond_absent_members{bond="bond0"}"#.to_owned(), 1.0),
        (r#"linkbraid_bond_redundancy_left{bond="bond0"}"#.to_owned(), 1.0),
        (r#"linkbraid_arp_plus_peers{bond="bond0",state="alive"}"#.to_owned(), 1.0),
        (r#"linkbraid_arp_plus_peers{bond="bond0",state="silent"}"#.to_owned(), 0.0),
        (r#"linkbraid_member_told_bytes_per_second{bond="bond0",member="eth1"}"#.to_owned(), 125e6),
        (r#"linkbraid_member_measured_bytes_per_second{bond="bond0",member="eth1"}"#.to_owned(), 117.625e6),
        (r#"linkbraid_member_transmit_bytes_total{bond="bond0",member="eth2"}"#.to_owned(), 1000.0),
        (r#"linkbraid_peer_up{bond="bond0",peer="198.18.0.2"}"#.to_owned(), 1.0),
        (r#"linkbraid_peer_redundancy_left{bond="bond0",peer="198.18.0.2"}"#.to_owned(), 1.0),
        (r#"linkbraid_peer_heard_seconds{bond="bond0",peer="198.18.0.2"}"#.to_owned(), 0.25),
        (format!("linkbraid_lane_up{lane}"), 1.0),
        (format!("linkbraid_lane_used{lane}"), 1.0),
        (format!("linkbraid_lane_up{lost}"), 0.0),
        (format!("linkbraid_lane_used{lost}"), 0.0),
        (format!("linkbraid_lane_share_ratio{lane}"), 0.5),
        (format!("linkbraid_lane_transmit_bytes_total{lane}"), 700.0),
        (r#"linkbraid_lane_up{bond="bond0",member="eth1",peer="plain hosts"}"#.to_owned(), 1.0),
        (r#"linkbraid_frames_total{bond="bond0",reason="rx_ack_damped",verdict="drop"}"#.to_owned(), 7.0),
        (r#"linkbraid_frame_bytes_total{bond="bond0",reason="tx_peer",verdict="sent"}"#.to_owned(), 900.0),
        (r#"linkbraid_protocol_counts_total{bond="bond0",reason="sent_reply"}"#.to_owned(), 7.0),
        (r#"linkbraid_class_transmit_bytes_total{bond="bond0",class="voice"}"#.to_owned(), 100.0),
        (
            r#"linkbraid_latency_seconds{bond="bond0",class="rest",stage="driver",statistic="p99"}"#
                .to_owned(),
            4e-6,
        ),
        (r#"linkbraid_fabric_node_up{fabric="fab0",node="1"}"#.to_owned(), 1.0),
        (r#"linkbraid_fabric_node_queued_bytes{fabric="fab0",node="1"}"#.to_owned(), 64.0),
        (r#"linkbraid_fabric_cpu_seconds_total{fabric="fab0"}"#.to_owned(), 1.5),
        (
            r#"linkbraid_fabric_round_trip_seconds_bucket{fabric="fab0",node="1",le="1.024e-06"}"#.to_owned(),
            1.0,
        ),
        (r#"linkbraid_fabric_round_trip_seconds_bucket{fabric="fab0",node="1",le="+Inf"}"#.to_owned(), 3.0),
        (r#"linkbraid_fabric_round_trip_seconds_count{fabric="fab0",node="1"}"#.to_owned(), 3.0),
        (r#"linkbraid_events_total{bond="bond0",kind="member",reason="no_carrier"}"#.to_owned(), 2.0),
        (r#"linkbraid_events_total{fabric="fab0",kind="node",reason="no_carrier"}"#.to_owned(), 1.0),
        (r#"linkbraid_events_total{kind="lost",reason="lost"}"#.to_owned(), 3.0),
    ] {
        assert_eq!(value(&text, &series), Some(wanted), "{series} in\n{text}");
    }
    let of_member = r#"{bond="bond0",kind="member",reason="no_carrier",state="down""#;
    let bucket =
        |le: &str| value(&text, &format!("linkbraid_detection_seconds_bucket{of_member},le=\"{le}\"}}"));
    assert_eq!(
        [bucket("0.01"), bucket("0.02"), bucket("10"), bucket("+Inf")],
        [0.0, 1.0, 1.0, 2.0].map(Some)
    );
    let of_class = lane.replace('}', r#",class="voice"}"#);
    assert_eq!(value(&text, &format!("linkbraid_lane_share_ratio{of_class}")), Some(0.5));
    let twice = value(&text, &format!("linkbraid_lane_transmit_bytes_total{of_class}"));
    assert_eq!(twice, None, "it has no plan of its own, so its frames are among those of the default class");
}

#[test]
fn a_host_that_has_proven_nothing_has_no_series() {
    let made_up = PeerRecord { proven: false, members: vec![end("02:00:00:00:09:09")], ..peer("198.18.9.9") };
    let peers = |made_up: &PeerRecord| Records::Peers(vec![peer("198.18.0.2"), made_up.clone()]);
    let lanes = Records::Lanes(vec![lane("eth1", "198.18.9.9", "02:00:00:00:09:09")]);
    let shown = |bond: BondRecord, peers: Records| {
        written(vec![Records::Bonds(vec![bond]), peers, lanes.clone()], Format::Text)
    };
    let text = shown(bond(vec![]), peers(&made_up));
    assert!(!text.contains("198.18.9.9"), "{text}");
    assert_eq!(value(&text, r#"linkbraid_arp_plus_peers{bond="bond0",state="alive"}"#), Some(2.0));
    assert_eq!(value(&text, r#"linkbraid_arp_plus_proven_peers{bond="bond0"}"#), Some(1.0));
    let mut unprobed = bond(vec![]);
    unprobed.settings.inspector.probes = false;
    let text = shown(unprobed, peers(&made_up));
    assert!(text.contains("198.18.9.9"), "nobody can prove anything where nobody is asked");
}

#[test]
fn a_host_that_claims_the_address_of_a_peer_puts_no_lanes_in() {
    let (p, own, forged) = ("198.18.0.2", "02:00:00:00:01:01", "02:00:00:00:09:09");
    let claim = PeerRecord {
        proven: false,
        host_id: Some("ee".into()),
        mac: forged.into(),
        members: vec![end(forged)],
        ..peer(p)
    };
    let plain = LaneRecord { peer: "plain hosts".into(), peer_mac: None, ..lane("eth1", p, own) };
    let records = vec![
        Records::Bonds(vec![bond(vec![])]),
        Records::Peers(vec![claim, peer(p)]),
        Records::Lanes(vec![lane("eth1", p, forged), lane("eth1", p, own), plain]),
    ];
    let text = written(records, Format::Text);
    assert!(!text.contains(forged), "{text}");
    for lane in [r#"peer="198.18.0.2",peer_mac="02:00:00:00:01:01""#, r#"peer="plain hosts""#] {
        let series = format!(r#"linkbraid_lane_up{{bond="bond0",member="eth1",{lane}}}"#);
        assert_eq!(value(&text, &series), Some(1.0), "{text}");
    }
}

#[test]
fn only_so_many_peers_have_series() {
    let address = |i: usize| format!("198.18.{}.{}", i / 250, i % 250 + 1);
    let last = address(PEERS_MAX);
    let records = |peers: usize| {
        vec![
            Records::Bonds(vec![bond(vec![])]),
            Records::Peers((0..peers).map(|i| peer(&address(i))).collect()),
            Records::Lanes(vec![lane("eth1", &last, "02:00:00:00:01:01")]),
        ]
    };
    let shown = |text: &str| text.lines().filter(|line| line.starts_with("linkbraid_peer_up{")).count();
    let left_out = r#"linkbraid_peers_left_out{bond="bond0"}"#;
    let text = written(records(PEERS_MAX), Format::Text);
    assert_eq!((shown(&text), value(&text, left_out)), (PEERS_MAX, Some(0.0)));
    let text = written(records(PEERS_MAX + 3), Format::Text);
    assert_eq!((shown(&text), value(&text, left_out)), (PEERS_MAX, Some(3.0)));
    assert!(!text.contains(&last), "neither it nor its lanes");
    let proven = r#"linkbraid_arp_plus_proven_peers{bond="bond0"}"#;
    assert_eq!(value(&text, proven), Some((PEERS_MAX + 3) as f64), "all are counted");
}

#[test]
fn two_hosts_with_one_address_are_one_series() {
    let text = written(vec![Records::Peers(vec![peer("198.18.0.2"), peer("198.18.0.2")])], Format::Text);
    assert_eq!(value(&text, r#"linkbraid_peer_up{bond="bond0",peer="198.18.0.2"}"#), Some(0.0));
}

#[test]
fn bonds_that_are_gone_are_forgotten() {
    let mut events = events();
    events.keep(&BTreeSet::from(["fab0"]));
    let text = text("0", Arc::default(), &events, Format::Text).expect("text");
    assert!(!text.contains("bond0"), "{text}");
    assert!(text.contains(r#"fabric="fab0""#) && text.contains(r#"kind="lost""#), "{text}");
}

#[test]
fn both_formats_have_the_same_series() {
    let (open, old) = (written(all(), Format::OpenMetrics), written(all(), Format::Text));
    let series = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.contains("_bucket"));
        lines.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect()
    };
    assert_eq!(series(&open), series(&old));
    assert!(open.ends_with("# EOF\n") && !old.contains("# EOF"));
    assert!(open.contains("# TYPE linkbraid_frames counter\n"), "{open}");
    assert!(old.contains("# TYPE linkbraid_frames_total counter\n"), "{old}");
    let accepted = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    assert_eq!([Format::accepted(accepted), Format::accepted("*/*")], [Format::OpenMetrics, Format::Text]);
}

/// The table of all families: name, kind, labels, meaning.
fn table() -> String {
    let text = written(all(), Format::Text);
    let mut labels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let (mut rows, mut help, mut family) = (Vec::new(), "", "");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            (family, help) = rest.split_once(' ').expect("a name and a text");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            rows.push((family, rest.rsplit(' ').next().expect("a kind"), help));
        } else {
            let inside =
                line.split_once('{').and_then(|(_, rest)| rest.rsplit_once("\"}")).map_or("", |all| all.0);
            let names = inside.split("\",").filter_map(|label| Some(label.split_once('=')?.0));
            labels.entry(family).or_default().extend(names.filter(|name| *name != "le"));
        }
    }
    let mut table = "| metric | kind | labels | |\n|---|---|---|---|\n".to_owned();
    for (family, kind, help) in rows {
        let labels = labels[family].iter().copied().collect::<Vec<_>>().join(", ");
        table += &format!("| `{family}` | {kind} | {labels} | {help} |\n");
    }
    table
}

#[test]
fn the_page_lists_all_families() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).expect("the page is there");
    let from = page.find("| metric | kind |").expect("it has the table");
    let rows = page[from..].lines().take_while(|line| line.starts_with('|'));
    let end = from + rows.map(|row| row.len() + 1).sum::<usize>();
    let wanted = table();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, format!("{}{wanted}{}", &page[..from], &page[end..])).expect("writes");
    } else {
        assert_eq!(&page[from..end], wanted, "UPDATE=1 cargo test -p linkbraid-metrics page");
    }
}

/// A bond with [`PEERS`] peers of [`MEMBERS`] members each, on one switch: every pair of members is a lane.
fn crowd() -> Vec<Records> {
    let address = |peer: usize| format!("198.18.{}.{}", peer / 250, peer % 250 + 1);
    let mac = |peer: usize, theirs: usize| format!("02:00:00:{peer:02x}:00:{theirs:02x}");
    let one_peer = |i: usize| PeerRecord {
        members: (0..MEMBERS).map(|theirs| end(&mac(i, theirs))).collect(),
        ..peer(&address(i))
    };
    let of_peer = |peer: usize| {
        let pairs = (0..MEMBERS).flat_map(move |own| (0..MEMBERS).map(move |theirs| (own, theirs)));
        pairs.map(move |(own, theirs)| {
            let lane = lane(&format!("eth{own}"), &address(peer), &mac(peer, theirs));
            // A plan has about as many lanes as there are members.
            match own == theirs {
                true => lane,
                false => LaneRecord { plan: None, told_kbit: None, measured_kbit: None, ..lane },
            }
        })
    };
    let counters = (0..120).map(|i| counter(&format!("counter_{i}"), "drop")).collect();
    vec![
        Records::Bonds(vec![bond((0..MEMBERS).map(|i| member(&format!("eth{i}"))).collect())]),
        Records::Peers((0..PEERS).map(one_peer).collect()),
        Records::Lanes((0..PEERS).flat_map(of_peer).collect()),
        Records::Stats(vec![StatsRecord { bond: "bond0".into(), counters }]),
    ]
}

#[test]
fn a_crowd_is_written_quickly() {
    let snapshot = Arc::new(Snapshot { records: crowd(), failed: 0, took: Duration::ZERO });
    let mut took: Vec<Duration> = Vec::new();
    let mut written = String::new();
    for _ in 0..9 {
        let begun = Instant::now();
        written = text("0.1.0", snapshot.clone(), &events(), Format::OpenMetrics).expect("text");
        took.push(begun.elapsed());
    }
    took.sort();
    let series = written.lines().filter(|line| !line.starts_with('#')).count();
    let lanes = PEERS * MEMBERS * MEMBERS;
    println!(
        "{PEERS} peers, {lanes} lanes, {series} series, {} bytes: median {:?}, fastest {:?}",
        written.len(),
        took[took.len() / 2],
        took[0]
    );
    // The fastest one says the most of the code, and other work on the machine says the least of it.
    let slower = if cfg!(debug_assertions) { 30 } else { 3 };
    assert!(took[0] < slower * TEXT_MAX, "{took:?}");
}
