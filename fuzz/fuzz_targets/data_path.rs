//! What it does is in `steps/data_path.rs`. Needs root.

#![no_main]

#[path = "../../crates/dataplane/tests/data_path/lent.rs"]
mod lent;
#[path = "../../crates/dataplane/tests/data_path/rig.rs"]
mod rig;
#[path = "../steps/data_path.rs"]
mod steps;
#[path = "../../crates/dataplane/tests/data_path/undisturbed.rs"]
mod undisturbed;

use std::cell::RefCell;

thread_local! {
    /// Loading takes longer than a million frames, so all inputs have one bond.
    static BED: RefCell<steps::Bed> = RefCell::new(steps::Bed::new());
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| BED.with_borrow_mut(|bed| bed.run(bytes)));
