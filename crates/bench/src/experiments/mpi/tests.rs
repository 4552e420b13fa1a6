use super::{HPCC, hpcc, netpipe};

/// Lines as hpcc 1.5 writes them.
const SUMMARY: &str = "Begin of Summary section.\nVersionMajor=1\nSuccess=1\nHPL_Tflops=0.00446587\nHPL_time=4.03098\n\
    MPIFFT_Gflops=0.0958894\nMaxPingPongLatency_usec=10.4286\nAvgPingPongLatency_usec=10.4104\n\
    MaxPingPongBandwidth_GBytes=0.0119637\nNaturallyOrderedRingBandwidth_GBytes=0.00679816\nEnd of Summary section.\n";

#[test]
fn figures_of_hpcc_are_taken_in_our_units() {
    let found = hpcc(SUMMARY).expect("all are there");
    let rounded = found.iter().map(|(metric, unit, value)| format!("{metric} {value:.2} {unit}"));
    let wanted = [
        "mbit 95.71 Mbit/s",
        "half_us 10.41 us",
        "ring_mbyte 6.80 MB/s",
        "hpl_s 4.03 s",
        "fft_gflops 0.10 Gflop/s",
    ];
    assert_eq!(rounded.collect::<Vec<_>>(), wanted);
}

#[test]
fn what_hpcc_got_wrong_or_did_not_measure_has_no_figures() {
    assert_eq!(hpcc(&SUMMARY.replace("Success=1", "Success=0")), None);
    for (key, ..) in HPCC {
        assert_eq!(hpcc(&SUMMARY.replace(key, "Other")), None, "{key}");
    }
    assert_eq!(hpcc(""), None);
}

#[test]
fn figures_of_netpipe_are_those_of_its_line() {
    let found = netpipe(" 1048576 377.365683   0.02119960\n").expect("a line");
    let rounded = found.iter().map(|(metric, unit, value)| format!("{metric} {value:.1} {unit}"));
    assert_eq!(rounded.collect::<Vec<_>>(), ["half_us 21199.6 us", "mbit 377.4 Mbit/s"]);
    assert_eq!(netpipe(""), None);
}
