//! Another build of linkbraid: one whose BPF maps have another layout, as a release before this one may have.

use crate::net::linkbraid;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A map's size, as the header says it that the binary carries as text.
const SIZE: &str = "#define LB_ANSWERS_MAX ";
/// So much more is in that map of the other build.
const MORE: u32 = 4;

/// A copy of the binary, in which one map of a bond is larger; in this folder, which the caller removes.
///
/// # Panics
/// When it cannot be made.
pub fn with_another_layout(folder: &Path) -> PathBuf {
    let mut binary = fs::read(linkbraid()).expect("reads");
    let text = find(&binary, SIZE.as_bytes());
    assert_eq!(text.len(), 1, "the header is in the binary, once");
    let digits: Vec<u8> =
        binary[text[0] + SIZE.len()..].iter().copied().take_while(u8::is_ascii_digit).collect();
    let size: u32 = String::from_utf8_lossy(&digits).parse().expect("a number");
    let other = (size + MORE).to_string();
    assert_eq!(other.len(), digits.len());
    let at = text[0] + SIZE.len();
    binary[at..at + other.len()].copy_from_slice(other.as_bytes());
    // The size of a map is that of an array in the type information of the object (BTF): a name, a kind, a size, two types, and the
    // number of elements.
    const HEAD: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0];
    const ELEMENTS: usize = 20;
    let arrays = find(&binary, &HEAD).into_iter().map(|at| at + ELEMENTS);
    let sizes: Vec<usize> =
        arrays.filter(|at| binary.get(*at..at + 4) == Some(&size.to_le_bytes())).collect();
    assert_eq!(sizes.len(), 1, "one map has this size");
    binary[sizes[0]..sizes[0] + 4].copy_from_slice(&(size + MORE).to_le_bytes());
    let path = folder.join("linkbraid-with-another-layout");
    fs::write(&path, binary).expect("writes");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("sets");
    path
}

/// Where these bytes are.
fn find(all: &[u8], bytes: &[u8]) -> Vec<usize> {
    let starts = all.windows(bytes.len()).enumerate();
    starts.filter(|(_, window)| *window == bytes).map(|(at, _)| at).collect()
}
