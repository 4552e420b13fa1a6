//! The plans of classes: where they differ from that of all other traffic, they have numbers of their own.

use super::{LaneAt, Tables};
use crate::{
    arp_plus::PeerKey,
    host::{
        image::{PLAIN_PLAN_FIRST, Plan, TableImage},
        written::Key,
    },
};
use linkbraid_wire::CLASSES_MAX;
use std::collections::BTreeMap;

/// A class towards somebody: the number of the plan of all other traffic, and the class.
type At = (u32, u8);

/// A plan of a class.
#[derive(Debug)]
struct Row {
    number: u32,
    /// In the order of the plan.
    lanes: Vec<LaneAt>,
}

/// The plans of all classes.
#[derive(Debug, Default)]
pub(super) struct ClassPlans {
    rows: BTreeMap<At, Row>,
    /// What an earlier daemon left and nobody has asked for yet.
    inherited: BTreeMap<At, u32>,
    /// There were more plans than numbers.
    short: bool,
    said_short: bool,
}

/// A plan that is wanted for a class.
pub(super) struct Wanted {
    pub class: u8,
    pub plan: Plan,
    pub lanes: Vec<LaneAt>,
}

impl ClassPlans {
    /// What an earlier daemon left.
    pub fn adopt(left: &TableImage) -> ClassPlans {
        ClassPlans { inherited: left.class_plans.clone(), ..ClassPlans::default() }
    }
}

impl Tables {
    /// The plans of classes beside this one of all other traffic, by class: number and lanes.
    pub fn class_plans_of(&self, base: u32) -> impl Iterator<Item = (u8, u32, &[LaneAt])> + '_ {
        let of_base = (base, 0)..=(base, u8::MAX);
        self.classes.rows.range(of_base).map(|((_, class), row)| (*class, row.number, &row.lanes[..]))
    }

    /// The number of the plan that a class follows where all other traffic follows `base`.
    pub fn class_plan(&self, base: u32, class: u8) -> u32 {
        self.classes.rows.get(&(base, class)).map_or(base, |row| row.number)
    }

    /// Whether there are more plans than numbers; said once.
    pub fn take_short(&mut self) -> bool {
        self.classes.short && !std::mem::replace(&mut self.classes.said_short, true)
    }

    /// The plans of the classes beside plan `base`; those that are not wanted go.
    pub(super) fn set_class_plans(&mut self, base: u32, peer: Option<PeerKey>, wanted: Vec<Wanted>) {
        let mut wanted: BTreeMap<u8, Wanted> =
            wanted.into_iter().map(|wanted| (wanted.class, wanted)).collect();
        for class in 1..=CLASSES_MAX as u8 {
            match wanted.remove(&class) {
                // What is the same as for all other traffic needs no plan.
                Some(wanted) if self.image.plans.get(&base) != Some(&wanted.plan) => {
                    self.set_class_plan((base, class), peer, wanted);
                }
                _ => self.remove_class_plan((base, class)),
            }
        }
    }

    fn set_class_plan(&mut self, at: At, peer: Option<PeerKey>, wanted: Wanted) {
        let known = self.classes.rows.get(&at).map(|row| row.number);
        let number = known.or_else(|| self.numbers.take(self.classes.inherited.remove(&at)));
        let Some(number) = number else {
            (self.classes.short, self.wanting) = (true, true);
            return;
        };
        if let Some(peer) = peer {
            self.keys.insert(number, peer);
        }
        self.classes.rows.insert(at, Row { number, lanes: wanted.lanes });
        self.set_plan(number, Some(wanted.plan));
        self.point(at, Some(number));
    }

    fn point(&mut self, at: At, number: Option<u32>) {
        let old = match number {
            Some(number) => self.image.class_plans.insert(at, number),
            None => self.image.class_plans.remove(&at),
        };
        if old != number {
            self.written.touch(Key::ClassPlan(at.0, at.1));
        }
    }

    /// Takes a number from a class for a peer: without one the peer would be taken for a plain host, but a class goes where
    /// all other traffic goes.
    pub(super) fn number_of_class(&mut self) -> Option<u32> {
        let of_peers = self.classes.rows.range(..(PLAIN_PLAN_FIRST, 0));
        let (at, number) = of_peers.map(|(at, row)| (*at, row.number)).next_back()?;
        (self.classes.short, self.wanting) = (true, true);
        self.classes.rows.remove(&at);
        self.point(at, None);
        Some(number)
    }

    fn remove_class_plan(&mut self, at: At) {
        let inherited = self.classes.inherited.remove(&at);
        let Some(number) = self.classes.rows.remove(&at).map(|row| row.number).or(inherited) else { return };
        self.keys.remove(&number);
        self.point(at, None);
        self.set_plan(number, None);
        self.numbers.give_back(number);
    }

    /// Forgets the plans that an earlier daemon wrote and nobody has asked for.
    pub(super) fn drop_inherited_classes(&mut self) {
        for at in self.classes.inherited.keys().copied().collect::<Vec<_>>() {
            self.remove_class_plan(at);
        }
    }
}
