//! Replays the committed corpus of the fuzz target `wire_frame` on an ordinary toolchain.

#[path = "../../../fuzz/steps/wire_frame.rs"]
mod steps;

use linkbraid_wire::{Refusal, parse_frame};
use std::{collections::BTreeSet, fs, path::Path};

#[test]
fn corpus_breaks_no_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut refusals = BTreeSet::new();
    let (mut replayed, mut good, mut probes) = (0, 0, 0);
    for entry in fs::read_dir(folder).expect("the corpus") {
        let bytes = fs::read(entry.expect("an entry").path()).expect("an input");
        steps::run(&bytes);
        replayed += 1;
        let read = parse_frame(&bytes);
        good += usize::from(read.is_ok());
        refusals.extend(read.err());
        probes += usize::from(linkbraid_wire::parse_probe(&bytes).is_ok());
    }
    assert!(replayed >= 20, "only {replayed} inputs");
    assert!(good >= 5, "only {good} inputs are messages");
    let of_lists = [
        Refusal::ClassNumber,
        Refusal::ClassName,
        Refusal::ClassTwice,
        Refusal::GuestVlan,
        Refusal::GuestMac,
        Refusal::GuestAddresses,
        Refusal::GuestTwice,
    ];
    for refusal in of_lists {
        assert!(refusals.contains(&refusal), "no input is refused for {refusal:?}");
    }
    assert!(probes >= 3, "only {probes} inputs are probes");
}
