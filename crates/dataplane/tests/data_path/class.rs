//! Classes: which frames a rule chooses, and which lanes they take then.

use crate::frames::{Tcp, V4, V6, address, ethernet, fragment, ip_packet, tagged};
use crate::rig::{BROADCAST, GUEST, PLAIN, Ran, Rig, own, peer, plan};
use crate::steer::udp;
use linkbraid_api::Rule;
use linkbraid_dataplane::{Beside, Cgroup, Count, Plan, Policy, RuleRow, Verdict};
use std::net::IpAddr;

/// Slot 3 of four is class 1's, towards the peer and towards plain hosts; it has this rule.
fn with_rule(rule: Rule) -> Rig {
    with_row(row(1, &rule))
}

fn with_row(row: RuleRow) -> Rig {
    let rig = with_class(&[3]);
    rig.path.set_rules(&[row]).unwrap();
    rig
}

/// A rule of a class, without a control group.
pub fn row(class: u8, rule: &Rule) -> RuleRow {
    RuleRow::new(class, rule, |_| None).unwrap().unwrap()
}

/// A rule of class 1 that chooses what is sent from a control group.
pub fn in_group(id: u64, level: u32) -> RuleRow {
    let rule = Rule { cgroup: Some("/".to_owned()), ..Rule::default() };
    RuleRow::new(1, &rule, |_| Some(Cgroup { id, level })).unwrap().unwrap()
}

/// The numbers of class 1's plans: towards plain hosts, and towards the peer.
const PLAIN_PLAN: u32 = 10;
pub const PEER_PLAN: u32 = 11;

pub fn to_peer(slot: u8) -> Option<[u8; 6]> {
    Some(peer(slot))
}

/// These of four slots are class 1's, all other traffic has the rest; no rules yet.
pub fn with_class(slots: &[u8]) -> Rig {
    let rig = Rig::new(4);
    let theirs: Vec<(u8, u32)> = slots.iter().map(|slot| (*slot, 1)).collect();
    let rest: Vec<(u8, u32)> = (0..4).filter(|slot| !slots.contains(slot)).map(|slot| (slot, 1)).collect();
    for (base, number, to) in
        [(0, PLAIN_PLAN, (|_| None) as fn(u8) -> Option<[u8; 6]>), (1, PEER_PLAN, to_peer)]
    {
        rig.path.set_plan(base, &plan(&rest, to)).unwrap();
        rig.path.set_plan(number, &plan(&theirs, to)).unwrap();
        rig.path.set_class_plan(base, 1, Some(number)).unwrap();
    }
    rig.path.set_class(1, slots.iter().fold(0, |mask, slot| mask | 1 << slot), false).unwrap();
    rig
}

pub fn slot_of(ran: &Ran) -> u8 {
    assert_eq!(ran.verdict, Verdict::Redirect);
    ran.source()[5]
}

/// Whether the frame is of class 1, by the slot that it leaves by and by what was counted.
#[track_caller]
fn is_chosen(rig: &Rig, frame: &[u8], beside: Beside) -> bool {
    let before = (rig.path.rule_counts().unwrap()[0], rig.path.class_counts(1).unwrap());
    let ran = rig.out_with(frame, beside);
    let is = slot_of(&ran) == 3;
    let after = (rig.path.rule_counts().unwrap()[0], rig.path.class_counts(1).unwrap());
    let grown = |before: Count, after: Count| (after.frames - before.frames, after.bytes - before.bytes);
    let expected = if is { (1, frame.len() as u64) } else { (0, 0) };
    assert_eq!(grown(before.0, after.0), expected, "the rule's count");
    assert_eq!(grown(before.1, after.1), expected, "the class's count");
    is
}

#[track_caller]
fn check(rule: Rule, cases: &[(&str, Vec<u8>, bool)]) {
    check_row(row(1, &rule), cases);
}

#[track_caller]
fn check_row(row: RuleRow, cases: &[(&str, Vec<u8>, bool)]) {
    let rig = with_row(row);
    for (what, frame, is) in cases {
        assert_eq!(is_chosen(&rig, frame, Beside::default()), *is, "{what}");
    }
}

/// TCP or UDP from one port to another, between hosts 1 and 2.
pub fn between(protocol: u16, next: u8, from: u16, to: u16) -> Vec<u8> {
    let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
    let rest =
        if next == 6 { vec![0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0, 9, 0, 0, 0, 0] } else { vec![0, 8, 0, 0] };
    ethernet(peer(0), own(0), protocol, &ip_packet(protocol, next, 1, 2, &[ports, rest].concat()))
}

pub fn any() -> Vec<u8> {
    between(V4, 17, 1000, 2000)
}

#[test]
fn priority() {
    let rig = with_rule(Rule { priority: Some(6), ..Rule::default() });
    for (priority, is) in [(6, true), (0, false), (7, false)] {
        assert_eq!(is_chosen(&rig, &any(), Beside { priority, ..Beside::default() }), is, "{priority}");
    }
}

#[test]
fn mark_under_its_mask() {
    let rig = with_rule(Rule { fwmark: Some((0x10, 0xf0)), ..Rule::default() });
    for (mark, is) in
        [(0x10, true), (0x1f, true), (0xffff_ff10, true), (0x20, false), (0x30, false), (0, false)]
    {
        assert_eq!(is_chosen(&rig, &any(), Beside { mark, ..Beside::default() }), is, "{mark:x}");
    }
}

#[test]
fn dscp_of_both_families() {
    let with = |protocol, dscp: u8| {
        let mut frame = between(protocol, 17, 1, 2);
        if protocol == V4 {
            // With ECN bits beside it.
            frame[15] = dscp << 2 | 3;
        } else {
            frame[14] = 0x60 | dscp >> 2;
            frame[15] = dscp << 6 | 0x3f;
        }
        frame
    };
    check(
        Rule { dscp: Some(46), ..Rule::default() },
        &[
            ("EF", with(V4, 46), true),
            ("EF, IPv6", with(V6, 46), true),
            ("none", with(V4, 0), false),
            ("none, IPv6", with(V6, 0), false),
            ("one more", with(V4, 47), false),
            ("one more, IPv6", with(V6, 47), false),
            ("ARP", ethernet(peer(0), own(0), 0x0806, &with(V4, 46)[14..]), false),
            ("with a tag", tagged(&with(V6, 46), 5), true),
        ],
    );
    // Nothing that is not IP has DSCP 0.
    check(
        Rule { dscp: Some(0), ..Rule::default() },
        &[("none", with(V4, 0), true), ("ARP", ethernet(peer(0), own(0), 0x0806, &[0; 46]), false)],
    );
}

#[test]
fn ports_of_either_end() {
    let port = Rule { tcp_port: Some(5201..=5210), ..Rule::default() };
    let mut cut = between(V4, 6, 1, 5205);
    cut.truncate(14 + 20 + 2);
    let mut options = between(V4, 6, 1, 1);
    options[14] = 0x46;
    options.splice(34..34, [1, 1, 1, 1]);
    options[34 + 4 + 2..34 + 4 + 4].copy_from_slice(&5205u16.to_be_bytes());
    let mut cases = vec![
        ("UDP", between(V4, 17, 1, 5205), false),
        ("cut short", cut, false),
        ("behind IP options", options, true),
        ("ICMP", between(V4, 1, 1, 5205), false),
        ("with a tag", tagged(&between(V4, 6, 1, 5205), 7), true),
    ];
    for protocol in [V4, V6] {
        cases.extend([
            ("first, to", between(protocol, 6, 1, 5201), true),
            ("last, to", between(protocol, 6, 1, 5210), true),
            ("from", between(protocol, 6, 5205, 1), true),
            ("before", between(protocol, 6, 1, 5200), false),
            ("behind", between(protocol, 6, 5211, 1), false),
        ]);
    }
    check(port, &cases);
    check(
        Rule { udp_port: Some(53..=53), ..Rule::default() },
        &[("UDP", between(V6, 17, 53, 9), true), ("TCP", between(V6, 6, 53, 9), false)],
    );
    check(
        Rule { udp_port: Some(1..=65535), ..Rule::default() },
        &[("all", between(V4, 17, 65535, 65535), true), ("0", between(V4, 17, 0, 0), false)],
    );
}

#[test]
fn later_fragments_have_no_ports_of_their_own() {
    let frames = [V4, V6].map(|protocol| between(protocol, 17, 1, 5205));
    check(
        Rule { udp_port: Some(5205..=5205), ..Rule::default() },
        &[
            ("first", fragment(&frames[0], 0), true),
            ("first, IPv6", fragment(&frames[1], 0), true),
            // What looks like ports there is payload.
            ("later", fragment(&frames[0], 100), false),
            ("later, IPv6", fragment(&frames[1], 100), false),
        ],
    );
}

#[test]
fn hosts_of_either_end() {
    let host = |text: &str, length| Rule {
        host: Some((text.parse::<IpAddr>().unwrap(), length)),
        ..Rule::default()
    };
    // Frames go from host 1 to host 2.
    for (address, length, is) in [
        ("198.18.0.1", 32, true),
        ("198.18.0.2", 32, true),
        ("198.18.0.3", 32, false),
        ("198.18.0.3", 31, true),
        ("198.18.0.4", 30, false),
        ("198.19.0.0", 15, true),
        ("0.0.0.0", 0, true),
        ("::", 0, false),
        ("::", 1, false),
    ] {
        let frame = between(V4, 17, 1, 2);
        check(host(address, length), &[(address, frame.clone(), is), (address, tagged(&frame, 3), is)]);
    }
    for (address, length, is) in [
        ("2001:db8::1", 128, true),
        ("2001:db8::2", 128, true),
        ("2001:db8::3", 128, false),
        ("2001:db8::", 64, true),
        ("2001:db8:1::", 48, false),
        ("::", 0, true),
        ("0.0.0.0", 0, false),
    ] {
        check(host(address, length), &[(address, between(V6, 17, 1, 2), is)]);
    }
    assert_eq!(address(V4, 1), [198, 18, 0, 1]);
}

#[test]
fn ethertype_behind_a_tag() {
    let ptp = ethernet(peer(0), own(0), 0x88f7, &[0; 46]);
    check(
        Rule { ethertype: Some(0x88f7), ..Rule::default() },
        &[("PTP", ptp.clone(), true), ("tagged", tagged(&ptp, 2), true), ("IP", any(), false)],
    );
    check(
        Rule { ethertype: Some(V4), ..Rule::default() },
        &[("IPv4", any(), true), ("tagged", tagged(&any(), 2), true), ("IPv6", between(V6, 17, 1, 2), false)],
    );
}

#[test]
fn control_group_and_those_above_it() {
    // A trial's socket is made by this process.
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let path = text.lines().find_map(|line| line.strip_prefix("0::")).expect("control groups, version 2");
    let mount = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mount.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).expect("it is mounted");
    let mount = mount.split(' ').nth(1).unwrap();
    let id = |path: &str| {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(format!("{mount}{path}")).unwrap().ino()
    };
    let level = path.split('/').filter(|part| !part.is_empty()).count() as u32;
    check_row(in_group(id(path), level), &[("its own", any(), true)]);
    check_row(in_group(id("/"), 0), &[("the root", any(), true)]);
    check_row(in_group(id(path), level + 1), &[("too deep", any(), false)]);
    check_row(in_group(id(path) + 1_000_000, level), &[("another one", any(), false)]);
}

#[test]
fn all_conditions_of_a_rule_must_hold() {
    let rule = Rule {
        priority: Some(6),
        udp_port: Some(2000..=2000),
        host: Some(("198.18.0.0".parse().unwrap(), 24)),
        ..Rule::default()
    };
    let rig = with_rule(rule);
    let six = Beside { priority: 6, ..Beside::default() };
    assert!(is_chosen(&rig, &any(), six));
    assert!(!is_chosen(&rig, &any(), Beside::default()));
    assert!(!is_chosen(&rig, &between(V4, 17, 1, 2), six));
    assert!(!is_chosen(&rig, &between(V6, 17, 1, 2000), six));
}

/// A rule for frames to or from this UDP port.
pub fn port(class: u8, port: u16) -> RuleRow {
    row(class, &Rule { udp_port: Some(port..=port), ..Rule::default() })
}

#[test]
fn the_first_rule_that_holds_counts() {
    let rig = with_class(&[3]);
    let tagged_rules = [port(0, 1000), port(1, 2000), port(1, 1000), port(2, 3000)];
    rig.path.set_rules(&tagged_rules).unwrap();
    let frames = |from, to| slot_of(&rig.out(&between(V4, 17, from, to)));
    assert_ne!(frames(1000, 2000), 3, "the first one says class 0");
    assert_eq!(frames(999, 2000), 3);
    assert_ne!(frames(3000, 1), 3, "a class without plans");
    let counts = |rig: &Rig| rig.path.rule_counts().unwrap().iter().map(|c| c.frames).collect::<Vec<_>>();
    assert_eq!(counts(&rig), [1, 1, 0, 1]);
    assert_eq!([0, 1, 2, 3].map(|class| rig.path.class_counts(class).unwrap().frames), [0, 1, 1, 0]);
    // In another order, with one more and one less: those that stay keep their counts.
    rig.path.set_rules(&[port(2, 3000), port(1, 7), port(1, 2000), port(0, 1000)]).unwrap();
    assert_eq!(counts(&rig), [1, 0, 1, 1]);
    assert_eq!(frames(1000, 2000), 3);
    assert_eq!(counts(&rig), [1, 0, 2, 1]);
    // The bond's row does not take them away, nor does one more write of the same.
    rig.path.set_bond(&rig.bond).unwrap();
    rig.path.set_rules(&[port(2, 3000), port(1, 7), port(1, 2000), port(0, 1000)]).unwrap();
    rig.path.set_failed_slots(0).unwrap();
    assert_eq!(frames(1000, 2000), 3);
    assert_eq!(counts(&rig), [1, 0, 3, 1]);
    rig.path.set_rules(&[]).unwrap();
    assert_eq!(counts(&rig), [0; 0]);
    assert_ne!(frames(1000, 2000), 3);
    assert_eq!(rig.path.class_counts(1).unwrap().frames, 3, "no rules, no counting");
    rig.path.clear_class_counts(1).unwrap();
    assert_eq!(rig.path.class_counts(1).unwrap(), Count::default());
}

#[test]
fn all_the_rules_that_fit_and_no_more() {
    let rig = with_class(&[3]);
    let mut rules: Vec<RuleRow> = (0..64).map(|i| port(u8::from(i == 63), 5000 + i)).collect();
    for _ in 0..2 {
        rig.path.set_rules(&rules).unwrap();
        assert_eq!(slot_of(&rig.out(&between(V4, 17, 1, 5063))), 3);
        assert_ne!(slot_of(&rig.out(&between(V4, 17, 1, 5062))), 3);
        // Into the other half.
        rig.path.set_rules(&rules[..63]).unwrap();
        assert_ne!(slot_of(&rig.out(&between(V4, 17, 1, 5063))), 3);
    }
    rules.push(port(1, 1));
    let error = rig.path.set_rules(&rules).unwrap_err();
    assert_eq!(error.to_string(), "rules: 65 is outside the allowed range 0 to 64");
    let error = RuleRow::new(8, &Rule::default(), |_| None).unwrap_err();
    assert_eq!(error.to_string(), "class: 8 is outside the allowed range 0 to 7");
    assert_eq!(rig.path.rule_counts().unwrap().len(), 63, "the old ones stay");
}

#[test]
fn class_plans_are_listed_and_taken_back() {
    let rig = with_row(port(1, 2000));
    assert_eq!(rig.path.class_plans().unwrap(), [(0, 1, PLAIN_PLAN), (1, 1, PEER_PLAN)]);
    rig.path.set_class_plan(4112, 7, Some(4096)).unwrap();
    assert_eq!(rig.path.class_plans().unwrap()[2], (4112, 7, 4096));
    assert_eq!(slot_of(&rig.out(&any())), 3);
    rig.path.set_class_plan(1, 1, None).unwrap();
    let used: Vec<u8> = (0..3).map(|_| slot_of(&rig.out(&any()))).collect();
    assert_eq!(used, [0, 1, 2], "those of all other traffic");
    for (base, class, number) in [(4113, 1, None), (0, 8, None), (0, 1, Some(4097))] {
        assert!(rig.path.set_class_plan(base, class, number).is_err());
    }
}

#[test]
fn every_kind_of_frame_of_a_class_takes_its_lanes() {
    let rig = with_row(port(1, 2000));
    let cases =
        [(peer(0), "tx_peer", peer(3)), (PLAIN, "tx_plain", PLAIN), (BROADCAST, "tx_multicast", BROADCAST)];
    for (to, reason, arrives_at) in cases {
        for _ in 0..3 {
            let ran = rig.out(&udp(to, own(0), 0, 100));
            assert_eq!((&ran.reasons[..], slot_of(&ran)), (&[reason][..], 3));
            assert_eq!(ran.destination(), arrives_at);
        }
    }
    assert_eq!(rig.path.lane_counts(PLAIN_PLAN).unwrap()[0].frames, 6);
    assert_eq!(rig.path.lane_counts(PEER_PLAN).unwrap()[0].frames, 3);
    // A guest's frames leave by the guest's member, whatever they are.
    let ran = rig.out(&udp(PLAIN, GUEST, 0, 100));
    assert_eq!(ran.reasons, ["tx_guest"]);
    assert_eq!(rig.path.class_counts(1).unwrap().frames, 9);
}

#[test]
fn each_plan_has_a_policy_of_its_own() {
    let mut rig = with_class(&[2, 3]);
    rig.policy = Policy::ActiveBackup;
    rig.path.set_rules(&[port(1, 2000)]).unwrap();
    let backup = Plan { policy: rig.policy, ..plan(&[(3, 1), (2, 1)], to_peer) };
    rig.path.set_plan(PEER_PLAN, &backup).unwrap();
    let used = |to: u16| (0..4).map(|_| slot_of(&rig.out(&between(V4, 17, 1, to)))).collect::<Vec<_>>();
    assert_eq!(used(2000), [3; 4]);
    assert_eq!(used(2001), [0, 1, 0, 1]);
}

#[test]
fn a_class_whose_members_have_failed_shares_or_is_blocked() {
    let rig = with_row(port(1, 2000));
    let to_class = || rig.out(&any());
    let own_plan = plan(&[(3, 1)], to_peer);
    rig.path.set_plan(PEER_PLAN, &Plan { shares: true, ..own_plan.clone() }).unwrap();
    assert_eq!(slot_of(&to_class()), 3);
    rig.path.set_failed_slots(0b1000).unwrap();
    assert_ne!(slot_of(&to_class()), 3, "failed a moment ago: the plan is not written again yet");
    rig.path.set_failed_slots(0b0111).unwrap();
    assert_eq!(slot_of(&to_class()), 3, "others have failed");
    rig.path.set_failed_slots(0).unwrap();
    rig.path.set_plan(PEER_PLAN, &Plan { shares: true, ..Plan::default() }).unwrap();
    assert_ne!(slot_of(&to_class()), 3, "no lane");

    rig.path.set_plan(PEER_PLAN, &own_plan).unwrap();
    rig.path.set_failed_slots(0b1000).unwrap();
    assert_eq!(slot_of(&to_class()), 3, "not over those of others");
    rig.path.set_failed_slots(0).unwrap();
    for number in [PEER_PLAN, PLAIN_PLAN] {
        rig.path.set_plan(number, &Plan::default()).unwrap();
    }
    let sent = rig.path.class_counts(1).unwrap();
    for to in [peer(0), PLAIN, BROADCAST] {
        let ran = rig.out(&udp(to, own(0), 0, 100));
        assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Drop, &["tx_class_blocked"][..]));
    }
    assert_eq!(rig.path.class_counts(1).unwrap(), sent, "they have not left");
    assert_eq!(rig.out(&between(V4, 17, 1, 2)).reasons, ["tx_peer"]);
    // Nothing left for anybody.
    rig.path.set_plan(1, &Plan::default()).unwrap();
    rig.path.set_class_plan(1, 1, None).unwrap();
    assert_eq!(to_class().reasons, ["tx_no_lane"]);
}

#[test]
fn damping_judges_a_flow_by_the_plan_that_it_left_by() {
    let rig = with_class(&[2, 3]);
    // TCP's port of the other end is 2000.
    rig.path.set_rules(&[row(1, &Rule { tcp_port: Some(2000..=2000), ..Rule::default() })]).unwrap();
    let send = |from: u32, to: u32| {
        for i in from..to {
            let ran = rig.out(&Tcp::data(1000 + i * 1000, 1000).frame(peer(0), own(0)));
            assert_eq!(slot_of(&ran), 2 + (i % 2) as u8);
        }
    };
    let ack = |ack: u32, block: (u32, u32)| {
        rig.arrives(2, &Tcp::ack(1000 * ack, &[(1000 * block.0, 1000 * block.1)]).frame(own(2), peer(2)))
            .reasons
    };
    // The peer's own plan has one lane: nothing of it would be judged.
    rig.path.set_plan(1, &plan(&[(0, 1)], to_peer)).unwrap();
    send(0, 6);
    assert_eq!(ack(1, (2, 3)), ["rx_ack_masked"]);
    assert_eq!(ack(1, (2, 3)), ["rx_ack_damped"]);
    // The hole is on lane 0 of the class; stripe 2 is lane 0's too.
    assert_eq!(ack(1, (2, 4)), ["rx_ack_lost"]);
    // The same flow moves to the plan of all other traffic: it is not striped any more.
    rig.path.set_rules(&[]).unwrap();
    for i in 6..9 {
        assert_eq!(slot_of(&rig.out(&Tcp::data(1000 + i * 1000, 1000).frame(peer(0), own(0)))), 0);
    }
    assert_eq!(ack(7, (8, 9)), ["rx_peer"]);
    rig.path.set_rules(&[port(7, 9)]).unwrap();
    assert_eq!(ack(7, (8, 9)), ["rx_peer"], "data beyond the stripes");
}
