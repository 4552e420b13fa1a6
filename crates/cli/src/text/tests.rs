pub mod samples;

use super::{Clock, Style, classes, diagnosis, explain, findings, json, lanes, latency, peers, stats};
use linkbraid_api::{
    BondRecord, FabricPeerVxlanRecord, FabricVxlanRecord, Fallback, FindingRecord, Health, NodeState, Policy,
    Severity, ShareFrom, Stripe,
    value::{Millis, Number},
};
use serde_json::Value;

const PLAIN: Style = Style { colour: false, width: None };

fn bonds(records: &[BondRecord], style: &Style) -> String {
    super::bonds(records, style, &Clock::fixed(samples::NOON_MS, jiff::tz::TimeZone::UTC))
}

#[test]
fn show_of_a_bond_that_is_well() {
    let expected = include_str!("tests/golden/show.txt");
    assert_eq!(bonds(&[samples::bond()], &PLAIN), expected);
}

#[test]
fn explain_has_each_decision_and_the_lanes() {
    let record = samples::explain();
    assert_eq!(explain(&record, &PLAIN), include_str!("tests/golden/explain.txt"));
    let narrow = explain(&record, &PLAIN.width(Some(80)));
    assert!(narrow.contains("of the\n             flow takes"), "{narrow}");
    let mut mirrored = record.clone();
    mirrored.second_member = Some("eth3".into());
    assert!(explain(&mirrored, &PLAIN).contains(" leaves by eth2, and a copy by eth3\n"));
    let dropped = linkbraid_api::ExplainRecord { sent: false, member: None, ..record };
    assert!(explain(&dropped, &PLAIN).contains(":445 is dropped\n"));
}

#[test]
fn doctor_names_the_bottleneck_first_and_says_when_there_is_none() {
    let peer = "198.18.0.2".parse().expect("an address");
    let slow = samples::diagnosis();
    assert_eq!(diagnosis(&slow, peer, &PLAIN), include_str!("tests/golden/doctor.txt"));
    let narrow = diagnosis(&slow, peer, &PLAIN.width(Some(80)));
    assert!(narrow.contains("\n            "), "{narrow}");
    let full = linkbraid_doctor::Diagnosis { causes: Vec::new(), ..slow };
    let text = diagnosis(&full, peer, &PLAIN);
    assert!(text.ends_with("\nbottleneck: none, the links are full; more links carry more\n"), "{text}");
}

#[test]
fn show_says_what_is_wrong_in_its_first_line() {
    let mut bond = samples::bond();
    bond.health = Health::Degraded;
    bond.reason = "'eth2' has no carrier".into();
    bond.members[1].live = false;
    bond.members[1].reason = "no carrier".into();
    bond.conflicts = vec!["02:00:00:00:09:09 claims our address 198.18.0.1".into()];
    bond.peers = 1;
    let text = bonds(&[bond.clone()], &PLAIN);
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("bond0: degraded, 3 of 4 members carry traffic, 1 peer: 'eth2' has no carrier")
    );
    assert_eq!(lines.next(), Some("  conflict  02:00:00:00:09:09 claims our address 198.18.0.1"));
    let below = text.lines().skip_while(|line| !line.starts_with("  eth2 ")).nth(1);
    assert_eq!(below, Some("          no carrier"), "{text}");

    bond.health = Health::Degraded;
    bond.members.remove(1);
    bond.absent = vec!["eth2".into()];
    let text = bonds(&[bond.clone()], &PLAIN);
    assert!(text.starts_with("bond0: degraded, 3 of 4 members carry traffic, 1 peer: "), "{text}");
    assert!(text.contains("\n  absent    eth2, joins again as soon as it can\n"), "{text}");

    bond.health = Health::Down;
    bond.absent.clear();
    bond.members.truncate(1);
    bond.members[0].live = false;
    assert!(bonds(&[bond], &PLAIN).starts_with("bond0: down, 0 of 1 member carries traffic, 1 peer: "));
}

#[test]
fn show_has_the_command_that_helps_below_what_is_wrong() {
    let mut bond = samples::bond();
    let finding = |severity, object: &str, text: &str, hint: &str| FindingRecord {
        severity,
        object: object.into(),
        name: "address".into(),
        text: text.into(),
        hint: Some(hint.into()),
    };
    bond.findings = vec![
        finding(Severity::Error, "bond0", "it is set down", "ip link set bond0 up"),
        finding(Severity::Warning, "eth1", "it has an address", "ip address del 198.18.9.9/24 dev eth1"),
    ];
    let text = bonds(&[bond], &PLAIN);
    let found = "\n  error     it is set down\n            hint: ip link set bond0 up\n  warning   eth1: it has an address\n            hint: ip address del 198.18.9.9/24 dev eth1\n  address   198.18.0.1/24";
    assert!(text.contains(found), "{text}");
}

#[test]
fn policy_and_stripe_are_told_in_the_words_of_the_options() {
    let line = |policy, stripe, stripe_bytes| {
        let mut bond = samples::bond();
        let settings = &mut bond.settings;
        (settings.policy, settings.stripe, settings.damping) = (policy, stripe, false);
        bond.stripe_bytes = stripe_bytes;
        let text = bonds(&[bond], &PLAIN);
        text.lines().find(|line| line.starts_with("  policy")).unwrap_or_default().to_owned()
    };
    assert_eq!(
        line(Policy::Flow, Stripe::Us(200), 16_384),
        "  policy    flow, stripe 200 us (16 KiB), damping off"
    );
    assert_eq!(
        line(Policy::ActiveBackup, Stripe::Bytes(4400), 4400),
        "  policy    active-backup, stripe 4400 B, damping off"
    );
    assert_eq!(
        line(Policy::Spread, Stripe::Bytes(1024), 2896),
        "  policy    spread, stripe 1 KiB (2896 B in force), damping off"
    );
}

#[test]
fn the_inspector_is_told_in_the_words_of_the_options() {
    let line = |probes, interval, multiplier, up_delay| {
        let mut bond = samples::bond();
        let settings = &mut bond.settings.inspector;
        (settings.probes, settings.probe_interval) = (probes, Millis(interval));
        (settings.probe_multiplier, settings.up_delay) = (Number(multiplier), Millis(up_delay));
        let text = bonds(&[bond], &PLAIN);
        text.lines().find(|line| line.starts_with("  probes")).unwrap_or_default().to_owned()
    };
    assert_eq!(
        line(true, 50, 3, 100),
        "  probes    every 50 ms, lost after 3 (150 ms), up-delay 100 ms, hold-max 60 s"
    );
    assert_eq!(
        line(true, 1500, 2, 60_000),
        "  probes    every 1500 ms, lost after 2 (3 s), up-delay 60 s, hold-max 60 s"
    );
    assert_eq!(line(false, 50, 3, 0), "  probes    off, up-delay 0 ms, hold-max 60 s");
    assert!(line(true, u32::MAX, 255, u32::MAX).contains("lost after 255"));
}

#[test]
fn colour_only_wraps_the_word_that_tells_health() {
    let text = bonds(&[samples::bond()], &Style::new(true));
    assert!(text.starts_with("bond0: \x1b[32mok\x1b[0m, 4 of 4"), "{text}");
    assert_eq!(text.matches('\x1b').count(), 2);
}

#[test]
fn peers_stand_one_a_line_with_their_members_below() {
    let expected = include_str!("tests/golden/peers.txt");
    assert_eq!(peers(&samples::peers()), expected);
}

#[test]
fn lanes_show_shares() {
    let expected = include_str!("tests/golden/lanes.txt");
    assert_eq!(lanes(&samples::lanes()), expected);
    let mut lane = samples::lanes().remove(0);
    lane.measured_kbit = None;
    let said = lanes(std::slice::from_ref(&lane));
    assert!(
        said.contains("          share from what all lanes carry and lose, not 1 Gbit/s told\n"),
        "{said}"
    );
    let mut bond = samples::bond();
    (bond.members[0].measured_kbit, bond.members[0].share_from) = (None, Some(ShareFrom::Measured));
    let said = bonds(&[bond], &PLAIN);
    assert!(said.contains("  not measured; its share follows what all lanes carry and lose\n"), "{said}");
}

#[test]
fn findings_line_up_with_hints_below() {
    let expected = include_str!("tests/golden/check.txt");
    assert_eq!(findings(&samples::findings(), &PLAIN), expected);
    let coloured = findings(&samples::findings(), &Style::new(true));
    assert_eq!(coloured.matches("\x1b[31merror\x1b[0m").count(), 1, "{coloured}");
    let bare = coloured.replace("\x1b[0m", "").replace("\x1b[31m", "");
    assert_eq!(bare.replace("\x1b[32m", "").replace("\x1b[33m", ""), expected);
}

#[test]
fn stats_hide_zero_counters_unless_all_are_wanted() {
    let expected = include_str!("tests/golden/stats.txt");
    assert_eq!(stats(&[samples::stats()], false), expected);
    let all = stats(&[samples::stats()], true);
    assert!(all.starts_with("bond0: 3 counters\n"), "{all}");
    assert!(all.contains("rx_own_source"), "{all}");
}

#[test]
fn classes_say_what_carries_them_and_what_their_rules_matched() {
    let expected = include_str!("tests/golden/classes.txt");
    assert_eq!(classes(&samples::classes(), &PLAIN), expected);
    let coloured = classes(&samples::classes(), &Style::new(true));
    assert_eq!(coloured.matches("\x1b[32mok\x1b[0m").count(), 2, "{coloured}");
    assert_eq!(coloured.matches("\x1b[31mdown\x1b[0m").count(), 1, "{coloured}");
}

#[test]
fn the_first_line_of_a_class_says_whether_its_members_carry_it() {
    let first = |members: &[&str], uses: &[&str], fallback| {
        let mut class = samples::classes().remove(0);
        class.members = members.iter().map(|name| (*name).to_owned()).collect();
        class.uses = uses.iter().map(|name| (*name).to_owned()).collect();
        class.settings.fallback = fallback;
        classes(&[class], &PLAIN).lines().next().unwrap_or_default().replace("bond0 class voice: ", "")
    };
    let (share, block) = (Fallback::Share, Fallback::Block);
    assert_eq!(first(&["a", "b"], &["a", "b"], share), "ok, 2 of 2 members carry it");
    assert_eq!(first(&["a"], &["a"], share), "ok, 1 of 1 member carries it");
    assert_eq!(first(&["a", "b"], &["b"], share), "degraded, 1 of 2 members carry it");
    assert_eq!(
        first(&["a", "b"], &["c"], share),
        "degraded, 0 of 2 members carry it: it uses those of the default class"
    );
    assert_eq!(first(&["a"], &[], block), "down, 0 of 1 member carries it: its frames are dropped");
    assert_eq!(first(&["a"], &[], share), "down, 0 of 1 member carries it, and no other member can");
    assert_eq!(first(&[], &["c"], block), "ok, it uses the members of the default class");
    assert_eq!(first(&[], &[], share), "down, no member can carry it");
}

#[test]
fn latency_is_told_in_microseconds() {
    let expected = include_str!("tests/golden/latency.txt");
    assert_eq!(latency(&samples::latency()), expected);
    let mut two = samples::latency();
    two[5].bond = "bond1".into();
    let text = latency(&two);
    assert_eq!(text.matches(": time on the way out, in microseconds\n").count(), 2, "{text}");
    assert!(text.contains("\n\nbond1: "), "{text}");
}

#[test]
fn members_are_shown_with_their_classes_where_there_are_any() {
    let mut bond = samples::bond();
    bond.settings.latency = true;
    bond.members[3].class = Some("real-time".into());
    let text = bonds(&[bond], &PLAIN);
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert!(line("  member").ends_with("received  class"), "{text}");
    assert!(line("  eth4").ends_with("999 B  real-time"), "{text}");
    assert!(line("  eth3").ends_with("999 B"), "{text}");
    assert_eq!(line("  latency"), "  latency   measured");
    assert!(text.lines().skip(1).all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn nothing_to_show_is_said() {
    assert_eq!(classes(&[], &PLAIN), "no classes\n");
    assert_eq!(latency(&[]), "nothing measured yet\n");
    assert_eq!(bonds(&[], &PLAIN), "no bonds\n");
    assert_eq!(peers(&[]), "no peers\n");
    assert_eq!(lanes(&[]), "no lanes\n");
    assert_eq!(stats(&[], false), "no bonds\n");
    assert_eq!(findings(&[], &PLAIN), "nothing to check\n");
    assert_eq!(json(&Vec::<u8>::new()), "[]\n");
}

#[test]
fn no_line_is_wider_than_a_terminal_or_ends_in_spaces() {
    let mut busy = samples::bond();
    busy.members[1].live = false;
    busy.members[1].reason = "held down after 5 failures within the last minute, for 4 s more".into();
    busy.events = samples::events();
    let mut wordy = samples::findings();
    wordy[2].text =
        "Energy-Efficient Ethernet is on: its links take longer to wake up than a stripe takes".into();
    let mut far = samples::lanes();
    far[0].peer = "2001:db8:1234:5678:9abc:def0:1234:5678".into();
    far[0].state = "suspect".into();
    far[0].member = "enp129s0f0np0".into();
    far[0].tx_bytes = 999_900_000_000;
    far[3].peer = far[0].peer.clone();
    far[3].class = Some("exactly15bytes_".into());
    let mut slow = samples::latency();
    (slow[0].class, slow[0].count) = ("exactly15bytes_".into(), 999_900_000_000);
    (slow[0].stddev_ns, slow[0].p99_ns, slow[0].p999_ns) = (999_999_000, 9_999_000, 99_999_000);
    slow[0].max_ns = 4_000_000_000;
    let mut distant = samples::peers();
    distant[0].address = Some("2001:db8:1234:5678:9abc:def0:1234:5678".into());
    let all = [
        lanes(&far),
        classes(&samples::classes(), &PLAIN),
        latency(&slow),
        peers(&distant),
        bonds(&[samples::bond(), busy], &PLAIN),
        findings(&wordy, &PLAIN.width(Some(80))),
        peers(&samples::peers()),
        lanes(&samples::lanes()),
    ];
    for line in all.iter().flat_map(|text| text.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
        assert_eq!(line, line.trim_end());
    }
}

/// All keys of a value, as `members[].mac`, in order.
fn keys(value: &Value, path: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                into.push(path.clone());
                keys(inner, &path, into);
            }
        }
        Value::Array(items) => {
            if let Some(first) = items.first() {
                keys(first, &format!("{path}[]"), into);
            }
        }
        _ => {}
    }
}

fn keys_of(record: &impl serde::Serialize) -> String {
    let value: Value = serde_json::from_str(&json(record)).unwrap();
    let mut found = Vec::new();
    keys(&value, "", &mut found);
    found.sort();
    found.join(" ")
}

#[test]
fn json_keys_are_never_renamed() {
    let mut bond = samples::bond();
    bond.members.truncate(1);
    (bond.members[0].measured_kbit, bond.members[0].share_from) = (Some(1), Some(ShareFrom::Told));
    bond.settings.stripe = Stripe::Us(200);
    bond.events = samples::events();
    assert_eq!(
        keys_of(&bond),
        "absent addresses arp_plus_state auth conflicts damping events events[].bond events[].kind events[].new \
events[].object events[].old events[].reason events[].text events[].time_ms events[].took_us \
guests guests[].addresses guests[].mac guests[].members guests[].reason guests[].striped guests[].vlan \
health hold_max_ms hook host_id key latency mac members \
members[].elected members[].interface members[].live members[].mac members[].measured_kbit \
members[].reason members[].rx_bytes members[].rx_frames members[].segment members[].share_from members[].speed_mbit \
members[].tx_bytes members[].tx_frames members[].weight_mbit moved moved[].address \
moved[].member mtu name peers policy probe_interval_ms probe_multiplier probes published_only reason stripe \
stripe.us stripe_bytes up_delay_ms"
    );
    // What is of no class has no such key.
    assert!(!keys_of(&samples::peers()[0].members[0]).contains("class"));
    let mut peer = samples::peers().remove(0);
    peer.members.remove(0);
    assert_eq!(
        keys_of(&peer),
        "address bond epoch guests guests[].addresses guests[].mac guests[].reason guests[].striped \
guests[].vlan heard_ms host_id mac members members[].class members[].live members[].mac \
members[].weight_mbit proven state"
    );
    let mut lane = samples::lanes().remove(2);
    lane.class = Some("voice".into());
    (lane.measured_kbit, lane.share_from) = (None, None);
    assert_eq!(
        keys_of(&lane),
        "bond borrowed_from class member peer peer_mac plan share_ppm state told_kbit tx_bytes tx_frames"
    );
    assert_eq!(
        keys_of(&samples::classes()[0]),
        "bond borrow fallback members name policy precedence queues queues[].kind queues[].member queues[].ours rules \
rules[].bytes rules[].frames rules[].match rules[].number tx_bytes tx_frames tx_over uses"
    );
    assert_eq!(
        keys_of(&samples::latency()[0]),
        "bond class count max_ns mean_ns min_ns p50_ns p90_ns p999_ns p99_ns stage stddev_ns"
    );
    assert_eq!(
        keys_of(&samples::lanes()[0]),
        "bond measured_kbit member peer peer_mac plan share_from share_ppm state told_kbit tx_bytes tx_frames"
    );
    assert_eq!(keys_of(&samples::findings()[2]), "hint name object severity text");
    assert_eq!(
        keys_of(&samples::stats()),
        "bond counters counters[].bytes counters[].description counters[].frames counters[].name \
counters[].number counters[].verdict"
    );
}

#[test]
fn json_is_one_array_that_reads_back() {
    let records = vec![samples::bond()];
    let text = json(&records);
    assert!(text.starts_with("[\n") && text.ends_with("]\n"));
    assert_eq!(serde_json::from_str::<Vec<linkbraid_api::BondRecord>>(&text).unwrap(), records);
}

#[test]
fn fabrics_tell_their_nodes_and_why_one_is_not_up() {
    let clock = Clock::fixed(samples::NOON_MS, jiff::tz::TimeZone::UTC);
    let text = super::fabrics(&[samples::fabric()], &PLAIN, &clock);
    assert_eq!(text, include_str!("tests/golden/fabrics.txt"));
    assert!(text.lines().skip(1).all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(super::fabrics(&[], &PLAIN, &clock), "no fabrics\n");
}

#[test]
fn nodes_that_have_not_joined_are_told_in_one_line_and_are_not_counted() {
    let clock = Clock::fixed(samples::NOON_MS, jiff::tz::TimeZone::UTC);
    let mut fabric = samples::fabric();
    fabric.nodes = 9;
    fabric.peers[1].state = NodeState::Absent;
    for node in [4, 5, 6, 8] {
        let absent = linkbraid_api::FabricPeerRecord { node, ..fabric.peers[1].clone() };
        fabric.peers.push(absent);
    }
    let text = super::fabrics(std::slice::from_ref(&fabric), &PLAIN, &clock);
    assert!(text.starts_with("fab0: degraded, node 0, 1 of 3 other nodes up: "), "{text}");
    assert!(text.contains("\n  absent    2, 4 to 6, 8: not in the directory\n"), "{text}");
    assert_eq!(text.matches("its MTU is 9000").count(), 1, "{text}");
    fabric.peers.iter_mut().for_each(|peer| peer.state = NodeState::Absent);
    assert!(!super::fabrics(&[fabric], &PLAIN, &clock).contains("waiting"), "no table without rows");
}

#[test]
fn a_fabric_tells_whether_frames_go_by_vxlan_and_why_not() {
    let clock = Clock::fixed(samples::NOON_MS, jiff::tz::TimeZone::UTC);
    let mut fabric = samples::fabric();
    let way = |taken, reason: &str| FabricPeerVxlanRecord {
        taken,
        reason: reason.into(),
        tx_frames: 1,
        tx_bytes: 2,
        rx_frames: 3,
        rx_bytes: 4,
    };
    let mut says = |on: bool, first, second| {
        let (hook, reason) = if on {
            (Some("tcx".to_owned()), "")
        } else {
            (None, "cannot set the interface up: it already exists (UDP port 4789)")
        };
        fabric.vxlan = Some(FabricVxlanRecord { port: 4789, hook, reason: reason.into() });
        fabric.peers[0].vxlan = Some(first);
        fabric.peers[1].vxlan = Some(second);
        super::fabrics(std::slice::from_ref(&fabric), &PLAIN, &clock)
    };
    let text = says(true, way(true, ""), way(false, "it accepts no frames over VXLAN"));
    for line in
        ["  vxlan     UDP port 4789, by tcx\n", "by VXLAN\n", "not by VXLAN: it accepts no frames over\n"]
    {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    let text = says(false, way(false, ""), way(false, ""));
    let lines =
        "  vxlan     not used: cannot set the interface up: it already exists (UDP port\n            4789)\n";
    assert!(text.contains(lines) && !text.contains("by VXLAN"), "{text}");
}

#[test]
fn counters_of_a_fabric_are_told_for_all_nodes_and_for_each() {
    let text = super::fabric_stats(&[samples::fabric_stats()], false);
    let heads: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ') && !line.is_empty()).collect();
    assert_eq!(heads, ["fab0: 2 counters, 1 at zero (--all shows them)", "fab0 node 1: 1 counter"]);
    let trip = "  round trip  p50 55.0, p90 80.0, p99 120, p99.9 850, longest 900 us of 60\n";
    assert!(text.ends_with(trip), "{text}");
    let all = super::fabric_stats(&[samples::fabric_stats()], true);
    assert!(all.contains("tx_held"));
    let buckets = "              below     65.5 us: 50\n              below     1049 us: 10\n";
    assert!(all.ends_with(&(trip.to_owned() + buckets)), "{all}");
}
