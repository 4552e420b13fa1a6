//! Duplicate-ACK damping, ACK by ACK.

use crate::frames::{ECE, FIN, RST, SYN, Tcp, V4, V6, bare_sack, read_sack, sack, tagged, timestamps};
use crate::rig::{LONG, Rig, damping, own, peer};
use crate::undisturbed::{pass, undisturbed};
use linkbraid_dataplane::Verdict;
use std::time::{Duration, Instant};

pub const STRIPE: u32 = 1400;
const FIRST: u32 = 10_000;

/// The sequence number after `n` stripes.
pub fn at(n: u32) -> u32 {
    FIRST.wrapping_add(n * STRIPE)
}

/// `lanes` lanes, and `n` stripes of equal length that went over them in turn.
pub fn sent(lanes: u8, n: u32) -> Rig {
    let rig = Rig::new(lanes);
    send(&rig, V4, FIRST, n);
    rig
}

pub fn send(rig: &Rig, protocol: u16, first: u32, n: u32) {
    for i in 0..n {
        let data = Tcp { protocol, ..Tcp::data(first.wrapping_add(i * STRIPE), STRIPE as usize) };
        let ran = rig.out(&data.frame(peer(0), own(0)));
        assert_eq!(ran.source(), own((i % rig.members.len() as u32) as u8), "stripe {i}");
    }
}

/// What an ACK did: the reason, and the SACK blocks that are left (checksum checked), `None` if it was dropped.
#[track_caller]
pub fn ack(rig: &Rig, tcp: &Tcp) -> (&'static str, Option<Vec<(u32, u32)>>) {
    let frame = tcp.frame(own(0), peer(0));
    let ran = rig.arrives(0, &frame);
    assert_eq!(ran.reasons.len(), 1, "counted once: {:?}", ran.reasons);
    let (blocks, is_right) = read_sack(&ran.frame);
    assert!(is_right, "the checksum is wrong");
    assert_eq!(ran.frame.len(), frame.len());
    match ran.verdict {
        Verdict::Drop => (ran.reasons[0], None),
        _ => (ran.reasons[0], Some(blocks)),
    }
}

/// The stripes from `a` up to `b` as a SACK block.
pub fn block(a: u32, b: u32) -> (u32, u32) {
    (at(a), at(b))
}

#[test]
fn a_young_hole_is_masked_then_damped_then_filled() {
    undisturbed(|| {
        let rig = sent(4, 8);
        assert_eq!(ack(&rig, &Tcp::ack(at(1), &[])), ("rx_peer", Some(vec![])));
        assert_eq!(ack(&rig, &Tcp::ack(at(1), &[block(2, 3)])), ("rx_ack_masked", Some(vec![])));
        assert_eq!(ack(&rig, &Tcp::ack(at(1), &[block(2, 4)])), ("rx_ack_damped", None));
        assert_eq!(ack(&rig, &Tcp::ack(at(4), &[])), ("rx_peer", Some(vec![])));
        assert_eq!(ack(&rig, &Tcp::ack(at(5), &[block(6, 7)])), ("rx_ack_masked", Some(vec![])));
    });
}

#[test]
fn only_later_data_of_the_same_lane_proves_a_loss() {
    undisturbed(|| {
        let rig = sent(4, 8);
        // Stripe 0 (lane 0) is missing; 1, 2 and 3 are other lanes', 4 is lane 0's.
        ack(&rig, &Tcp::ack(at(0), &[block(1, 2)]));
        assert_eq!(ack(&rig, &Tcp::ack(at(0), &[block(1, 4)])), ("rx_ack_damped", None));
        assert_eq!(ack(&rig, &Tcp::ack(at(0), &[block(1, 5)])), ("rx_ack_lost", Some(vec![block(1, 5)])));
    });
}

#[test]
fn a_proven_loss_does_not_give_away_holes_above_it() {
    undisturbed(|| {
        let rig = sent(4, 12);
        // 0 is lost for certain (4 arrived), 5 is on its way on lane 1: 6 has overtaken it.
        let blocks = [block(6, 7), block(1, 5)];
        assert_eq!(ack(&rig, &Tcp::ack(at(0), &blocks)), ("rx_ack_lost", Some(vec![block(1, 5)])));
        // 9 proves that 5 is lost too.
        let blocks = [block(9, 10), block(6, 7), block(1, 5)];
        let reported = vec![block(6, 7), block(1, 5)];
        assert_eq!(ack(&rig, &Tcp::ack(at(0), &blocks)), ("rx_ack_lost", Some(reported)));
    });
}

#[test]
fn the_end_of_a_stripe_proves_its_beginning_lost() {
    undisturbed(|| {
        let rig = sent(2, 4);
        let middle = at(0) + STRIPE / 2;
        let reported = vec![(middle, at(1))];
        assert_eq!(ack(&rig, &Tcp::ack(at(0), &[(middle, at(1))])), ("rx_ack_lost", Some(reported)));
    });
}

#[test]
fn what_was_sent_again_proves_nothing() {
    undisturbed(|| {
        let rig = sent(2, 4);
        ack(&rig, &Tcp::ack(at(0), &[block(1, 2)]));
        // Stripe 1 once more; its lane is lane 0's turn. Its arrival says nothing about stripe 0.
        rig.sends(&Tcp::data(at(1), STRIPE as usize).frame(peer(0), own(0)));
        assert_eq!(ack(&rig, &Tcp::ack(at(0), &[block(1, 2)])), ("rx_ack_damped", None));
    });
}

#[test]
fn a_hole_that_got_old_is_told() {
    undisturbed(|| {
        let mut rig = sent(4, 8);
        ack(&rig, &Tcp::ack(at(1), &[block(2, 3)]));
        rig.change(|bond| bond.damping = Some(damping(Duration::ZERO, Duration::from_nanos(1))));
        assert_eq!(ack(&rig, &Tcp::ack(at(1), &[block(2, 3)])), ("rx_ack_old", Some(vec![block(2, 3)])));
    });
}

#[test]
fn without_damping_nothing_is_touched() {
    undisturbed(|| {
        let mut rig = sent(4, 8);
        rig.change(|bond| bond.damping = None);
        for _ in 0..2 {
            assert_eq!(ack(&rig, &Tcp::ack(at(1), &[block(2, 3)])), ("rx_peer", Some(vec![block(2, 3)])));
        }
    });
}

#[test]
fn flows_that_were_not_striped_are_not_touched() {
    undisturbed(|| {
        let rig = Rig::new(4);
        assert_eq!(ack(&rig, &Tcp::ack(at(1), &[block(2, 3)])), ("rx_peer", Some(vec![block(2, 3)])));
        let rig = Rig::new(1);
        send(&rig, V4, FIRST, 4);
        assert_eq!(ack(&rig, &Tcp::ack(at(1), &[block(2, 3)])), ("rx_peer", Some(vec![block(2, 3)])));
    });
}

#[test]
fn what_always_passes() {
    undisturbed(|| {
        // Each on a hole that is being watched, so that a plain duplicate would be dropped.
        let duplicate = || Tcp::ack(at(1), &[block(2, 3)]);
        let dsack = [(at(0), at(1)), block(2, 3)];
        let inner = [(at(2), at(3)), block(2, 4)];
        let all = || Some(vec![block(2, 3)]);
        type Case = (&'static str, Tcp, &'static str, Option<Vec<(u32, u32)>>);
        let cases: [Case; 9] = [
            ("duplicate", duplicate(), "rx_ack_damped", None),
            ("window", Tcp { window: 600, ..duplicate() }, "rx_ack_window", Some(vec![])),
            ("zero window", Tcp { window: 0, ..duplicate() }, "rx_ack_window", Some(vec![])),
            ("ECE", Tcp { flags: 0x10 | ECE, ..duplicate() }, "rx_ack_window", Some(vec![])),
            ("data", Tcp { payload: 100, ..duplicate() }, "rx_ack_window", Some(vec![])),
            ("FIN", Tcp { flags: 0x10 | FIN, ..duplicate() }, "rx_peer", all()),
            ("RST", Tcp { flags: 0x10 | RST, ..duplicate() }, "rx_peer", all()),
            ("DSACK below", Tcp::ack(at(1), &dsack), "rx_ack_dsack", Some(vec![dsack[0]])),
            ("DSACK inside", Tcp::ack(at(1), &inner), "rx_ack_dsack", Some(vec![inner[0]])),
        ];
        for (what, tcp, reason, blocks) in cases {
            let rig = sent(4, 8);
            ack(&rig, &duplicate());
            assert_eq!(ack(&rig, &tcp), (reason, blocks), "{what}");
        }
        let rig = sent(4, 8);
        ack(&rig, &duplicate());
        let syn = Tcp { flags: 0x10 | SYN, ..duplicate() };
        assert_eq!(ack(&rig, &syn), ("rx_peer", all()));
    });
}

#[test]
fn checksums_are_right_wherever_the_option_stands() {
    undisturbed(|| {
        let blocks = [block(2, 3), block(5, 6), block(9, 10)];
        let pad = |mut options: Vec<u8>| {
            options.resize(options.len().next_multiple_of(4), 0);
            options
        };
        let layouts: [(&str, Vec<u8>); 5] = [
            ("time stamps, even", [timestamps(), sack(&blocks)].concat()),
            ("alone, even", pad(bare_sack(&blocks))),
            ("alone, odd", pad([vec![1], bare_sack(&blocks)].concat())),
            (
                "time stamps behind it, odd",
                pad([vec![1, 1, 1], bare_sack(&blocks[..2]), timestamps()].concat()),
            ),
            ("four blocks", pad(bare_sack(&[block(2, 3), block(5, 6), block(7, 8), block(9, 10)]))),
        ];
        for protocol in [V4, V6] {
            for (what, options) in &layouts {
                for is_tagged in [false, true] {
                    let rig = Rig::new(4);
                    send(&rig, protocol, FIRST, 12);
                    let tcp = Tcp { protocol, options: options.clone(), ..Tcp::ack(at(1), &[]) };
                    let mut frame = tcp.frame(own(0), peer(0));
                    if is_tagged {
                        frame = tagged(&frame, 7);
                    }
                    let ran = rig.arrives(0, &frame);
                    let (left, is_right) = read_sack(&ran.frame);
                    // 1 is lost for certain where 5 and 9 have arrived, and so are 3 and 4 where 9 (lane 1) does not count.
                    assert_eq!(ran.verdict, Verdict::Pass, "{what}");
                    assert!(is_right, "{what}, tagged {is_tagged}: checksum");
                    assert!(left.len() < 4 && ran.frame.len() == frame.len(), "{what}: {left:?}");
                    let rest = [left.contains(&block(9, 10)), left.contains(&block(2, 3))];
                    assert_eq!(rest, [false, true], "{what}: {left:?}");
                    assert_eq!(ran.reasons, ["rx_ack_lost"], "{what}");
                }
            }
        }
    });
}

#[test]
fn masking_alone_keeps_the_checksum_right() {
    undisturbed(|| {
        for protocol in [V4, V6] {
            for lead in 0..4 {
                let rig = Rig::new(4);
                send(&rig, protocol, FIRST, 8);
                let mut options = [vec![1; lead], bare_sack(&[block(2, 3), block(4, 5)])].concat();
                options.resize(options.len().next_multiple_of(4), 0);
                let tcp = Tcp { protocol, options, ..Tcp::ack(at(1), &[]) };
                assert_eq!(ack(&rig, &tcp), ("rx_ack_masked", Some(vec![])), "{lead} bytes in front");
            }
        }
    });
}

#[test]
fn sequence_numbers_wrap() {
    undisturbed(|| {
        let rig = Rig::new(4);
        let first = 0u32.wrapping_sub(3 * STRIPE);
        send(&rig, V4, first, 8);
        let block = |a: u32, b: u32| (first.wrapping_add(a * STRIPE), first.wrapping_add(b * STRIPE));
        assert_eq!(ack(&rig, &Tcp::ack(first, &[block(1, 3)])), ("rx_ack_masked", Some(vec![])));
        assert_eq!(ack(&rig, &Tcp::ack(first, &[block(1, 4)])), ("rx_ack_damped", None));
        assert_eq!(ack(&rig, &Tcp::ack(first, &[block(1, 5)])), ("rx_ack_lost", Some(vec![block(1, 5)])));
    });
}

#[test]
fn with_more_in_flight_than_is_remembered_only_age_tells() {
    undisturbed(|| {
        let mut rig = Rig::new(2);
        for i in 0..400 {
            // A byte is missing after each, so that none is longer than a buffer.
            rig.sends(&Tcp::data(at(i), STRIPE as usize - 1).frame(peer(0), own(0)));
        }
        let tcp = Tcp::ack(at(0), &[block(1, 399)]);
        assert_eq!(ack(&rig, &tcp), ("rx_ack_masked", Some(vec![])));
        assert_eq!(ack(&rig, &tcp), ("rx_ack_damped", None));
        rig.change(|bond| bond.damping = Some(damping(Duration::ZERO, Duration::from_nanos(1))));
        assert_eq!(ack(&rig, &tcp).1, Some(vec![block(1, 399)]));
    });
}

#[test]
fn a_share_of_the_acks_always_passes() {
    undisturbed(|| {
        let rig = sent(4, 8);
        let tcp = Tcp::ack(at(1), &[block(2, 3)]);
        ack(&rig, &tcp);
        let mut passed = 0;
        for _ in 0..3000 {
            match ack(&rig, &tcp) {
                ("rx_ack_damped", None) => {}
                (reason, blocks) => {
                    assert_eq!((reason, blocks), ("rx_ack_share", Some(vec![])));
                    passed += 1;
                }
            }
        }
        assert!((250..=500).contains(&passed), "{passed} of 3000 passed, an eighth is 375");
    });
}

#[test]
fn a_new_connection_with_the_same_ports_starts_anew() {
    undisturbed(|| {
        let rig = sent(4, 8);
        let syn = Tcp { flags: SYN, ..Tcp::data(77, 0) };
        rig.out(&syn.frame(peer(0), own(0)));
        assert_eq!(ack(&rig, &Tcp::ack(at(1), &[block(2, 3)])), ("rx_peer", Some(vec![block(2, 3)])));
        send_some(&rig, 100, 8);
        let blocks = [(100 + 2 * STRIPE, 100 + 3 * STRIPE)];
        assert_eq!(ack(&rig, &Tcp::ack(100 + STRIPE, &blocks)), ("rx_ack_masked", Some(vec![])));
    });
}

#[test]
fn what_left_under_a_plan_that_is_over_is_told_at_once() {
    undisturbed(|| {
        let rig = sent(4, 8);
        ack(&rig, &Tcp::ack(at(0), &[block(1, 4)]));
        assert_eq!(ack(&rig, &Tcp::ack(at(0), &[block(1, 4)])), ("rx_ack_damped", None));
        rig.weights(&[1000, 1000]);
        // Before anything leaves under the new plan, and after.
        assert_eq!(ack(&rig, &Tcp::ack(at(0), &[block(1, 4)])), ("rx_ack_lost", Some(vec![block(1, 4)])));
        send_some(&rig, at(8), 8);
        // 8 and up: reordering between lanes explains a hole there.
        let reported = ack(&rig, &Tcp::ack(at(0), &[block(1, 4), block(10, 11)]));
        assert_eq!(reported, ("rx_ack_lost", Some(vec![block(1, 4)])));
    });
}

/// How long an ACK must be missing until its flow counts as stalled; longer where sending took long.
pub const STALL: Duration = Duration::from_millis(3);
#[test]
fn what_was_hidden_is_not_given_up_by_a_later_ack() {
    undisturbed(|| {
        let rig = sent(4, 16);
        // 2 arrived while the hole at 1 was young; the ACK that proves 1 lost has no room to say so again.
        ack(&rig, &Tcp::ack(at(1), &[block(2, 3)]));
        let later = [block(9, 10), block(7, 8), block(4, 6)];
        assert_eq!(ack(&rig, &Tcp::ack(at(1), &later)), ("rx_ack_damped", None));
        // Together with 2 the losses of 1 (by 5) and 3 (by 7) are reported; 8 may be on its way.
        let whole = [block(9, 10), block(4, 8), block(2, 3)];
        assert_eq!(ack(&rig, &Tcp::ack(at(1), &whole)).1, Some(vec![block(4, 8), block(2, 3)]));
    });
}

#[test]
fn what_was_hidden_for_as_long_as_anything_may_be_is_hidden_no_longer() {
    undisturbed(|| {
        let hidden = |longest: Duration| {
            let mut rig = sent(4, 16);
            ack(&rig, &Tcp::ack(at(1), &[block(2, 3)]));
            // No hole gets old by itself. 2 is not reported any more: three blocks are all that there is room for.
            rig.change(|bond| bond.damping = Some(damping(LONG, longest)));
            let later = Tcp::ack(at(1), &[block(9, 10), block(7, 8), block(4, 6)]);
            assert_eq!(ack(&rig, &later), ("rx_ack_damped", None));
            for _ in 0..10 {
                // Not so long that the flow would be stuck.
                pass(STALL / 6);
                ack(&rig, &later);
            }
            ack(&rig, &later)
        };
        assert_eq!(hidden(LONG), ("rx_ack_damped", None));
        // 1 is lost for certain (by 5), and 3 (by 7); 6 may be on its way.
        assert_eq!(hidden(STALL / 3), ("rx_ack_lost", Some(vec![block(4, 6)])));
    });
}

#[test]
fn a_flow_that_went_far_over_one_lane_is_striped_as_a_new_one() {
    undisturbed(|| {
        // 2.5 GiB later than the last stripe, which a comparison of sequence numbers takes for earlier.
        let far = at(8).wrapping_add(5 << 29);
        let resumed = |away: Duration| {
            let rig = sent(4, 8);
            // One lane is left for a while.
            rig.weights(&[1000]);
            pass(away);
            rig.weights(&[1000; 4]);
            send_some(&rig, far, 8);
            // Of four lanes that take turns, the fifth stripe proves the first one lost: so they are remembered.
            ack(&rig, &Tcp::ack(far, &[(far + STRIPE, far + 5 * STRIPE)])).0
        };
        assert_eq!(resumed(Duration::from_millis(1100)), "rx_ack_lost");
        // What is sent again after a moment is no new flow.
        assert_ne!(resumed(Duration::ZERO), "rx_ack_lost");
    });
}

/// A flow that had so many losses, all proven; the sequence number it has come to.
fn lossy(losses: u32) -> (Rig, u32) {
    let rig = Rig::new(4);
    let mut seq = FIRST;
    for _ in 0..losses {
        send_some(&rig, seq, 8);
        // The first of eight stripes is missing.
        let arrived = (seq + STRIPE, seq + 8 * STRIPE);
        assert_eq!(ack(&rig, &Tcp::ack(seq, &[arrived])).0, "rx_ack_lost");
        seq += 8 * STRIPE;
        assert_eq!(ack(&rig, &Tcp::ack(seq, &[])).0, "rx_peer");
    }
    (rig, seq)
}

pub fn send_some(rig: &Rig, first: u32, n: u32) {
    for i in 0..n {
        rig.sends(&Tcp::data(first + i * STRIPE, STRIPE as usize).frame(peer(0), own(0)));
    }
}

#[test]
fn real_losses_with_little_in_flight_are_told_at_once() {
    undisturbed(|| {
        let (rig, seq) = lossy(5);
        send_some(&rig, seq, 3);
        let arrived = (seq + STRIPE, seq + 3 * STRIPE);
        assert_eq!(ack(&rig, &Tcp::ack(seq, &[arrived])), ("rx_ack_last", Some(vec![arrived])));
        let (rig, seq) = lossy(5);
        send_some(&rig, seq, 6);
        assert_eq!(ack(&rig, &Tcp::ack(seq, &[arrived])), ("rx_ack_masked", Some(vec![])), "more in flight");
    });
}

#[test]
fn the_answer_to_a_probe_is_told_everything() {
    undisturbed(|| {
        for probe in [7, 8] {
            let rig = sent(4, 8);
            ack(&rig, &Tcp::ack(at(1), &[block(2, 3)]));
            // Longer than twice the time that an ACK took, where sending took long.
            pass(20 * STALL);
            // TCP's probe: the last segment once more, or a new one.
            rig.sends(&Tcp::data(at(probe), STRIPE as usize).frame(peer(0), own(0)));
            let answer = Tcp::ack(at(1), &[block(2, 3)]);
            assert_eq!(ack(&rig, &answer), ("rx_ack_last", Some(vec![block(2, 3)])), "stripe {probe}");
            assert_eq!(ack(&rig, &answer), ("rx_ack_damped", None), "one answer, not two");
        }
    });
}

#[test]
fn what_is_sent_without_a_pause_is_no_probe() {
    undisturbed(|| {
        // With two lanes all goes over the one that is not the hole's, and would be one stripe.
        for lanes in [2, 4] {
            let rig = sent(lanes, 8);
            ack(&rig, &Tcp::ack(at(1), &[block(2, 3)]));
            let (begun, mut next) = (Instant::now(), 8);
            while begun.elapsed() < 4 * STALL {
                send_some(&rig, at(next), 1);
                next += 1;
            }
            let reported = ack(&rig, &Tcp::ack(at(1), &[block(2, 3)]));
            assert_eq!(reported, ("rx_ack_damped", None), "{lanes} lanes");
        }
    });
}

#[test]
fn the_last_stripe_that_is_missing_is_told_once_it_is_late() {
    undisturbed(|| {
        let rig = sent(4, 4);
        ack(&rig, &Tcp::ack(at(1), &[block(2, 3)]));
        pass(LATE);
        let all = Tcp::ack(at(1), &[block(2, 4)]);
        assert_eq!(ack(&rig, &all), ("rx_ack_last", Some(vec![block(2, 4)])));
        // The same while more is under way, which will bring another ACK.
        let rig = sent(4, 8);
        ack(&rig, &Tcp::ack(at(1), &[block(2, 3)]));
        pass(LATE);
        assert_eq!(ack(&rig, &all), ("rx_ack_damped", None));
    });
}

#[test]
fn a_hole_that_was_sent_again_does_not_teach_how_late_lanes_are() {
    undisturbed(|| {
        let rig = sent(4, 4);
        ack(&rig, &Tcp::ack(at(1), &[block(2, 3)]));
        rig.sends(&Tcp::data(at(1), STRIPE as usize).frame(peer(0), own(0)));
        pass(4 * LATE);
        ack(&rig, &Tcp::ack(at(4), &[]));
        send_some(&rig, at(4), 4);
        ack(&rig, &Tcp::ack(at(5), &[block(6, 7)]));
        pass(LATE);
        assert_eq!(ack(&rig, &Tcp::ack(at(5), &[block(6, 8)])), ("rx_ack_last", Some(vec![block(6, 8)])));
    });
}

#[test]
fn reported_duplicates_take_losses_back() {
    undisturbed(|| {
        let (rig, seq) = lossy(5);
        ack(&rig, &Tcp::ack(seq, &[(seq - STRIPE, seq)]));
        send_some(&rig, seq, 3);
        let arrived = (seq + STRIPE, seq + 3 * STRIPE);
        assert_ne!(ack(&rig, &Tcp::ack(seq, &[arrived])).1, Some(vec![arrived]));
    });
}

#[test]
fn nonsense_in_the_options_is_left_alone() {
    undisturbed(|| {
        let bad: [&[u8]; 6] = [
            &[5, 10, 0, 0],
            &[5, 0, 0, 0],
            &[5, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[8, 200, 0, 0],
            &[5, 2, 1, 1],
            &[3, 1, 5, 10],
        ];
        for options in bad {
            let rig = sent(4, 8);
            let mut all = timestamps();
            all.extend(options);
            let tcp = Tcp { options: all, ..Tcp::ack(at(1), &[]) };
            let frame = tcp.frame(own(0), peer(0));
            let ran = rig.arrives(0, &frame);
            assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Pass, &["rx_peer"][..]), "{options:?}");
            assert_eq!(ran.frame, frame);
        }
        assert!(LONG > Duration::from_secs(1), "holes stay young in these tests");
    });
}

/// Longer than a hole may take to fill before its lane counts as late (`LATE_NS`).
pub const LATE: Duration = Duration::from_millis(7);

/// Sends `n` stripes, wherever they go; the lane of each.
pub fn send_anywhere(rig: &Rig, first: u32, n: u32) -> Vec<usize> {
    let lane = |i: u32| {
        let data = Tcp::data(first.wrapping_add(i * STRIPE), STRIPE as usize);
        let source = rig.out(&data.frame(peer(0), own(0))).source();
        (0..rig.members.len()).find(|lane| own(*lane as u8) == source).expect("one of ours")
    };
    (0..n).map(lane).collect()
}
