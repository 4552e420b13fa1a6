//! The dissectors for Wireshark read what our own parsers read, and refuse what these refuse: in frames of every kind, whole,
//! changed and cut, and in what a bond and a fabric really send.

mod arp_plus;
mod fabric;
mod live;
mod mirror;
mod shark;

use shark::{Fields, Record, Shark};
use std::collections::{BTreeMap, BTreeSet};

/// Has a fabric's datagrams read as such, however broken they are.
const FABRIC_PORT: [&str; 2] = ["-o", "lbfabric.ports:7000"];

/// Reasons that were the only one for the refusal of a frame, by protocol.
#[derive(Default)]
struct Alone(BTreeMap<&'static str, BTreeSet<String>>);

impl Alone {
    fn note(&mut self, protocol: &'static str, refused: BTreeSet<String>) {
        if refused.len() == 1 {
            self.0.entry(protocol).or_default().extend(refused);
        }
    }

    #[track_caller]
    fn assert_all(&self, protocol: &str, wanted: &BTreeSet<String>) {
        let lacking: Vec<_> = wanted.difference(&self.0[protocol]).collect();
        assert!(lacking.is_empty(), "{protocol}: no frame is refused for {lacking:?} alone");
    }
}

/// What our parsers and tshark read in the same frames.
#[track_caller]
fn compare(frames: &[Vec<u8>], read: &[Fields]) {
    let mut fabric = fabric::Reader::default();
    let mut alone = Alone::default();
    for (frame, seen) in frames.iter().zip(read) {
        alone.note("arpplus", arp_plus::compare(frame, seen));
        alone.note("lbmirror", mirror::compare(frame, seen));
        alone.note("lbfabric", fabric.compare(frame, seen));
    }
    // Each reason is one by itself.
    let of_table = ["no_identity", "source_not_listed"].map(str::to_owned);
    let of_parser = arp_plus::reasons_of_parser();
    alone.assert_all("arpplus", &(&of_parser | &of_table.into()));
    alone.assert_all("lbfabric", &fabric::reasons_of_parser());
    let of_mirrors = ["vlan", "short", "to_many", "version", "class", "sequence", "zero", "sum", "ethertype"];
    alone.assert_all("lbmirror", &of_mirrors.map(str::to_owned).into());
}

#[test]
fn frames_of_every_kind_are_read_as_our_parsers_read_them() {
    let good = good();
    let forbidden = [arp_plus::forbidden(), fabric::forbidden()].concat();
    let frames = [arp_plus::all(), mirror::all(), fabric::all()].concat();
    let ends = |frame: &[u8]| (14..frame.len().min(300)).step_by(3);
    let cut = |frame: &Vec<u8>, end: usize| Record { bytes: frame[..end].to_vec(), length: frame.len() };
    let mut records: Vec<Record> = Vec::new();
    records.extend([5u8, 0].map(|vlan| Record::whole(in_vlan(&good[0], vlan))));
    records.extend(good.iter().cloned().map(Record::whole));
    records.extend(forbidden.iter().map(|(_, frame)| Record::whole(frame.clone())));
    records.extend(frames.iter().cloned().map(Record::whole));
    let begin_of_cut = records.len();
    records.extend(good.iter().flat_map(|frame| ends(frame).map(|end| cut(frame, end))));

    let mut shark = Shark::new("every");
    let read = shark.read(&records, &FABRIC_PORT);
    let (of_vlans, rest) = read.split_at(2);
    assert_eq!(faults(&of_vlans[0]), ["arpplus.refused.vlan"]);
    assert_eq!(faults(&of_vlans[1]), Vec::<String>::new(), "a tag without a VLAN is a priority");
    let (of_good, rest) = rest.split_at(good.len());
    of_good.iter().for_each(|seen| assert_eq!(faults(seen), Vec::<String>::new()));
    let (of_forbidden, rest) = rest.split_at(forbidden.len());
    for ((rule, _), seen) in forbidden.iter().zip(of_forbidden) {
        let is_it = |fault: &String| fault.ends_with(&format!(".forbidden.{rule}"));
        assert!(matches!(&faults(seen)[..], [one] if is_it(one)), "{rule}: {:?}", faults(seen));
    }
    let (of_frames, of_cut) = rest.split_at(frames.len());
    compare(&frames, of_frames);
    // Of what the capture has only a part, nothing is taken for a fault of the sender.
    for (record, seen) in records[begin_of_cut..].iter().zip(of_cut) {
        let what = format!("{} of {} bytes", record.bytes.len(), record.length);
        assert_eq!(faults(seen), Vec::<String>::new(), "{what}");
    }
    assert_eq!(shark.unseen(), Vec::<&String>::new(), "fields that no frame has");
}

fn good() -> Vec<Vec<u8>> {
    [arp_plus::good(), fabric::good(), vec![mirror::good()]].concat()
}

/// What the dissectors hold against a frame.
pub fn faults(seen: &Fields) -> Vec<String> {
    let is_fault = |name: &&String| name.contains(".refused.") || name.contains(".forbidden.");
    seen.keys().filter(is_fault).cloned().collect()
}

/// A frame with the tag of a VLAN, and a priority.
fn in_vlan(frame: &[u8], vlan: u8) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0xe0, vlan], &frame[12..]].concat()
}
