//! Replays the committed corpus of the fuzz target `auth` on an ordinary toolchain.

#[path = "../../../fuzz/steps/auth.rs"]
mod steps;

use std::{fs, path::Path};

#[test]
fn corpus_breaks_no_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus_auth");
    let mut replayed = 0;
    for entry in fs::read_dir(folder).expect("the corpus") {
        steps::run(&fs::read(entry.expect("an entry").path()).expect("an input"));
        replayed += 1;
    }
    assert!(replayed >= 10, "only {replayed} inputs");
}
