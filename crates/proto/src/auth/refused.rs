//! Hosts that speak ARP+ without a key of ours: what `show` says of them. Nothing of it is proven.

use super::Counter;
use crate::{Time, limits};
use linkbraid_wire::{HostId, MacAddr, parse_frame};
use std::{collections::BTreeMap, net::IpAddr};

/// Why a host is no peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Its messages have no authentication code.
    NoKey,
    /// They have one that none of our keys made.
    AnotherKey,
}

/// Such a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unkeyed {
    /// The MAC that it spoke from first.
    pub mac: MacAddr,
    /// The address that it says it has.
    pub address: Option<IpAddr>,
    /// Why it is no peer.
    pub why: Why,
}

/// What tells such hosts apart: a host has several MACs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Host(HostId),
    Mac(MacAddr),
}

#[derive(Debug, Default)]
pub(super) struct RefusedHosts(BTreeMap<Name, (Time, Unkeyed)>);

impl RefusedHosts {
    /// A frame was refused for that reason; the host, if it is one that was not there before.
    pub fn note(&mut self, now: Time, mac: MacAddr, counter: Counter, bytes: &[u8]) -> Option<&Unkeyed> {
        let why = match counter {
            Counter::Missing => Why::NoKey,
            Counter::OtherKey | Counter::BadCode => Why::AnotherKey,
            _ => return None,
        };
        // Probes do not say which address the host has.
        let message = parse_frame(bytes).ok()?.parsed.message;
        let name = message.extension.as_ref().map_or(Name::Mac(mac), |extension| Name::Host(extension.host));
        self.0.retain(|_, (heard, _)| is_recent(now, *heard));
        if let Some((heard, host)) = self.0.get_mut(&name) {
            (*heard, host.why) = (now, why);
            return None;
        }
        if self.0.len() >= limits::AUTH_REFUSED_MAX {
            return None;
        }
        let host = Unkeyed { mac, address: message.address, why };
        Some(&self.0.entry(name).or_insert((now, host)).1)
    }

    /// That host has proven with a key of ours that it speaks from that MAC: it was refused before it had the key.
    pub fn has_key(&mut self, host: HostId, mac: MacAddr) {
        self.0.remove(&Name::Host(host));
        self.0.remove(&Name::Mac(mac));
    }

    /// Those that were heard lately.
    pub fn list(&self, now: Time) -> impl Iterator<Item = &Unkeyed> {
        self.0.values().filter(move |(heard, _)| is_recent(now, *heard)).map(|(_, host)| host)
    }

    pub fn forget(&mut self) {
        self.0.clear();
    }
}

fn is_recent(now: Time, heard: Time) -> bool {
    now.since(heard) < limits::AUTH_REFUSED_LIVES
}
