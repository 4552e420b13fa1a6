use super::*;

fn look(text: &str) -> CpuTime {
    use procfs::FromBufReadSI;
    KernelStats::from_buf_read(text.as_bytes(), procfs::current_system_info()).expect("parses").total
}

#[test]
fn what_others_took_is_a_share_of_what_was_asked_for() {
    let before = look("cpu  10 1 5 100 7 2 3 50 0 0\nctxt 400\nbtime 1\nprocesses 1\n");
    // 60 ticks of work and 20 that others had. Idle time was not asked for, and guests' time is in that of programs.
    let after = look("cpu  40 11 15 900 57 7 8 70 9 9\nctxt 600\nbtime 1\nprocesses 1\n");
    assert!((share(&before, &after) - 0.25).abs() < 1e-9);
    assert_eq!((share(&after, &before), share(&before, &before)), (0.0, 0.0));
    assert_eq!(remark(MUCH / 2.0), None);
    let said = remark(0.25).expect("is much");
    assert!(said.contains(" 25 % "), "{said}");
}
