use super::MacAddr;
use proptest::prelude::*;

#[test]
fn text_of_a_mac_is_lower_case_hexadecimal_with_colons() {
    let mac = MacAddr([0x02, 0xAB, 0, 0x0f, 0xff, 9]);
    assert_eq!(mac.to_string(), "02:ab:00:0f:ff:09");
    assert_eq!("02:AB:00:0F:FF:09".parse(), Ok(mac));
}

#[test]
fn other_text_is_refused_and_named() {
    for text in [
        "",
        "02",
        "02:00:00:00:00",
        "02:00:00:00:00:01:02",
        "2:0:0:0:0:1",
        "+2:00:00:00:00:01",
        "é:00:00:00:00:01",
    ] {
        let refused = text.parse::<MacAddr>().expect_err(text);
        assert_eq!(refused.0, text);
    }
}

#[test]
fn groups_and_nobody_are_not_hosts() {
    assert!(MacAddr::BROADCAST.is_multicast());
    assert!(MacAddr([0x33, 0x33, 0, 0, 0, 1]).is_multicast());
    assert!(!MacAddr::ZERO.is_multicast());
    assert!(!MacAddr::ZERO.is_host());
    assert!(MacAddr([2, 0, 0, 0, 0, 1]).is_host());
}

proptest! {
    #[test]
    fn text_round_trips(octets: [u8; 6]) {
        prop_assert_eq!(MacAddr(octets).to_string().parse(), Ok(MacAddr(octets)));
    }
}
