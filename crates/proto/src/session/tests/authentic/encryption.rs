//! Nodes that encrypt frames: who connects, and which keys both ends have.

use super::*;
use linkbraid_wire::fabric::ENCRYPTION_FEATURE;

const BOTH: [u16; 2] = [ENCRYPTION_FEATURE; 2];

fn required() -> AuthSettings {
    auth(Mode::Require, &[7], 7)
}

/// The secrets of the keys that a node has for the other one.
fn secrets(two: &Two, at: usize) -> (Option<[u8; 32]>, Vec<[u8; 32]>) {
    let there = (1 - at as u16, two.nodes[1 - at].epoch());
    let keys = two.nodes[at].frame_keys(there).expect("they encrypt");
    assert_eq!(keys.epoch, there.1);
    (keys.send.map(|key| **key.secret()), keys.receive.iter().map(|key| **key.secret()).collect())
}

//= docs/fabric.md#9.1 type=test
#[test]
fn a_node_that_encrypts_connects_to_no_other() {
    for (features, ours) in [([ENCRYPTION_FEATURE, 0], true), ([7, ENCRYPTION_FEATURE | 7], false)] {
        let mut two = Two::with([required(), required()], features);
        two.pass(Duration::from_secs(1));
        assert_eq!(two.are_up(), [false; 2]);
        for (at, ours) in [(0, ours), (1, !ours)] {
            let verdict = two.nodes[at].verdict(1 - at as u16).expect("a peer");
            assert!(
                matches!(verdict, Verdict::Refused { why: Mismatch::Encryption { ours: own }, .. } if own == ours)
            );
            let text = if ours {
                "it does not encrypt frames, this node does"
            } else {
                "it encrypts frames, this node does not"
            };
            assert!(verdict.to_string().ends_with(text), "{verdict}");
        }
        // The other one does so, too.
        for (at, features) in features.iter().enumerate() {
            let settings = Settings { features: features | ENCRYPTION_FEATURE, ..Settings::new(2, 1500) };
            two.nodes[at].set(two.now, settings).expect("good settings");
        }
        two.pass(Duration::from_secs(1));
        assert_eq!(two.are_up(), [true; 2]);
    }
    let two = Two::new([required(), required()]);
    assert!(two.nodes[0].frame_keys((1, 11)).is_none());
}

//= docs/fabric.md#9.2 type=test
#[test]
fn both_ends_have_one_key_for_each_direction_of_two_starts() {
    let mut two = Two::with([required(), required()], BOTH);
    two.pass(Duration::from_secs(1));
    assert_eq!(two.are_up(), [true; 2]);
    let [(send, receive), (sends, receives)] = [0, 1].map(|at| secrets(&two, at));
    assert_eq!((vec![send.expect("a key")], vec![sends.expect("a key")]), (receives, receive));
    assert_ne!(send, sends);
    // Of a secret of 32 bytes 7, by Python's cryptography 48.0.0 (OpenSSL).
    let hex: String = send.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "1b4c432566c8d2216f7fa051f6543977c45ddcbdecb0b1818d7a3e39da526046");
    // Other starts, other nodes and other secrets have other keys.
    let other = |there| two.nodes[0].frame_keys(there).and_then(|keys| keys.send).map(|key| **key.secret());
    assert!(other((1, 12)) != send && other((2, 11)) != send);
    let shown = format!("{:?}", two.nodes[0].frame_keys((1, 11)));
    assert_eq!(shown, "Some(FrameKeys { epoch: 11, send: Some(Key(00000007)), receive: [Key(00000007)] })");
}

//= docs/fabric.md#9.3 type=test
#[test]
fn keys_are_exchanged_and_each_end_takes_what_the_other_sends() {
    let mut two = Two::with([required(), required()], BOTH);
    two.pass(Duration::from_secs(1));
    let understood = |two: &Two| {
        let [(send, receive), (sends, receives)] = [0, 1].map(|at| secrets(two, at));
        receives.contains(&send.expect("a key")) && receive.contains(&sends.expect("a key"))
    };
    let steps: [(&[u32], u32); 4] = [(&[7, 8], 7), (&[7, 8], 8), (&[8], 8), (&[8], 8)];
    for (ids, signs) in steps {
        for at in 0..2 {
            let before = secrets(&two, at).0;
            two.set(at, auth(Mode::Require, ids, signs));
            assert!(understood(&two), "{ids:?}, {signs} signs, at {at}");
            assert_eq!(two.are_up(), [true; 2]);
            assert_eq!(secrets(&two, at).0 == before, signs == 7 || ids.len() == 1);
        }
    }
    // Without keys nothing leaves.
    two.set(0, auth(Mode::Require, &[], 0));
    assert_eq!(secrets(&two, 0), (None, Vec::new()));
}
