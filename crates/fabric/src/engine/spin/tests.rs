use super::*;

const US: u64 = 1_000;

#[test]
fn an_idle_queue_does_not_spin_and_a_busy_one_does_not_sleep() {
    for (poll, wanted) in
        [(Poll::Busy, Idle::Spin), (Poll::Sleep, Idle::Sleep), (Poll::Adaptive, Idle::Sleep)]
    {
        let mut spin = Spin::new(poll);
        for at in 0..100 {
            assert_eq!(spin.idle(at * US), wanted, "{poll:?}");
        }
    }
}

#[test]
fn quick_answers_make_it_spin_and_silence_ends_that() {
    let mut spin = Spin::new(Poll::Adaptive);
    let mut now = 0;
    // Something comes 20 us after the last: first it wakes the thread, soon it finds it spinning.
    let mut sleeps = 0;
    for _ in 0..100 {
        spin.worked();
        let next = now + 20 * US;
        while now < next {
            if spin.idle(now) == Idle::Sleep {
                sleeps += 1;
                spin.slept(now, next, true);
                now = next;
            } else {
                now += US;
            }
        }
    }
    assert!(sleeps <= 3, "{sleeps}");
    assert!(spin.budget() <= SPIN_MAX);
    // Then nothing but what wakes it every 20 ms.
    for _ in 0..8 {
        while spin.idle(now) == Idle::Spin {
            now += US;
        }
        spin.slept(now, now + 20_000 * US, false);
        now += 20_000 * US;
    }
    assert_eq!(spin.budget(), Duration::ZERO);
}

#[test]
fn what_comes_seldom_is_not_waited_for() {
    let mut spin = Spin::new(Poll::Adaptive);
    for at in (0..100).map(|round| round * 1_000 * US) {
        spin.worked();
        assert_eq!(spin.idle(at), Idle::Sleep);
        spin.slept(at, at + 1_000 * US, true);
    }
}

#[test]
fn where_nobody_wakes_it_what_a_nap_found_counts() {
    let mut spin = Spin::new(Poll::Adaptive);
    let mut now = 0;
    // Something comes 120 us after the last; two naps of 70 us find it, the first one finds nothing.
    let mut naps = 0;
    for _ in 0..100 {
        spin.worked();
        let next = now + 120 * US;
        while now < next {
            if spin.idle(now) == Idle::Sleep {
                naps += 1;
                spin.napped(now, now + 70 * US);
                now += 70 * US;
            } else {
                now += US;
            }
        }
    }
    assert!(naps <= 12, "{naps}");
    // Then nothing: naps of 2 ms end the spinning.
    for _ in 0..8 {
        while spin.idle(now) == Idle::Spin {
            now += US;
        }
        spin.napped(now, now + 2_000 * US);
        now += 2_000 * US;
    }
    assert_eq!(spin.idle(now), Idle::Sleep);
    assert_eq!(spin.budget(), Duration::ZERO);
}
