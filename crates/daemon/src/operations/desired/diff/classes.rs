//! The classes of one bond.
//!
//! Their order counts, and classes are added at the end only: those behind one that is new, or that changes its place, are
//! removed and added again. A link goes from one class to another by way of the rest, which is never left without one.

use super::planner::Planner;
use crate::operations::desired::step::{Change, Class, Step, differ};
use linkbraid_api::{
    ClassName, LinkName, Policy,
    config::{BondConfig, ClassConfig},
};

/// The classes that stay, which are the first ones that are wanted. One of them at most has other rules than before: rules
/// that two classes exchange would be refused halfway.
pub(super) fn kept<'c>(now: &BondConfig, to: &'c BondConfig) -> Vec<&'c ClassName> {
    let mut kept = Vec::new();
    let (mut next, mut changed) = (0, false);
    for class in &to.classes {
        let Some(at) = now.classes.iter().position(|other| other.name == class.name) else { break };
        let changes = now.classes[at].rules != class.rules;
        if at < next || (changes && changed) {
            break;
        }
        (next, changed) = (at + 1, changed || changes);
        kept.push(&class.name);
    }
    kept
}

impl Planner<'_> {
    /// Makes the classes of a bond those that are wanted. All members that are wanted are there already.
    pub(super) fn change_classes(&mut self, name: &LinkName) {
        let (Some(now), Some(to)) = (self.now.bonds.get(name), self.to.bonds.get(name)) else { return };
        let kept = kept(now, to);
        let gone = now.classes.iter().filter(|class| !kept.contains(&&class.name));
        let gone: Vec<ClassName> = gone.map(|class| class.name.clone()).collect();
        gone.iter().for_each(|class| self.class(name, class, None));
        for class in &kept {
            self.release(name, to, class);
        }
        for class in &to.classes {
            let Some(now) = self.now.bonds.get(name) else { return };
            let mut members = self.wanted(now, to, &class.name);
            let has = now.members_of(&class.name);
            let (stay, leave): (Vec<_>, Vec<_>) = has.into_iter().partition(|one| to.member(one).is_some());
            let same = |now: &ClassConfig| now.has_members == class.has_members && !differ(&stay, &members);
            // One that leaves the bond may as well stay until then.
            if now.class(&class.name).is_some_and(same) {
                members.extend(leave);
            }
            self.class(name, &class.name, Some((class.clone(), members)));
        }
    }

    /// Changes one class, unless it is so already; a new one comes behind the others.
    fn class(&mut self, bond: &LinkName, name: &ClassName, to: Option<(ClassConfig, Vec<LinkName>)>) {
        let Some(now) = self.now.bonds.get(bond) else { return };
        let from = Class::of(now, name);
        let at = from.as_ref().map_or(now.classes.len(), |from| from.at);
        let to = to.map(|(config, members)| Class { at, config, members });
        let same = |from: &Class, to: &Class| from.config == to.config && !differ(&from.members, &to.members);
        if !matches!((&from, &to), (Some(from), Some(to)) if same(from, to)) {
            self.step(Step::Class { bond: bond.clone(), class: Change::new(name, from, to) });
        }
    }

    /// The members that a class is to have, as far as the bond has them.
    fn wanted(&self, now: &BondConfig, to: &BondConfig, class: &str) -> Vec<LinkName> {
        to.members_of(class).into_iter().filter(|member| now.member(member).is_some()).collect()
    }

    /// Takes from a class what it is not to have, where another class waits for links.
    fn release(&mut self, name: &LinkName, to: &BondConfig, class: &ClassName) {
        let Some(now) = self.now.bonds.get(name) else { return };
        let Some(config) = now.class(class).cloned() else { return };
        let has = now.members_of(class);
        let wants = self.wanted(now, to, class);
        let mut left: Vec<LinkName> =
            has.iter().filter(|one| wants.contains(one) || to.member(one).is_none()).cloned().collect();
        let gains = |other: &&ClassConfig| {
            other.name != *class
                && to.members_of(&other.name).iter().any(|one| {
                    now.member(one).is_some_and(|member| member.class.as_deref() != Some(&other.name))
                })
        };
        if left.len() == has.len() || !to.classes.iter().any(|other| gains(&other)) {
            return;
        }
        // What mirrors takes two links, or those of the rest.
        if left.len() == 1 && config.settings.policy == Policy::Mirror {
            left.clear();
        }
        let config = ClassConfig { has_members: !left.is_empty(), ..config };
        self.class(name, class, Some((config, left)));
    }
}
