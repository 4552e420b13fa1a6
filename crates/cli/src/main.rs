//! The `linkbraid` command.
fn main() {}
