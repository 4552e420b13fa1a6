//! The lists of reasons in `bpf/intf.h` and `bpf/fast_path.h`, as tables.

/// Why a frame was sent, passed or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason {
    /// Its number, which is never reused.
    pub number: u32,
    /// Its name, which never changes.
    pub name: &'static str,
    /// What happens to the frame: `sent`, `pass` or `drop`.
    pub verdict: &'static str,
    /// One sentence for people.
    pub sentence: &'static str,
}

/// All reasons of a bond, by number; the first one is never counted.
pub const REASONS: &[Reason] = include!(concat!(env!("OUT_DIR"), "/intf.reasons.rs"));

/// Why frames did not go over the fast path of a fabric, or were dropped there, by number.
pub const PATH_REASONS: &[Reason] = include!(concat!(env!("OUT_DIR"), "/fast_path.reasons.rs"));

#[cfg(test)]
mod tests {
    use super::{PATH_REASONS, REASONS};
    use crate::intf::{LB_PATH_REASONS_END, LB_REASONS_END};

    #[test]
    fn numbers_are_dense_and_names_unique() {
        for (reasons, end) in [(REASONS, LB_REASONS_END), (PATH_REASONS, LB_PATH_REASONS_END)] {
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
