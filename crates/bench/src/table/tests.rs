use super::*;
use crate::report::tests::report;

#[test]
fn a_table_has_the_medians_the_ratios_and_what_was_missed() {
    let text = text(&report());
    let bonded = text.lines().find(|line| line.starts_with("100mbit/cubic-1/n2")).expect("there");
    let words: Vec<&str> = bonded.split_whitespace().collect();
    assert_eq!(words[1..5], ["190.0", "(180.0", "to", "200.0)"], "{text}");
    assert_eq!(words[5..10], ["190.0", "99.3", "%", "of", "191.3"], "{text}");
    assert_eq!(words[10..16], ["2.000", "single,", "rival", "2.0", "Mbit/s", "1.5"], "{text}");
    assert!(text.contains("left out: 500mbit/udp/n8: too slow"), "{text}");
    assert!(text.contains("goals: 1 of 3 met"), "{text}");
    assert!(text.contains("not met: 100mbit/cubic-1/n2: 1.500 again, wanted below 1"), "{text}");
    assert!(text.contains("open, it was not measured: 100mbit/cubic-1/n3: nothing"), "{text}");
    let broadcast = text.lines().find(|line| line.starts_with("broadcast")).expect("there");
    assert!(broadcast.split_whitespace().rev().take(4).eq(["1", "1", "8", "10"]), "{text}");
    assert!(!text.contains("note:"), "{text}");
}

#[test]
fn a_busy_machine_is_said() {
    let mut report = report();
    report.background_cpu_share = 0.42;
    assert!(text(&report).contains("note: the CPU was 42 % busy before the run"), "{}", text(&report));
}

#[test]
fn a_machine_that_stood_still_for_others_is_said() {
    let mut report = report();
    let stolen = report.measures.iter_mut().find(|measure| measure.metric == "stolen_share").expect("there");
    stolen.values[0] = 0.25;
    let text = text(&report);
    assert!(text.contains("note: in one case, others on this physical machine took 25 % of"), "{text}");
}

#[test]
fn failures_and_the_soak_have_a_line_each() {
    let text = text(&report());
    let line = text.lines().find(|line| line.starts_with("silent-both/udp/n2")).expect("there");
    let words: Vec<&str> = line.split_whitespace().collect();
    let rest = ["1", "140", "(140", "to", "140)", "0", "120", "180", "3000", "0", "500"];
    assert_eq!(words[1..], rest, "{text}");
    assert!(text.contains("silent-both/udp/n2: connection lost: broken pipe"), "{text}");
    assert!(text.contains("soak: left behind: new: a: bond0"), "{text}");
    assert!(text.contains("7 mend"), "{text}");
}

#[test]
fn messages_and_cuts_have_a_line_each() {
    let text = text(&report());
    let words = |id: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(id)).expect("there");
        line.split_whitespace().skip(1).map(ToOwned::to_owned).collect()
    };
    let messages = ["tbf,", "bfifo", "75", "(70", "to", "80)", "150", "800", "0", "1.10", "idle", "190.0"];
    assert_eq!(words("udp/two"), messages, "{text}");
    let cuts = ["1", "70", "140", "0", "of", "600", "1", "0,", "0", "of", "600", "0,", "0", "of", "600", "0"];
    assert_eq!(words("mirror/udp"), cuts, "{text}");
    assert!(text.contains("messages of 64 bytes, one each 1000 us"), "{text}");
}

#[test]
fn what_was_measured_of_a_fabric_has_a_line_and_messages_share_one() {
    let text = text(&report());
    let words = |id: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(id)).expect("there");
        line.split_whitespace().skip(1).map(ToOwned::to_owned).collect()
    };
    assert_eq!(words("throughput/shm/cubic"), ["mbit", "9000", "Mbit/s", "1.500", "of", "veth"], "{text}");
    assert_eq!(words("latency/shm "), ["-", "30.0", "-", "-", "-"], "{text}");
}
