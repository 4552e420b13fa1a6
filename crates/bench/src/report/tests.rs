use super::*;

pub(crate) fn sample(repeat: u32, mbit: f64) -> Sample {
    Sample {
        repeat,
        command: "iperf3 -c 198.18.0.2".into(),
        mbit,
        mbit_back: Some(1.0),
        each_second: vec![mbit],
        segments: 20_000,
        segments_again: 3,
        datagrams: 0,
        datagrams_lost: 0,
        tx_shares: vec![0.51, 0.49],
        rx_shares: vec![0.5, 0.5],
        wire_bytes: 2_000_000_000,
        cpu_s: 3.0,
        cpu_share: 0.5,
        nic_queue_drops: 0,
        port_queue_drops: 0,
        frames_lost: 0,
        frames_marked: 0,
        backlog_drops: 0,
        rival_mbit: Some(2.0),
    }
}

pub(crate) fn case(id: &str, members: u32, mbit: &[f64]) -> Case {
    let samples: Vec<Sample> = (0..).zip(mbit).map(|(repeat, mbit)| sample(repeat, *mbit)).collect();
    Case {
        id: id.into(),
        lab: "100mbit/n2".into(),
        parameters: Parameters {
            members,
            rate_mbit: vec![100; members.max(1) as usize],
            far_rate_mbit: vec![100; members.max(1) as usize],
            load: "tcp cubic".into(),
            flows: 1,
            direction: "forward".into(),
            damping: (members > 0).then_some(true),
            condition: "loss 1 %".into(),
        },
        medians: Medians::of(&samples, &vec![100; members.max(1) as usize]),
        samples,
        ratios: Vec::new(),
    }
}

fn failover() -> Failover {
    let restored = Return { used_ms: 500.0, lost: Some(0), duplicated: Some(0), ..Return::default() };
    let incident = Incident {
        object: "a/eth0".into(),
        watched_ms: 1000.0,
        gap_ms: 140.0,
        sender_gap_ms: Some(2.0),
        back_ms: Some(180.0),
        detected_ms: Some(120.0),
        detected_far_ms: Some(130.0),
        reason: Some("no_answer".into()),
        sent: Some(50_000),
        lost: Some(3000),
        last_lost_ms: Some(121.0),
        duplicated: Some(0),
        reordered: Some(9),
        command_ms: Some(20.0),
        restored: Some(restored),
        ..Incident::default()
    };
    Failover {
        id: "silent-both/udp/n2".into(),
        lab: "n2".into(),
        kind: "silent-both".into(),
        load: "udp".into(),
        links: 2,
        rate_mbit: 100,
        medians: FailoverMedians::of(std::slice::from_ref(&incident)),
        incidents: vec![incident],
        connections_lost: vec!["broken pipe".into()],
        datagrams_per_s: Some(Spread::one(50_000.0)),
        machine: MachineLoss::default(),
        trace: Some(Trace { incident: 0, from_ms: -300.0, bin_ms: 5.0, mbit: vec![180.0, 0.0] }),
    }
}

/// A measure taken once, half as much again as that of veth.
pub(crate) fn measure(id: &str, metric: &str, value: f64, bytes: Option<u64>) -> Measure {
    let base = Measure {
        id: id.replace("shm", "veth"),
        turns: vec![0],
        values: vec![value / 1.5],
        ..Measure::default()
    };
    let mut measure = Measure {
        id: id.into(),
        metric: metric.into(),
        unit: "Mbit/s".into(),
        bytes,
        command: "iperf3 -c 198.19.0.2".into(),
        turns: vec![0],
        values: vec![value],
        spread: Some(Spread::one(value)),
        against: Vec::new(),
    };
    measure.compare(&base);
    measure
}

/// Messages with these medians, the 99th percentile at twice as much.
pub(crate) fn message_case(id: &str, scenario: &str, medians_us: &[f64]) -> MessageCase {
    let sample = |(repeat, median_us): (u32, &f64)| RoundTrips {
        repeat,
        sent: 3000,
        median_us: *median_us,
        p99_us: median_us * 2.0,
        max_us: median_us * 10.0,
        bulk: Some(Bulk { command: "iperf3 -c 198.18.0.2".into(), mbit: 190.0 }),
        tx_shares: vec![0.5, 0.49, 0.01],
        cpu_share: 0.4,
        ..RoundTrips::default()
    };
    let samples: Vec<RoundTrips> = (0..).zip(medians_us).map(sample).collect();
    MessageCase {
        id: id.into(),
        lab: "two".into(),
        scenario: scenario.into(),
        load: "udp".into(),
        members: 3,
        bulk_links: 2,
        rate_mbit: 100,
        messages: MessageSettings { bytes: 64, period_us: 1000.0, priority: 6, real_time: true },
        queue: "tbf, bfifo".into(),
        medians: MessageMedians::of(&samples),
        samples,
        ratios: vec![MessageRatio {
            name: "median".into(),
            base: "udp/idle".into(),
            pairs: vec![1.1],
            spread: Spread::of([1.1]),
        }],
        histogram: vec![Bin { up_to_us: 70.0, count: 2900 }, Bin { up_to_us: 1000.0, count: 100 }],
        trace: MessageTrace { at_ms: vec![0.0, 1.0], took_us: vec![Some(70.0), None] },
    }
}

/// One cut with so many messages late before it and during it.
pub(crate) fn cut_case(id: &str, late_before: u64, late: u64) -> CutCase {
    let outcome =
        |late| Outcome { sent: 600, late, max_us: 200.0, last_bad_ms: Some(3.0), ..Outcome::default() };
    CutCase {
        id: id.into(),
        lab: "mirror".into(),
        policy: "mirror".into(),
        load: "udp".into(),
        rate_mbit: 100,
        messages: MessageSettings::default(),
        normal_us: 70.0,
        late_us: 140.0,
        cuts: vec![Cut {
            object: "a/eth1".into(),
            kind: "silent".into(),
            cut_ms: 300.0,
            again_ms: 700.0,
            before: outcome(late_before),
            during: outcome(late),
            after: outcome(0),
        }],
        twice: 0,
        backlog_drops: 0,
        traces: vec![CutTrace {
            cut: 0,
            messages: MessageTrace { at_ms: vec![-1.0, 1.0], took_us: vec![Some(70.0), Some(200.0)] },
        }],
    }
}

pub(crate) fn report() -> Report {
    let mut bonded = case("100mbit/cubic-1/n2", 2, &[180.0, 190.0, 200.0]);
    bonded.ratios.push(Ratio {
        name: "single".into(),
        metric: Metric::Mbit,
        bases: vec!["100mbit/cubic-1/single".into()],
        ideal: 2.0,
        pairs: vec![1.8, 2.0, 2.0],
        spread: Spread::of([1.8, 2.0, 2.0]),
    });
    Report {
        schema: SCHEMA,
        experiment: "scaling".into(),
        about: "what it shows".into(),
        paper: "a figure".into(),
        started: "20250102T030405Z".into(),
        settings: Settings { quick: false, repeat: 3, seconds: 1, omit: 1 },
        machine: Machine { cpu: "a CPU".into(), cores: 2, ..Machine::default() },
        sysctls: BTreeMap::from([("net.ipv4.tcp_sack".into(), "1".into())]),
        background_cpu_share: 0.01,
        labs: vec![LabRecord {
            name: "100mbit/n2".into(),
            topology: Topology::symmetric(2, 1, Some(100)),
            burst_bytes: BTreeMap::from([(100, 3750)]),
            commands: vec!["a# linkbraid bond add bond0 --member eth0".into()],
        }],
        cases: vec![case("100mbit/cubic-1/single", 0, &[100.0, 95.0, 100.0]), bonded],
        deliveries: vec![Delivery {
            kind: "broadcast".into(),
            from: "a".into(),
            to: "b".into(),
            sent: 10,
            once: 8,
            more: 1,
            never: 1,
        }],
        floods: vec![Flood {
            traffic: "silence".into(),
            command: String::new(),
            frames: 100,
            flooded: 0,
            ageing_s: 3,
        }],
        failovers: vec![failover()],
        soak: Some(Soak {
            kinds: BTreeMap::from([("mend".into(), 7)]),
            broken: vec![Broken::default()],
            left_behind: vec!["new: a: bond0".into()],
            ..Soak::default()
        }),
        messages: vec![message_case("udp/two", "two", &[70.0, 80.0])],
        cuts: vec![cut_case("mirror/udp", 0, 1)],
        measures: vec![
            measure("latency/shm/64", "half_us", 30.0, Some(64)),
            measure("throughput/shm/cubic", "mbit", 9000.0, None),
        ],
        skipped: vec![Reason { id: "500mbit/udp/n8".into(), reason: "too slow".into() }],
        failed: Vec::new(),
        goals: vec![
            Goal::new("100mbit/cubic-1/n2", "of N", Bound::AtLeast, 0.97, Some(1.0)),
            Goal::new("100mbit/cubic-1/n2", "again", Bound::Below, 1.0, Some(1.5)),
            Goal::new("100mbit/cubic-1/n3", "of N", Bound::AtLeast, 0.97, None),
        ],
    }
}

#[test]
fn goals_are_judged_by_their_bound() {
    let met = |bound, value| Goal::new("c", "w", bound, 1.0, value).met;
    assert_eq!(met(Bound::AtLeast, Some(1.0)), Some(true));
    assert_eq!(met(Bound::AtLeast, Some(0.99)), Some(false));
    assert_eq!(met(Bound::AtMost, Some(1.0)), Some(true));
    assert_eq!(met(Bound::AtMost, Some(1.01)), Some(false));
    assert_eq!(met(Bound::Below, Some(1.0)), Some(false));
    assert_eq!(met(Bound::Below, Some(0.9)), Some(true));
    assert_eq!(met(Bound::Below, None), None);
}

#[test]
fn an_excuse_opens_a_missed_goal_and_no_other() {
    let goal = |value| Goal::new("c", "w", Bound::AtLeast, 1.0, value).unless(Some("slow".into()));
    assert_eq!((goal(Some(0.5)).met, goal(Some(0.5)).reason.as_str()), (None, "slow"));
    assert_eq!((goal(Some(1.5)).met, goal(Some(1.5)).reason.as_str()), (Some(true), ""));
    assert_eq!(Goal::new("c", "w", Bound::AtLeast, 1.0, Some(0.5)).unless(None).met, Some(false));
}

#[test]
fn medians_are_over_the_samples_of_a_case() {
    let case = case("x", 2, &[180.0, 200.0, 190.0]);
    let medians = case.medians;
    assert_eq!(medians.mbit, Some(Spread { median: 190.0, min: 180.0, max: 200.0 }));
    assert_eq!(medians.again_per_10k.map(|s| s.median), Some(1.5));
    assert_eq!(medians.cpu_s_per_gb.map(|s| s.median), Some(1.5));
    assert_eq!(medians.lost_share, None);
    assert_eq!(medians.tx_imbalance.map(|s| (s.median * 1e6).round() / 1e6), Some(0.04));
}

#[test]
fn the_keys_of_the_file_are_never_renamed() {
    let mut lines = Vec::new();
    let value = serde_json::to_value(report()).expect("serialises");
    keys(&value, "", &mut lines);
    lines.sort();
    lines.dedup();
    let golden = include_str!("golden.txt");
    let have = lines.join("\n") + "\n";
    assert_eq!(have, golden, "a new key is added to report/golden.txt; an old one never goes");
}

/// Every path of keys in a value; items of lists all have the same.
fn keys(value: &serde_json::Value, path: &str, out: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                let inner = format!("{path}.{key}");
                out.push(inner.clone());
                // What a topology has is the lab's own.
                if key != "topology" {
                    keys(value, &inner, out);
                }
            }
        }
        serde_json::Value::Array(list) => {
            list.iter().for_each(|value| keys(value, &format!("{path}[]"), out));
        }
        _ => {}
    }
}

#[test]
fn a_report_is_read_back_as_it_was_written() {
    let report = report();
    let text = serde_json::to_string(&report).expect("serialises");
    assert_eq!(serde_json::from_str::<Report>(&text).expect("parses"), report);
}
