use super::*;

#[test]
fn what_nptcp_writes_is_read() {
    let found = netpipe("       1 0.631070   0.00001209\n   65536 36402.568998   0.00001374\n\n", 0);
    assert_eq!(found.len(), 2);
    let (bytes, values) = &found[1];
    assert_eq!((*bytes, values[1].2), (65_536, 36_402.568_998));
    assert!((values[0].2 - 13.74).abs() < 1e-9, "{found:?}");
}

#[test]
fn what_sockperf_writes_is_read() {
    let text = "sockperf: Summary: Latency is 6.233 usec\nsockperf: ---> percentile 99.990 =   23.785\n\
                sockperf: ---> percentile 99.000 =    6.489\nsockperf: ---> percentile 50.000 =    6.094\n";
    let values = sockperf(text).map(|values| values.iter().map(|value| value.2).collect::<Vec<_>>());
    assert_eq!(values, Some(vec![6.094, 6.489]));
    assert_eq!(sockperf("sockperf: No messages were received from the server.\n"), None);
}
