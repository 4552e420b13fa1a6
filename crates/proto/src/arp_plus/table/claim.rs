//! Whose MAC and whose address: a message may not take what another live host has.

use super::{Arrival, Table};
use crate::arp_plus::{Conflict, Peer, PeerKey, PeerState, Reason, Timing, outbox::Outbox};
use linkbraid_wire::MacAddr;

/// What has to give way if all claims of a message hold.
#[derive(Default)]
struct GiveWay {
    /// Entries of the same machine under another key.
    replaced: Vec<PeerKey>,
    /// MACs of silent hosts.
    lost: Vec<(PeerKey, MacAddr)>,
}

/// How a claim on the MAC of another entry ends.
enum Verdict {
    Replace,
    Take,
    Conflict,
}

impl Table {
    /// Checks all claims, then makes room for them. False, and nothing changed, if one does not hold.
    pub(super) fn claim(
        &mut self,
        key: PeerKey,
        arrival: &Arrival<'_>,
        timing: &Timing,
        out: &mut Outbox,
    ) -> bool {
        let mut give = GiveWay::default();
        for mac in &arrival.message.hardware {
            let Some(owner) = self.by_mac(*mac).filter(|owner| owner.key != key && owner.spoke_from(*mac))
            else {
                continue;
            };
            match verdict(owner, arrival.src) {
                Verdict::Replace => give.replaced.push(owner.key),
                // Only from the MAC itself: to be named by others costs nobody anything.
                Verdict::Take if *mac == arrival.src => give.lost.push((owner.key, *mac)),
                Verdict::Take => {}
                Verdict::Conflict => {
                    //= docs/arp-plus.md#8.3
                    let conflict = Conflict::PeerMac { mac: *mac, owner: owner.key, by: arrival.src };
                    if owner.doublings > 0 {
                        //= docs/arp-plus.md#5.15
                        // Whether it is there still is not waited for until it speaks by itself.
                        out.challenge(owner.key);
                    }
                    out.conflict(arrival.now, timing, conflict);
                    return false;
                }
            }
        }
        if !self.claim_addresses(key, arrival, timing, &give, out) {
            return false;
        }
        give.replaced.dedup();
        give.replaced.into_iter().for_each(|key| self.remove(key, Reason::Replaced, out));
        give.lost.into_iter().for_each(|(key, mac)| self.lose(key, mac, out));
        true
    }

    /// Two hosts with one address are reported. The table goes by host id, so the claim of a host that has one does
    /// no harm; a host that is only an address may not be another's.
    fn claim_addresses(
        &self,
        key: PeerKey,
        arrival: &Arrival<'_>,
        timing: &Timing,
        give: &GiveWay,
        out: &mut Outbox,
    ) -> bool {
        let mut holds = true;
        for address in arrival.message.all_addresses() {
            let Some(owner) = self.by_address(address).filter(|owner| owner.key != key) else { continue };
            if owner.state == PeerState::Silent || give.replaced.contains(&owner.key) {
                continue;
            }
            //= docs/arp-plus.md#8.6
            let conflict = Conflict::PeerAddress { address, owner: owner.key, by: arrival.src };
            out.conflict(arrival.now, timing, conflict);
            holds &= arrival.message.extension.is_some();
        }
        holds
    }

    /// A silent host loses a MAC, and with its last one the entry.
    fn lose(&mut self, key: PeerKey, mac: MacAddr, out: &mut Outbox) {
        let Some(peer) = self.peers.get_mut(&key) else { return };
        if !peer.members.iter().any(|member| member.spoke && member.mac != mac) {
            return self.remove(key, Reason::LostMacs, out);
        }
        peer.members.retain(|member| member.mac != mac);
        // What is left is no longer what the host advertised last: its next message is to count as a later one.
        peer.sequence = peer.sequence.map(|sequence| sequence.wrapping_sub(1));
        self.by_mac.remove(&mac);
        out.peer_changed(key);
    }
}

fn verdict(owner: &Peer, src: MacAddr) -> Verdict {
    //= docs/arp-plus.md#7.5
    if !owner.is_extended() && owner.member(src).is_some() {
        Verdict::Replace
    } else if owner.state == PeerState::Silent {
        Verdict::Take
    } else {
        Verdict::Conflict
    }
}
