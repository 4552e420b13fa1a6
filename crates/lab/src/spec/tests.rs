use super::*;

#[test]
fn common_shapes_can_be_built() {
    for lab in [
        Topology::symmetric(2, 4, Some(100)),
        Topology::symmetric(30, 1, None),
        Topology::separate_switches(3, Some(20)),
        Topology::cables(2, Some(20)),
        Topology::empty("mixed", 1)
            .host([LinkSpec::switch(0, Some(500)), LinkSpec::switch(0, Some(100)).mtu(9000)])
            .plain_host([LinkSpec::switch(0, None).loss_ppm(1000)]),
    ] {
        assert_eq!(lab.check(), Ok(()), "{lab:?}");
    }
}

#[test]
fn symmetric_names_and_addresses_follow_the_place() {
    let lab = Topology::symmetric(27, 1, None);
    assert_eq!(lab.hosts[1].name, "b");
    assert_eq!(lab.hosts[1].addresses, ["198.18.0.2/24", "2001:db8::2/64"]);
    assert_eq!(lab.hosts[26].name, "h26");
}

#[test]
fn survives_json() {
    let lab = Topology::cables(2, Some(20));
    let text = serde_json::to_string(&lab).expect("serializes");
    assert_eq!(serde_json::from_str::<Topology>(&text).expect("parses"), lab);
}

#[test]
fn refuses_what_cannot_be_built() {
    let good = Topology::symmetric(2, 2, Some(20));
    type Case = (&'static str, fn(&mut Topology));
    let bad: [Case; 10] = [
        ("not inside 198.18.0.0/15", |t| t.hosts[0].addresses = vec!["10.0.0.1/24".into()]),
        ("not inside 198.18.0.0/15", |t| t.hosts[0].addresses = vec!["2001:db9::1/64".into()]),
        ("used twice", |t| t.hosts[1].name = "a".into()),
        ("no switch 7", |t| t.hosts[1].links[0].end = End::Switch(7)),
        ("does not lead back", |t| t.hosts[0].links[1].end = End::Cable { host: "b".into(), link: 1 }),
        ("outside 1 to 100000", |t| t.hosts[0].links[0].rate_mbit = Some(0)),
        ("outside 68", |t| t.hosts[0].links[0].mtu = 12),
        ("bad name of a lab", |t| t.name = "two words".into()),
        ("0 hosts", |t| t.hosts.clear()),
        ("11, allowed are 0 to 10", |t| t.options.port_margin_percent = 11),
    ];
    for (expected, spoil) in bad {
        let mut lab = good.clone();
        spoil(&mut lab);
        let text = lab.check().expect_err(expected).to_string();
        assert!(text.contains(expected), "expected '{expected}' in '{text}'");
    }
}
