//! What the guides have one write into files.

use std::fs;
use std::path::Path;

/// The block behind `<!-- NAME -->` on a page of docs/guides, without what indents it.
///
/// # Panics
/// When there is none.
#[track_caller]
pub fn block(page: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides").join(page);
    let shown = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let behind = shown
        .split(&format!("<!-- {name} -->"))
        .nth(1)
        .unwrap_or_else(|| panic!("{page}: no block '{name}'"));
    let lines = behind.lines().skip(1).take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.get(4..).unwrap_or_default())).collect()
}
