//! Any datagrams of a peer against what puts frames together: no panic, only whole frames of legal length, none of several twice.
//!
//! The input is a list of datagrams: two bytes for what, then either so many bytes as they are, or numbers from which a
//! datagram is made that makes sense.
//! Shared by the fuzz target and the replay of the corpus in `crates/fabric/tests/corpus_pieces.rs`.

use linkbraid_fabric::{Assembly, Outcome, PIECE_HEAD, Piece, limits::FRAME_MAX, piece_head};
use std::collections::HashSet;

/// Bytes of the frames that are made here; all bytes of a frame tell its number and length.
fn fill(number: u32, total: usize) -> u8 {
    (number as usize ^ total) as u8
}

/// Panics where a rule is broken.
pub fn run(bytes: &[u8]) {
    let mut assembly = Assembly::new();
    let mut came = HashSet::new();
    let mut honest = true;
    let mut part = None;
    let mut rest = bytes;
    while let [what, amount, tail @ ..] = rest {
        rest = tail;
        let datagram = if what % 8 == 0 {
            let (datagram, tail) = rest.split_at(rest.len().min(usize::from(*amount)));
            rest = tail;
            honest = false;
            datagram.to_vec()
        } else {
            let Some((numbers, tail)) = rest.split_first_chunk::<4>() else { break };
            rest = tail;
            let number = u32::from(numbers[0]) | u32::from(what >> 6) << 30;
            let total = usize::from(u16::from_le_bytes([numbers[1], numbers[2]])) % FRAME_MAX + 1;
            let size = 257 + usize::from(*amount) * 32;
            let index = usize::from(numbers[3]) % total.div_ceil(size);
            let len = (total - index * size).min(size);
            let of = u32::from(what >> 3 & 1);
            [&piece_head(of, number, total, size, index)[..], &vec![fill(number, total); len]].concat()
        };
        let Some(piece) = Piece::parse(&datagram) else { continue };
        assert_eq!(piece.bytes.len() + PIECE_HEAD, datagram.len());
        if part != Some((piece.instance, piece.number >> 30)) {
            // A peer that starts again, or went once around all numbers, may use them again.
            part = Some((piece.instance, piece.number >> 30));
            came.clear();
        }
        let frame = match assembly.take(&piece) {
            Outcome::Whole => piece.bytes,
            Outcome::Complete(slot) => assembly.frame(slot),
            Outcome::Waits | Outcome::Old | Outcome::Bad => continue,
        };
        assert!(frame.len() == piece.total && frame.len() <= FRAME_MAX);
        if honest {
            assert!(frame.iter().all(|byte| *byte == fill(piece.number, piece.total)), "of one frame");
        }
        // What is in one datagram is handed on whatever its number is.
        assert!(piece.is_whole() || came.insert(piece.number), "twice");
        assembly.finish(&piece);
    }
}
