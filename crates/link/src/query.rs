//! Questions which multicast groups are wanted, as routers ask them: whoever hears one reports its groups again.

use linkbraid_wire::{MacAddr, checksum};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Where they come from in IPv6. Of several that ask, routers leave it to the one with the lowest address: that is never this one.
const FROM: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0xffff, 0xffff, 0xffff, 0xfffe);
const ALL_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
const ALL_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Robustness and interval in seconds that routers have unless somebody sets them (RFC 3376, section 8).
const ROBUSTNESS: u8 = 2;
const INTERVAL: u8 = 125;
/// Answers come within this time, in milliseconds.
const ANSWER_MS: u16 = 100;

/// A general query of IGMPv3 (RFC 3376), from nobody, and one of MLDv2 (RFC 3810).
#[must_use]
pub fn group_queries(mac: MacAddr) -> [Vec<u8>; 2] {
    [igmp(mac), mld(mac)]
}

fn igmp(mac: MacAddr) -> Vec<u8> {
    // In tenths of a second.
    let mut query = [0x11, (ANSWER_MS / 100) as u8, 0, 0, 0, 0, 0, 0, ROBUSTNESS, INTERVAL, 0, 0];
    let sum = checksum(&[&query]);
    query[2..4].copy_from_slice(&sum);
    // With the router alert option; one hop.
    let mut ip = [0x46, 0xc0, 0, 36, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x94, 4, 0, 0];
    ip[16..20].copy_from_slice(&ALL_V4.octets());
    let sum = checksum(&[&ip]);
    ip[10..12].copy_from_slice(&sum);
    [&[1, 0, 0x5e, 0, 0, 1][..], &mac.0, &[8, 0], &ip, &query].concat()
}

fn mld(mac: MacAddr) -> Vec<u8> {
    let mut query = [0; 28];
    query[0] = 130;
    query[4..6].copy_from_slice(&ANSWER_MS.to_be_bytes());
    (query[24], query[25]) = (ROBUSTNESS, INTERVAL);
    let (from, to) = (FROM.octets(), ALL_V6.octets());
    let sum = checksum(&[&from, &to, &[0, 0, 0, query.len() as u8, 0, 0, 0, 58], &query]);
    query[2..4].copy_from_slice(&sum);
    // Hop-by-hop options with the router alert; one hop.
    let ip = [0x60, 0, 0, 0, 0, 8 + query.len() as u8, 0, 1];
    let alert = [58, 0, 5, 2, 0, 0, 1, 0];
    [&[0x33, 0x33, 0, 0, 0, 1][..], &mac.0, &[0x86, 0xdd], &ip, &from, &to, &alert, &query].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts drop what has a bad sum: over all of it, the sum included, it is 0.
    #[test]
    fn queries_are_those_of_the_rfcs() {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let [igmp, mld] = group_queries(mac);
        assert_eq!(igmp.len(), 14 + 24 + 12);
        assert_eq!(igmp[..16], [1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 1, 8, 0, 0x46, 0xc0]);
        assert_eq!(checksum(&[&igmp[14..38]]), [0, 0]);
        assert_eq!(checksum(&[&igmp[38..]]), [0, 0]);
        assert_eq!((igmp[22], igmp[38], igmp[39]), (1, 0x11, 1), "one hop; a query; a tenth of a second");
        assert_eq!(mld.len(), 14 + 40 + 8 + 28);
        assert_eq!(mld[..14], [0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x86, 0xdd]);
        let (from, to) = (&mld[22..38], &mld[38..54]);
        assert_eq!(checksum(&[from, to, &[0, 0, 0, 28, 0, 0, 0, 58], &mld[62..]]), [0, 0]);
        assert_eq!((mld[20], mld[21], mld[62]), (0, 1, 130), "options first; one hop; a query");
        assert_eq!(mld[66..68], [0, 100]);
        assert_eq!(mld[18..20], [0, 36]);
    }
}
