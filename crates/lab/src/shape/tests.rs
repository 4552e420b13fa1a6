use super::*;

#[test]
fn bursts_are_short_in_time_and_hold_a_frame_but_no_buffer_of_two() {
    assert_eq!(burst(20, 1500), 2649);
    assert_eq!(burst(100, 1500), 3750);
    assert_eq!(burst(200, 1500), 7500);
    assert_eq!(burst(20, 9000), 15_774);
    assert_eq!(burst(500, 1500), 37_500);
}

#[test]
fn a_port_is_faster_by_its_margin() {
    assert_eq!(port_rate_kbit(20, 0), 20_000);
    assert_eq!(port_rate_kbit(20, 5), 21_000);
    assert_eq!(port_rate_kbit(100_000, 10), 110_000_000);
}

#[test]
fn buffers_follow_the_rate() {
    assert_eq!(port_buffer(20), 131_072);
    assert_eq!(port_buffer(1000), 2_500_000);
    assert_eq!(host_queue(1500), 1_514_000);
}

#[test]
fn tcp_share_is_payload_over_frame() {
    assert!((tcp_share(1500, false) - 1448.0 / 1514.0).abs() < 1e-9);
}
