//! The numbered reasons of `bpf/intf.h`, as a table.

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

/// All reasons, by number; the first one is never counted.
pub static REASONS: &[Reason] = include!(concat!(env!("OUT_DIR"), "/reasons.rs"));

#[cfg(test)]
mod tests {
    use super::REASONS;

    #[test]
    fn numbers_are_dense_and_names_unique() {
        for (i, reason) in REASONS.iter().enumerate() {
            assert_eq!(reason.number as usize, i, "{}", reason.name);
            assert!(["sent", "pass", "drop"].contains(&reason.verdict), "{}", reason.name);
            assert!(!reason.sentence.is_empty());
            assert_eq!(REASONS.iter().filter(|other| other.name == reason.name).count(), 1);
        }
    }
}
