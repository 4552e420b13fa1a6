//! What a queue counts for each peer: a number, a name, a sentence, and how often.

use crate::ring::Shareable;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($variant:ident = $number:literal, $name:literal, $text:literal;)+) => {
        /// One counter. Numbers are never reused, names never changed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum Counter {
            $(#[doc = $text] $variant = $number,)+
        }

        impl Counter {
            /// Every counter in the order of numbers.
            pub const ALL: &'static [Counter] = &[$(Counter::$variant),+];

            /// Its name: lower case with underscores.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name),+ }
            }

            /// One sentence for people.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Counter::$variant => $text),+ }
            }

            /// The number of the counter in records.
            #[must_use]
            pub const fn number(self) -> u32 {
                self as u32
            }
        }
    };
}

counters! {
    TxFrames = 0, "tx_frames", "frames sent to the peer";
    TxBytes = 1, "tx_bytes", "bytes of those frames";
    TxCopies = 2, "tx_copies", "of these, frames sent to every peer: broadcast, multicast, and unknown addresses";
    TxHeld = 3, "tx_held", "frames that waited because the queue to the peer was full";
    TxDropDown = 4, "tx_drop_down", "frames not sent because the peer is not connected";
    TxDropFull = 5, "tx_drop_full", "frames not sent because the peer reads too little";
    TxDropLength = 6, "tx_drop_length", "frames not sent because the transport cannot carry them";
    TxDropUnreachable = 7, "tx_drop_unreachable", "frames not sent because the transport lost the peer";
    TxDropStorm = 8, "tx_drop_storm", "frames to every peer not sent because there were too many in a second";
    TxDropShort = 9, "tx_drop_short", "what the interface sent that was not an Ethernet frame";
    TxDropAlone = 10, "tx_drop_alone", "frames to every peer not sent because no peer is connected";
    RxFrames = 11, "rx_frames", "frames received from the peer";
    RxBytes = 12, "rx_bytes", "bytes of those frames";
    RxDropHeader = 13, "rx_drop_header", "messages refused because their header is not that of a fabric";
    RxDropNode = 14, "rx_drop_node", "messages refused because they name another sender, receiver or stream";
    RxDropEpoch = 15, "rx_drop_epoch", "messages refused because they are of another epoch, or the peer is not connected";
    RxDropTwice = 16, "rx_drop_twice", "messages refused because they are duplicates, or very late";
    RxDropVirtio = 17, "rx_drop_virtio", "frames refused because the virtio header does not fit the frame";
    RxDropSource = 18, "rx_drop_source", "frames refused because their source is a group address, zero, this node or a third node";
    RxDropStorm = 19, "rx_drop_storm", "frames to every node refused because the peer sent too many in a second";
    RxDropDown = 20, "rx_drop_down", "frames dropped because the interface is set down";
    RxDropKernel = 21, "rx_drop_kernel", "frames that the kernel did not accept";
    ControlIn = 22, "control_in", "control messages received";
    ControlOut = 23, "control_out", "control messages sent";
    ControlDropFull = 24, "control_drop_full", "control messages dropped because the session was too slow";
    ControlReplaced = 25, "control_replaced", "control messages that a newer one replaced while the queue to the peer was full";
    ControlDropSend = 26, "control_drop_send", "control messages that the transport refused";
    MacLearned = 27, "mac_learned", "addresses learned";
    MacMoved = 28, "mac_moved", "addresses that moved to the peer from another one";
    MacFull = 29, "mac_full", "addresses not learned because the table was full";
    Resets = 30, "resets", "times all that was queued to or from the peer was discarded";
    Sleeps = 31, "sleeps", "times the thread slept";
    Wakes = 32, "wakes", "times the thread was woken";
    ControlDropStorm = 33, "control_drop_storm", "control messages dropped because the peer sent too many in a second";
    RxDropPlain = 34, "rx_drop_plain", "frames refused because they were not encrypted";
}

/// The counters of one queue for one peer. One thread writes them, anybody reads them.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Counters([AtomicU64; Counter::ALL.len()]);

// SAFETY: atomics and padding.
unsafe impl Shareable for Counters {}

impl Counters {
    /// The value of a counter.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize].load(Relaxed)
    }

    /// One writer, so no read-modify-write that would lock the bus.
    pub(super) fn add(&self, counter: Counter, count: u64) {
        let value = &self.0[counter as usize];
        value.store(value.load(Relaxed).wrapping_add(count), Relaxed);
    }

    pub(super) fn one(&self, counter: Counter) {
        self.add(counter, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_run_from_zero_and_names_differ() {
        assert!(Counter::ALL.iter().zip(0..).all(|(counter, number)| counter.number() == number));
        let names: BTreeSet<&str> = Counter::ALL.iter().map(|counter| counter.name()).collect();
        assert_eq!(names.len(), Counter::ALL.len());
    }
}
