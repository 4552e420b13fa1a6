//! What peers announce of their guests, and since when.

use super::GuestAddress;
use crate::{Time, arp_plus::PeerKey};
use linkbraid_wire::{Guest, MacAddr};
use std::collections::{BTreeMap, BTreeSet};

/// What a host announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    /// It was announced first then; [`Time::ZERO`] where that is not known.
    pub since: Time,
    /// It was heard first then.
    pub heard: Time,
}

/// By whom something is claimed.
pub(super) type By = BTreeMap<PeerKey, Claim>;

#[derive(Debug, Default)]
pub(super) struct Claims {
    macs: BTreeMap<MacAddr, By>,
    addresses: BTreeMap<GuestAddress, By>,
    /// Hosts that were there before: what they add is news.
    known: BTreeSet<PeerKey>,
    /// What each host announced last.
    told: BTreeMap<PeerKey, BTreeMap<GuestAddress, MacAddr>>,
}

impl Claims {
    /// Takes what a host announces now, none if it is gone; whether it has, or had, any guests: more than that may follow from
    /// what it is. Since when it has a guest with which it comes is not known, so that is [`Time::ZERO`] where somebody else
    /// has it; `is_here` says whether this host does.
    pub fn follow(
        &mut self,
        now: Time,
        key: PeerKey,
        guests: Option<&[Guest]>,
        is_here: impl Fn(MacAddr) -> bool,
    ) -> bool {
        //= docs/arp-plus.md#14.5
        let is_known = match guests {
            Some(_) => !self.known.insert(key),
            None => self.known.remove(&key),
        };
        let guests = guests.unwrap_or_default();
        let pairs = |guest: &Guest| {
            let (vlan, mac) = (guest.vlan, guest.mac);
            guest.addresses.iter().map(move |address| ((vlan, *address), mac)).collect::<Vec<_>>()
        };
        let new: BTreeMap<GuestAddress, MacAddr> = guests.iter().flat_map(pairs).collect();
        let old = match new.is_empty() {
            true => self.told.remove(&key),
            false => self.told.insert(key, new.clone()),
        };
        let old = old.unwrap_or_default();
        for (at, mac) in old.iter().filter(|(at, mac)| new.get(at) != Some(mac)) {
            drop_claim(&mut self.addresses, at, key);
            if !new.values().any(|other| other == mac) {
                drop_claim(&mut self.macs, mac, key);
            }
        }
        for (at, mac) in &new {
            let news = Claim { since: now, heard: now };
            self.addresses.entry(*at).or_default().entry(key).or_insert(news);
            let by = self.macs.entry(*mac).or_default();
            let is_another = !is_known && (is_here(*mac) || by.keys().any(|other| *other != key));
            by.entry(key).or_insert(if is_another { Claim { since: Time::ZERO, ..news } } else { news });
        }
        !old.is_empty() || !new.is_empty()
    }

    /// Forgets hosts that `keep` does not want.
    pub fn retain(&mut self, keep: impl Fn(&PeerKey) -> bool) {
        let gone: Vec<PeerKey> = self.known.iter().filter(|key| !keep(key)).copied().collect();
        gone.iter().for_each(|key| _ = self.follow(Time::ZERO, *key, None, |_| false));
    }

    pub fn has(&self, mac: MacAddr) -> bool {
        self.macs.contains_key(&mac)
    }

    pub fn macs(&self) -> impl Iterator<Item = (MacAddr, &By)> {
        self.macs.iter().map(|(mac, by)| (*mac, by))
    }

    pub fn addresses(&self) -> impl Iterator<Item = (GuestAddress, &By)> {
        self.addresses.iter().map(|(at, by)| (*at, by))
    }

    /// By whom a MAC is claimed.
    pub fn of_mac(&self, mac: MacAddr) -> Option<&By> {
        self.macs.get(&mac)
    }

    /// By whom an address is claimed.
    pub fn of_address(&self, at: GuestAddress) -> Option<&By> {
        self.addresses.get(&at)
    }

    /// The MAC that a host announces for an address.
    pub fn mac_of(&self, key: PeerKey, at: GuestAddress) -> Option<MacAddr> {
        self.told.get(&key)?.get(&at).copied()
    }
}

fn drop_claim<K: Ord>(claims: &mut BTreeMap<K, By>, of: &K, key: PeerKey) {
    if let Some(by) = claims.get_mut(of) {
        by.remove(&key);
        if by.is_empty() {
            claims.remove(of);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkbraid_wire::HostId;

    //= docs/arp-plus.md#14.5 type=test
    #[test]
    fn who_announces_one_address_less_does_not_announce_the_guest_anew() {
        const KEY: PeerKey = PeerKey::Host(HostId([1; 16]));
        let mac = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
        let address = |number| [198, 18, 1, number].into();
        let mut claims = Claims::default();
        let mut announces = |at, numbers: &[u8]| {
            let addresses = numbers.iter().map(|number| address(*number)).collect();
            let guest = Guest { vlan: 0, mac, addresses };
            claims.follow(Time::from_millis(at), KEY, Some(&[guest]), |_| false);
            let since = |by: Option<&By>| by.map(|by| by[&KEY].since.since(Time::ZERO).as_millis());
            let of_address = |number| since(claims.of_address((0, address(number))));
            (since(claims.of_mac(mac)), [1, 9].map(of_address))
        };
        assert_eq!(announces(1, &[1, 9]), (Some(1), [Some(1), Some(1)]));
        assert_eq!(announces(2, &[1]), (Some(1), [Some(1), None]));
        assert_eq!(announces(3, &[9]), (Some(1), [None, Some(3)]), "all of its addresses are others");
        assert_eq!(announces(4, &[]), (None, [None, None]));
    }
}
