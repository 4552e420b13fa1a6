//! What authentication counts.

use crate::counter::counters;

counters! {
    Counters;
    Accepted = 0, "accepted", "ARP+ frames with a code by one of our keys, and a counter that was not seen before";
    Missing = 1, "missing", "ARP+ frames without an authentication code; refused unless auth is permit";
    Malformed = 2, "malformed", "ARP+ frames whose AUTH TLV cannot be read; refused unless auth is permit";
    OtherKey = 3, "other_key", "ARP+ frames with a key id that is none of ours; refused unless auth is permit";
    BadCode = 4, "bad_code", "ARP+ frames with a wrong authentication code; refused unless auth is permit";
    Replayed = 5, "replayed", "ARP+ frames with a right code that came before, or too late; refused unless auth is permit";
    Unproven = 6, "unproven", "ARP+ frames of a sender that has to prove first that they are new; refused unless auth is permit";
    Challenged = 7, "challenged", "questions sent to such senders";
    Answered = 8, "answered", "answers sent to such questions";
    Proven = 9, "proven", "members of other hosts that have answered such a question";
    LimitChallenges = 10, "limit_challenges", "questions not sent because too many were";
    LimitAnswers = 11, "limit_answers", "answers not sent because too many were";
    LimitSenders = 12, "limit_senders", "members of other hosts that were forgotten because there are too many";
    TxUnsigned = 13, "tx_unsigned", "own ARP+ frames not sent because there is no key to sign them with";
    TxRefused = 14, "tx_refused", "own ARP+ frames not sent because a code does not fit";
}
