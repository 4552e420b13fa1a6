use super::*;

#[test]
fn command_line_names_the_congestion_control() {
    let both = Traffic { direction: Direction::Both, ..Traffic::tcp(Cc::Cubic, 3) };
    let words = both.flows(8).words("198.18.0.2", 5201);
    assert_eq!(words.join(" "), "-c 198.18.0.2 -p 5201 -t 3 -J -C cubic -P 8 -O 1 --bidir");
    let words = Traffic::udp(80, 2).words("198.18.0.2", 5202);
    assert_eq!(words.join(" "), "-c 198.18.0.2 -p 5202 -t 2 -J -u -b 80M -l 1472 -O 1");
}

/// What iperf 3.12 prints, cut to what is read.
const BOTH: &str = r#"{
 "intervals": [
  {"sum": {"bits_per_second": 5e6, "omitted": true}},
  {"sum": {"bits_per_second": 6e6, "omitted": false}, "sum_bidir_reverse": {"bits_per_second": 1e6}}],
 "end": {
  "sum_sent": {"bits_per_second": 9e6, "retransmits": 7},
  "sum_received": {"bits_per_second": 8e6},
  "sum_sent_bidir_reverse": {"bits_per_second": 3e6, "retransmits": 1},
  "sum_received_bidir_reverse": {"bits_per_second": 2e6},
  "cpu_utilization_percent": {"host_total": 12.5, "remote_total": 40.0}}}"#;

#[test]
fn goodput_is_what_the_receiver_got() {
    let outcome = parse(BOTH, Direction::Both).expect("parses");
    assert_eq!(outcome.way, Way { mbit: 8.0, retransmits: 7, ..Way::default() });
    assert_eq!(outcome.back, Some(Way { mbit: 2.0, retransmits: 1, ..Way::default() }));
    assert_eq!((outcome.client_cpu, outcome.server_cpu), (12.5, 40.0));
    assert_eq!(outcome.each_second, [7.0]);
    assert!((outcome.mbit() - 10.0).abs() < 1e-9);
}

#[test]
fn errors_are_iperf3s_own_words() {
    let refused = r#"{"end": {}, "error": "unable to connect to server: Connection refused"}"#;
    let error = parse(refused, Direction::Forward).expect_err("failed");
    assert_eq!(error, "unable to connect to server: Connection refused");
    assert!(parse("", Direction::Forward).is_err());
    assert!(parse(r#"{"end": {}}"#, Direction::Forward).is_err());
}
