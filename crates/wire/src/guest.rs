//! Guests: machines and containers behind a host, with MACs of their own, as it announces them to its peers.

use crate::{MacAddr, Refusal, message::is_host_address, tlv};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

#[cfg(test)]
mod tests;

/// Most guests in one message.
pub const GUESTS_MAX: usize = 64;

/// Most addresses of one guest in one VLAN.
pub const GUEST_ADDRESSES_MAX: usize = 8;

/// The highest number of a VLAN.
pub const VLAN_MAX: u16 = 4094;

/// Feature bit: the sender gives the frames of guests their MACs back.
pub const FEATURE_GUESTS: u32 = 2;

/// One guest of a host in one VLAN.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Guest {
    /// The VLAN that its frames carry the tag of; 0: none.
    pub vlan: u16,
    /// Its MAC.
    pub mac: MacAddr,
    /// Its addresses there, those of IPv4 first; 1 to [`GUEST_ADDRESSES_MAX`].
    pub addresses: Vec<IpAddr>,
}

impl Guest {
    /// The bytes that it takes in a message.
    pub fn tlv_len(&self) -> usize {
        let len = |address: &IpAddr| if address.is_ipv4() { 4 } else { 16 };
        2 + tlv::GUEST_HEAD_LEN + self.addresses.iter().map(len).sum::<usize>()
    }
}

/// The rules for the guests of one message.
pub(crate) fn check(guests: &[Guest]) -> Result<(), Refusal> {
    //= docs/arp-plus.md#3.12
    if guests.len() > GUESTS_MAX {
        return Err(Refusal::TooManyGuests);
    }
    for guest in guests {
        if guest.vlan > VLAN_MAX {
            return Err(Refusal::GuestVlan);
        }
        if !guest.mac.is_host() {
            return Err(Refusal::GuestMac);
        }
        let counts = (1..=GUEST_ADDRESSES_MAX).contains(&guest.addresses.len());
        if !counts || !guest.addresses.is_sorted_by_key(IpAddr::is_ipv6) {
            return Err(Refusal::GuestAddresses);
        }
        if guest.addresses.iter().any(|address| !is_host_address(*address)) {
            return Err(Refusal::AddressNotHost);
        }
    }
    let mut known: Vec<(u16, MacAddr)> = guests.iter().map(|guest| (guest.vlan, guest.mac)).collect();
    known.sort_unstable();
    let pair = |guest: &Guest| guest.addresses.iter().map(|ip| (guest.vlan, *ip)).collect::<Vec<_>>();
    let mut pairs: Vec<(u16, IpAddr)> = guests.iter().flat_map(pair).collect();
    pairs.sort_unstable();
    if known.windows(2).any(|two| two[0] == two[1]) || pairs.windows(2).any(|two| two[0] == two[1]) {
        return Err(Refusal::GuestTwice);
    }
    Ok(())
}
