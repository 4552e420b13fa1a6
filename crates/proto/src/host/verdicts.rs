//! What the inspector says of the own members, and what ARP+ announces of them.

use super::{Action, Class, Host, Member};
use crate::{
    arp_plus::{self, OwnMember},
    inspector::{self, Verdict},
};
use linkbraid_wire::{FEATURE_GUESTS, FEATURE_INTERVALS, FEATURE_LONG_PROBES, FEATURE_MIRROR};

impl Host {
    pub(super) fn set_members(&mut self, members: Vec<Member>) {
        let former = self.tables.take_former_segments(&members);
        if !former.is_empty() {
            self.arp_plus.handle(self.now, arp_plus::Input::Segments(former));
        }
        let (live, failed) = (self.live_slots(), self.failed_slots());
        let former = std::mem::replace(&mut self.members, members);
        let reports = self.members.iter().map(Member::report).collect();
        self.inspector.handle(self.now, inspector::Input::Members(reports));
        self.judge_members(live, failed);
        self.differ.all |= self.members != former;
    }

    /// Takes the inspector's word on the members, and says it to ARP+, so that peers stop sending to those that are down.
    pub(super) fn follow_members(&mut self) {
        self.judge_members(self.live_slots(), self.failed_slots());
    }

    /// The same; `live` carried traffic before, and `failed` were known to have failed.
    fn judge_members(&mut self, live: u32, failed: u32) {
        let alive = |slot| self.inspector.member_alive(slot) == Verdict::Alive;
        let sound = |slot| self.inspector.member_sound(slot) != Verdict::Failed;
        for member in &mut self.members {
            member.alive = alive(member.slot);
            // Never the last one: none has failed unless another one is proven.
            member.sound = sound(member.slot);
        }
        // Before anything else: the plans, one for each peer, follow.
        if self.failed_slots() != failed {
            self.actions.push_back(Action::FailedSlots(self.failed_slots()));
        }
        if self.live_slots() != live {
            self.actions.push_back(Action::Stripe);
        }
        self.announce_members();
    }

    fn announce_members(&mut self) {
        let sound = |slot| self.inspector.member_sound(slot) != Verdict::Failed;
        // Broadcasts come in on a member that is proven, if any is: what nobody knows of may be deaf.
        let proven = |slot| self.inspector.member_sound(slot) == Verdict::Alive;
        let any_proven = self.members.iter().any(|member| proven(member.slot));
        // After a restart they go on coming in where they did, until that is found wrong or the others had their time.
        let former = self.tables.former_elected();
        let keeps = |slot| match former.is_empty() {
            true => !any_proven,
            false => former.contains(&slot) && sound(slot),
        };
        let members = self.members.iter().map(|member| OwnMember {
            slot: member.slot,
            mac: member.mac,
            up: member.alive && !member.leaving,
            sound: !member.joining && (proven(member.slot) || keeps(member.slot)),
            joining: member.joining,
            weight_mbit: member.weight_mbit,
            class: member.class,
        });
        let members = members.collect();
        // Names before those who go by them.
        self.announce_classes();
        self.arp_plus.handle(self.now, arp_plus::Input::Members(members));
    }

    pub(super) fn announce_classes(&mut self) {
        let class = |class: &Class| linkbraid_wire::Class {
            number: class.terms.number,
            may_borrow: class.terms.lends,
            name: class.name.clone(),
        };
        let classes = self.settings.classes.iter().map(class).collect();
        let features = FEATURE_MIRROR | FEATURE_GUESTS | FEATURE_LONG_PROBES | FEATURE_INTERVALS;
        self.arp_plus.handle(self.now, arp_plus::Input::Features(features));
        self.arp_plus.handle(self.now, arp_plus::Input::Classes(classes));
    }
}
