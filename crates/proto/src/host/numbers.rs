//! Which plan numbers are free.

use super::image::PLAIN_PLAN_FIRST;
use std::collections::BTreeSet;

/// The numbers of the plans of peers and classes, from 1.
#[derive(Debug)]
pub(super) struct Numbers {
    free: BTreeSet<u32>,
    /// Given back, but rows of the data path may still point at their plans.
    returned: BTreeSet<u32>,
    /// Given by an earlier daemon to peers that have not been heard again.
    inherited: BTreeSet<u32>,
}

impl Numbers {
    pub fn new(inherited: BTreeSet<u32>) -> Self {
        let free = (1..PLAIN_PLAN_FIRST).filter(|number| !inherited.contains(number)).collect();
        Self { free, returned: BTreeSet::new(), inherited }
    }

    /// A number: `wanted` if that was inherited and is nobody's, else the lowest that is free.
    pub fn take(&mut self, wanted: Option<u32>) -> Option<u32> {
        wanted.filter(|number| self.inherited.remove(number)).or_else(|| self.free.pop_first())
    }

    /// It is free once its plan is gone ([`Numbers::settle`]).
    pub fn give_back(&mut self, number: u32) {
        self.inherited.remove(&number);
        self.returned.insert(number);
    }

    /// What was given back is free as far as the data path has no plan of that number any more; whether anything is.
    pub fn settle(&mut self, has_plan: impl Fn(u32) -> bool) -> bool {
        let gone: Vec<u32> = self.returned.iter().copied().filter(|number| !has_plan(*number)).collect();
        self.returned.retain(|number| has_plan(*number));
        self.free.extend(&gone);
        !gone.is_empty()
    }

    /// Whether no plan is left of an earlier daemon, nor one that is to go.
    pub fn are_settled(&self) -> bool {
        self.inherited.is_empty() && self.returned.is_empty()
    }

    /// What was inherited and has not been asked for is given back: these numbers.
    pub fn drop_inherited(&mut self) -> BTreeSet<u32> {
        let dropped = std::mem::take(&mut self.inherited);
        self.returned.extend(&dropped);
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_free_once_its_plan_is_gone_and_none_is_left_of_an_earlier_daemon_then() {
        let mut numbers = Numbers::new([1, 3].into());
        assert!(!numbers.are_settled());
        assert_eq!([Some(3), None, Some(3)].map(|wanted| numbers.take(wanted)), [Some(3), Some(2), Some(4)]);
        assert_eq!(numbers.drop_inherited(), [1].into());
        assert!(!numbers.are_settled(), "its plan is there still");
        assert!(!numbers.settle(|number| number == 1) && numbers.settle(|_| false));
        assert!(numbers.are_settled());
        assert_eq!([None, None].map(|wanted| numbers.take(wanted)), [Some(1), Some(5)]);
        numbers.give_back(2);
        assert!(!numbers.are_settled());
        assert!(numbers.settle(|number| number != 2) && !numbers.settle(|_| false));
        assert_eq!(numbers.take(None), Some(2));
    }
}
