use super::{Millis, Number, Value as _, cidr};
use crate::{Policy, Stripe, Weight};

type Mtu = Number<1280, 65_535>;
type Multiplier = Number<2, 50>;
type Interval = Millis<10, 10_000>;
type Delay = Millis<0, 60_000>;

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
        assert_eq!(Stripe::read(text), Ok(value), "{text}");
    }
}

#[test]
fn stripes_without_a_unit_or_out_of_range_are_refused_with_the_range() {
    let range = "allowed are auto, 10us to 10ms and 1024B to 64KiB";
    let cases = [
        ("200", "has no unit"),
        ("0", "has no unit"),
        ("9us", "is outside the allowed range"),
        ("10001us", "is outside the allowed range"),
        ("11ms", "is outside the allowed range"),
        ("4294968ms", "is outside the allowed range"),
        ("4294967296us", "is outside the allowed range"),
        ("1023B", "is outside the allowed range"),
        ("65KiB", "is outside the allowed range"),
        ("4194305KiB", "is outside the allowed range"),
        ("", "is not a time or a size"),
        ("us", "is not a time or a size"),
        ("-5us", "is not a time or a size"),
        ("+5us", "is not a time or a size"),
        ("AUTO", "is not a time or a size"),
        ("1s", "has the unknown unit 's'"),
        ("16kb", "has the unknown unit 'kb'"),
        ("16 KiB", "has the unknown unit ' KiB'"),
        ("1.5ms", "has the unknown unit '.5ms'"),
    ];
    for (text, cause) in cases {
        assert_eq!(Stripe::read(text), Err(format!("'{text}' {cause}; {range}")));
    }
}

#[test]
fn mtu_and_weight_are_plain_numbers() {
    assert_eq!(Mtu::read("1280"), Ok(Number(1280)));
    assert_eq!(Mtu::read("9000"), Ok(Number(9000)));
    assert_eq!(Mtu::read("65535"), Ok(Number(65_535)));
    for outside in ["1279", "65536", "0", "99999999999"] {
        assert_eq!(
            Mtu::read(outside),
            Err(format!("'{outside}' is outside the allowed range 1280 to 65535"))
        );
    }
    for odd in ["9k", "1500B", "-1", "+1500", "", " 1500", "0x5dc"] {
        assert_eq!(Mtu::read(odd), Err(format!("'{odd}' is not a whole number; allowed are 1280 to 65535")));
    }
    assert_eq!(Weight::read("auto"), Ok(Weight::Auto));
    assert_eq!(Weight::read("1"), Ok(Weight::Mbit(1)));
    assert_eq!(Weight::read("1000000"), Ok(Weight::Mbit(1_000_000)));
    for nothing in ["0", "00"] {
        assert_eq!(
            Weight::read(nothing),
            Err(format!(
                "'{nothing}' would leave the member without traffic; allowed are 1 to 1000000 Mbit/s, or auto"
            ))
        );
    }
    assert_eq!(
        Weight::read("1000001"),
        Err("'1000001' is outside the allowed range 1 to 1000000 Mbit/s, or auto".to_owned())
    );
    assert_eq!(
        Weight::read("1gbit"),
        Err("'1gbit' is not a whole number; allowed are 1 to 1000000 Mbit/s, or auto".to_owned())
    );
}

#[test]
fn times_carry_a_unit() {
    assert_eq!((Interval::read("10ms"), Interval::read("10s")), (Ok(Millis(10)), Ok(Millis(10_000))));
    assert_eq!((Interval::read("50ms"), Interval::read("1s")), (Ok(Millis(50)), Ok(Millis(1000))));
    assert_eq!(
        (Delay::read("0ms"), Delay::read("0s"), Delay::read("60s")),
        (Ok(Millis(0)), Ok(Millis(0)), Ok(Millis(60_000)))
    );
    for (text, cause) in [
        ("50", "has no unit"),
        ("0", "has no unit"),
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
        assert_eq!(Interval::read(text), Err(format!("'{text}' {cause}; allowed are 10ms to 10s")));
    }
    let delay = "'60001ms' is outside the allowed range; allowed are 0ms to 60s";
    assert_eq!(Delay::read("60001ms"), Err(delay.to_owned()));
}

#[test]
fn the_multiplier_is_a_plain_number() {
    assert_eq!((Multiplier::read("2"), Multiplier::read("50")), (Ok(Number(2)), Ok(Number(50))));
    for outside in ["0", "1", "51", "256", "258"] {
        let cause = format!("'{outside}' is outside the allowed range 2 to 50");
        assert_eq!(Multiplier::read(outside), Err(cause));
    }
    assert!(Multiplier::read("3x").unwrap_err().ends_with("is not a whole number; allowed are 2 to 50"));
}

#[test]
fn policies_are_exact_words() {
    assert_eq!(Policy::read("spread"), Ok(Policy::Spread));
    assert_eq!(Policy::read("flow"), Ok(Policy::Flow));
    assert_eq!(Policy::read("active-backup"), Ok(Policy::ActiveBackup));
    assert_eq!(Policy::read("mirror"), Ok(Policy::Mirror));
    assert_eq!(Policy::read("hash=layer2+3"), Ok(Policy::HashLayer23));
    for near in ["spr", "Spread", "active_backup", "hash", "layer2", ""] {
        let cause = format!(
            "'{near}' is not allowed; allowed are spread, flow, active-backup, mirror, round-robin, hash=layer2, \
             hash=layer2+3, hash=layer3+4 and hash=vlan+srcmac"
        );
        assert_eq!(Policy::read(near), Err(cause));
    }
}

#[test]
fn addresses_carry_a_prefix() {
    assert_eq!(cidr("198.18.0.1/24").as_deref(), Ok("198.18.0.1/24"));
    assert_eq!(cidr("198.18.0.1/0").as_deref(), Ok("198.18.0.1/0"));
    assert_eq!(cidr("2001:0db8::1/128").as_deref(), Ok("2001:db8::1/128"));
    for (text, cause) in [
        ("198.18.0.1", "has no prefix length"),
        ("198.18.0.1/33", "is outside the allowed prefix lengths 0 to 32"),
        ("198.18.0.1/+4", "is outside the allowed prefix lengths 0 to 32"),
        ("198.18.0.1/", "is outside the allowed prefix lengths 0 to 32"),
        ("2001:db8::1/129", "is outside the allowed prefix lengths 0 to 128"),
        ("host/24", "is not an IP address"),
        ("198.18.0.256/24", "is not an IP address"),
        ("", "has no prefix length"),
    ] {
        let refused = cidr(text).unwrap_err();
        assert!(refused.starts_with(&format!("'{text}' {cause}")), "{refused}");
    }
}

/// What a value is written as is read as the same.
#[test]
fn values_are_written_as_they_are_read() {
    fn both<T: super::Value + PartialEq + std::fmt::Debug>(values: &[T]) {
        for value in values {
            assert_eq!(T::read(&value.text()).as_ref(), Ok(value));
        }
    }
    both(&[true, false]);
    both(&[Millis::<0, 60_000>(0), Millis(100), Millis(60_000)]);
    both(&[Number::<2, 50>(2), Number(50)]);
    both(Policy::all());
    both(&[Stripe::Auto, Stripe::Us(10), Stripe::Bytes(4400)]);
    both(&[Weight::Auto, Weight::Mbit(100)]);
}
