//! What the data path holds, and the difference from it to what it is to hold, in an order in which no row points at one
//! that is not there.

use super::image::{
    Answer, BondRow, ClassRow, GuestPair, MacKind, MemberRow, PLAIN_PLAN, PeerMac, Plan, TableImage,
    plain_plan,
};
use crate::{arp_plus::GuestAddress, limits};
use linkbraid_wire::MacAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Which row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Bond,
    Member(u8),
    Class(u8),
    Plan(u32),
    ClassPlan(u32, u8),
    PeerMac(MacAddr),
    GuestPair(GuestAddress),
    Answer(MacAddr),
}

/// One row to write; none: it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write<'a> {
    /// The bond as a whole.
    Bond(&'a BondRow),
    /// A member by its slot. When it goes, what it counted and the plain hosts heard on it are forgotten.
    Member(u8, Option<&'a MemberRow>),
    /// A class by its number.
    Class(u8, &'a ClassRow),
    /// A plan by its number.
    Plan(u32, Option<&'a Plan>),
    /// The number of the plan that a class takes in place of a plan; none: that plan itself.
    ClassPlan(u32, u8, Option<u32>),
    /// One MAC of a peer.
    PeerMac(MacAddr, Option<&'a PeerMac>),
    /// An address of a guest, here or behind a peer.
    GuestPair(GuestAddress, Option<&'a GuestPair>),
    /// The member that one plain host is to send to; none: the bond's MAC.
    Answer(MacAddr, Option<&'a Answer>),
}

/// The steps of one difference, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Members that are new, in no segment yet: plans may name them from here on.
    NewMembers,
    Classes,
    /// Before the plans that they point at are another's.
    ClassPlansGone,
    Plans,
    ClassPlans,
    /// All that is said of members: the plans of their segments are there.
    Members,
    Bond,
    /// First those that go: they make room.
    GuestPairsGone,
    GuestPairs,
    /// Those of members first: they are looked up most.
    PeerMacs,
    OtherMacs,
    PeerMacsGone,
    /// These first: they make room.
    AnswersGone,
    Answers,
    /// Nothing points at them any more.
    PlansGone,
    /// No plan names them any more.
    MembersGone,
}

/// A plan as the data path has it.
type Held = Option<Plan>;

/// What the data path holds.
#[derive(Debug, Default)]
pub(super) struct Written {
    bond: Option<BondRow>,
    members: BTreeMap<u8, MemberRow>,
    classes: BTreeMap<u8, ClassRow>,
    /// None inside: something that an earlier daemon wrote.
    plans: BTreeMap<u32, Held>,
    class_plans: BTreeMap<(u32, u8), u32>,
    peer_macs: BTreeMap<MacAddr, PeerMac>,
    guest_pairs: BTreeMap<GuestAddress, GuestPair>,
    answers: BTreeMap<MacAddr, Answer>,
    /// Rows that may differ from the image.
    changed: BTreeSet<Key>,
}

impl Written {
    /// What an earlier daemon left. What its plans, classes and bond are like is not known.
    pub fn adopt(left: &TableImage) -> Written {
        let plain = (0..limits::MEMBERS_MAX as u8).map(plain_plan).chain([PLAIN_PLAN]);
        let class_plans = left.class_plans.values().copied();
        let peers = left.peer_macs.values().map(|row| row.plan);
        let classes = (1..=linkbraid_wire::CLASSES_MAX as u8).map(Key::Class);
        let plans: BTreeMap<u32, Held> =
            plain.clone().chain(class_plans).chain(peers).map(|number| (number, None)).collect();
        Written {
            bond: None,
            members: left.members.clone(),
            classes: BTreeMap::new(),
            plans,
            class_plans: left.class_plans.clone(),
            peer_macs: left.peer_macs.clone(),
            guest_pairs: left.guest_pairs.clone(),
            answers: left.answers.clone(),
            changed: plain.map(Key::Plan).chain(classes).chain([Key::Bond]).collect(),
        }
    }

    /// A row of the image is another one.
    pub fn touch(&mut self, key: Key) {
        self.changed.insert(key);
    }

    /// Whether anything is to be written.
    pub fn is_behind(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Whether there is a plan of that number.
    pub fn has_plan(&self, number: u32) -> bool {
        self.plans.contains_key(&number)
    }

    /// Writes what differs from the image. One row that is refused keeps no other out, unless that points at it, and is
    /// tried again the next time; the first error.
    pub fn follow<E>(
        &mut self,
        image: &TableImage,
        mut write: impl FnMut(Write<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut first = Ok(());
        let mut behind = BTreeSet::new();
        let mut due: Vec<(Step, Key)> = self.changed.iter().flat_map(|key| self.steps(image, *key)).collect();
        due.sort_unstable();
        self.changed.clear();
        for (step, key) in due {
            if !self.may(image, step, key, &behind) {
                behind.insert(key);
                continue;
            }
            match self.write(image, step, key, &mut write) {
                Ok(()) => {}
                Err(error) => {
                    behind.insert(key);
                    first = first.and(Err(error));
                }
            }
        }
        self.changed.append(&mut behind);
        first
    }

    /// What is to be done for a row; nothing if it is as it should be.
    fn steps(&self, image: &TableImage, key: Key) -> Vec<(Step, Key)> {
        /// A row that is held and is wanted: the step for one that differs, or for one that goes.
        fn row<R: PartialEq>(held: Option<R>, wanted: Option<R>, set: Step, gone: Step) -> Option<Step> {
            match wanted {
                _ if held == wanted => None,
                Some(_) => Some(set),
                None => Some(gone),
            }
        }
        let one = |step: Option<Step>| step.into_iter().map(|step| (step, key)).collect();
        match key {
            Key::Bond => one((self.bond.as_ref() != Some(&image.bond)).then_some(Step::Bond)),
            Key::Class(number) => {
                let wanted = image.classes.get(&number).copied().unwrap_or_default();
                one((self.classes.get(&number) != Some(&wanted)).then_some(Step::Classes))
            }
            Key::Member(slot) => match (self.members.get(&slot), image.members.get(&slot)) {
                (held, Some(wanted)) if held.is_none_or(|held| held.ifindex != wanted.ifindex) => {
                    vec![(Step::NewMembers, key), (Step::Members, key)]
                }
                (_, Some(_)) => vec![(Step::Members, key)],
                // It is in no segment, but its row stays until no plan names it.
                (_, None) => vec![(Step::Members, key), (Step::MembersGone, key)],
            },
            Key::Plan(number) => {
                let held = self.plans.get(&number).map(Option::as_ref);
                one(row(held, image.plans.get(&number).map(Some), Step::Plans, Step::PlansGone))
            }
            Key::ClassPlan(base, class) => {
                let at = (base, class);
                let (held, wanted) = (self.class_plans.get(&at), image.class_plans.get(&at));
                one(row(held, wanted, Step::ClassPlans, Step::ClassPlansGone))
            }
            Key::PeerMac(mac) => {
                let (held, wanted) = (self.peer_macs.get(&mac), image.peer_macs.get(&mac));
                let is_member = wanted.is_some_and(|row| matches!(row.kind, MacKind::Member { .. }));
                let set = if is_member { Step::PeerMacs } else { Step::OtherMacs };
                one(row(held, wanted, set, Step::PeerMacsGone))
            }
            Key::GuestPair(at) => {
                let (held, wanted) = (self.guest_pairs.get(&at), image.guest_pairs.get(&at));
                one(row(held, wanted, Step::GuestPairs, Step::GuestPairsGone))
            }
            Key::Answer(mac) => {
                let (held, wanted) = (self.answers.get(&mac), image.answers.get(&mac));
                one(row(held, wanted, Step::Answers, Step::AnswersGone))
            }
        }
    }

    /// Whether what this row points at is there, and what points at it is gone.
    fn may(&self, image: &TableImage, step: Step, key: Key, behind: &BTreeSet<Key>) -> bool {
        let has_plan = |number: u32| !behind.contains(&Key::Plan(number)) && self.plans.contains_key(&number);
        match (step, key) {
            (Step::ClassPlans, Key::ClassPlan(base, class)) => {
                image.class_plans.get(&(base, class)).is_none_or(|number| has_plan(*number))
            }
            (Step::PeerMacs | Step::OtherMacs, Key::PeerMac(mac)) => {
                image.peer_macs.get(&mac).is_none_or(|row| has_plan(row.plan))
            }
            (Step::GuestPairs, Key::GuestPair(at)) => {
                image.guest_pairs.get(&at).is_none_or(|row| row.plan == PLAIN_PLAN || has_plan(row.plan))
            }
            (Step::Plans, Key::Plan(number)) => image
                .plans
                .get(&number)
                .is_none_or(|plan| plan.lanes.iter().all(|lane| self.members.contains_key(&lane.slot))),
            (Step::PlansGone, Key::Plan(number)) => !behind.iter().any(|key| match key {
                Key::PeerMac(mac) => self.peer_macs.get(mac).is_some_and(|row| row.plan == number),
                Key::ClassPlan(base, class) => self.class_plans.get(&(*base, *class)) == Some(&number),
                Key::GuestPair(at) => self.guest_pairs.get(at).is_some_and(|row| row.plan == number),
                _ => false,
            }),
            (Step::MembersGone, _) => !behind.iter().any(|key| matches!(key, Key::Plan(_))),
            _ => true,
        }
    }

    fn write<E>(
        &mut self,
        image: &TableImage,
        step: Step,
        key: Key,
        write: &mut impl FnMut(Write<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match key {
            Key::Bond => {
                write(Write::Bond(&image.bond))?;
                self.bond = Some(image.bond.clone());
            }
            Key::Class(number) => {
                let row = image.classes.get(&number).copied().unwrap_or_default();
                write(Write::Class(number, &row))?;
                self.classes.insert(number, row);
            }
            Key::Member(slot) => return self.write_member(image, step, slot, write),
            Key::Plan(number) => {
                let plan = image.plans.get(&number);
                write(Write::Plan(number, plan))?;
                set(&mut self.plans, number, plan.map(|plan| Some(plan.clone())));
            }
            Key::ClassPlan(base, class) => {
                let number = image.class_plans.get(&(base, class)).copied();
                write(Write::ClassPlan(base, class, number))?;
                set(&mut self.class_plans, (base, class), number);
            }
            Key::PeerMac(mac) => {
                let row = image.peer_macs.get(&mac);
                write(Write::PeerMac(mac, row))?;
                set(&mut self.peer_macs, mac, row.copied());
            }
            Key::GuestPair(at) => {
                let row = image.guest_pairs.get(&at);
                write(Write::GuestPair(at, row))?;
                set(&mut self.guest_pairs, at, row.copied());
            }
            Key::Answer(mac) => {
                let row = image.answers.get(&mac);
                write(Write::Answer(mac, row))?;
                set(&mut self.answers, mac, row.copied());
            }
        }
        Ok(())
    }

    fn write_member<E>(
        &mut self,
        image: &TableImage,
        step: Step,
        slot: u8,
        write: &mut impl FnMut(Write<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let wanted = image.members.get(&slot).copied();
        let row = match step {
            Step::NewMembers => wanted.map(|row| MemberRow { elected: None, ..row }),
            Step::MembersGone => None,
            _ => wanted.or_else(|| self.members.get(&slot).map(|row| MemberRow { elected: None, ..*row })),
        };
        if self.members.get(&slot) != row.as_ref() {
            write(Write::Member(slot, row.as_ref()))?;
            set(&mut self.members, slot, row);
        }
        Ok(())
    }
}

fn set<K: Ord, R>(rows: &mut BTreeMap<K, R>, key: K, row: Option<R>) {
    match row {
        Some(row) => _ = rows.insert(key, row),
        None => _ = rows.remove(&key),
    }
}
