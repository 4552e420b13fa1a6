//! The classes of a bond: who is in which, and the rules that choose them.

use crate::world::bond::Bond;

mod rules;

pub(crate) use rules::{Written, class_group};

impl Bond {
    /// The number of a class by its name.
    pub(crate) fn class_number(&self, name: &str) -> Option<u8> {
        self.saved.classes.iter().find(|class| class.name == name).map(|class| class.number)
    }

    /// The members that a class's frames to plain hosts leave by.
    pub(crate) fn class_slots(&self, number: u8) -> Vec<u8> {
        let lanes = self.host.own_side().plain_lanes(None, number).lanes;
        lanes.iter().map(|lane| lane.slot).collect()
    }

    /// The name of a class by its number; none for 0.
    pub(crate) fn class_name(&self, number: u8) -> Option<String> {
        self.saved.classes.iter().find(|class| class.number == number).map(|class| class.name.clone())
    }
}
