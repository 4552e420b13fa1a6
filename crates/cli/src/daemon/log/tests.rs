use super::*;
use std::io::{BufRead as _, BufReader, pipe};

#[test]
fn a_log_that_nobody_reads_delays_nobody_and_says_what_it_lost() {
    let (reader, writer) = pipe().unwrap();
    let (log, written) = Log::with_room(2, writer).unwrap();
    // More than a pipe holds, so that the thread waits with it.
    let long = [vec![b'x'; 1 << 20], vec![b'\n']].concat();
    log.add(&long);
    let begin = Instant::now();
    for n in 0..10 {
        log.add(format!("line {n}\n").as_bytes());
    }
    assert!(begin.elapsed() < Duration::from_millis(100), "it waited");
    let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
    assert_eq!(lines.next().map(|line| line.len()), Some(1 << 20));
    assert_eq!(lines.next().as_deref(), Some("line 0"));
    let mut added = 10;
    while log.dropped.load(Relaxed) > 0 {
        log.add(b"after\n");
        added += 1;
        thread::yield_now();
    }
    drop(written);
    drop(log);
    let rest: Vec<String> = lines.collect();
    let reported =
        rest.iter().filter_map(|line| line.strip_prefix("lines not logged because the log was not read: "));
    let lost: Vec<usize> = reported.map(|count| count.parse().unwrap()).collect();
    assert!(!lost.is_empty(), "{rest:?}");
    // Line 0 was read before.
    assert_eq!(1 + rest.len() - lost.len() + lost.iter().sum::<usize>(), added, "{rest:?}");
    assert_eq!(rest.last().map(String::as_str), Some("after"));
}

#[test]
fn the_end_waits_for_the_last_line_and_not_for_ever() {
    let (reader, writer) = pipe().unwrap();
    let (log, written) = Log::start(writer).unwrap();
    log.add(b"the last words\n");
    drop(written);
    assert_eq!(BufReader::new(reader).lines().next().unwrap().unwrap(), "the last words");
    let (_reader, writer) = pipe().unwrap();
    let (log, written) = Log::start(writer).unwrap();
    log.add(&vec![b'x'; 1 << 20]);
    let begin = Instant::now();
    drop(written);
    assert!(begin.elapsed() < 2 * END_MAX, "it waited for ever");
}
