//! What a session counts.

use crate::counter::counters;
use linkbraid_wire::fabric::{ControlKind, FabricRefusal};

counters! {
    Counters;
    TxHello = 0, "tx_hello", "HELLOs sent";
    TxAccept = 1, "tx_accept", "ACCEPTs sent";
    TxAlive = 2, "tx_alive", "ALIVEs sent";
    TxBye = 3, "tx_bye", "BYEs sent";
    TxRefuse = 4, "tx_refuse", "REFUSEs sent";
    RxHello = 5, "rx_hello", "good HELLOs received";
    RxAccept = 6, "rx_accept", "good ACCEPTs received";
    RxAlive = 7, "rx_alive", "good ALIVEs received";
    RxBye = 8, "rx_bye", "good BYEs received";
    RxRefuse = 9, "rx_refuse", "good REFUSEs received";
    RxStopped = 10, "rx_stopped", "messages ignored because the session was not running";
    UnknownNode = 11, "unknown_node", "inputs ignored that are of no peer of this node";
    OtherReceiver = 12, "other_receiver", "messages ignored that are for another node";
    OtherSender = 13, "other_sender", "messages ignored that are of another node than their queue";
    OwnNumber = 14, "own_number", "messages ignored that claim to be of this node";
    EarlierStart = 15, "earlier_start", "messages ignored that are for an earlier start of this node";
    OtherEpoch = 16, "other_epoch", "messages of another start of a peer than the one that is up";
    Unproven = 17, "unproven", "answers that prove nothing: they echo no cookie that still counts";
    RefusedPeer = 18, "refused_peer", "messages of peers that were given another number of nodes, or have another MTU or other queues";
    Ups = 19, "ups", "links that came up";
    Silent = 20, "silent", "links that went down because nothing was heard";
    Deaf = 21, "deaf", "links that went down because the peer did not hear this node";
    Left = 22, "left", "links that went down because the peer stopped";
    Restarts = 23, "restarts", "links that went down because the peer had started again";
    Gone = 24, "gone", "links that went down because the transport lost the peer";
    Disagreed = 25, "disagreed", "links that went down because one end changed its MTU";
    Doubts = 26, "doubts", "times another start of a peer proved to live while one was up";
    Duplicates = 27, "duplicates", "times two live nodes with one number were found";
    TxFailed = 28, "tx_failed", "own messages that could not be written because a setting breaks a rule";
    LimitActions = 29, "limit_actions", "actions dropped because nobody polled them";
    RefusedTruncated = 30, "refused_truncated", "messages refused: they end inside a fixed field";
    RefusedVersion = 31, "refused_version", "messages refused: the version is not 1";
    RefusedKind = 32, "refused_kind", "messages refused: neither DATA nor CONTROL";
    RefusedNode = 33, "refused_node", "messages refused: a node number is above 511";
    RefusedStream = 34, "refused_stream", "messages refused: the number of the stream is above 63";
    RefusedEpoch = 35, "refused_epoch", "messages refused: an epoch is 0 where it must not be";
    RefusedLength = 36, "refused_length", "messages refused: the length is not one that their kind can have";
    RefusedLengthMismatch = 37, "refused_length_mismatch", "messages refused: the length is not that of the bytes that came";
    RefusedOtherKind = 38, "refused_other_kind", "messages refused: data where control is looked for";
    RefusedControlType = 39, "refused_control_type", "messages refused: the type is unknown";
    RefusedReason = 40, "refused_reason", "messages refused: the reason is unknown, missing, or stands where none belongs";
    RefusedNodes = 41, "refused_nodes", "messages refused: the number of nodes is not 2 to 512";
    RefusedMtu = 42, "refused_mtu", "messages refused: the MTU is not 68 to 65521";
    RefusedTiming = 43, "refused_timing", "messages refused: the interval or the multiplier is 0";
    RefusedCookie = 44, "refused_cookie", "messages refused: the cookie or the echo is 0 where it must not be";
    Stale = 45, "stale", "messages ignored that were sent before what is known of the peer";
    Late = 46, "late", "times this node did not run for an interval or longer, and gave its peers more time";
    RefusedQueues = 47, "refused_queues", "messages refused: the number of queues is not 1 to 64";
    RefusedFastPath = 48, "refused_short_cut", "messages refused: the port or a part of the tag of the fast path is 0";
    AuthMissing = 49, "auth_missing", "messages without an authentication code";
    AuthOtherKey = 50, "auth_other_key", "messages with a code by a key that this node does not have";
    AuthBadCode = 51, "auth_bad_code", "messages whose code is not that of their key";
    TxUnsigned = 52, "tx_unsigned", "own messages not sent because there is no key to sign them";
}

impl Counter {
    /// The counter of messages of that kind sent.
    pub const fn sent(kind: ControlKind) -> Counter {
        match kind {
            ControlKind::Hello => Counter::TxHello,
            ControlKind::Accept => Counter::TxAccept,
            ControlKind::Alive => Counter::TxAlive,
            ControlKind::Bye => Counter::TxBye,
            ControlKind::Refuse => Counter::TxRefuse,
        }
    }

    /// The counter of good messages of that kind received.
    pub const fn received(kind: ControlKind) -> Counter {
        match kind {
            ControlKind::Hello => Counter::RxHello,
            ControlKind::Accept => Counter::RxAccept,
            ControlKind::Alive => Counter::RxAlive,
            ControlKind::Bye => Counter::RxBye,
            ControlKind::Refuse => Counter::RxRefuse,
        }
    }
}

impl From<FabricRefusal> for Counter {
    fn from(refusal: FabricRefusal) -> Counter {
        match refusal {
            FabricRefusal::Truncated => Counter::RefusedTruncated,
            FabricRefusal::Version => Counter::RefusedVersion,
            FabricRefusal::Kind => Counter::RefusedKind,
            FabricRefusal::Node => Counter::RefusedNode,
            FabricRefusal::Stream => Counter::RefusedStream,
            FabricRefusal::Epoch => Counter::RefusedEpoch,
            FabricRefusal::Length => Counter::RefusedLength,
            FabricRefusal::LengthMismatch => Counter::RefusedLengthMismatch,
            FabricRefusal::OtherKind => Counter::RefusedOtherKind,
            FabricRefusal::ControlType => Counter::RefusedControlType,
            FabricRefusal::Reason => Counter::RefusedReason,
            FabricRefusal::Nodes => Counter::RefusedNodes,
            FabricRefusal::Mtu => Counter::RefusedMtu,
            FabricRefusal::Queues => Counter::RefusedQueues,
            FabricRefusal::Timing => Counter::RefusedTiming,
            FabricRefusal::Cookie => Counter::RefusedCookie,
            FabricRefusal::FastPath => Counter::RefusedFastPath,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/fabric.md#2.8 type=test
    #[test]
    fn every_refusal_is_a_counter_of_its_own() {
        for refusal in FabricRefusal::ALL {
            assert_eq!(Counter::from(*refusal).name(), format!("refused_{}", refusal.name()));
        }
    }
}
