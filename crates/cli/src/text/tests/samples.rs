//! One record of each kind, for the golden tests.

use linkbraid_api::{
    AddressMove, BondRecord, BondSettings, Borrow, ClassRecord, ClassSettings, CounterRecord, EventKind,
    EventRecord, ExplainRecord, FabricPeerRecord, FabricPeerStats, FabricRecord, FabricSettings,
    FabricStatsRecord, Fallback, FindingRecord, GuestRecord, Health, LaneRecord, LatencyBucket,
    LatencyRecord, MemberRecord, NodeState, PeerMemberRecord, PeerRecord, PeerState, Policy, Precedence,
    QueueRecord, RoundTripRecord, RuleRecord, Severity, ShareFrom, StatsRecord, StepLaneRecord, StepRecord,
};

/// A bond of four members that is well.
pub fn bond() -> BondRecord {
    BondRecord {
        name: "bond0".into(),
        health: Health::Ok,
        reason: String::new(),
        mac: "02:00:00:00:00:01".into(),
        mtu: 1500,
        addresses: vec!["198.18.0.1/24".into(), "2001:db8::1/64".into()],
        settings: BondSettings::default(),
        stripe_bytes: 4400,
        hook: "tcx".into(),
        host_id: "0123456789abcdef0123456789abcdef".into(),
        keys: Vec::new(),
        arp_plus_state: "S2".into(),
        peers: 2,
        members: (1..=4).map(member).collect(),
        absent: vec![],
        guests: vec![
            GuestRecord {
                members: vec!["eth2".into()],
                ..guest("52:54:00:00:00:03", 0, &["198.18.0.3"], "")
            },
            GuestRecord {
                members: vec!["eth1".into(), "eth4".into()],
                ..guest("52:54:00:00:00:04", 0, &["198.18.0.4"], "peers are told of no more guests")
            },
        ],
        moved: [("198.18.0.1/24", "eth1"), ("2001:db8::1/64", "eth1"), ("198.18.1.1/24", "eth2")]
            .map(|(address, member)| AddressMove { address: address.into(), member: member.into() })
            .to_vec(),
        conflicts: vec![],
        findings: vec![],
        events: vec![],
    }
}

/// 2026-11-20 12:00:00 UTC in milliseconds.
pub const NOON_MS: u64 = 1_795_176_000_000;

/// A member of `bond0` that changed, `ms` after noon.
pub fn event(ms: u64, kind: EventKind, object: &str, old: Option<&str>, new: Option<&str>) -> EventRecord {
    EventRecord {
        time_ms: NOON_MS + ms,
        bond: "bond0".into(),
        kind,
        object: object.into(),
        old: old.map(Into::into),
        new: new.map(Into::into),
        reason: String::new(),
        text: String::new(),
        took_us: None,
    }
}

/// Something of each kind: a cable is pulled and put back, a switch port forwards nothing, a peer leaves.
pub fn events() -> Vec<EventRecord> {
    let why = |event: EventRecord, reason: &str, text: &str, took_us| EventRecord {
        reason: reason.into(),
        text: text.into(),
        took_us,
        ..event
    };
    let lane = "eth2 > 198.18.0.2 (02:00:00:00:01:02)";
    let (up, down) = (Some("up"), Some("down"));
    vec![
        why(event(1234, EventKind::Member, "eth1", up, down), "no_carrier", "no carrier", Some(3200)),
        why(
            event(1235, EventKind::Bond, "bond0", Some("ok"), Some("degraded")),
            "member_down",
            "'eth1' has no carrier",
            None,
        ),
        why(
            event(61_000, EventKind::Member, "eth1", down, Some("delayed")),
            "carrier_back",
            "carrier is back",
            None,
        ),
        why(
            event(61_100, EventKind::Member, "eth1", Some("delayed"), up),
            "waited",
            "it has waited long enough",
            Some(100_400),
        ),
        why(
            event(3_661_007, EventKind::Lane, lane, up, Some("suspect")),
            "no_answer",
            "no probe was answered within the detection time",
            Some(128_000),
        ),
        why(
            event(3_662_000, EventKind::Peer, "198.18.0.3", Some("alive"), None),
            "cleared",
            "it said good-bye",
            None,
        ),
        why(event(3_663_000, EventKind::Member, "eth9", None, Some("up")), "joined", "", None),
        why(
            event(3_664_000, EventKind::Conflict, "198.18.0.1", None, None),
            "address",
            "02:00:00:00:09:09 claims our address 198.18.0.1",
            None,
        ),
        why(
            event(3_665_000, EventKind::Lost, "bond0", None, None),
            "slow",
            "17 events were lost: the client reads too slowly",
            None,
        ),
    ]
}

/// A finding of each severity.
pub fn findings() -> Vec<FindingRecord> {
    let finding = |severity, object: &str, name: &str, text: &str, hint: Option<&str>| FindingRecord {
        severity,
        object: object.into(),
        name: name.into(),
        text: text.into(),
        hint: hint.map(Into::into),
    };
    vec![
        finding(Severity::Ok, "this machine", "kernel", "6.12, has tcx", None),
        finding(Severity::Ok, "eth1", "carrier", "1 Gbit/s, full duplex", None),
        finding(
            Severity::Warning,
            "eth1",
            "energy_saving",
            "Energy-Efficient Ethernet is on",
            Some("ethtool --set-eee eth1 eee off"),
        ),
        finding(
            Severity::Error,
            "eth2",
            "manager",
            "NetworkManager manages it",
            Some("nmcli device set eth2 managed no"),
        ),
    ]
}

/// Member `eth<number>`; the first one is elected, speeds and counts differ.
pub fn member(number: u32) -> MemberRecord {
    MemberRecord {
        interface: format!("eth{number}"),
        mac: format!("02:00:00:00:00:{number:02x}"),
        live: true,
        reason: String::new(),
        speed_mbit: if number == 4 { None } else { Some(1000 * number) },
        weight_mbit: 250 * number,
        measured_kbit: (number == 2).then_some(471_300),
        share_from: Some(if number == 2 { ShareFrom::Measured } else { ShareFrom::Told }),
        segment: 0,
        elected: number == 1,
        tx_frames: 1000,
        tx_bytes: 10_u64.pow(number * 3) * 15 / 10,
        rx_frames: 10,
        rx_bytes: 999,
        class: None,
    }
}

pub fn guest(mac: &str, vlan: u16, addresses: &[&str], reason: &str) -> GuestRecord {
    GuestRecord {
        mac: mac.into(),
        vlan,
        addresses: addresses.iter().map(|address| (*address).into()).collect(),
        striped: reason.is_empty(),
        reason: reason.into(),
        members: vec![],
    }
}

/// A peer that speaks all of ARP+, and one that speaks the published part only and has fallen silent.
pub fn peers() -> Vec<PeerRecord> {
    let full = PeerRecord {
        bond: "bond0".into(),
        address: Some("198.18.0.2".into()),
        host_id: Some("ffeeddccbbaa99887766554433221100".into()),
        epoch: Some(3),
        state: PeerState::Alive,
        mac: "02:00:00:00:01:01".into(),
        members: vec![
            PeerMemberRecord {
                mac: "02:00:00:00:01:01".into(),
                live: true,
                weight_mbit: Some(1000),
                class: None,
            },
            PeerMemberRecord {
                mac: "02:00:00:00:01:02".into(),
                live: false,
                weight_mbit: None,
                class: Some("urgent".into()),
            },
        ],
        heard_ms: 250,
        proven: true,
        guests: vec![
            guest("52:54:00:00:00:01", 0, &["198.18.1.1", "2001:db8::1"], ""),
            guest("52:54:00:00:00:02", 5, &["198.18.1.2"], "behind another host"),
        ],
    };
    let silent = PeerRecord {
        address: None,
        host_id: None,
        epoch: None,
        state: PeerState::Silent,
        mac: "02:00:00:00:02:01".into(),
        members: vec![],
        heard_ms: 150_000,
        proven: false,
        guests: vec![],
        ..full.clone()
    };
    vec![full, silent]
}

/// Lanes to a peer, of which one is not in the plan and one is lent by a class that has it too, and one to plain hosts.
pub fn lanes() -> Vec<LaneRecord> {
    let lane = LaneRecord {
        bond: "bond0".into(),
        peer: "198.18.0.2".into(),
        member: "eth1".into(),
        peer_mac: Some("02:00:00:00:01:01".into()),
        state: "up".into(),
        plan: Some(2),
        share_ppm: 833_333,
        tx_frames: 1_234_567,
        tx_bytes: 1_500_000_000,
        told_kbit: Some(1_000_000),
        measured_kbit: Some(941_300),
        share_from: Some(ShareFrom::Measured),
        class: None,
        borrowed_from: None,
    };
    let plain = LaneRecord {
        peer: "plain hosts".into(),
        peer_mac: None,
        state: "heard".into(),
        plan: Some(0),
        share_ppm: 1_000_000,
        tx_frames: 0,
        tx_bytes: 0,
        measured_kbit: None,
        share_from: Some(ShareFrom::Told),
        ..lane.clone()
    };
    let lost = LaneRecord {
        member: "eth2".into(),
        state: "down".into(),
        plan: None,
        share_ppm: 0,
        tx_frames: 0,
        tx_bytes: 0,
        told_kbit: None,
        measured_kbit: None,
        share_from: None,
        ..lane.clone()
    };
    let lent = LaneRecord {
        member: "eth3".into(),
        peer_mac: Some("02:00:00:00:01:02".into()),
        share_ppm: 166_667,
        borrowed_from: Some("voice".into()),
        ..lane.clone()
    };
    let own = LaneRecord {
        borrowed_from: None,
        plan: Some(3),
        share_ppm: 1_000_000,
        class: Some("voice".into()),
        tx_frames: 12_000,
        tx_bytes: 2_400_000,
        ..lent.clone()
    };
    vec![lane, lost, lent, own, plain]
}

/// A class with a member of its own, one without, and one whose members are gone.
pub fn classes() -> Vec<ClassRecord> {
    let rule = |number, matches: &str, frames: u64| RuleRecord {
        number,
        matches: matches.into(),
        frames,
        bytes: frames * 200,
    };
    let queue =
        |member: &str, kind: &str, ours| QueueRecord { member: member.into(), kind: kind.into(), ours };
    let voice = ClassRecord {
        bond: "bond0".into(),
        name: "voice".into(),
        members: vec!["eth3".into(), "eth4".into()],
        uses: vec!["eth3".into(), "eth4".into()],
        settings: ClassSettings {
            policy: Policy::Mirror,
            fallback: Fallback::Share,
            borrow: Borrow::Idle,
            precedence: Precedence::On,
        },
        queues: vec![queue("eth3", "pfifo_fast", true), queue("eth4", "tbf", false)],
        rules: vec![
            rule(1, "cgroup=/linkbraid/bond0/voice", 0),
            rule(4, "dscp=ef", 12_345),
            rule(5, "udp-port=5004-5005,host=2001:db8:1234:5678::/64", 1_000_000),
        ],
        tx_frames: 1_012_345,
        tx_bytes: 202_469_000,
        tx_over: 1200,
    };
    let shared = ClassRecord {
        name: "ssh".into(),
        members: vec![],
        uses: vec!["eth1".into(), "eth2".into()],
        settings: ClassSettings { policy: Policy::Flow, ..ClassSettings::default() },
        queues: vec![
            queue("eth1", "pfifo_fast", true),
            queue("eth2", "pfifo_fast", true),
            queue("eth6", "noqueue", false),
        ],
        rules: vec![rule(2, "cgroup=/linkbraid/bond0/ssh", 1), rule(6, "tcp-port=22", 0)],
        tx_frames: 1,
        tx_bytes: 200,
        tx_over: 0,
        ..voice.clone()
    };
    let gone = ClassRecord {
        name: "camera".into(),
        members: vec!["eth5".into()],
        uses: vec![],
        settings: ClassSettings { fallback: Fallback::Block, ..ClassSettings::default() },
        queues: vec![],
        rules: vec![rule(3, "cgroup=/linkbraid/bond0/camera", 0), rule(7, "ethertype=0x88f7", 0)],
        tx_frames: 0,
        tx_bytes: 0,
        tx_over: 0,
        ..voice.clone()
    };
    vec![voice, shared, gone]
}

/// Two stages of two classes; nothing came from an application in one.
pub fn latency() -> Vec<LatencyRecord> {
    let driver = |class: &str, step: u64| LatencyRecord {
        bond: "bond0".into(),
        class: class.into(),
        stage: "driver".into(),
        count: 123_456,
        min_ns: 8 * step,
        mean_ns: 10 * step,
        stddev_ns: 3 * step,
        p50_ns: 9 * step,
        p90_ns: 12 * step,
        p99_ns: 20 * step,
        p999_ns: 50 * step,
        max_ns: 1000 * step,
    };
    let application =
        |class: &str, count| LatencyRecord { stage: "application".into(), count, ..driver(class, 1_234) };
    let total = |class: &str, count| LatencyRecord { stage: "total".into(), count, ..driver(class, 124_690) };
    vec![
        application("rest", 123_000),
        driver("rest", 123_456),
        total("rest", 122_900),
        application("voice", 0),
        driver("voice", 250),
        total("voice", 0),
    ]
}

/// Two counters, one of them at zero.
pub fn stats() -> StatsRecord {
    let counter = |number, name: &str, verdict: &str, frames, bytes| CounterRecord {
        name: name.into(),
        number,
        description: format!("what {name} means"),
        verdict: verdict.into(),
        frames,
        bytes,
    };
    StatsRecord {
        bond: "bond0".into(),
        counters: vec![
            counter(1, "tx_striped", "sent", 123_456, 1_500_000),
            counter(2, "rx_own_source", "drop", 0, 0),
            counter(100, "arp_plus_reply", "protocol", 7, 0),
        ],
    }
}

/// A fabric of three nodes: one is up, one is refused.
pub fn fabric() -> FabricRecord {
    let peer = |node, state, reason: &str| FabricPeerRecord {
        node,
        state,
        reason: reason.into(),
        epoch: (state == NodeState::Up).then_some(7),
        since_ms: 61_000,
        heard_ms: (node != 2).then_some(40),
        send_queue: u32::from(node),
        receive_queue: 3 * u32::from(node),
        tx_frames: 1200,
        tx_bytes: 1_500_000,
        rx_frames: 1100,
        rx_bytes: 66_000,
        dropped_frames: 3,
        queued_bytes: 65_536,
        vxlan: None,
    };
    let mut events = vec![event(1234, EventKind::Node, "1", Some("down"), Some("up"))];
    for event in &mut events {
        event.bond = "fab0".into();
        event.reason = "connected".into();
        event.text = "connected, epoch 0000000000000007".into();
    }
    FabricRecord {
        name: "fab0".into(),
        health: Health::Degraded,
        reason: "node 2: its MTU is 9000, this node's 1500".into(),
        node: 0,
        nodes: 3,
        transport: "shm:/run/linkbraid/fab0".into(),
        mac: "02:6c:62:8a:00:00".into(),
        settings: FabricSettings::default(),
        keys: Vec::new(),
        addresses: vec!["198.18.0.1/24".into()],
        queues: 1,
        epoch: Some(5),
        node_memory_bytes: Some(1_052_672),
        memory_bytes: Some(3_162_112),
        offloads: vec!["checksum".into(), "tso".into(), "uso".into()],
        vxlan: None,
        cpu_ms: 61_400,
        cpu_ppm: 25_000,
        peers: vec![
            peer(1, NodeState::Up, ""),
            peer(2, NodeState::Refused, "its MTU is 9000, this node's 1500"),
        ],
        events,
    }
}

/// Counters of that fabric.
pub fn fabric_stats() -> FabricStatsRecord {
    let counter = |number, name: &str, frames| CounterRecord {
        name: name.into(),
        number,
        description: "frames sent to the peer".into(),
        verdict: "sent".into(),
        frames,
        bytes: frames * 100,
    };
    FabricStatsRecord {
        fabric: "fab0".into(),
        cpu_ms: 61_400,
        cpu_ppm: 25_000,
        counters: vec![counter(0, "tx_frames", 2400), counter(3, "tx_held", 0)],
        peers: vec![FabricPeerStats {
            node: 1,
            queued_bytes: 65_536,
            round_trip: Some(RoundTripRecord {
                count: 60,
                min_ns: 40_000,
                p50_ns: 55_000,
                p90_ns: 80_000,
                p99_ns: 120_000,
                p999_ns: 850_000,
                max_ns: 900_000,
                sum_ns: 3_600_000,
                histogram: vec![
                    LatencyBucket { below_ns: 65_536, count: 50 },
                    LatencyBucket { below_ns: 1_048_576, count: 10 },
                ],
            }),
            counters: vec![counter(0, "tx_frames", 1200)],
        }],
    }
}

/// A frame for a peer, of the default class.
pub fn explain() -> ExplainRecord {
    let step =
        |name: &str, text: &str| StepRecord { name: name.into(), text: text.into(), lanes: Vec::new() };
    let lane = |number: u8, ahead: u64| StepLaneRecord {
        member: format!("eth{number}"),
        peer_mac: Some(format!("02:00:00:00:02:0{number}")),
        kbit: 1_000_000,
        share_ppm: 333_333,
        ahead_bytes: Some(ahead),
        borrowed_from: None,
        avoided: false,
        taken: number == 2,
    };
    let lent =
        StepLaneRecord { borrowed_from: Some("voice".into()), avoided: true, share_ppm: 0, ..lane(4, 0) };
    let lanes = vec![lane(1, 4400), lane(2, 0), StepLaneRecord { avoided: true, ..lane(3, 131_072) }, lent];
    ExplainRecord {
        bond: "bond0".into(),
        flow: "tcp 198.18.0.1 > 198.18.0.2:445".parse().unwrap(),
        sent: true,
        reason: "tx_peer".into(),
        member: Some("eth2".into()),
        second_member: None,
        class: None,
        source_mac: "02:00:00:00:01:02".into(),
        destination_mac: "02:00:00:00:02:02".into(),
        steps: vec![
            step("route", "198.18.0.2 is on the network of bond0"),
            step("neighbour", "198.18.0.2 is at 02:00:00:00:02:01: the kernel's entry is reachable"),
            step("class", "rest: no rule matches"),
            StepRecord { lanes, ..step("plan", "4 lanes of rest, policy spread") },
            step(
                "lane",
                "eth2: it is furthest behind in virtual time now; each stripe of the flow takes the lane that is",
            ),
            step("sent", "left over a lane of the peer's plan (counter tx_peer)"),
        ],
    }
}

/// Two links, one of which is slow one way, and a policy that uses one.
pub fn diagnosis() -> linkbraid_doctor::Diagnosis {
    use linkbraid_doctor::{
        Direction, Examination, FlowTest, Heard, Lane, LaneTest, Load, Member, Sender, Sent, Side, Watched,
        diagnose,
    };
    let member = |at: u8| Member {
        name: format!("eth{at}"),
        mac: format!("02:00:00:00:00:0{at}"),
        live: true,
        reason: String::new(),
        class: None,
        fixed_mbit: None,
        heeds_pause: None,
        bytes: 0,
    };
    let lane = |at: u8| Lane {
        member: format!("eth{at}"),
        peer_mac: format!("02:00:00:00:00:0{at}"),
        state: "up".into(),
        share_ppm: 500_000,
    };
    let side = |policy| Side {
        bond: "bond0".into(),
        mtu: 1500,
        policy,
        damping: true,
        members: (1..3).map(member).collect(),
        absent: Vec::new(),
        lanes: (1..3).map(lane).collect(),
        findings: Vec::new(),
        congestion: "cubic".into(),
        receive_buffer: 6 << 20,
        send_buffer: 4 << 20,
    };
    let heard = |mbit: u64| Heard {
        frames: 1001,
        bytes: 1001 * 1514,
        micros: 1000 * 1514 * 8 / mbit,
        ..Heard::default()
    };
    let test = |at: u8, down| LaneTest {
        member: format!("eth{at}"),
        peer_member: format!("eth{at}"),
        sent: [Sent { frames: 1001, busy: 0.1, first_us: None }; 2],
        heard: [heard(1000), heard(down)],
    };
    let sender = Sender {
        segments: 100_000,
        again: 20,
        busy_us: 2_500_000,
        window_us: 50_000,
        buffer_us: 0,
        round_trip_us: 900,
    };
    let load = [Load { processor: 1, busy: 0.31, softirq: 0.6, all: 0.2 }; 2];
    let flow = |way, flows, mbit| FlowTest { way, flows, mbit, sender, load };
    diagnose(Examination {
        own: side(Policy::ActiveBackup),
        other: side(Policy::Spread),
        watched: Watched::default(),
        lanes: vec![test(1, 1000), test(2, 100)],
        flows: vec![
            flow(Direction::Up, 8, 956.0),
            flow(Direction::Down, 8, 1050.0),
            flow(Direction::Up, 1, 955.0),
            flow(Direction::Down, 1, 1049.0),
        ],
    })
}
