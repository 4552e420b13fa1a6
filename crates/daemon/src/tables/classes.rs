//! The plans of classes: where they differ from that of all other traffic, they have numbers of their own.

use super::{LaneAt, Tables, keep, rows::Rows};
use linkbraid_dataplane::{CLASSES_MAX, DataPath, Plan, Result};
use linkbraid_proto::arp_plus::PeerKey;
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

/// What the data path has been told of them.
#[derive(Debug, Default)]
pub(super) struct ClassPlans {
    rows: BTreeMap<At, Row>,
    /// What an earlier daemon told it, as far as it has not been told anew.
    inherited: BTreeMap<At, u32>,
}

/// A plan that is wanted for a class.
pub(super) struct Wanted {
    pub class: u8,
    pub plan: Plan,
    pub lanes: Vec<LaneAt>,
}

impl ClassPlans {
    /// What an earlier daemon left.
    pub fn adopt(path: &DataPath) -> Result<Self> {
        let inherited = path.class_plans()?.into_iter().map(|(base, class, number)| ((base, class), number));
        Ok(Self { rows: BTreeMap::new(), inherited: inherited.collect() })
    }

    /// As if an earlier daemon had left these.
    #[cfg(test)]
    pub fn left(inherited: impl IntoIterator<Item = (At, u32)>) -> Self {
        Self { rows: BTreeMap::new(), inherited: inherited.into_iter().collect() }
    }

    /// The numbers that are taken.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.inherited.values().copied()
    }
}

impl Tables {
    /// The plans of classes beside this one of all other traffic, by class: number and lanes.
    pub(crate) fn class_plans_of(&self, base: u32) -> impl Iterator<Item = (u8, u32, &[LaneAt])> + '_ {
        let of_base = (base, 0)..=(base, u8::MAX);
        self.classes.rows.range(of_base).map(|((_, class), row)| (*class, row.number, &row.lanes[..]))
    }

    /// The number of the plan that a class follows where all other traffic follows `base`.
    pub(crate) fn class_plan(&self, base: u32, class: u8) -> u32 {
        self.classes.rows.get(&(base, class)).map_or(base, |row| row.number)
    }

    /// Writes the plans of the classes beside plan `base`; those that are not wanted go.
    pub(super) fn write_class_plans(
        &mut self,
        path: &impl Rows,
        base: u32,
        peer: Option<PeerKey>,
        wanted: Vec<Wanted>,
    ) -> Result<()> {
        let mut first = Ok(());
        let mut wanted: BTreeMap<u8, Wanted> =
            wanted.into_iter().map(|wanted| (wanted.class, wanted)).collect();
        for class in 1..CLASSES_MAX as u8 {
            let written = match wanted.remove(&class) {
                // What is the same as for all other traffic needs no plan.
                Some(wanted) if self.plans.get(&base) != Some(&wanted.plan) => {
                    self.write_class_plan(path, base, peer, wanted)
                }
                _ => self.remove_class_plan(path, (base, class)),
            };
            keep(&mut first, written);
        }
        first
    }

    fn write_class_plan(
        &mut self,
        path: &impl Rows,
        base: u32,
        peer: Option<PeerKey>,
        wanted: Wanted,
    ) -> Result<()> {
        let at = (base, wanted.class);
        let known = self.classes.rows.get(&at).map(|row| row.number);
        let is_new = known.is_none();
        let number = known.or_else(|| self.numbers.take(self.classes.inherited.remove(&at)));
        let Some(number) = number else {
            tracing::warn!(plan = base, class = wanted.class, "no plan is free, it goes where the rest goes");
            return Ok(());
        };
        if let Some(peer) = peer {
            self.keys.insert(number, peer);
        }
        self.classes.rows.insert(at, Row { number, lanes: wanted.lanes });
        // The plan before what points at it.
        self.set_plan(path, number, wanted.plan)?;
        if is_new { path.set_class_plan(base, wanted.class, Some(number)) } else { Ok(()) }
    }

    fn remove_class_plan(&mut self, path: &impl Rows, at: At) -> Result<()> {
        let inherited = self.classes.inherited.remove(&at);
        if let Some(number) = inherited {
            self.numbers.claim(number);
        }
        let Some(number) = self.classes.rows.remove(&at).map(|row| row.number).or(inherited) else {
            return Ok(());
        };
        self.keys.remove(&number);
        path.set_class_plan(at.0, at.1, None)?;
        self.set_plan(path, number, Plan::default())?;
        self.numbers.give_back(number);
        Ok(())
    }

    /// Forgets the plans that an earlier daemon wrote and nobody has asked for.
    pub(super) fn drop_inherited_classes(&mut self, path: &impl Rows) -> Result<()> {
        let mut first = Ok(());
        for at in self.classes.inherited.keys().copied().collect::<Vec<_>>() {
            keep(&mut first, self.remove_class_plan(path, at));
        }
        first
    }
}
