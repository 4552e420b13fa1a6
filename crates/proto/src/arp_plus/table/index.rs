//! Which MAC and which address leads to which host.

use super::Table;
use crate::arp_plus::{Peer, PeerKey, PeerState, outbox::Outbox};
use linkbraid_wire::MacAddr;
use std::{collections::BTreeSet, net::IpAddr};

impl Table {
    /// Enters a peer into the indexes.
    pub(super) fn link(&mut self, peer: Peer, out: &mut Outbox) {
        let key = peer.key;
        //= docs/arp-plus.md#7.7
        let spoken = peer.members.iter().filter(|member| member.spoke).map(|member| member.mac);
        for mac in spoken {
            self.give(mac, key, out);
        }
        peer.aliases.iter().for_each(|alias| _ = self.by_mac.entry(alias.mac).or_insert(key));
        self.take_addresses(key, &peer.addresses);
        self.peers.insert(key, peer);
        self.link_silent_primary(key);
    }

    /// The MAC leads to that host from now on.
    fn give(&mut self, mac: MacAddr, key: PeerKey, out: &mut Outbox) {
        // A MAC that was a former one of another host, or one that it only spoke of, belongs to who speaks from it at once.
        if let Some(other) = self.by_mac.insert(mac, key).filter(|other| *other != key)
            && let Some(other) = self.peers.get_mut(&other)
        {
            other.aliases.retain(|alias| alias.mac != mac);
            out.peer_changed(other.key);
        }
    }

    /// ARP+ has come from that MAC of the host.
    pub(super) fn speaks(&mut self, key: PeerKey, mac: MacAddr, out: &mut Outbox) {
        let member = self
            .peers
            .get_mut(&key)
            .and_then(|peer| peer.members.iter_mut().find(|member| member.mac == mac));
        if let Some(member) = member.filter(|member| !member.spoke) {
            member.spoke = true;
            self.give(mac, key, out);
            out.peer_changed(key);
        }
    }

    /// The MAC that neighbours know a host by leads to it, though nothing was heard from it, where no plain host has it:
    /// the host's member may be down, or on another segment. Says whether that is new.
    pub(super) fn link_silent_primary(&mut self, key: PeerKey) -> bool {
        //= docs/arp-plus.md#7.8
        let Some(mac) = self.peers.get(&key).and_then(Peer::silent_primary) else { return false };
        let free =
            self.taken.as_ref().is_some_and(|taken| !taken.contains(&mac)) && !self.by_mac.contains_key(&mac);
        if free {
            self.by_mac.insert(mac, key);
        }
        free
    }

    /// The MACs of plain hosts, as far as is known.
    pub fn set_taken(&mut self, taken: BTreeSet<MacAddr>, out: &mut Outbox) {
        if self.taken.as_ref() == Some(&taken) {
            return;
        }
        let silent = self.peers.values().filter_map(|peer| Some((peer.key, peer.silent_primary()?)));
        let silent: Vec<(PeerKey, MacAddr)> = silent.collect();
        for (key, mac) in &silent {
            if taken.contains(mac) && self.by_mac.get(mac) == Some(key) {
                self.by_mac.remove(mac);
                out.peer_changed(*key);
            }
        }
        self.taken = Some(taken);
        for (key, _) in silent {
            if self.link_silent_primary(key) {
                out.peer_changed(key);
            }
        }
    }

    /// Enters a host for its addresses where nobody else alive is.
    pub(super) fn take_addresses(&mut self, key: PeerKey, addresses: &[IpAddr]) {
        for address in addresses {
            if self.by_address(*address).is_none_or(|owner| owner.state == PeerState::Silent) {
                self.by_address.insert(*address, key);
            }
        }
    }

    /// Takes a peer out of table and indexes.
    pub(super) fn unlink(&mut self, key: PeerKey) -> Option<Peer> {
        let peer = self.peers.remove(&key)?;
        let macs =
            peer.members.iter().map(|member| member.mac).chain(peer.aliases.iter().map(|alias| alias.mac));
        for mac in macs {
            if self.by_mac.get(&mac) == Some(&key) {
                self.by_mac.remove(&mac);
            }
        }
        for address in &peer.addresses {
            if self.by_address.get(address) == Some(&key) {
                self.by_address.remove(address);
            }
        }
        Some(peer)
    }
}
