//! Replays the committed corpus of the fuzz target `wire_frame` on an ordinary toolchain.

#[path = "../../../fuzz/steps/wire_frame.rs"]
mod steps;

use std::{fs, path::Path};

#[test]
fn corpus_breaks_no_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let (mut replayed, mut good, mut probes) = (0, 0, 0);
    for entry in fs::read_dir(folder).expect("the corpus") {
        let bytes = fs::read(entry.expect("an entry").path()).expect("an input");
        steps::run(&bytes);
        replayed += 1;
        good += usize::from(linkbraid_wire::parse_frame(&bytes).is_ok());
        probes += usize::from(linkbraid_wire::parse_probe(&bytes).is_ok());
    }
    assert!(replayed >= 20, "only {replayed} inputs");
    assert!(good >= 5, "only {good} inputs are messages");
    assert!(probes >= 3, "only {probes} inputs are probes");
}
