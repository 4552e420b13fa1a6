mod fast_path;
mod net;

use super::{
    assembly::{Assembly, Outcome},
    piece::{HEAD, Piece, head},
};
use crate::{
    Address, Join,
    directory::Directory,
    limits::{FRAME_MAX, FRAMES_REMEMBERED, SLOTS},
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn pieces(instance: u32, number: u32, frame: &[u8], size: usize) -> Vec<Vec<u8>> {
    let piece =
        |(at, bytes): (usize, &[u8])| [&head(instance, number, frame.len(), size, at)[..], bytes].concat();
    frame.chunks(size).enumerate().map(piece).collect()
}

fn frame(number: u32, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u32).wrapping_mul(number + 7) as u8).collect()
}

/// Gives a datagram; the frame if it was the last one of it.
fn give(assembly: &mut Assembly, datagram: &[u8]) -> Option<Vec<u8>> {
    let piece = Piece::parse(datagram)?;
    let frame = match assembly.take(&piece) {
        Outcome::Whole => piece.bytes.to_vec(),
        Outcome::Complete(slot) => assembly.frame(slot).to_vec(),
        _ => return None,
    };
    assembly.finish(&piece);
    Some(frame)
}

//= docs/fabric.md#10.2 type=test
//= docs/fabric.md#10.3 type=test
#[test]
fn datagrams_that_make_no_sense_are_refused() {
    let good = [&head(1, 2, 100, 60, 1)[..], &[0; 40]].concat();
    assert!(Piece::parse(&good).is_some());
    let with = |at: usize, byte: u8| {
        let mut bad = good.clone();
        bad[at] = byte;
        bad
    };
    let cases = [
        good[..HEAD - 1].to_vec(),
        good[..good.len() - 1].to_vec(),
        [&good[..], &[0]].concat(),
        with(8, 9),
        with(9, 0xff),
        with(11, 0),
        with(13, 0),
        with(13, 1),
        with(15, 2),
        with(14, 0xff),
        Vec::new(),
    ];
    for bad in cases {
        assert_eq!(Piece::parse(&bad), None, "{bad:?}");
    }
    let too_many = [&head(1, 2, 65_000, 200, 0)[..], &[0; 200]].concat();
    assert_eq!(Piece::parse(&too_many), None);
}

//= docs/fabric.md#10.4 type=test
#[test]
fn a_frame_comes_once_and_in_no_part() {
    let mut assembly = Assembly::new();
    let sent = frame(0, 5000);
    let all = pieces(1, 0, &sent, 1000);
    for piece in all.iter().skip(1).rev() {
        assert_eq!(give(&mut assembly, piece), None);
        assert_eq!(give(&mut assembly, piece), None);
    }
    assert_eq!(give(&mut assembly, &all[0]), Some(sent));
    assert!(all.iter().all(|piece| give(&mut assembly, piece).is_none()));
    assert!(give(&mut assembly, &pieces(1, 1, b"whole", 1000)[0]).is_some());
}

#[test]
fn a_number_that_somebody_made_up_mutes_no_frame_of_one_datagram() {
    let mut assembly = Assembly::new();
    let two = |number: u32| pieces(1, number, &frame(number, 1500), 1000);
    assert_eq!(give(&mut assembly, &two(7)[0]), None);
    assert_eq!(give(&mut assembly, &two(7 + (1 << 30))[0]), None);
    assert_eq!(give(&mut assembly, &two(7)[1]), None, "for it looks too old");
    for number in 8..100 {
        assert!(give(&mut assembly, &pieces(1, number, b"whole", 1000)[0]).is_some());
    }
}

#[test]
fn a_frame_that_is_not_taken_stays() {
    let mut assembly = Assembly::new();
    let all = pieces(1, 0, &frame(0, 1500), 1000);
    give(&mut assembly, &all[0]);
    for _ in 0..3 {
        let Outcome::Complete(slot) = assembly.take(&Piece::parse(&all[1]).unwrap()) else {
            panic!("complete")
        };
        assert_eq!(assembly.frame(slot), frame(0, 1500));
    }
}

#[test]
fn the_oldest_frame_gives_way_and_late_ones_are_dropped() {
    let mut assembly = Assembly::new();
    let firsts = (0..=SLOTS as u32).map(|number| pieces(1, number, &frame(number, 1500), 1000));
    let frames: Vec<_> = firsts.collect();
    frames.iter().for_each(|frame| assert_eq!(give(&mut assembly, &frame[0]), None));
    assert_eq!(assembly.incomplete, 1);
    for (number, pieces) in frames.iter().enumerate().skip(1) {
        assert_eq!(give(&mut assembly, &pieces[1]), Some(frame(number as u32, 1500)));
    }
    let far = FRAMES_REMEMBERED as u32 + 1;
    let mut both = |number: u32| {
        let all = pieces(1, number, &frame(number, 1500), 1000);
        all.iter().filter_map(|piece| give(&mut assembly, piece)).count()
    };
    assert_eq!([both(far), both(1), both(far - 1)], [1, 0, 1], "far, late, and less late");
}

#[test]
fn a_peer_that_starts_anew_is_heard() {
    let mut assembly = Assembly::new();
    assert!(give(&mut assembly, &pieces(1, 70_000, b"old", 1000)[0]).is_some());
    assert!(give(&mut assembly, &pieces(2, 0, b"new", 1000)[0]).is_some());
    assert!(give(&mut assembly, &pieces(2, 1, b"new", 1000)[0]).is_some());
}

#[test]
fn a_datagram_that_somebody_made_up_mutes_nobody() {
    let mut assembly = Assembly::new();
    let all = pieces(1, 70_001, &frame(1, 1500), 1000);
    assert!(give(&mut assembly, &pieces(1, 70_000, b"one", 1000)[0]).is_some());
    assert_eq!(give(&mut assembly, &all[0]), None);
    assert!(give(&mut assembly, &pieces(2, 9, b"made up", 1000)[0]).is_some());
    assert_eq!(give(&mut assembly, &all[1]), Some(frame(1, 1500)), "what was begun before is completed");
    assert!(give(&mut assembly, &pieces(1, 70_002, b"three", 1000)[0]).is_some());
    assert!(all.iter().all(|piece| give(&mut assembly, piece).is_none()), "and nothing comes twice");
    for instance in 3..100 {
        assert!(give(&mut assembly, &pieces(instance, 9, b"made up", 1000)[0]).is_some());
    }
    assert!(give(&mut assembly, &pieces(1, 70_003, b"four", 1000)[0]).is_some());
}

//= docs/fabric.md#10.3 type=test
#[test]
fn pieces_of_one_frame_must_agree() {
    let mut assembly = Assembly::new();
    let take = |assembly: &mut Assembly, datagram: &[u8]| assembly.take(&Piece::parse(datagram).unwrap());
    assert_eq!(take(&mut assembly, &pieces(1, 0, &[1; 1500], 1000)[0]), Outcome::Waits);
    assert_eq!(take(&mut assembly, &pieces(1, 0, &[1; 1501], 1000)[1]), Outcome::Bad);
    assert_eq!(take(&mut assembly, &pieces(1, 0, &[1; 1500], 900)[1]), Outcome::Bad);
    assert!(matches!(take(&mut assembly, &pieces(1, 0, &[1; 1500], 1000)[1]), Outcome::Complete(_)));
}

proptest! {
    /// Frames in pieces, mixed, lost and doubled: each comes whole, at most once; all come that lost nothing and were
    /// not mixed with more others than there are slots.
    #[test]
    fn whatever_comes_is_whole(
        lens in prop::collection::vec(1..FRAME_MAX, 1..12),
        size in 257..9000usize,
        first in prop_oneof![Just(0u32), Just(u32::MAX - 3), any::<u32>()],
        moves in prop::collection::vec((0..20usize, 0..10u8), 0..600),
    ) {
        let numbers: Vec<u32> = (0..lens.len() as u32).map(|at| first.wrapping_add(at)).collect();
        let mut sent: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut frames = BTreeMap::new();
        for (number, len) in numbers.iter().zip(&lens) {
            let content = frame(number % 1000, *len);
            sent.extend(pieces(5, *number, &content, size).into_iter().map(|piece| (*number, piece)));
            frames.insert(*number, content);
        }
        let mut hurt = BTreeSet::new();
        let mut moved = false;
        for (at, (by, what)) in moves.into_iter().enumerate().take(sent.len()) {
            let other = (at + by).min(sent.len() - 1);
            match what {
                0 => { hurt.insert(sent[at].0); sent[at].1.clear(); }
                1 => { let copy = sent[other].clone(); hurt.insert(sent[at].0); sent[at] = copy; }
                2..6 => { sent.swap(at, other); moved |= by > 0; }
                _ => {}
            }
        }
        let mut assembly = Assembly::new();
        let mut came = Vec::new();
        for (number, piece) in &sent {
            if let Some(got) = give(&mut assembly, piece) {
                prop_assert_eq!(&got, &frames[number]);
                prop_assert!(got.len() <= size || !came.contains(number), "twice");
                came.push(*number);
            }
        }
        if !moved {
            prop_assert!(numbers.iter().all(|number| hurt.contains(number) || came.contains(number)));
        }
    }

    /// Any datagrams: no panic, and only frames of legal length.
    #[test]
    fn any_datagrams_are_survived(
        all in prop::collection::vec((any::<u32>(), 0..40u32, 0..70_000usize, 0..4000usize, 0..20usize, 0..4000usize), 1..100),
    ) {
        let mut assembly = Assembly::new();
        for (instance, number, total, size, index, len) in all {
            let len = if len % 3 == 0 { len } else { total.saturating_sub(index * size).min(size) };
            let datagram = [&head(instance % 3, number, total, size, index)[..], &vec![1; len]].concat();
            if let Some(frame) = give(&mut assembly, &datagram) {
                prop_assert!((1..=FRAME_MAX).contains(&frame.len()));
            }
        }
    }
}

#[test]
fn directories_are_read_and_refused_by_line() {
    let join = Join { node: 0, nodes: 2, queues: 2 };
    let parse = |text: &str| Directory::parse(text, &join);
    let good = "# who is where\n\n1 198.18.0.2:7000 # the other\n 0\t198.18.0.1:7000\n";
    let path = std::path::Path::new("/etc/fab0");
    let all = parse(good).unwrap().complete(path).unwrap();
    assert_eq!(all, ["198.18.0.1:7000".parse().unwrap(), "198.18.0.2:7000".parse().unwrap()]);
    let one = parse("0 198.18.0.1:1").unwrap();
    assert_eq!((one.own, one.address(1)), ("198.18.0.1:1".parse().unwrap(), None));
    assert_eq!(one.complete(path).unwrap_err().cause, "there is no line for node 1");
    assert!(parse("0 [2001:db8::1]:7000\n1 [2001:db8::1]:7002").is_ok());
    let cases = [
        ("", "there is no line for node 0"),
        ("1 198.18.0.1:1", "there is no line for node 0"),
        ("\n0 198.18.0.1", "line 2: '0 198.18.0.1' is not NODE ADDRESS:PORT"),
        ("0 host:1", "line 1: '0 host:1' is not NODE ADDRESS:PORT"),
        ("x 198.18.0.1:1", "line 1: 'x 198.18.0.1:1' is not NODE ADDRESS:PORT"),
        ("0 198.18.0.1:1 2", "line 1: '0 198.18.0.1:1 2' is not NODE ADDRESS:PORT"),
        ("0 0.0.0.0:1", "line 1: '0.0.0.0:1' is not the address and port of one node"),
        ("0 198.18.0.1:0", "line 1: '198.18.0.1:0' is not the address and port of one node"),
        ("2 198.18.0.1:1", "line 1: node 2 is outside the range 0 to 1 of 2 nodes"),
        ("0 198.18.0.1:1\n0 198.18.0.2:1", "line 2: node 0 occurs twice"),
        ("0 198.18.0.1:65535", "line 1: 2 queues do not fit after port 65535"),
        (
            "0 198.18.0.1:5\n1 198.18.0.1:6",
            "nodes 0 and 1 use the same ports of 198.18.0.1; each needs 2, one for each queue",
        ),
        (
            "0 198.18.0.1:5\n1 [2001:db8::1]:5",
            "node 1 has [2001:db8::1]:5, node 0 has 198.18.0.1:5: IPv4 and IPv6",
        ),
    ];
    for (text, cause) in cases {
        assert_eq!(parse(text), Err(cause.to_owned()), "{text:?}");
    }
}

#[test]
fn bad_addresses_are_refused() {
    let cases = [
        ("udp:", "'' is not an absolute path"),
        ("udp:/x,mtu=575", "mtu '575' is outside the allowed range 576 to 65535"),
        ("udp:/x,fast", "no such option 'fast'"),
    ];
    for (address, cause) in cases {
        let error = address.parse::<Address>().expect_err(address);
        assert!(error.cause.contains(cause) && error.hint.is_some(), "{error}");
    }
    let none = "udp:/nowhere/directory".parse::<Address>().unwrap();
    let error = none.open(&Join { node: 0, nodes: 2, queues: 1 }).err().expect("refused");
    assert_eq!(error.to_string(), "/nowhere/directory: cannot read the directory: it does not exist");
}
