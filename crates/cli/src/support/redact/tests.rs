use super::Redactor;

#[track_caller]
fn becomes(text: &str, wanted: &str) {
    assert_eq!(Redactor::new(true).redact(text), wanted);
}

#[test]
fn addresses_of_every_kind_are_replaced_wherever_they_stand() {
    becomes("inet 198.18.0.1/24 brd 198.18.0.255 scope", "inet ipv4-1/24 brd ipv4-2 scope");
    becomes("udp:198.18.0.1:7000,vxlan=4789", "udp:ipv4-1:7000,vxlan=4789");
    becomes("from 198.18.0.1.", "from ipv4-1.");
    becomes("[2001:db8::1]:443 2001:db8::1%eth0 2001:DB8:0::1: no", "[ipv6-1]:443 ipv6-1%eth0 ipv6-1: no");
    becomes("::ffff:198.18.0.1 fe80::ff:fe00:1/64", "ipv6-1 ipv6-2/64");
    becomes("ff02::1:ff00:1 is of one host", "ipv6-1 is of one host");
    becomes("02:00:00:00:00:01 02-00-00-00-00-01", "mac-1 mac-1");
    becomes("eth1 > 198.18.0.2 (02:00:00:00:00:0A)", "eth1 > ipv4-1 (mac-1)");
    becomes(r#"{"mac":"02:00:00:00:00:01"}"#, r#"{"mac":"mac-1"}"#);
    becomes("bridge_id 8000.2:0:0:0:0:1", "bridge_id 8000.mac-1");
    becomes("enx020000000001: up", "enxmac-1: up");
    becomes("über 198.18.0.1 ü", "über ipv4-1 ü");
}

#[test]
fn what_every_machine_has_stays_and_so_does_what_is_no_address() {
    for text in [
        "127.0.0.1/8 0.0.0.0/0 255.255.255.255 224.0.0.251",
        "::1/128 :: ff02::1 ff02::16 fe80::/64 ff00::/8",
        "00:00:00:00:00:00 ff:ff:ff:ff:ff:ff",
        "12:00:01.234  2026-11-20 12:00:01",
        "0000:00:1f.6 linkbraid 0.1.0 Linux 6.12.48 proto::host",
        "0123456789abcdef0123456789abcdef 1234567890123",
    ] {
        becomes(text, text);
    }
}

#[test]
fn the_same_address_has_the_same_name_in_every_text_and_every_way_of_writing() {
    let mut redactor = Redactor::new(true);
    let texts = ["8000.020000000001 x", "02:00:00:00:00:02 02:00:00:00:00:01"];
    texts.iter().for_each(|text| redactor.learn(text));
    let redacted = texts.map(|text| redactor.redact(text));
    assert_eq!(redacted, ["8000.mac-2 x", "mac-1 mac-2"]);
    assert!(redactor.summary().starts_with("2 MAC addresses and 0 IP addresses were"));
}

#[test]
fn secrets_are_never_told() {
    let secret = "5a".repeat(32);
    let mut open = Redactor::new(false);
    assert_eq!(open.redact(&format!("0000000a {secret} signs")), "0000000a removed-secret signs");
    assert_eq!(open.redact("198.18.0.1 02:00:00:00:00:01"), "198.18.0.1 02:00:00:00:00:01");
    assert!(open.summary().contains("--no-redact"));
    becomes(&secret, "removed-secret");
}
