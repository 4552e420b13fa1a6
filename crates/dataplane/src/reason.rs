//! The lists of reasons in `bpf/intf.h` and `bpf/shortcut.h`, as tables.

/// Why a frame was sent, passed or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason {
    /// Never reused.
    pub number: u32,
    /// Never renamed.
    pub name: &'static str,
    /// `sent`, `pass` or `drop`.
    pub verdict: &'static str,
    /// One sentence.
    pub sentence: &'static str,
}

/// All reasons of a bond, by number; the first one is never counted.
pub const REASONS: &[Reason] = include!(concat!(env!("OUT_DIR"), "/intf.reasons.rs"));

/// Why frames did not go by the short cut of a fabric, or were dropped there, by number.
pub const WAY_REASONS: &[Reason] = include!(concat!(env!("OUT_DIR"), "/shortcut.reasons.rs"));

#[cfg(test)]
mod tests {
    use super::{REASONS, WAY_REASONS};
    use crate::intf::{LB_REASONS_END, LB_WAY_REASONS_END};

    #[test]
    fn numbers_are_dense_and_names_unique() {
        for (reasons, end) in [(REASONS, LB_REASONS_END), (WAY_REASONS, LB_WAY_REASONS_END)] {
            assert_eq!(reasons.len(), end as usize, "the build script missed some");
            for (i, reason) in reasons.iter().enumerate() {
                assert_eq!(reason.number as usize, i, "{}", reason.name);
                assert!(["sent", "pass", "drop"].contains(&reason.verdict), "{}", reason.name);
                assert!(!reason.sentence.is_empty());
                assert_eq!(reasons.iter().filter(|other| other.name == reason.name).count(), 1);
            }
        }
    }
}
