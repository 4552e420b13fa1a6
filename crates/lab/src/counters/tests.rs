use super::*;

const DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
  eth0:    1000      10    0    1    0     0          0         0     2000      20    0    2    0     0       0          0
 eth01:       9       9    9    9    9     9          9         9        9       9    9    9    9     9       9          9
";

#[test]
fn finds_the_interface_and_only_it() {
    let eth0 = parse_dev(DEV, "eth0").expect("there");
    assert_eq!((eth0.rx_bytes, eth0.rx_packets, eth0.rx_dropped), (1000, 10, 1));
    assert_eq!((eth0.tx_bytes, eth0.tx_packets, eth0.tx_dropped), (2000, 20, 2));
    assert_eq!(parse_dev(DEV, "eth"), None);
}

#[test]
fn finds_a_column_by_its_heading() {
    let text = "Ip: A B\nIp: 1 2\nTcp: RtoMin OutSegs RetransSegs\nTcp: 200 77 3\n";
    assert_eq!(parse_snmp(text, "Tcp", "OutSegs"), Some(77));
    assert_eq!(parse_snmp(text, "Tcp", "RetransSegs"), Some(3));
    assert_eq!(parse_snmp(text, "Udp", "OutSegs"), None);
}

#[test]
fn rate_is_bits_over_time() {
    let after = NicCount { tx_bytes: 1_250_000, rx_bytes: 125_000, ..NicCount::default() };
    let rate = rates(&[NicCount::default()], &[after], Duration::from_millis(100))[0];
    assert!((rate.tx_mbit - 100.0).abs() < 1e-6 && (rate.rx_mbit - 10.0).abs() < 1e-6, "{rate:?}");
}

#[test]
fn reads_only_root_queues() {
    let json = r#"[{"kind":"tbf","root":true,"drops":5},{"kind":"clsact","drops":9}]"#;
    assert_eq!(parse_qdisc_drops(json), Ok(5));
    assert!(parse_qdisc_drops("nonsense").is_err());
}
