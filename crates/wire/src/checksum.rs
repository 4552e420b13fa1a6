//! The checksum of IP, ICMP, TCP and UDP.

/// The Internet checksum (RFC 1071) over all parts in a row, in network byte order. Each part but the last has an even number of bytes.
/// Over what has a right checksum in it, it is 0.
#[must_use]
pub fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    let sum: u32 = parts.iter().flat_map(|part| part.chunks(2)).map(word).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn sums_are_those_of_the_rfc() {
        // The example of RFC 1071, section 3.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&[&bytes]), (!0xddf2_u16).to_be_bytes());
        assert_eq!(checksum(&[&bytes[..4], &bytes[4..]]), checksum(&[&bytes]));
        assert_eq!(checksum(&[&bytes, &checksum(&[&bytes])]), [0, 0]);
        assert_eq!(checksum(&[&[1, 2, 3]]), checksum(&[&[1, 2, 3, 0]]), "an odd byte is padded");
    }
}
