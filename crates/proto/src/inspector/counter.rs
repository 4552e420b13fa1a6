//! What the inspector counts.

use linkbraid_wire::Refusal;
use std::collections::BTreeMap;

macro_rules! counters {
    ($($variant:ident = $name:literal, $text:literal;)+) => {
        /// One counter; names are never changed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Counter {
            $(#[doc = $text] $variant,)+
        }

        impl Counter {
            /// Every counter in a fixed order.
            pub const ALL: &'static [Counter] = &[$(Counter::$variant),+];

            /// Its name: lower case with underscores.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name),+ }
            }

            /// One sentence for people.
            pub const fn description(self) -> &'static str {
                match self { $(Counter::$variant => $text),+ }
            }
        }
    };
}

counters! {
    TxProbe = "tx_probe", "PROBEs sent";
    TxReply = "tx_reply", "PROBE-REPLYs sent";
    TxRefused = "tx_refused", "own probes that could not be written because a MAC or address breaks a rule";
    TxArpProbe = "tx_arp_probe", "ARP probes sent to plain hosts";
    RxArpReply = "rx_arp_reply", "answers of plain hosts to ARP probes taken";
    RxProbe = "rx_probe", "PROBEs of peers taken";
    RxReply = "rx_reply", "PROBE-REPLYs of peers taken";
    RxProof = "rx_proof", "probes and replies that brought back a nonce: the lane carries frames both ways";
    RxNoProof = "rx_no_proof", "probes and replies that brought back no nonce that waited";
    RxOld = "rx_old", "probes and replies that came late or again: they are neither answered nor believed";
    RxOwn = "rx_own", "own probes that came back through a switch";
    RxUnknownMember = "rx_unknown_member", "probes refused because they came in on no member of the bond";
    RxMisdirected = "rx_misdirected", "probes refused because they are for another MAC than that of the member they came in on";
    RxUnknownPeer = "rx_unknown_peer", "probes refused because ARP+ knows no such peer, or it is not probed";
    RxUnknownMac = "rx_unknown_mac", "probes refused because the peer has no member with that MAC";
    RxStaleEpoch = "rx_stale_epoch", "probes refused because they are of an earlier epoch of the peer";
    RxCut = "rx_cut", "probes ignored because the member at one end is down";
    UnknownTlv = "unknown_tlv", "TLVs that say nothing in a probe and were skipped";
    LaneAdmitted = "lane_admitted", "lanes that began to carry traffic";
    LaneLost = "lane_lost", "lanes given up for lack of proof";
    LaneSuspect = "lane_suspect", "lanes without proof that are kept because nothing better is left";
    MemberDown = "member_down", "members that went down";
    OwnDelay = "own_delay", "detections put off because this host was late itself";
    LimitProbe = "limit_probe", "PROBEs put off because the rate limit was reached";
    LimitReply = "limit_reply", "PROBE-REPLYs not sent because the rate limit was reached";
    LimitLanes = "limit_lanes", "peers not probed because the limit of probed lanes was reached";
    LimitPlain = "limit_plain", "plain hosts beyond the limit of those probed at a time, left out";
    LimitMembers = "limit_members", "own members beyond the limit, left out";
    LimitActions = "limit_actions", "events and frames dropped because too many actions waited";
}

/// All counters with their values, and one for each reason why a frame was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    values: Vec<u64>,
    refused: BTreeMap<Refusal, u64>,
}

impl Default for Counters {
    fn default() -> Self {
        Counters { values: vec![0; Counter::ALL.len()], refused: BTreeMap::new() }
    }
}

impl Counters {
    /// How often.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    /// How often a frame was refused for that reason.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused.get(&refusal).copied().unwrap_or(0)
    }

    /// Every counter with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::ALL.iter().map(|counter| (*counter, self.get(*counter)))
    }

    pub(super) fn add(&mut self, counter: Counter, count: u64) {
        let value = &mut self.values[counter as usize];
        *value = value.saturating_add(count);
    }

    pub(super) fn one(&mut self, counter: Counter) {
        self.add(counter, 1);
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        let value = self.refused.entry(refusal).or_default();
        *value = value.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_differ_and_every_counter_has_its_place() {
        let names: BTreeSet<&str> = Counter::ALL.iter().map(|counter| counter.name()).collect();
        assert_eq!(names.len(), Counter::ALL.len());
        let mut counters = Counters::default();
        for (place, counter) in Counter::ALL.iter().enumerate() {
            counters.add(*counter, place as u64 + 1);
        }
        assert!(counters.iter().zip(1..).all(|((_, value), place)| value == place));
        counters.refuse(Refusal::Truncated);
        assert_eq!((counters.refused(Refusal::Truncated), counters.refused(Refusal::TlvTwice)), (1, 0));
    }
}
