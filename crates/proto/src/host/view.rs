//! What can be seen of a host.

use super::{
    Answers, ArpPlus, Host, Inspector, Member, OwnSide, PeerKey, PlainHost, Policy, TableImage, Verdict,
    rates::{LaneRates, StripeBasis},
};
use crate::plan::Lane;
use linkbraid_wire::MacAddr;
use std::collections::BTreeSet;

impl Host {
    /// The own members.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The own member in that slot.
    pub fn member(&self, slot: u8) -> Option<&Member> {
        self.members.iter().find(|member| member.slot == slot)
    }

    /// Members that no frame is to leave by, a bit a slot.
    pub fn failed_slots(&self) -> u32 {
        let failed = self.members.iter().filter(|member| !member.alive);
        failed.fold(self.tables.abandoned_slots(&self.members), |mask, member| mask | 1 << member.slot)
    }

    pub(super) fn live_slots(&self) -> u32 {
        let live = self.members.iter().filter(|member| member.live());
        live.fold(0, |mask, member| mask | 1 << member.slot)
    }

    /// The table of hosts.
    pub const fn arp_plus(&self) -> &ArpPlus {
        &self.arp_plus
    }

    /// What is known of lanes.
    pub const fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    /// Which member each plain host sends to.
    pub const fn answers(&self) -> &Answers {
        &self.answers
    }

    /// What the data path is to hold.
    pub const fn image(&self) -> &TableImage {
        self.tables.image()
    }

    /// The members and classes as plans see them.
    pub fn own_side(&self) -> OwnSide {
        OwnSide::new(&self.members, &self.settings).corrected(self.learned.corrections())
    }

    /// The weights, in Mbit/s, of each group of live members that traffic of one kind is striped over, and by which policy.
    pub fn spreads(&self) -> Vec<(Policy, Vec<u32>)> {
        self.own_side().spreads(&self.members)
    }

    /// What the length of stripes follows beside the members' weights.
    pub fn stripe(&self) -> StripeBasis {
        self.rates.stripe()
    }

    /// What is known of the rates of a plan's lanes.
    pub fn lane_rates(&self, number: u32, lanes: &[Lane]) -> LaneRates {
        LaneRates { measured: self.rates.measured(number, lanes), in_use: self.rates.of(number, lanes) }
    }

    /// The most that was measured to leave by the member in this slot under one plan, in kbit/s.
    pub fn member_kbit(&self, slot: u8) -> Option<u32> {
        self.rates.member_kbit(slot)
    }

    /// Whether a plan is spread by what was measured of the member in this slot.
    pub fn is_spread_by_measure(&self, slot: u8) -> bool {
        self.rates.is_in_use(slot)
    }

    /// Whether the weight of the member in this slot is its rate, whatever is measured.
    pub fn is_weight_fixed(&self, slot: u8) -> bool {
        self.members.iter().any(|member| member.slot == slot && member.weight_fixed)
    }

    /// The number of a peer's plan.
    pub fn plan_of(&self, peer: &PeerKey) -> Option<u32> {
        self.tables.plan_of(peer)
    }

    /// The number of the plan that a class follows where all other traffic follows `base`.
    pub fn class_plan(&self, base: u32, class: u8) -> u32 {
        self.tables.class_plan(base, class)
    }

    /// The plain host with that MAC.
    pub fn plain_host(&self, mac: MacAddr) -> Option<&PlainHost> {
        self.plain.find(mac)
    }

    /// The plans whose counters are to be read now, ascending; `used`: those that a frame has left by since the last call.
    pub fn plans_to_read(&mut self, used: &[u32]) -> Vec<u32> {
        let mut plain = BTreeSet::new();
        for report in self.plain.probed() {
            let base = self.plan_of_plain(report.mac);
            plain.insert(base);
            plain.extend(self.tables.class_plans_of(base).map(|(_, number, _)| number));
        }
        let tables = &self.tables;
        self.activity.turn(used, |number| tables.peer_of(number).is_some() || plain.contains(&number))
    }

    /// The MAC that hosts on a member's segment reach the bond at.
    pub fn mac_for(&self, member: &Member) -> MacAddr {
        let segments = self.arp_plus.segments();
        let own = self.members.iter().find(|own| own.mac == self.own.mac).map(|own| own.slot);
        match segments.iter().find(|segment| segment.slots.contains(&member.slot)) {
            Some(segment) if own.is_some_and(|own| !segment.slots.contains(&own)) => {
                let elected = segment.elected.and_then(|slot| self.member(slot));
                elected.map_or(member.mac, |elected| elected.mac)
            }
            _ => self.own.mac,
        }
    }

    /// Whether some lane through the member is proven.
    pub fn is_proven(&self, slot: u8) -> bool {
        self.any_proven(|at| at == slot)
    }

    /// Whether some lane through another member is proven: then there is somebody to try this one with.
    pub fn other_member_is_proven(&self, slot: u8) -> bool {
        self.any_proven(|at| at != slot)
    }

    fn any_proven(&self, wanted: impl Fn(u8) -> bool) -> bool {
        let slots: Vec<u8> =
            self.members.iter().map(|member| member.slot).filter(|slot| wanted(*slot)).collect();
        let proven = |key: &PeerKey, index| {
            slots.iter().any(|slot| self.inspector.lane_alive(key, *slot, index) == Verdict::Alive)
        };
        self.arp_plus.peers().any(|peer| peer.members.iter().any(|member| proven(&peer.key, member.index)))
            || self.plain.probed().iter().any(|report| proven(&PeerKey::Plain(report.mac), 0))
    }
}
