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
fn escapes_colours_and_ranges_hide_no_address() {
    becomes(r"are:\n198.18.0.1\t02:00:00:00:00:01", r"are:\nipv4-1\tmac-1");
    becomes(r"\b02:00:00:00:00:01\f198.18.0.1\r2001:db8::1", r"\bmac-1\fipv4-1\ripv6-1");
    becomes(r"\u000a198.18.0.1 \x0a2001:db8::1 \\n198.18.0.1", r"\u000aipv4-1 \x0aipv6-1 \\nipv4-1");
    becomes("\x1b[32m198.18.0.1\x1b[0m", "\x1b[32mipv4-1\x1b[0m");
    becomes(r"\u001b[1;31m02:00:00:00:00:01\u001b[m2001:db8::1", r"\u001b[1;31mmac-1\u001b[mipv6-1");
    becomes("198.18.0.1..198.18.0.9 198.18.0.1...", "ipv4-1..ipv4-2 ipv4-1...");
    becomes("2001:db8::1..2001:db8::9 ::ffff:198.18.0.1..", "ipv6-1..ipv6-2 ipv6-3..");
    becomes("02:00:00:00:00:01 0x020000000001", "mac-1 0xmac-1");
}

#[test]
fn numbers_of_ports_and_switches_are_replaced_like_the_mac_that_they_are_made_of() {
    becomes(
        "portid 020000000001 switchid 0200000000020000 link/ether 02:00:00:00:00:01",
        "portid mac-1 switchid mac-2 link/ether mac-1",
    );
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
        "portid 01 xdp/id:12 tag 0123456789abcdef [a12:00:01",
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
    for before in ["0x", r"\n", "\x1b[32m", "key"] {
        assert_eq!(open.redact(&format!("{before}{secret}")), format!("{before}removed-secret"));
    }
}
