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
        spin.worked(now);
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
        spin.worked(at);
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
        spin.worked(now);
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

/// Work comes every `gap` after the last, for a second: how long the thread spun for it, with a look every `look`.
fn spun(spin: &mut Spin, gap: u64, look: u64) -> u64 {
    spun_between(spin, [gap, gap], look)
}

/// The same where the gaps alternate.
fn spun_between(spin: &mut Spin, gaps: [u64; 2], look: u64) -> u64 {
    let (mut now, mut spun) = (0, 0);
    for gap in gaps.into_iter().cycle() {
        if now >= 1_000_000 * US {
            break;
        }
        spin.worked(now);
        let next = now + gap;
        while now < next {
            if spin.idle(now) == Idle::Sleep {
                spin.slept(now, next, true);
                now = next;
            } else {
                now += look;
                spun += look;
            }
        }
    }
    spun
}

#[test]
fn spins_that_take_long_for_what_they_catch_are_seldom_tried() {
    let mut spin = Spin::new(Poll::Adaptive);
    let of_slow = spun(&mut spin, 190 * US, US);
    assert!((1..=100_000 * US).contains(&of_slow), "{of_slow}");
    // The one gap outlasts the spin and halves the budget, the other one doubles it again: all of it is for nothing.
    let of_uneven = spun_between(&mut Spin::new(Poll::Adaptive), [250 * US, 150 * US], US);
    assert!((1..=100_000 * US).contains(&of_uneven), "{of_uneven}");
    // They are tried again: what has become quicker since is waited for.
    let of_quick = spun(&mut Spin::new(Poll::Adaptive), 20 * US, US);
    assert!(of_quick > 990_000 * US, "{of_quick}");
    let mut spin = Spin { pause_until: 100_000 * US, ..spin };
    let after_slow = spun(&mut spin, 20 * US, US);
    assert!((800_000 * US..of_quick).contains(&after_slow), "{after_slow}");
    // While others have the processor, it is not for this thread that it spins.
    let beside_others = spun(&mut Spin::new(Poll::Adaptive), 190 * US, 60 * US);
    assert!(beside_others > 990_000 * US, "{beside_others}");
    // Whoever always looks goes on.
    assert!(spun(&mut Spin::new(Poll::Busy), 190 * US, US) > 990_000 * US);
}
