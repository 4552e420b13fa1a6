//! How often a host announces its mapping: bits of FEATURES.

/// Feature bit: the sender knows that other hosts may announce themselves less often than every second.
pub const FEATURE_INTERVALS: u32 = 8;

/// Most doublings of a second between two announcements of a member: 128 s, and switches remember a MAC for 300 s.
pub const INTERVAL_DOUBLINGS_MAX: u8 = 7;

/// Where the number of doublings stands, in four bits.
const SHIFT: u32 = 4;
const MASK: u32 = 0xf << SHIFT;

/// FEATURES of a host that announces each member every 2^`doublings` seconds.
pub fn with_interval(features: u32, doublings: u8) -> u32 {
    //= docs/arp-plus.md#5.13
    features & !MASK | u32::from(doublings.min(INTERVAL_DOUBLINGS_MAX)) << SHIFT
}

/// The FEATURES without it, and the number of doublings.
pub fn split_interval(features: u32) -> (u32, u8) {
    let doublings = if features & FEATURE_INTERVALS == 0 { 0 } else { (features & MASK) >> SHIFT };
    (features & !MASK, (doublings as u8).min(INTERVAL_DOUBLINGS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/arp-plus.md#5.13 type=test
    #[test]
    fn the_interval_stands_in_four_bits_and_counts_only_beside_its_own() {
        let features = 0x8000_0000 | FEATURE_INTERVALS;
        assert_eq!(with_interval(features, 3), 0x8000_0038);
        for doublings in 0..=INTERVAL_DOUBLINGS_MAX {
            assert_eq!(split_interval(with_interval(features, doublings)), (features, doublings));
        }
        assert_eq!(split_interval(0xff), (0xf, INTERVAL_DOUBLINGS_MAX), "more than there is");
        assert_eq!(split_interval(0xf7), (7, 0));
    }
}
