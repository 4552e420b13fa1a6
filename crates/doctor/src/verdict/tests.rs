use super::*;
use crate::side::Lane;
use linkbraid_api::{BondSettings, FindingRecord, Policy, Severity};

const RATE: f64 = 100.0;

fn member(at: usize) -> Member {
    Member {
        name: format!("eth{at}"),
        mac: format!("02:00:00:00:00:0{at}"),
        live: true,
        reason: String::new(),
        class: None,
        fixed_mbit: None,
        bytes: 0,
        heeds_pause: None,
    }
}

fn side(members: usize) -> Side {
    let lane = |at: usize| Lane {
        member: format!("eth{at}"),
        peer_mac: format!("02:00:00:00:00:0{at}"),
        state: "up".into(),
        share_ppm: 250_000,
    };
    Side {
        bond: "bond0".into(),
        mtu: 1500,
        policy: BondSettings::default().policy,
        damping: true,
        members: (0..members).map(member).collect(),
        absent: Vec::new(),
        lanes: (0..members).map(lane).collect(),
        findings: Vec::new(),
        congestion: "cubic".into(),
        receive_buffer: 6 << 20,
        send_buffer: 4 << 20,
    }
}

fn heard(mbit: f64) -> Heard {
    let frames = 1001;
    let micros = (1000.0 * 1514.0 * 8.0 / mbit) as u64;
    Heard { frames, bytes: frames * 1514, micros, first_us: Some(7_000_300) }
}

fn lane(at: usize) -> LaneTest {
    LaneTest {
        member: format!("eth{at}"),
        peer_member: format!("eth{at}"),
        sent: [Sent { frames: 1001, busy: 0.1, first_us: Some(5_000_000) }; 2],
        heard: [heard(RATE); 2],
    }
}

fn test(up: bool, flows: u8, mbit: f64) -> FlowTest {
    let sender = Sender { segments: 10_000, again: 3, busy_us: 1_000_000, ..Sender::default() };
    let way = if up { Direction::Up } else { Direction::Down };
    FlowTest { way, flows, mbit, sender, load: [Load::default(); 2] }
}

/// Four links of 100 Mbit/s, all of which one flow has.
fn sound() -> Examination {
    let flows = [(true, 1), (false, 1), (true, 8), (false, 8)];
    Examination {
        own: side(4),
        other: side(4),
        watched: Watched::default(),
        lanes: (0..4).map(lane).collect(),
        flows: flows.map(|(up, flows)| test(up, flows, 381.0)).to_vec(),
    }
}

/// The same, where one flow has so much one way, and several have that.
fn slow(one: f64, many: f64) -> Examination {
    let mut all = sound();
    (all.flows[0], all.flows[2]) = (test(true, 1, one), test(true, 8, many));
    all
}

fn codes(all: Examination) -> Vec<Code> {
    diagnose(all).causes.iter().map(|cause| cause.code).collect()
}

#[test]
fn nothing_is_said_of_full_links() {
    let diagnosis = diagnose(sound());
    assert_eq!(diagnosis.causes, []);
    assert!(
        diagnosis.links_mbit.iter().all(|links| (links - 382.6).abs() < 1.0),
        "{:?}",
        diagnosis.links_mbit
    );
    assert!(
        diagnosis.one_flow_mbit.iter().all(|flow| (flow - 381.0).abs() < 0.1),
        "{:?}",
        diagnosis.one_flow_mbit
    );
}

#[test]
fn what_costs_most_comes_first() {
    let mut all = slow(190.0, 190.0);
    all.own.members[3].live = false;
    all.lanes[2].heard[1] = heard(10.0);
    assert_eq!(codes(all), [Code::Between, Code::MemberDown, Code::SlowLink]);
}

#[test]
fn members_and_lanes() {
    let mut all = sound();
    all.other = side(2);
    all.lanes.truncate(2);
    let diagnosis = diagnose(Examination { flows: vec![test(true, 1, 190.0), test(false, 1, 190.0)], ..all });
    assert_eq!(diagnosis.causes.len(), 1, "{:?}", diagnosis.causes);
    assert_eq!(diagnosis.causes[0].code, Code::FewerMembers);
    assert!((diagnosis.causes[0].costs_mbit - 191.3).abs() < 1.0, "two of them: {:?}", diagnosis.causes);

    let mut all = sound();
    all.own.members[1].class = Some("voice".into());
    all.lanes.remove(1);
    all.flows.iter_mut().for_each(|flow| flow.mbit = 286.0);
    assert_eq!(codes(all), [Code::Reserved]);

    let mut all = sound();
    all.own.absent.push("eth9".into());
    all.other.absent.push("eth9".into());
    assert_eq!(codes(all), [Code::MemberDown; 2]);

    let mut all = sound();
    all.lanes.remove(2);
    all.flows.iter_mut().for_each(|flow| flow.mbit = 286.0);
    let diagnosis = diagnose(all);
    assert_eq!(diagnosis.causes[0].code, Code::NoLane);
    assert!(diagnosis.causes[0].text.contains("'eth2'"), "{:?}", diagnosis.causes);

    // Nothing of full length arrives: short frames do, or do not.
    let mut all = sound();
    all.lanes[0].heard = [Heard::default(); 2];
    all.own.lanes[0].state = "down".into();
    all.flows.iter_mut().for_each(|flow| flow.mbit = 286.0);
    assert_eq!(codes(all), [Code::NoLane], "on another switch");
    for (state, code) in [("up", Code::Short), ("down", Code::Silent)] {
        let mut all = sound();
        all.lanes[0].heard[0] = Heard::default();
        all.own.lanes[0].state = state.into();
        all.flows.iter_mut().for_each(|flow| flow.mbit = 290.0);
        assert_eq!(codes(all)[0], code);
    }
}

#[test]
fn a_slow_lane_may_be_one_that_others_use() {
    let mut all = sound();
    all.lanes[1].heard = [heard(40.0), heard(RATE)];
    assert_eq!(codes(all.clone()), [Code::SlowLink]);
    all.watched.own.push(("eth1".into(), 60.0));
    assert_eq!(codes(all.clone()), [Code::Competing]);
    // So little does not explain it.
    all.watched.own[0].1 = 15.0;
    assert_eq!(codes(all), [Code::SlowLink]);
}

#[test]
fn what_lanes_lack_explains_what_flows_do() {
    let bad = |up: f64, down: f64| {
        let mut all = slow(150.0, 160.0);
        all.lanes[1].heard = [heard(up), heard(down)];
        all
    };
    let diagnosis = diagnose(bad(20.0, RATE));
    assert_eq!(diagnosis.causes.len(), 1, "{:?}", diagnosis.causes);
    assert!(diagnosis.causes[0].costs_mbit > 150.0, "all that is missing: {:?}", diagnosis.causes);
    assert_eq!(codes(bad(RATE, 20.0)), [Code::Between, Code::SlowLink], "the other way");
    let mut all = bad(20.0, RATE);
    all.flows[2].mbit = 300.0;
    assert_eq!(codes(all), [Code::OneFlow, Code::SlowLink], "several flows have all");
    // What carries nothing one way is of no use the other way.
    let mut all = bad(RATE, RATE);
    all.lanes[1].heard[1].frames = 0;
    all.own.lanes[1].state = "down".into();
    assert_eq!(codes(all), [Code::Silent]);
}

#[test]
fn a_lane_whose_frames_take_longer_is_named() {
    let late = |us: u64| {
        let mut all = slow(200.0, 205.0);
        all.lanes[2].heard[0].first_us = Some(7_000_300 + us);
        all
    };
    let diagnosis = diagnose(late(30_000));
    assert_eq!((diagnosis.causes[0].code, diagnosis.causes[0].way), (Code::Delay, Some(Direction::Up)));
    assert!(diagnosis.causes[0].text.contains("between 'eth2'"), "{:?}", diagnosis.causes);
    assert!(diagnosis.causes[0].text.contains("30 ms longer"), "{:?}", diagnosis.causes);
    assert_eq!(codes(late(3_000)), [Code::Between], "as on any network");
    let mut all = late(30_000);
    all.lanes[0].sent[0].first_us = None;
    assert_eq!(codes(all), [Code::Delay], "of the lanes of which it is known");
    let mut all = late(30_000);
    all.flows = sound().flows;
    assert_eq!(codes(all), [], "it costs nothing");
}

#[test]
fn what_keeps_one_flow_back() {
    assert_eq!(codes(slow(330.0, 381.0)), [], "as good as all");
    assert_eq!(codes(slow(200.0, 380.0)), [Code::OneFlow]);
    assert_eq!(codes(slow(200.0, 205.0)), [Code::Between]);

    let mut all = slow(95.0, 95.0);
    all.own.policy = Policy::Flow;
    let diagnosis = diagnose(all);
    assert_eq!(diagnosis.causes[0].code, Code::Policy);
    assert_eq!(diagnosis.causes[0].hint.as_deref(), Some("linkbraid bond set bond0 --policy spread"));

    let sender = |change: fn(&mut FlowTest)| {
        let mut all = slow(200.0, 205.0);
        change(&mut all.flows[0]);
        codes(all)
    };
    let waits = |round_trip_us| {
        let mut all = slow(200.0, 205.0);
        (all.flows[0].sender.window_us, all.flows[0].sender.round_trip_us) = (400_000, round_trip_us);
        codes(all)
    };
    assert_eq!(waits(70_000), [Code::ReceiveBuffer]);
    assert_eq!(waits(7_000), [Code::Between], "175 kB of 6 MiB are not all");
    assert_eq!(sender(|flow| flow.sender.buffer_us = 400_000), [Code::SendBuffer]);
    assert_eq!(sender(|flow| flow.load[0].busy = 0.97), [Code::SendingProcessor]);
    assert_eq!(sender(|flow| flow.load[1].busy = 0.97), [Code::ReceivingProcessor]);
    assert_eq!(sender(|flow| flow.sender.again = 400), [Code::Loss]);

    let mut all = slow(200.0, 205.0);
    all.lanes[2].sent[0].frames = 1050;
    let diagnosis = diagnose(all);
    assert_eq!((diagnosis.causes[0].code, diagnosis.causes[0].way), (Code::Loss, Some(Direction::Up)));
    assert!(
        diagnosis.causes[0].text.contains("4.7 % of the frames between 'eth2'"),
        "{:?}",
        diagnosis.causes
    );

    // Where the switch cannot make the NIC wait, that is said.
    let mut all = slow(200.0, 205.0);
    all.flows[0].sender.again = 400;
    let said = |all: &Examination| diagnose(all.clone()).causes.remove(0);
    assert!(!said(&all).text.contains("flow control"), "the NICs do not say");
    all.own.members.iter_mut().for_each(|member| member.heeds_pause = Some(true));
    assert!(!said(&all).text.contains("flow control"));
    all.own.members[1].heeds_pause = Some(false);
    let (text, hint) = (said(&all).text, said(&all).hint);
    assert!(text.ends_with("without flow control the switch cannot make 'eth1' of this host wait"), "{text}");
    assert_eq!(hint.as_deref(), Some("ethtool -A eth1 rx on"));

    let mut all = slow(200.0, 205.0);
    for (at, weight) in [(0, 100), (1, 100), (2, 100), (3, 1000)] {
        all.own.members[at].fixed_mbit = Some(weight);
    }
    let diagnosis = diagnose(all.clone());
    assert_eq!(diagnosis.causes[0].code, Code::Weights);
    assert!(diagnosis.causes[0].text.contains("'eth3' has 77 %"), "{:?}", diagnosis.causes);
    all.own.members[3].fixed_mbit = None;
    assert_eq!(codes(all), [Code::Between], "it follows what is measured");
}

#[test]
fn links_that_no_processor_fills() {
    let mut all = sound();
    all.lanes.iter_mut().for_each(|lane| lane.sent[0].busy = 0.95);
    all.lanes[1].heard[0] = heard(50.0);
    all.flows[0].load = [Load { busy: 0.7, ..Load::default() }, Load { busy: 0.8, ..Load::default() }];
    let diagnosis = diagnose(all.clone());
    assert_eq!(diagnosis.causes.len(), 1, "{:?}", diagnosis.causes);
    assert_eq!(
        (diagnosis.causes[0].code, diagnosis.causes[0].way),
        (Code::ReceivingProcessor, Some(Direction::Up))
    );
    all.flows[0].load[0].busy = 0.9;
    assert_eq!(codes(all), [Code::SendingProcessor]);
}

fn finding(object: &str, name: &str) -> FindingRecord {
    FindingRecord {
        severity: Severity::Warning,
        object: object.into(),
        name: name.into(),
        text: format!("what is said of {name}"),
        hint: Some(format!("mend {name}")),
    }
}

#[test]
fn what_check_finds_is_the_reason() {
    // The first cause: its code, whether it has what was found, and the hint.
    let first = |all: Examination, found: &str| {
        let cause = diagnose(all).causes.remove(0);
        let with = cause.text.contains(&format!("what is said of {found}"));
        (cause.code, with.then_some(cause.hint.unwrap_or_default()))
    };
    let hint = |found: &str| Some(format!("mend {found}"));
    for (found, receiving, sending) in [
        ("offloads", (Code::Offloads, hint("offloads")), (Code::Offloads, hint("offloads"))),
        ("interrupts", (Code::Interrupts, hint("interrupts")), (Code::SendingProcessor, None)),
        ("duplex", (Code::ReceivingProcessor, None), (Code::SendingProcessor, None)),
    ] {
        let mut all = slow(200.0, 205.0);
        all.own.findings.push(finding("eth1", found));
        all.other.findings.push(finding("eth2", found));
        all.flows[0].load[1].busy = 0.97;
        assert_eq!(first(all.clone(), found), receiving);
        all.flows[0].load[0].busy = 0.98;
        assert_eq!(first(all, found), sending);
    }
    let mut all = slow(200.0, 205.0);
    all.other.findings.push(finding("eth1", "shared_bus"));
    assert_eq!(first(all.clone(), "shared_bus"), (Code::SharedBus, hint("shared_bus")));
    (all.flows[0].sender.window_us, all.other.receive_buffer) = (400_000, 0);
    assert_eq!(first(all, "shared_bus").0, Code::ReceiveBuffer);

    // Of a slow lane: what makes a link slow, and nothing else.
    let mut all = sound();
    all.lanes[1].heard[0] = heard(40.0);
    all.own.findings = vec![finding("eth1", "networkd"), finding("eth0", "duplex")];
    assert_eq!(first(all.clone(), "networkd"), (Code::SlowLink, None));
    all.other.findings = vec![finding("eth1", "eee"), finding("eth1", "bus")];
    assert_eq!(first(all, "bus"), (Code::SlowLink, hint("bus")));
}

#[test]
fn each_member_is_tested_once_and_silent_lanes_too() {
    let (mut own, other) = (side(3), side(3));
    let cross = |member: &str, peer: usize, state: &str, share_ppm| Lane {
        member: member.into(),
        peer_mac: format!("02:00:00:00:00:0{peer}"),
        state: state.into(),
        share_ppm,
    };
    own.lanes = vec![
        cross("eth0", 0, "down", 0),
        cross("eth0", 1, "up", 300_000),
        cross("eth1", 0, "up", 400_000),
        cross("eth1", 1, "up", 300_000),
        cross("eth2", 2, "down", 0),
        cross("eth2", 0, "cut", 0),
        cross("eth7", 2, "up", 0),
        cross("eth2", 9, "up", 0),
    ];
    let pairs: Vec<String> =
        super::pairs(&own, &other).into_iter().map(|(one, other)| format!("{one}-{other}")).collect();
    assert_eq!(pairs, ["eth0-eth1", "eth1-eth0", "eth2-eth2"]);
}

#[test]
fn what_links_carried_before_is_a_rate() {
    let (before, mut after) = ([side(2), side(1)], side(2));
    after.members[1].bytes = 1_250_000;
    let watched = Watched::between(&before, &[&after, &side(1)], Duration::from_millis(500));
    assert_eq!(watched.own, [("eth0".to_owned(), 0.0), ("eth1".to_owned(), 20.0)]);
    assert_eq!(watched.other, [("eth0".to_owned(), 0.0)]);
}
