use super::*;
use crate::flow::Progress;

#[test]
fn pings_are_counted_also_where_sending_failed() {
    let text = "PING 198.18.0.2 (198.18.0.2) 56(84) bytes of data.\n\n--- 198.18.0.2 ping statistics ---\n\
                150 packets transmitted, 138 received, +3 errors, 8% packet loss, time 2981ms\n";
    assert_eq!(answers(text), Some(138));
    assert_eq!(answers("ping: connect: Network is unreachable\n"), None);
}

#[test]
fn a_stall_and_what_is_left_are_told_from_what_was_before() {
    let ms = Duration::from_millis;
    let mut progress = Progress::default();
    // 100 bytes a millisecond for two seconds, 300 ms of silence, then half of it.
    (0..2000).for_each(|at| progress.add(ms(at), 100));
    (2300..6000).for_each(|at| progress.add(ms(at), 50));
    let zero = Instant::now();
    let record = TcpRecord { zero, progress, lost: None };
    let [stall, quiet, left, lost] = seen(&record, zero + ms(2000), 7).map(|(.., value)| value);
    assert_eq!((stall, quiet, lost), (300.0, 1.0, 7.0));
    assert!((left - 0.5).abs() < 0.01, "{left}");
}
