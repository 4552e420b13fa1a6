//! The classes of one bond.
//!
//! Their order counts, and classes are added at the end only: those behind one that is new, or that changes its place, are
//! removed and added again. A link goes from one class to another by way of the rest, which is never left without one.

use super::Planner;
use linkbraid_api::{
    ClassAdd, ClassDel, ClassSet, ClassSettings, Policy, Request,
    config::{BondConfig, ClassConfig},
};

/// The classes that stay, which are the first ones that are wanted. One of them at most has other rules than before: rules
/// that two classes exchange would be refused halfway.
pub(super) fn kept<'c>(now: &BondConfig, to: &'c BondConfig) -> Vec<&'c str> {
    let mut kept = Vec::new();
    let (mut next, mut changed) = (0, false);
    for class in &to.classes {
        let Some(at) = now.classes.iter().position(|other| other.name == class.name) else { break };
        let changes = now.classes[at].rules != class.rules;
        if at < next || (changes && changed) {
            break;
        }
        (next, changed) = (at + 1, changed || changes);
        kept.push(class.name.as_str());
    }
    kept
}

impl Planner<'_> {
    /// Makes the classes of a bond those that are wanted. All members that are wanted are there already.
    pub(super) fn change_classes(&mut self, name: &str) {
        let (Some(now), Some(to)) = (self.now.bonds.get(name), self.to.bonds.get(name)) else { return };
        let kept = kept(now, to);
        let gone = now.classes.iter().filter(|class| !kept.contains(&class.name.as_str()));
        let gone: Vec<String> = gone.map(|class| class.name.clone()).collect();
        for class in gone {
            self.step(Request::ClassDel(ClassDel { bond: name.to_owned(), name: class }));
        }
        for class in &kept {
            self.release(name, to, class);
        }
        for class in &to.classes {
            match kept.contains(&class.name.as_str()) {
                true => self.set_class(name, to, class),
                false => {
                    let members = self.wanted(name, to, &class.name);
                    self.step(Request::ClassAdd(ClassAdd {
                        bond: name.to_owned(),
                        name: class.name.clone(),
                        members,
                        rules: class.rules.clone(),
                        options: class.settings.besides(&ClassSettings::default()),
                    }));
                }
            }
        }
    }

    /// The members that a class is to have, as far as the bond has them.
    fn wanted(&self, name: &str, to: &BondConfig, class: &str) -> Vec<String> {
        let there =
            |member: &String| self.now.bonds.get(name).is_some_and(|now| now.member(member).is_some());
        to.members_of(class).into_iter().filter(there).collect()
    }

    /// Takes from a class what it is not to have, where another class waits for links.
    fn release(&mut self, name: &str, to: &BondConfig, class: &str) {
        let Some(now) = self.now.bonds.get(name) else { return };
        let has = now.members_of(class);
        let wants = self.wanted(name, to, class);
        // One that leaves the bond may as well stay until then.
        let mut left: Vec<String> =
            has.iter().filter(|one| wants.contains(one) || to.member(one).is_none()).cloned().collect();
        let gains = |other: &&ClassConfig| {
            other.name != class
                && to.members_of(&other.name).iter().any(|one| {
                    now.member(one).is_some_and(|member| member.class.as_deref() != Some(&other.name))
                })
        };
        if left.len() == has.len() || !to.classes.iter().any(|other| gains(&other)) {
            return;
        }
        // What mirrors takes two links, or those of the rest.
        if left.len() == 1 && now.class(class).is_some_and(|class| class.settings.policy == Policy::Mirror) {
            left.clear();
        }
        let members = Some(left);
        let set = ClassSet { bond: name.to_owned(), name: class.to_owned(), members, ..ClassSet::default() };
        self.step(Request::ClassSet(set));
    }

    fn set_class(&mut self, name: &str, to: &BondConfig, class: &ClassConfig) {
        let Some(now) = self.now.bonds.get(name) else { return };
        let Some(old) = now.class(&class.name) else { return };
        let wants = self.wanted(name, to, &class.name);
        let stays = |member: &String| to.member(member).is_some();
        let has: Vec<String> = now.members_of(&class.name).into_iter().filter(stays).collect();
        let same = has.len() == wants.len() && has.iter().all(|member| wants.contains(member));
        let bare = ClassSet { bond: name.to_owned(), name: class.name.clone(), ..ClassSet::default() };
        let set = ClassSet {
            members: (!same).then_some(wants),
            rules: (class.rules != old.rules).then(|| class.rules.clone()),
            options: class.settings.besides(&old.settings),
            ..bare.clone()
        };
        if set != bare {
            self.step(Request::ClassSet(set));
        }
    }
}
