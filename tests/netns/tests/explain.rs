//! `explain`: what it says of a frame is what becomes of it.

use linkbraid_api::ExplainRecord;
use linkbraid_lab::{LinkSpec, Topology, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON, sh, until};

fn explain(net: &Net, name: &str, words: &[&str]) -> ExplainRecord {
    let words = [&["explain", BOND], words, &["--json"]].concat();
    let said = net.say_words(name, &words);
    assert_eq!(said.code, 0, "{words:?}: {said:?}");
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{words:?}: {error}: {}", said.out))
}

/// The same as people see it.
fn text(net: &Net, name: &str, words: &[&str]) -> String {
    let said = net.say_words(name, &[&["explain", BOND], words].concat());
    assert_eq!(said.code, 0, "{words:?}: {said:?}");
    said.out
}

#[track_caller]
fn step<'r>(record: &'r ExplainRecord, name: &str) -> &'r str {
    &record
        .steps
        .iter()
        .find(|step| step.name == name)
        .unwrap_or_else(|| panic!("no {name}: {record:#?}"))
        .text
}

/// The members whose lanes a record has, with the one that is taken.
fn lanes(record: &ExplainRecord) -> (Vec<&str>, Vec<&str>) {
    let lanes = || record.steps.iter().flat_map(|step| &step.lanes);
    let names = lanes().map(|lane| &lane.member[..]).collect();
    (names, lanes().filter(|lane| lane.taken).map(|lane| &lane.member[..]).collect())
}

#[test]
fn tcp_to_a_peer_and_what_a_rule_chooses() {
    let net = Net::bonded(Topology::symmetric(2, 3, None));
    let (a, b) = (net.host("a"), net.host("b"));
    net.ok("a", &format!("class add {BOND} urgent --member eth2 --match tcp-port=22 --match dscp=ef"));
    net.ok("b", &format!("class add {BOND} urgent --member eth2 --match dscp=ef"));
    net.wait_lanes("a", "b", Some("urgent"), &[(2, 2)]);
    net.wait_lanes("a", "b", None, &[(0, 0), (1, 1)]);

    // Before anybody has asked for its MAC.
    sh(a, "ip neigh flush all");
    let flow = format!("tcp {} > {}:445", a.ipv4(), b.ipv4());
    let said = net.say_words("a", &["explain", BOND, &flow]);
    let error = format!(
        "{BOND}: cannot explain 'tcp {}:49152 > {}:445': the MAC of {} is not known yet",
        a.ipv4(),
        b.ipv4(),
        b.ipv4()
    );
    let hint = said.refused(1, &error);
    sh(a, hint.trim());
    let found = || net.say_words("a", &["explain", BOND, &flow]);
    until("a frame that is explained", found, |said| said.code == 0);

    let record = explain(&net, "a", &[&flow]);
    assert_eq!((record.sent, &record.reason[..], &record.class), (true, "tx_peer", &None));
    let (names, taken) = lanes(&record);
    assert_eq!((names, taken.len()), (vec!["eth0", "eth1"], 1));
    assert_eq!(record.member.as_deref(), Some(taken[0]));
    assert!(step(&record, "class").starts_with("rest: no rule matches"), "{record:#?}");
    assert!(step(&record, "receiver").ends_with(&format!("is the peer {}", b.ipv4())), "{record:#?}");
    assert!(step(&record, "lane").contains("furthest behind in virtual time"), "{record:#?}");
    assert!(step(&record, "plan").starts_with("2 lanes of rest, policy spread"), "{record:#?}");

    for _ in 0..20 {
        let urgent = explain(&net, "a", &[&flow, "--dscp", "ef"]);
        assert_eq!((urgent.class.as_deref(), urgent.member.as_deref()), (Some("urgent"), Some("eth2")));
        assert!(step(&urgent, "class").contains("the first one that matches, dscp=ef"), "{urgent:#?}");
        let macs = (&urgent.source_mac, &urgent.destination_mac);
        assert_eq!(macs, (&a.mac(2), &b.mac(2)), "{urgent:#?}");
    }
    let rules = net.ok("a", "class show --json");
    let classes: Vec<linkbraid_api::ClassRecord> = serde_json::from_str(&rules).expect("records");
    assert_eq!(classes[0].tx_frames, 0, "no frame of the class was sent: {classes:#?}");
    assert_eq!(classes[0].rules.iter().map(|rule| rule.frames).sum::<u64>(), 0, "{classes:#?}");

    let shown = text(&net, "a", &[&flow, "--dscp", "46"]);
    eprintln!("{shown}");
    assert!(
        shown.starts_with(&format!("{BOND}: tcp {}:49152 > {}:445 leaves by eth2\n", a.ipv4(), b.ipv4())),
        "{shown}"
    );
    for name in ["route", "neighbour", "source", "class", "receiver", "plan", "lane", "frame", "sent"] {
        assert!(shown.lines().any(|line| line.starts_with(&format!("  {name}"))), "{name}: {shown}");
    }
    // Without a lane of its own it is blocked.
    net.ok("a", &format!("class set {BOND} urgent --fallback block"));
    a.link(2).expect("there").carrier(false).expect("sets");
    let blocked = || explain(&net, "a", &[&flow, "--dscp", "ef"]);
    let record = until("a frame that is dropped", blocked, |record| !record.sent);
    assert_eq!((&record.reason[..], record.member.as_deref()), ("tx_class_blocked", None));
    assert!(step(&record, "dropped").contains("no live lane of its class"), "{record:#?}");
}

#[test]
fn a_plain_host_a_guest_and_what_does_not_leave() {
    let plain = || [LinkSpec::switch(0, None)];
    let net = Net::bonded(Topology::symmetric(2, 2, None).plain_host(plain()).plain_host(plain()));
    let guest = net.move_in("a", "d", 201);
    let (a, b, plain) = (net.host("a"), net.host("b"), net.host("c"));
    for from in [a, guest] {
        from.wait_ping(plain.ipv4(), SOON).expect("reaches");
        from.wait_ping(plain.ipv6(), SOON).expect("reaches");
    }
    for flow in [
        format!("udp {} > {}:5004", a.ipv4(), plain.ipv4()),
        format!("udp {} > [{}]:5004", a.ipv6(), plain.ipv6()),
        format!("icmp {} > {}", a.ipv4(), plain.ipv4()),
    ] {
        let record = explain(&net, "a", &[&flow]);
        assert_eq!((&record.reason[..], &record.destination_mac), ("tx_plain", &plain.mac(0)), "{record:#?}");
        assert!(step(&record, "receiver").contains("plain host"), "{record:#?}");
        assert_eq!(lanes(&record).0, ["eth0", "eth1"], "{record:#?}");
        assert_eq!(step(&record, "class"), "the bond has no classes");
    }
    // The guest speaks by one member, and the question is no sign of its life.
    let known = || net.say_words("a", &["explain", BOND, &format!("udp 198.18.0.201 > {}", plain.ipv4())]);
    until("the guest's address", known, |said| said.code == 0);
    let record = explain(&net, "a", &[&format!("udp 198.18.0.201 > {}", plain.ipv4())]);
    assert_eq!(
        (&record.reason[..], &record.source_mac[..]),
        ("tx_guest", "02:00:00:00:77:c9"),
        "{record:#?}"
    );
    assert!(step(&record, "lane").contains("speaks for this guest"), "{record:#?}");
    let to_peer = || explain(&net, "a", &[&format!("tcp 198.18.0.201 > {}:445", b.ipv4())]);
    wait_until(SOON, "the guest's frames to take lanes", to_peer, |record| record.reason == "tx_from_guest")
        .unwrap_or_else(|error| panic!("{error}"));
    // Groups, whoever is in them.
    sh(a, &format!("ip route add 239.0.0.0/8 dev {BOND}"));
    let record = explain(&net, "a", &[&format!("udp {} > 239.1.2.3:5004", a.ipv4())]);
    assert_eq!((&record.reason[..], &record.destination_mac[..]), ("tx_multicast", "01:00:5e:01:02:03"));

    let refused = |flow: &str, cause: &str| {
        let said = net.say_words("a", &["explain", BOND, flow]);
        assert_eq!(said.code, 1, "{flow}: {said:?}");
        assert!(said.err.contains(cause) && said.err.contains("hint: "), "{flow}: {said:?}");
    };
    refused("tcp 198.18.0.99 > 198.18.0.2", "198.18.0.99 is neither an address of this host nor of a guest");
    refused(&format!("tcp {} > 127.0.0.1", a.ipv4()), "127.0.0.1 is an address of this host");
    refused(
        &format!("tcp {} > 198.19.0.1", a.ipv4()),
        "this host has no route from 198.18.0.1 to 198.19.0.1",
    );
    sh(a, "ip route add 198.19.0.0/24 dev lo");
    refused(&format!("tcp {} > 198.19.0.1", a.ipv4()), "its route leads through 'lo', not through the bond");
    refused("tcp 198.18.0.201 > 198.18.0.201", "is a guest of the bond, too");
}
