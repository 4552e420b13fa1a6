//! Which plan numbers are free.

use linkbraid_dataplane::PLAIN_PLAN_FIRST;
use std::collections::BTreeSet;

/// The numbers of peers' plans, from 1.
#[derive(Debug)]
pub(super) struct Numbers {
    free: BTreeSet<u32>,
    /// Given by an earlier daemon to peers that have not been heard again.
    inherited: BTreeSet<u32>,
}

impl Numbers {
    pub fn new(inherited: BTreeSet<u32>) -> Self {
        Self { free: (1..PLAIN_PLAN_FIRST).filter(|number| !inherited.contains(number)).collect(), inherited }
    }

    /// A number: `wanted` if that was inherited and is nobody's, else the lowest that is free.
    pub fn take(&mut self, wanted: Option<u32>) -> Option<u32> {
        wanted.filter(|number| self.inherited.remove(number)).or_else(|| self.free.pop_first())
    }

    /// An inherited number is somebody's again.
    pub fn claim(&mut self, number: u32) {
        self.inherited.remove(&number);
    }

    pub fn give_back(&mut self, number: u32) {
        self.free.insert(number);
    }

    /// What was inherited and has not been asked for is free.
    pub fn drop_inherited(&mut self) {
        self.free.append(&mut self.inherited);
    }
}
