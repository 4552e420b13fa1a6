//! A flow of numbered datagrams, to tell what was lost and what came twice.

use crate::{Net, SOON};
use linkbraid_lab::flow::{Datagrams, Pace};
use linkbraid_lab::{Host, wait_until};
use std::time::Duration;

/// From one datagram to the next.
const PERIOD: Duration = Duration::from_micros(500);
/// In a row without a gap: more than any queue holds.
const IN_A_ROW: u64 = 400;

/// A flow under way; it ends with it.
pub struct Flow(Datagrams);

impl Flow {
    /// Starts a flow from one host to another.
    ///
    /// # Panics
    /// When a socket can't be had.
    #[track_caller]
    pub fn start(net: &Net, from: &str, to: &str) -> Self {
        let (from, to) = (net.host(from), net.host(to));
        Self::between([(from, from.ipv4()), (to, to.ipv4())])
    }

    /// Starts a flow from one host to another, each under an address that it has.
    ///
    /// # Panics
    /// When a socket can't be had.
    #[track_caller]
    pub fn between(ends: [(Host<'_>, &str); 2]) -> Self {
        Self(Datagrams::between(ends, Pace::new(1, PERIOD)).unwrap_or_else(|e| panic!("{e}")))
    }

    /// Datagrams that came so far.
    pub fn received(&self) -> u64 {
        self.0.received(1)
    }

    /// Waits until so many have come in all.
    ///
    /// # Panics
    /// When they do not.
    #[track_caller]
    pub fn wait_received(&self, count: u64) {
        wait_until(SOON, &format!("{count} datagrams"), || self.received(), |seen| *seen >= count)
            .unwrap_or_else(|e| panic!("{e}"));
    }

    /// From now on every datagram comes: waits until many in a row did, that were all sent after this call.
    ///
    /// # Panics
    /// When one is lost.
    #[track_caller]
    pub fn loses_nothing_more(&self) {
        let first = self.0.mark()[0];
        let last = first + IN_A_ROW;
        let missing = || self.0.missing(0, 1, first..last);
        wait_until(SOON, &format!("datagrams {first} to {last}"), missing, |missing| *missing == 0)
            .unwrap_or_else(|e| panic!("{e}"));
    }

    /// Ends the flow: how many were lost, and how many came more than once.
    ///
    /// # Panics
    /// When a thread did.
    #[track_caller]
    pub fn end(self) -> (u64, u64) {
        let record = self.0.stop().unwrap_or_else(|e| panic!("{e}"));
        let count = record.way(0, 1).count(|_| true);
        let lost = count.lost - count.refused;
        if lost > 0 {
            let gone: Vec<_> = record.way(0, 1).lost(false, |_| true).collect();
            eprintln!("lost {lost} of {}, sent at {gone:?}", count.sent);
        }
        (lost, count.duplicated)
    }
}
