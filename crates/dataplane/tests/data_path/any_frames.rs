//! Any frames through both programs: the committed corpus of the fuzz target `data_path`, and frames of chance.

#[path = "../../../../fuzz/steps/data_path.rs"]
mod steps;

use std::{fs, path::Path};

/// Frames of chance: the same ones each time.
const FRAMES: u64 = 8_000;

/// What such frames are counted as, among others.
const SEEN: [&str; 20] = [
    "rx_peer",
    "rx_plain",
    "rx_multicast",
    "rx_guest",
    "rx_stranger",
    "rx_own",
    "rx_copy",
    "rx_flooded",
    "rx_tagged",
    "rx_arp_plus",
    "rx_arp_plus_long",
    "rx_mirror",
    "rx_mirror_copy",
    "rx_mirror_stranger",
    "rx_mirror_bad",
    "tx_peer",
    "tx_plain",
    "tx_multicast",
    "tx_guest",
    "tx_mirror",
];

#[test]
fn corpus_breaks_no_rule() {
    let mut bed = steps::Bed::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut replayed = 0;
    for entry in fs::read_dir(folder).expect("the corpus") {
        bed.run(&fs::read(entry.expect("an entry").path()).expect("an input"));
        replayed += 1;
    }
    assert!(replayed >= 10, "only {replayed} inputs");
}

#[test]
fn frames_of_chance_are_taken_as_the_model_says() {
    let mut bed = steps::Bed::new();
    // splitmix64 (Steele, Lea and Flood, 2014).
    let mut state = 1_u64;
    let mut byte = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 56) as u8
    };
    for number in 0..FRAMES {
        let (given, long) = (byte() % 120, byte());
        // Every second frame is short, as most attacks are.
        let long = if number % 2 == 0 { long } else { 0 };
        let mut input = vec![(number / 64) as u8, byte(), byte(), byte(), long, given];
        input.extend((0..given).map(|_| byte()));
        bed.run(&input);
    }
    for reason in SEEN {
        assert!(bed.seen.contains(reason), "no frame of chance was {reason}: {:?}", bed.seen);
    }
}
