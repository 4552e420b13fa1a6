use super::{
    Rate, cidr, demo_links, demo_rate, demo_seconds, interface, lab_hosts, lab_links, lab_plain, mtu, policy,
    probe_interval, probe_multiplier, rate, stripe, up_delay, weight,
};
use linkbraid_api::{Policy, Stripe, Weight};

#[test]
fn interface_names_follow_the_kernel() {
    for good in ["eth0", "bond0", "br-lan", "enp3s0f1np1.100", "a", "veth_1@x", "été"] {
        assert_eq!(interface(good).as_deref(), Ok(good));
    }
    for bad in
        ["", ".", "..", "a/b", "eth0:1", "a b", "a\tb", "eth%d", "a\u{7f}", "sixteen-bytes-ab", "ééééééééé"]
    {
        let refused = interface(bad).unwrap_err();
        assert!(refused.starts_with(&format!("'{bad}' cannot be an interface name; ")), "{refused}");
    }
}

#[test]
fn stripes_carry_a_unit() {
    let cases = [
        ("auto", Stripe::Auto),
        ("200us", Stripe::Us(200)),
        ("10us", Stripe::Us(10)),
        ("10000us", Stripe::Us(10_000)),
        ("10ms", Stripe::Us(10_000)),
        ("4400B", Stripe::Bytes(4400)),
        ("1024B", Stripe::Bytes(1024)),
        ("1KiB", Stripe::Bytes(1024)),
        ("16KiB", Stripe::Bytes(16_384)),
        ("64KiB", Stripe::Bytes(65_536)),
    ];
    for (text, value) in cases {
        assert_eq!(stripe(text), Ok(value), "{text}");
    }
}

#[test]
fn stripes_without_a_unit_or_out_of_range_are_refused_with_the_range() {
    let range = "allowed are auto, 10us to 10ms and 1024B to 64KiB";
    let cases = [
        ("200", "lacks a unit"),
        ("0", "lacks a unit"),
        ("9us", "is outside the allowed range"),
        ("10001us", "is outside the allowed range"),
        ("11ms", "is outside the allowed range"),
        ("4294968ms", "is outside the allowed range"),
        ("4294967296us", "is neither a time nor a size"),
        ("1023B", "is outside the allowed range"),
        ("65KiB", "is outside the allowed range"),
        ("4194305KiB", "is outside the allowed range"),
        ("", "is neither a time nor a size"),
        ("us", "is neither a time nor a size"),
        ("-5us", "is neither a time nor a size"),
        ("+5us", "is neither a time nor a size"),
        ("AUTO", "is neither a time nor a size"),
        ("1s", "has the unknown unit 's'"),
        ("16kb", "has the unknown unit 'kb'"),
        ("16 KiB", "has the unknown unit ' KiB'"),
        ("1.5ms", "has the unknown unit '.5ms'"),
    ];
    for (text, cause) in cases {
        assert_eq!(stripe(text), Err(format!("'{text}' {cause}; {range}")));
    }
}

#[test]
fn mtu_and_weight_are_plain_numbers() {
    assert_eq!(mtu("1280"), Ok(1280));
    assert_eq!(mtu("9000"), Ok(9000));
    assert_eq!(mtu("65535"), Ok(65_535));
    for outside in ["1279", "65536", "0", "99999999999"] {
        assert_eq!(
            mtu(outside),
            Err(format!("'{outside}' is outside the allowed range 1280 to 65535 bytes"))
        );
    }
    for odd in ["9k", "1500B", "-1", "+1500", "", " 1500", "0x5dc"] {
        assert_eq!(mtu(odd), Err(format!("'{odd}' is not a whole number; allowed are 1280 to 65535 bytes")));
    }
    assert_eq!(weight("auto"), Ok(Weight::Auto));
    assert_eq!(weight("1"), Ok(Weight::Mbit(1)));
    assert_eq!(weight("1000000"), Ok(Weight::Mbit(1_000_000)));
    for nothing in ["0", "00"] {
        assert_eq!(
            weight(nothing),
            Err(format!(
                "'{nothing}' would leave the member without traffic; allowed are 1 to 1000000 Mbit/s, or auto"
            ))
        );
    }
    assert_eq!(
        weight("1000001"),
        Err("'1000001' is outside the allowed range 1 to 1000000 Mbit/s, or auto".to_owned())
    );
    assert_eq!(
        weight("1gbit"),
        Err("'1gbit' is not a whole number; allowed are 1 to 1000000 Mbit/s, or auto".to_owned())
    );
}

#[test]
fn times_carry_a_unit() {
    assert_eq!((probe_interval("10ms"), probe_interval("10s")), (Ok(10), Ok(10_000)));
    assert_eq!((probe_interval("50ms"), probe_interval("1s")), (Ok(50), Ok(1000)));
    assert_eq!((up_delay("0ms"), up_delay("0s"), up_delay("60s")), (Ok(0), Ok(0), Ok(60_000)));
    for (text, cause) in [
        ("50", "lacks a unit"),
        ("0", "lacks a unit"),
        ("9ms", "is outside the allowed range"),
        ("0s", "is outside the allowed range"),
        ("10001ms", "is outside the allowed range"),
        ("11s", "is outside the allowed range"),
        ("4294968s", "is outside the allowed range"),
        ("500us", "has the unknown unit 'us'"),
        ("1min", "has the unknown unit 'min'"),
        ("1.5s", "has the unknown unit '.5s'"),
        ("50 ms", "has the unknown unit ' ms'"),
        ("", "is not a time"),
        ("ms", "is not a time"),
        ("-50ms", "is not a time"),
        ("fast", "is not a time"),
    ] {
        assert_eq!(probe_interval(text), Err(format!("'{text}' {cause}; allowed are 10ms to 10s")));
    }
    let delay = "'60001ms' is outside the allowed range; allowed are 0ms to 60s";
    assert_eq!(up_delay("60001ms"), Err(delay.to_owned()));
}

#[test]
fn the_multiplier_is_a_plain_number() {
    assert_eq!((probe_multiplier("2"), probe_multiplier("50")), (Ok(2), Ok(50)));
    for outside in ["0", "1", "51", "256", "258"] {
        let cause = format!("'{outside}' is outside the allowed range 2 to 50 intervals");
        assert_eq!(probe_multiplier(outside), Err(cause));
    }
    assert!(
        probe_multiplier("3x").unwrap_err().ends_with("is not a whole number; allowed are 2 to 50 intervals")
    );
}

#[test]
fn policies_are_exact_words() {
    assert_eq!(policy("spread"), Ok(Policy::Spread));
    assert_eq!(policy("flow"), Ok(Policy::Flow));
    assert_eq!(policy("active-backup"), Ok(Policy::ActiveBackup));
    for near in ["spr", "Spread", "active_backup", "mirror", ""] {
        assert!(policy(near).unwrap_err().ends_with("allowed are spread, flow and active-backup"));
    }
}

#[test]
fn addresses_carry_a_prefix() {
    assert_eq!(cidr("198.18.0.1/24").as_deref(), Ok("198.18.0.1/24"));
    assert_eq!(cidr("198.18.0.1/0").as_deref(), Ok("198.18.0.1/0"));
    assert_eq!(cidr("2001:0db8::1/128").as_deref(), Ok("2001:db8::1/128"));
    for (text, cause) in [
        ("198.18.0.1", "lacks a prefix length"),
        ("198.18.0.1/33", "is outside the allowed prefix lengths 0 to 32"),
        ("198.18.0.1/+4", "is outside the allowed prefix lengths 0 to 32"),
        ("198.18.0.1/", "is outside the allowed prefix lengths 0 to 32"),
        ("2001:db8::1/129", "is outside the allowed prefix lengths 0 to 128"),
        ("host/24", "is not an IP address"),
        ("198.18.0.256/24", "is not an IP address"),
        ("", "lacks a prefix length"),
    ] {
        let refused = cidr(text).unwrap_err();
        assert!(refused.starts_with(&format!("'{text}' {cause}")), "{refused}");
    }
}

#[test]
fn rates_carry_a_unit() {
    assert_eq!(rate("none"), Ok(Rate(None)));
    assert_eq!(rate("1mbit"), Ok(Rate(Some(1))));
    assert_eq!(rate("2gbit"), Ok(Rate(Some(2000))));
    assert_eq!(rate("100gbit"), Ok(Rate(Some(100_000))));
    let range = "allowed are none and 1mbit to 100gbit";
    for (text, cause) in [
        ("100", "lacks a unit"),
        ("0mbit", "is outside the allowed range"),
        ("101gbit", "is outside the allowed range"),
        ("4294968gbit", "is outside the allowed range"),
        ("100kbit", "has the unknown unit 'kbit'"),
        ("100Mbit", "has the unknown unit 'Mbit'"),
        ("", "is not a rate"),
        ("-1mbit", "is not a rate"),
    ] {
        assert_eq!(rate(text), Err(format!("'{text}' {cause}; {range}")));
    }
}

#[test]
fn labs_have_limits() {
    assert_eq!((lab_hosts("1"), lab_hosts("200")), (Ok(1), Ok(200)));
    assert_eq!(lab_hosts("0"), Err("'0' is outside the allowed range 1 to 200 hosts".to_owned()));
    assert_eq!(lab_hosts("201"), Err("'201' is outside the allowed range 1 to 200 hosts".to_owned()));
    assert_eq!((lab_links("1"), lab_links("64")), (Ok(1), Ok(64)));
    assert_eq!(lab_links("65"), Err("'65' is outside the allowed range 1 to 64 links".to_owned()));
    assert_eq!(lab_plain("0"), Ok(0));
    assert_eq!((demo_links("1"), demo_links("16")), (Ok(1), Ok(16)));
    assert!(demo_links("17").is_err() && demo_links("0").is_err());
    assert_eq!((demo_rate("20mbit"), demo_rate("10gbit")), (Ok(20), Ok(10_000)));
    assert_eq!(demo_rate("none"), Err("'none' is not a rate; allowed are 1mbit to 10gbit".to_owned()));
    assert_eq!((demo_seconds("1"), demo_seconds("3600")), (Ok(1), Ok(3600)));
    assert!(demo_seconds("0").is_err() && demo_seconds("8s").is_err());
}
