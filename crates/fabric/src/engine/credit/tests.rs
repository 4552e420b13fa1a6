use super::*;

const MS: u64 = 1_000_000;

#[test]
fn a_peer_that_takes_nothing_is_waited_for_once() {
    let mut credit = Credit::default();
    let waited = (0..1_000).take_while(|at| credit.may_wait(at * MS)).count();
    assert_eq!(waited, 100);
    assert!(!credit.may_wait(2_000 * MS), "time alone earns nothing");
    credit.took(1_500, 2_000 * MS);
    assert!(credit.may_wait(2_000 * MS), "what it takes does");
    assert!(!credit.may_wait(2_001 * MS));
}

#[test]
fn a_slow_peer_is_waited_for_as_long_as_it_takes_enough() {
    // 64 KiB every 5 ms are 105 Mbit/s.
    let mut credit = Credit::default();
    for at in 0..5_000 {
        if at % 5 == 4 {
            credit.took(65_536, at * MS);
        } else {
            assert!(credit.may_wait(at * MS), "{at}");
        }
    }
}

#[test]
fn a_peer_that_takes_a_little_now_and_then_delays_the_others_a_little() {
    let mut credit = Credit::default();
    let mut waited = 0;
    for at in 0..10_000 {
        if at % 49 == 48 {
            credit.took(60, at * MS);
        }
        waited += u32::from(credit.may_wait(at * MS));
    }
    // What it takes earns 5 us each time; the clock here is coarser.
    assert!(waited < 100 + 10_000 / 49 + 1, "{waited} of 10,000 ms");
}
