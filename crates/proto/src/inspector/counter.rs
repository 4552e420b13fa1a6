//! What the inspector counts.

use crate::counter::counters;
use linkbraid_wire::Refusal;
use std::collections::BTreeMap;

counters! {
    Values;
    TxProbe = 0, "tx_probe", "PROBEs sent";
    TxReply = 1, "tx_reply", "PROBE-REPLYs sent";
    TxRefused = 2, "tx_refused", "own probes that could not be written because a MAC or address breaks a rule";
    TxArpProbe = 3, "tx_arp_probe", "ARP probes sent to plain hosts";
    RxArpReply = 4, "rx_arp_reply", "answers of plain hosts to ARP probes taken";
    RxProbe = 5, "rx_probe", "PROBEs of peers taken";
    RxReply = 6, "rx_reply", "PROBE-REPLYs of peers taken";
    RxProof = 7, "rx_proof", "probes and replies that brought back a nonce: the lane carries frames both ways";
    RxNoProof = 8, "rx_no_proof", "probes and replies that brought back no nonce that waited";
    RxOld = 9, "rx_old", "probes and replies that came late or again: they are neither answered nor believed";
    RxOwn = 10, "rx_own", "own probes that came back through a switch";
    RxUnknownMember = 11, "rx_unknown_member", "probes refused because they came in on no member of the bond";
    RxMisdirected = 12, "rx_misdirected", "probes refused because they are for another MAC than that of the member they came in on";
    RxUnknownPeer = 13, "rx_unknown_peer", "probes refused because ARP+ knows no such peer, or it is not probed";
    RxUnknownMac = 14, "rx_unknown_mac", "probes refused because the peer has no member with that MAC";
    RxStaleEpoch = 15, "rx_stale_epoch", "probes refused because they are of an earlier epoch of the peer";
    RxCut = 16, "rx_cut", "probes ignored because the member at one end is down";
    UnknownTlv = 17, "unknown_tlv", "TLVs that say nothing in a probe and were skipped";
    LaneAdmitted = 18, "lane_admitted", "lanes that began to carry traffic";
    LaneLost = 19, "lane_lost", "lanes given up because no proof came";
    LaneSuspect = 20, "lane_suspect", "lanes without proof that are kept because nothing better is left";
    MemberDown = 21, "member_down", "members that went down";
    OwnDelay = 22, "own_delay", "detections put off because this host was late itself";
    LimitProbe = 23, "limit_probe", "PROBEs put off because the rate limit was reached";
    LimitReply = 24, "limit_reply", "PROBE-REPLYs not sent because the rate limit was reached";
    LimitLanes = 25, "limit_lanes", "peers not probed because the limit of probed lanes was reached";
    LimitPlain = 26, "limit_plain", "plain hosts beyond the limit of those probed at a time, left out";
    LimitMembers = 27, "limit_members", "own members beyond the limit, left out";
    LimitActions = 28, "limit_actions", "events and frames dropped because too many actions waited";
    LimitPlainRate = 29, "limit_plain_rate", "probes of plain hosts put off because a port had sent or answered enough of them";
    TxSolicitation = 30, "tx_solicitation", "neighbour solicitations sent to plain hosts as probes";
    RxAdvertisement = 31, "rx_advertisement", "answers of plain hosts to such neighbour solicitations taken";
    RxEarlyEpoch = 32, "rx_early_epoch", "probes answered but not believed because ARP+ knows the peer in another epoch";
    TxLong = 33, "tx_long", "PROBEs sent that were as long as the MTU allows";
    RxLong = 34, "rx_long", "answers to such PROBEs: the lane carries frames of full length";
    RxUnprobed = 35, "rx_unprobed", "probes of peers that are not probed because nothing is sent to them: PROBEs are answered";
    PlainLaneLost = 36, "plain_lane_lost", "of the lanes given up, those to plain hosts";
}

/// All counters with their values, and one for each reason why a frame was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    values: Values,
    refused: BTreeMap<Refusal, u64>,
}

impl Counters {
    /// How often.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values.get(counter)
    }

    /// How often a frame was refused for that reason.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused.get(&refusal).copied().unwrap_or(0)
    }

    /// Every counter with its value, in the order of numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        self.values.iter()
    }

    pub(super) fn add(&mut self, counter: Counter, count: u64) {
        self.values.add(counter, count);
    }

    pub(super) fn one(&mut self, counter: Counter) {
        self.values.one(counter);
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        let value = self.refused.entry(refusal).or_default();
        *value = value.saturating_add(1);
    }
}
