//! Mirrored frames, by `docs/arp-plus.md`, section 16.

use super::{
    arp_plus::{OTHER, SOURCE},
    shark::{Fields, put, reasons},
};
use std::collections::BTreeSet;

pub const ETHERTYPE: [u8; 2] = [0x88, 0xb6];
pub const TRAILER: usize = 16;
/// Bytes of a frame before its trailer.
const FRAME_MIN: usize = 60;

/// The ones' complement sum of words (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = words.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

/// Sets the balance of a trailer at the end of a frame.
fn balance(mut frame: Vec<u8>) -> Vec<u8> {
    let trailer = frame.len() - TRAILER;
    frame[trailer + 12..trailer + 14].fill(0);
    let balance = !sum(&frame[trailer..]);
    frame[trailer + 12..trailer + 14].copy_from_slice(&balance.to_be_bytes());
    frame
}

/// A frame as it is mirrored.
fn wrapped(frame: &[u8], epoch: u32, sequence: u32, class: u8) -> Vec<u8> {
    let mut copy = frame.to_vec();
    copy.resize(copy.len().max(FRAME_MIN), 0);
    copy.extend(epoch.to_be_bytes());
    copy.extend(sequence.to_be_bytes());
    copy.extend([frame[12], frame[13], class, 1, 0, 0, 0, 0]);
    copy[12..14].copy_from_slice(&ETHERTYPE);
    balance(copy)
}

/// A frame of so many bytes with this EtherType, which holds no IP.
fn inner(ethertype: u16, bytes: usize) -> Vec<u8> {
    let mut frame = [&OTHER.0[..], &SOURCE.0, &ethertype.to_be_bytes()].concat();
    frame.resize(bytes, 0x5a);
    frame
}

/// A frame that keeps all rules.
pub fn good() -> Vec<u8> {
    wrapped(&super::fabric::udp(&[7; 100], 9, 9), 0xcafe_f00d, 9, 7)
}

pub fn all() -> Vec<Vec<u8>> {
    let good = good();
    let mut frames = vec![good.clone(), good.clone()];
    frames
        .extend([0x0800, 0x86dd, 0x88f7, 46].map(|ethertype| wrapped(&inner(ethertype, 40), 1, u32::MAX, 0)));
    frames.extend([0x88b5, 0x88b6, 0x8100, 0x88a8].map(|ethertype| wrapped(&inner(ethertype, 80), 1, 1, 0)));
    frames.push(wrapped(&inner(0x0800, 61), 1, 0, 0));
    for at in good.len() - TRAILER..good.len() {
        for change in [1, 0x80, 0xff] {
            let mut frame = good.clone();
            frame[at] ^= change;
            frames.extend([frame.clone(), balance(frame)]);
        }
    }
    frames.extend((14..good.len()).map(|length| good[..length].to_vec()));
    frames.push([&[0xff; 6], &good[6..]].concat());
    // In a VLAN, and with a tag that is a priority only.
    frames.extend([5u8, 0].map(|vlan| [&good[..12], &[0x81, 0, 0xe0, vlan], &good[12..]].concat()));
    frames
}

/// Why a receiver drops one; the frame begins with its Ethernet header.
fn refusals(frame: &[u8]) -> BTreeSet<&'static str> {
    let to_many = (frame[0] & 1 == 1).then_some("to_many");
    if frame.len() < FRAME_MIN + TRAILER {
        return ["short"].into_iter().chain(to_many).collect();
    }
    let trailer = &frame[frame.len() - TRAILER..];
    let is_tag = matches!(trailer[8..10], [0x88, 0xb5 | 0xb6 | 0xa8] | [0x81, 0x00]);
    let cases = [
        ("sequence", trailer[4..8] == [0; 4]),
        ("ethertype", is_tag),
        ("class", trailer[10] > 7),
        ("version", trailer[11] != 1),
        ("zero", trailer[14..] != [0, 0]),
        ("sum", sum(trailer) != 0xffff),
    ];
    cases.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).chain(to_many).collect()
}

/// The fields of a trailer.
fn of_trailer(trailer: &[u8]) -> Fields {
    let word =
        |at: usize| u32::from_be_bytes([trailer[at], trailer[at + 1], trailer[at + 2], trailer[at + 3]]);
    let half = |at: usize| u32::from(u16::from_be_bytes([trailer[at], trailer[at + 1]]));
    let mut fields = Fields::new();
    for (name, value) in [
        ("epoch", word(0)),
        ("sequence", word(4)),
        ("ethertype", half(8)),
        ("class", u32::from(trailer[10])),
        ("version", u32::from(trailer[11])),
        ("balance", half(12)),
        ("zero", half(14)),
    ] {
        put(&mut fields, &format!("lbmirror.{name}"), value);
    }
    fields
}

/// Holds what tshark read in a mirrored frame against the rules. The reasons for a refusal.
#[track_caller]
pub fn compare(frame: &[u8], seen: &Fields) -> BTreeSet<String> {
    let tagged = (frame[12..14] == [0x81, 0]).then(|| [&frame[..12], &frame[16..]].concat());
    let bare = tagged.as_deref().unwrap_or(frame);
    if bare[12..14] != ETHERTYPE {
        return BTreeSet::new();
    }
    let refused = reasons(seen, "lbmirror.refused.");
    let in_vlan = tagged.is_some() && frame[15] != 0;
    let mut wanted: BTreeSet<String> = refusals(bare).into_iter().map(str::to_owned).collect();
    wanted.extend(in_vlan.then(|| "vlan".to_owned()));
    assert_eq!(refused, wanted, "{seen:#?}");
    if !refused.contains("short") {
        let beside = |name: &str| ["refused", "note", "copy_of"].iter().any(|part| name.contains(part));
        let told = seen.iter().filter(|(name, _)| name.starts_with("lbmirror.") && !beside(name));
        let told: Fields = told.map(|(name, value)| (name.clone(), value.clone())).collect();
        assert_eq!(told, of_trailer(&bare[bare.len() - TRAILER..]));
    }
    refused
}
