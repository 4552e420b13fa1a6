//! The rows of guests: who is here, and the addresses by which their frames go over all lanes.

use super::{nanoseconds, within};
use crate::{
    Tables,
    error::Result,
    hook,
    intf::{
        PLAIN_PLAN_FIRST, lb_config, lb_guest, lb_guest_key, lb_guest_pair, lb_guest_seen, lb_lane,
        lb_mac_key, lb_plan, plain_plan,
    },
};
use bytemuck::Zeroable as _;
use nix::time::{ClockId, clock_gettime};
use std::{net::IpAddr, time::Duration};

/// The greatest number of a VLAN.
const VLAN_MAX: u64 = 4095;

/// An address of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestAddress {
    /// The VLAN it is used in; 0: none.
    pub vlan: u16,
    /// The address itself.
    pub ip: IpAddr,
}

/// Whose an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestPair {
    /// The guest's MAC.
    pub mac: [u8; 6],
    /// The plan of the peer that the guest is behind; 0: it is here, and peers know of it.
    pub plan: u32,
}

/// An address that a guest here gave as its own, in ARP or neighbour discovery. Nobody has checked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestSeen {
    /// The address.
    pub address: GuestAddress,
    /// The MAC of the guest, which is also the one that the frame came from.
    pub mac: [u8; 6],
    /// How long ago, to about 100 ms.
    pub age: Duration,
}

/// Which member speaks for which guest, by the plans and failures of one moment.
#[derive(Debug)]
pub struct Speakers {
    /// The plan of each segment.
    plans: Vec<lb_plan>,
    /// Slots, a bit each.
    failed: u32,
}

impl Speakers {
    /// The slots by which a guest's own MAC leaves, and by which plain hosts reach it: one of each segment.
    #[must_use]
    pub fn of(&self, guest: [u8; 6]) -> Vec<u8> {
        self.plans.iter().filter_map(|plan| speaker(plan, self.failed, guest)).collect()
    }
}

impl Tables {
    /// Which member speaks for which guest now.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn speakers(&self) -> Result<Speakers> {
        let bond: lb_config = self.read("lb_bond", &0u32)?;
        let plan = |number: u32| self.read::<_, lb_plan>("lb_plans", &number);
        let of_segment = |elected: &u8| match plan(plain_plan(*elected))? {
            segment if segment.n_lanes > 0 => Ok(segment),
            _ => plan(0),
        };
        let plans = match &bond.elected[..usize::from(bond.n_segments)] {
            [] | [_] => vec![plan(0)?],
            several => several.iter().map(of_segment).collect::<Result<_>>()?,
        };
        Ok(Speakers { plans, failed: bond.failed_slots })
    }

    /// MACs of the guests that have sent something within `age`, each with the time since then, to about 100 ms. One whose port of the
    /// bridge is gone is gone with it, as a container is.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn guests(&self, age: Duration) -> Result<Vec<([u8; 6], Duration)>> {
        let now = now();
        let rows = self.map("lb_guests")?.rows::<lb_mac_key, lb_guest>()?.into_iter();
        let here = rows.filter(|(_, raw)| raw.port == 0 || hook::exists(raw.port));
        let guests = here.map(|(key, raw)| (key.mac, now.saturating_sub(Duration::from_nanos(raw.last_ns))));
        Ok(guests.filter(|guest| guest.1 < age).collect())
    }

    /// Writes whose an address is, or takes it out.
    ///
    /// # Errors
    /// The kernel refuses, the table is full, or there is no such plan or VLAN; an address that is not there is no error where
    /// it is taken out.
    pub fn set_guest_pair(&self, address: GuestAddress, pair: Option<GuestPair>) -> Result<()> {
        within("VLAN", address.vlan.into(), VLAN_MAX)?;
        let Some(GuestPair { mac, plan }) = pair else {
            return self.delete("lb_guest_pairs", &to_key(address));
        };
        within("plan", plan.into(), u64::from(PLAIN_PLAN_FIRST) - 1)?;
        self.write("lb_guest_pairs", &to_key(address), &lb_guest_pair { plan, mac, pad: [0; 2] })
    }

    /// All addresses of guests by address, for a daemon that adopts the table of an earlier one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn guest_pairs(&self) -> Result<Vec<(GuestAddress, GuestPair)>> {
        let rows = self.map("lb_guest_pairs")?.rows::<lb_guest_key, lb_guest_pair>()?.into_iter();
        let mut pairs: Vec<_> =
            rows.map(|(key, raw)| (to_address(&key), GuestPair { mac: raw.mac, plan: raw.plan })).collect();
        pairs.sort_unstable_by_key(|row| row.0);
        pairs.dedup_by_key(|row| row.0);
        Ok(pairs)
    }

    /// The addresses that guests here gave as their own, by address; at most [`GUESTS_SEEN_MAX`](crate::GUESTS_SEEN_MAX), those
    /// given most recently.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn guests_seen(&self) -> Result<Vec<GuestSeen>> {
        let now = now();
        let rows = self.map("lb_guests_seen")?.rows::<lb_guest_key, lb_guest_seen>()?.into_iter();
        let mut seen: Vec<_> = rows
            .map(|(key, raw)| GuestSeen {
                address: to_address(&key),
                mac: raw.mac,
                age: now.saturating_sub(Duration::from_nanos(raw.last_ns)),
            })
            .collect();
        seen.sort_unstable_by_key(|row| row.address);
        seen.dedup_by_key(|row| row.address);
        Ok(seen)
    }

    /// How often an address came to [`guests_seen`](Self::guests_seen), got another MAC there, or was named again after a second
    /// or more. As long as this stays the same, only ages change, by less than that.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn guests_seen_changes(&self) -> Result<u64> {
        self.read("lb_seen_changes", &0u32)
    }

    /// Lets guests' frames, and what is for guests behind peers, go over all lanes for so long from now on. After that they
    /// leave as they would if no address were known: nobody tells peers any more what they are to know of guests here.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn keep_guests(&self, time: Duration) -> Result<()> {
        self.write("lb_guests_until", &0u32, &nanoseconds(now().saturating_add(time)))
    }
}

/// As `guest_slot()` in `bpf/guest.bpf.h`.
fn speaker(plan: &lb_plan, failed: u32, guest: [u8; 6]) -> Option<u8> {
    let [a, b, rest @ ..] = guest;
    let hash = u32::from_be_bytes(rest).wrapping_mul(2_654_435_761) ^ u32::from(u16::from_be_bytes([a, b]));
    let score = |lane: &lb_lane| {
        let mut score = hash ^ (u32::from(lane.slot) + 1).wrapping_mul(0x9e37_79b1);
        score = (score ^ score >> 15).wrapping_mul(0x85eb_ca6b);
        score = (score ^ score >> 13).wrapping_mul(0xc2b2_ae35);
        score ^= score >> 16;
        score.checked_div(lane.byte_cost).unwrap_or(score)
    };
    let best = |failed: u32| {
        let lanes = plan.lanes.iter().take(plan.n_lanes as usize);
        let usable = lanes.filter(|lane| lane.class == 0 && failed >> (lane.slot & 31) & 1 == 0);
        let scored = usable.map(|lane| (score(lane), lane.slot));
        // Of equals the first.
        scored.reduce(|best, other| if other.0 > best.0 { other } else { best }).map(|(_, slot)| slot)
    };
    best(failed).or_else(|| best(0))
}

/// The clock of the programs.
fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default()
}

fn to_key(address: GuestAddress) -> lb_guest_key {
    let mut key = lb_guest_key { vlan: address.vlan, ..lb_guest_key::zeroed() };
    let words = bytemuck::bytes_of_mut(&mut key.address);
    match address.ip {
        IpAddr::V4(ip) => words[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => {
            words.copy_from_slice(&ip.octets());
            key.is_ipv6 = 1;
        }
    }
    key
}

fn to_address(key: &lb_guest_key) -> GuestAddress {
    let bytes: [u8; 16] = bytemuck::cast(key.address);
    let [a, b, c, d, ..] = bytes;
    let ip = if key.is_ipv6 == 0 { IpAddr::from([a, b, c, d]) } else { IpAddr::from(bytes) };
    GuestAddress { vlan: key.vlan, ip }
}

#[cfg(test)]
mod tests {
    use super::{GuestAddress, to_address, to_key};

    #[test]
    fn an_address_has_one_key_and_a_key_one_address() {
        for (vlan, ip) in
            [(0, "198.18.0.1"), (4095, "198.18.0.1"), (0, "2001:db8::1"), (7, "::c612:1"), (0, "::")]
        {
            let address = GuestAddress { vlan, ip: ip.parse().unwrap() };
            let key = to_key(address);
            assert_eq!((to_address(&key), key.pad), (address, 0));
            assert_eq!(key.vlan, vlan);
        }
        let key = to_key(GuestAddress { vlan: 0, ip: "198.18.0.1".parse().unwrap() });
        assert_eq!(key.address, [u32::from_ne_bytes([198, 18, 0, 1]), 0, 0, 0]);
    }
}
