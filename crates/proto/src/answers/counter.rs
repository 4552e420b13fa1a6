//! What is counted of answers.

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
    TxArpReply = "tx_arp_reply", "ARP replies sent to correct plain hosts";
    TxAdvertisement = "tx_advertisement", "neighbour advertisements sent to correct plain hosts";
    TxRefused = "tx_refused", "corrections that could not be written because a MAC or address breaks a rule";
    HostAssigned = "host_assigned", "plain hosts that were given a member";
    HostMoved = "host_moved", "plain hosts that were given another member";
    LimitRate = "limit_rate", "times that corrections were put off because the rate limit was reached";
    LimitHosts = "limit_hosts", "plain hosts beyond the limit, left with the bond's MAC";
    LimitActions = "limit_actions", "corrections dropped because too many actions waited";
    LimitMembers = "limit_members", "own members beyond the limit, left out";
    LimitAddresses = "limit_addresses", "own addresses beyond the limit, left out";
}

/// All counters with their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters(Vec<u64>);

impl Default for Counters {
    fn default() -> Self {
        Counters(vec![0; Counter::ALL.len()])
    }
}

impl Counters {
    /// How often.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Every counter with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::ALL.iter().map(|counter| (*counter, self.get(*counter)))
    }

    pub(super) fn add(&mut self, counter: Counter, count: u64) {
        let value = &mut self.0[counter as usize];
        *value = value.saturating_add(count);
    }

    pub(super) fn one(&mut self, counter: Counter) {
        self.add(counter, 1);
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
    }
}
