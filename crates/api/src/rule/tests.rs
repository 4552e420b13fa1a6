use super::Rule;
use proptest::prelude::*;
use std::net::IpAddr;

fn rule(text: &str) -> Rule {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// The refusal's line; it has a hint.
fn refused(text: &str) -> String {
    let error = text.parse::<Rule>().expect_err(text);
    assert!(error.hint.is_some(), "{error}");
    error.to_string()
}

#[test]
fn each_condition_reads_what_it_says() {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let blank = Rule::default();
    for (text, expected) in [
        ("priority=6", Rule { priority: Some(6), ..blank.clone() }),
        ("priority=0x10001", Rule { priority: Some(0x10001), ..blank.clone() }),
        ("dscp=63", Rule { dscp: Some(63), ..blank.clone() }),
        ("fwmark=1", Rule { fwmark: Some((1, u32::MAX)), ..blank.clone() }),
        ("fwmark=0x100/0xff00", Rule { fwmark: Some((0x100, 0xff00)), ..blank.clone() }),
        ("fwmark=0", Rule { fwmark: Some((0, u32::MAX)), ..blank.clone() }),
        ("tcp-port=22", Rule { tcp_port: Some(22..=22), ..blank.clone() }),
        ("udp-port=1-65535", Rule { udp_port: Some(1..=65535), ..blank.clone() }),
        ("host=198.18.0.1", Rule { host: Some((address("198.18.0.1"), 32)), ..blank.clone() }),
        ("host=2001:db8::/32", Rule { host: Some((address("2001:db8::"), 32)), ..blank.clone() }),
        ("ethertype=0x88f7", Rule { ethertype: Some(0x88f7), ..blank.clone() }),
        ("ethertype=2054", Rule { ethertype: Some(0x0806), ..blank.clone() }),
        ("cgroup=/system.slice", Rule { cgroup: Some("/system.slice".into()), ..blank.clone() }),
        (
            "dscp=ef,udp-port=5000-5010,host=198.18.0.0/24",
            Rule {
                dscp: Some(46),
                udp_port: Some(5000..=5010),
                host: Some((address("198.18.0.0"), 24)),
                ..blank.clone()
            },
        ),
    ] {
        assert_eq!(rule(text), expected, "{text}");
    }
}

#[test]
fn codepoints_have_the_names_of_their_rfcs() {
    for (text, number) in [
        ("cs0", 0),
        ("cs1", 8),
        ("cs6", 48),
        ("cs7", 56),
        ("af11", 10),
        ("af13", 14),
        ("af21", 18),
        ("af33", 30),
        ("af41", 34),
        ("af43", 38),
        ("ef", 46),
        ("le", 1),
    ] {
        assert_eq!(rule(&format!("dscp={text}")).dscp, Some(number), "{text}");
        assert_eq!(rule(&format!("dscp={number}")).to_string(), format!("dscp={text}"));
    }
    assert_eq!(rule("dscp=47").to_string(), "dscp=47");
}

#[test]
fn a_rule_is_written_in_one_way() {
    for (text, written) in [
        ("host=198.18.0.77/24", "host=198.18.0.0/24"),
        ("host=198.18.0.77/32", "host=198.18.0.77"),
        ("host=198.18.0.77/0", "host=0.0.0.0/0"),
        ("host=2001:DB8::77/64", "host=2001:db8::/64"),
        ("host=2001:db8::77/0", "host=::/0"),
        ("fwmark=255/0xff", "fwmark=0xff/0xff"),
        ("fwmark=16/4294967295", "fwmark=0x10"),
        ("tcp-port=22-22", "tcp-port=22"),
        ("ethertype=0x800", "ethertype=0x0800"),
        ("cgroup=system.slice/ssh.service/", "cgroup=/system.slice/ssh.service"),
        ("cgroup=/", "cgroup=/"),
        ("cgroup=/a=b", "cgroup=/a=b"),
        (
            "cgroup=/a,host=198.18.0.1,tcp-port=022,priority=6",
            "priority=6,tcp-port=22,host=198.18.0.1,cgroup=/a",
        ),
    ] {
        assert_eq!(rule(text).to_string(), written, "{text}");
    }
}

#[test]
fn what_is_wrong_is_one_line() {
    for (text, line) in [
        ("", "no condition: write at least one, such as tcp-port=22"),
        ("ef", "not a condition: 'ef'; write CONDITION=VALUE, with a comma between two"),
        ("dscp=ef,", "not a condition: ''; write CONDITION=VALUE, with a comma between two"),
        (
            "port=22",
            "no such condition: 'port'; allowed are priority, dscp, fwmark, tcp-port, udp-port, host, ethertype, \
             cgroup",
        ),
        ("dscp=ef,dscp=le", "condition repeated: 'dscp' twice; give each of both a --match of its own"),
        ("priority=high", "priority not a number: 'high'; 0 to 4294967295"),
        ("priority=4294967296", "priority out of range: 0 to 4294967295"),
        ("dscp=64", "dscp out of range: 0 to 63, cs0 to cs7, af11 to af43, ef, le"),
        ("dscp=af14", "no such dscp: 'af14'; allowed are 0 to 63, cs0 to cs7, af11 to af43, ef, le"),
        ("dscp=cs8", "no such dscp: 'cs8'; allowed are 0 to 63, cs0 to cs7, af11 to af43, ef, le"),
        ("fwmark=0x", "fwmark not a number: '0x'; 0 to 4294967295"),
        ("fwmark=0x100000000", "fwmark out of range: 0 to 4294967295"),
        ("fwmark=0x1ffffffffffffffff", "fwmark out of range: 0 to 4294967295"),
        ("fwmark=0/0", "mask out of range: 0 would match every frame; at least one bit"),
        ("fwmark=0x3/0x1", "cannot match: 0x3 has bits outside its mask 0x1"),
        ("tcp-port=70000", "port out of range: 1 to 65535"),
        ("tcp-port=0", "port out of range: 1 to 65535"),
        ("udp-port=1-65536", "port out of range: 1 to 65535"),
        ("tcp-port=ssh", "port not a number: 'ssh'; 1 to 65535, or a range such as 5000-5010"),
        ("tcp-port=+22", "port not a number: '+22'; 1 to 65535, or a range such as 5000-5010"),
        ("tcp-port=22-", "port not a number: '22-'; 1 to 65535, or a range such as 5000-5010"),
        ("udp-port=5010-5000", "empty range: 5010 is above 5000; write 5000-5010"),
        ("host=nas", "not an address: 'nas'; write ADDRESS or ADDRESS/LENGTH, such as 198.18.0.0/24"),
        ("host=198.18.0.0/33", "prefix length out of range: 0 to 32"),
        ("host=2001:db8::/129", "prefix length out of range: 0 to 128"),
        ("host=198.18.0.0/", "prefix length not a number: 0 to 32"),
        (
            "host=::ffff:198.18.0.9/120",
            "cannot match: no frame has an IPv4-mapped address; write 198.18.0.0/24",
        ),
        ("ethertype=0x5ff", "ethertype out of range: 0x600 to 0xffff"),
        ("ethertype=0x10000", "ethertype out of range: 0x600 to 0xffff"),
        ("ethertype=arp", "ethertype not a number: 'arp'; 0x600 to 0xffff"),
        (
            "ethertype=0x8100",
            "cannot match: VLAN tags are looked behind; give the EtherType of what is tagged",
        ),
        (
            "cgroup=",
            "not a control group: write a path below the root of the hierarchy, such as /system.slice/ssh.service",
        ),
        (
            "cgroup=/a/../b",
            "not a control group: an empty name, '.' or '..' is in its path; write it as /proc/self/cgroup does",
        ),
        (
            "cgroup=//a",
            "not a control group: an empty name, '.' or '..' is in its path; write it as /proc/self/cgroup does",
        ),
        (
            "tcp-port=1,udp-port=2",
            "cannot match: no frame is both TCP and UDP; give each a --match of its own",
        ),
        (
            "dscp=ef,ethertype=0x0806",
            "cannot match: dscp is of IPv4 and IPv6, whose EtherTypes are 0x0800 and 0x86dd",
        ),
        (
            "host=198.18.0.1,ethertype=0x0806",
            "cannot match: host is of IPv4 and IPv6, whose EtherTypes are 0x0800 and 0x86dd",
        ),
        (
            "udp-port=319,ethertype=0x88f7",
            "cannot match: udp-port is of IPv4 and IPv6, whose EtherTypes are 0x0800 and 0x86dd",
        ),
        (
            "host=198.18.0.1,ethertype=0x86dd",
            "cannot match: the host's address is IPv4, the EtherType is that of IPv6",
        ),
        (
            "host=2001:db8::1,ethertype=0x0800",
            "cannot match: the host's address is IPv6, the EtherType is that of IPv4",
        ),
    ] {
        assert_eq!(refused(text), format!("rule '{text}': {line}"));
    }
    let long = format!("cgroup=/{}", "é".repeat(1000));
    let shown = format!("cgroup=/{}", "é".repeat(72));
    assert_eq!(refused(&long), format!("rule '{shown}...': too long: at most 1024 bytes"));
}

#[test]
fn conditions_that_go_together_are_taken() {
    for text in [
        "dscp=ef,ethertype=0x86dd",
        "tcp-port=22,ethertype=0x0800",
        "host=198.18.0.1,ethertype=0x0800",
        "priority=6,ethertype=0x88f7",
        "cgroup=/a,fwmark=0x1/0x1,udp-port=53,host=::/0",
    ] {
        rule(text);
    }
}

#[test]
fn a_wider_rule_covers_a_narrower_one() {
    for (wide, narrow) in [
        ("dscp=ef", "dscp=46"),
        ("dscp=ef", "dscp=ef,tcp-port=22"),
        ("tcp-port=1-100", "tcp-port=1-100"),
        ("tcp-port=1-100", "tcp-port=22-80,priority=6"),
        ("host=198.18.0.0/15", "host=198.19.1.0/24"),
        ("host=::/0", "host=2001:db8::1"),
        ("ethertype=0x86dd", "host=2001:db8::1"),
        ("fwmark=0x1/0x1", "fwmark=0x3"),
        ("fwmark=0x1/0x3", "fwmark=0x5/0x7"),
        ("cgroup=/a", "cgroup=/a/b"),
        ("cgroup=/", "cgroup=/a"),
    ] {
        assert!(rule(wide).covers(&rule(narrow)), "{wide} covers {narrow}");
    }
    for (one, other) in [
        ("dscp=ef,tcp-port=22", "dscp=ef"),
        ("tcp-port=22", "udp-port=22"),
        ("tcp-port=1-100", "tcp-port=100-101"),
        ("host=198.18.0.0/24", "host=198.18.0.0/23"),
        ("host=0.0.0.0/0", "host=::/0"),
        ("ethertype=0x0800", "host=2001:db8::1"),
        ("ethertype=0x0800", "tcp-port=22"),
        ("fwmark=0x1/0x3", "fwmark=0x1/0x1"),
        ("fwmark=0x1/0x1", "fwmark=0x2"),
        ("cgroup=/a", "cgroup=/ab"),
        ("cgroup=/a/b", "cgroup=/a"),
        ("priority=6", "dscp=ef"),
    ] {
        assert!(!rule(one).covers(&rule(other)), "{one} does not cover {other}");
    }
}

/// Values that are near each other, so that conditions meet.
fn any_text() -> impl Strategy<Value = String> {
    let condition = prop_oneof![
        (0..9_u32).prop_map(|value| format!("priority={value}")),
        (0..70_u32).prop_map(|value| format!("dscp={value}")),
        (0..8_u32, 0..8_u32).prop_map(|(value, mask)| format!("fwmark={value:#x}/{mask}")),
        any::<u32>().prop_map(|value| format!("fwmark={value}")),
        (any::<bool>(), 0..9_u32, 0..9_u32).prop_map(|(tcp, low, high)| {
            format!("{}-port={low}-{high}", if tcp { "tcp" } else { "udp" })
        }),
        (any::<u32>(), 0..34_u8)
            .prop_map(|(address, length)| { format!("host={}/{length}", std::net::Ipv4Addr::from(address)) }),
        (any::<u128>(), 0..130_u8)
            .prop_map(|(address, length)| { format!("host={}/{length}", std::net::Ipv6Addr::from(address)) }),
        prop_oneof![Just(0x800_u32), Just(0x86dd), 0x5fe..0x602_u32, any::<u32>()]
            .prop_map(|value| format!("ethertype={value:#x}")),
        "cgroup=/?[a-c./]{0,6}",
    ];
    prop::collection::vec(condition, 1..4).prop_map(|conditions| conditions.join(","))
}

proptest! {
    #[test]
    fn what_is_read_is_written_so_that_it_reads_back(text in any_text()) {
        if let Ok(rule) = text.parse::<Rule>() {
            let written = rule.to_string();
            let back = written.parse::<Rule>();
            prop_assert_eq!(back.as_ref(), Ok(&rule), "{}", text);
            prop_assert_eq!(back.unwrap().to_string(), written);
            let json = serde_json::to_string(&rule).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Rule>(&json).unwrap(), &rule);
            prop_assert!(rule.covers(&rule));
        }
    }

    #[test]
    fn no_text_does_harm(text in "\\PC{0,60}") {
        if let Err(error) = text.parse::<Rule>() {
            prop_assert!(error.hint.is_some());
        }
    }

    #[test]
    fn a_rule_covers_itself_with_more_conditions(wide in any_text(), more in any_text()) {
        if let (Ok(wide), Ok(narrow)) = (wide.parse::<Rule>(), format!("{wide},{more}").parse::<Rule>()) {
            prop_assert!(wide.covers(&narrow), "{} {}", wide, narrow);
        }
    }
}
