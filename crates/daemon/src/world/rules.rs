//! From a bond's classes to the rules that the data path follows, and the control groups that they name.

use crate::io::{error::About as _, group::Groups, state::SavedClass};
use linkbraid_api::{ClassName, Error, Rule};
use linkbraid_dataplane::{RuleRow, Tables};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// The rules of one bond. What the data path holds of them is kept, so that what is the same costs no system call.
#[derive(Debug)]
pub(crate) struct Rules {
    bond: String,
    /// Where the control groups of its classes are, from those of all bonds: its place.
    pub group: PathBuf,
    /// None before the first time: an earlier daemon may have left others.
    rules: Option<Vec<RuleRow>>,
    /// Whose each of them is: a class, and the place of the rule in it; none for the class's own control group.
    of: Vec<(u8, Option<usize>)>,
    /// Names of the classes whose control groups were made.
    groups: BTreeSet<ClassName>,
}

impl Rules {
    /// None yet, of the bond of that place.
    pub(crate) fn new(bond: &str, place: &Path) -> Self {
        let bond = bond.to_owned();
        Self { bond, group: place.to_owned(), rules: None, of: Vec::new(), groups: BTreeSet::new() }
    }

    /// Where a rule of a class stands in the data path; none while its control group is not there.
    pub(crate) fn place(&self, class: u8, rule: Option<usize>) -> Option<usize> {
        self.of.iter().position(|of| *of == (class, rule))
    }

    /// The rule at a place in the data path, as [`in_order`](Rules::in_order) has it.
    pub(crate) fn at(&self, place: usize) -> Option<(u8, Option<usize>)> {
        self.of.get(place).copied()
    }

    /// All rules in the order in which they are tried: each one's class, and its place in it; none for the class's own
    /// control group, if it has one.
    pub(crate) fn in_order(&self, classes: &[SavedClass]) -> Vec<(u8, Option<usize>)> {
        let has_group = |class: &SavedClass| self.groups.contains(&class.name);
        let all = in_order(classes);
        let listed = all.filter(|(class, place)| place.is_some() || has_group(class));
        listed.map(|(class, place)| (class.number, place)).collect()
    }

    /// Makes the control groups of classes that have none; a machine without them has no `run`.
    pub(crate) fn make_groups(&mut self, classes: &[SavedClass]) {
        let Ok(groups) = Groups::find() else { return };
        for class in classes {
            match groups.make(&self.group, &class.name) {
                Ok(()) => _ = self.groups.insert(class.name.clone()),
                Err(error) => {
                    tracing::warn!(bond = %self.bond, class = %class.name, %error, "no control group of its own");
                }
            }
        }
    }

    /// Removes the control groups of classes that are gone.
    pub(crate) fn remove_groups(&mut self, classes: &[SavedClass]) {
        let is_there = |name: &ClassName| classes.iter().any(|class| class.name == *name);
        let gone: Vec<ClassName> = self.groups.iter().filter(|name| !is_there(name)).cloned().collect();
        let Ok(groups) = Groups::find() else { return };
        for name in gone {
            match groups.remove(&self.group, &name) {
                Ok(()) => _ = self.groups.remove(&name),
                Err(error) => {
                    tracing::warn!(bond = %self.bond, class = %name, %error, "its control group stays");
                }
            }
        }
    }

    /// Writes the rules, if they differ from those written last. Called again and again, for control groups that rules name
    /// come and go.
    pub(crate) fn write(&mut self, classes: &[SavedClass], tables: &Tables) -> Result<(), Error> {
        // Without classes nothing is looked for.
        let groups = classes.first().and_then(|_| Groups::find().ok());
        let (mut rules, mut of) = (Vec::new(), Vec::new());
        for (class, place) in in_order(classes) {
            let own;
            let rule = match place {
                Some(place) => &class.rules[place],
                None => {
                    own = Rule { cgroup: Some(Groups::path(&self.group, &class.name)), ..Rule::default() };
                    &own
                }
            };
            let row = RuleRow::new(class.number, rule, |path| groups.as_ref()?.lookup(path));
            if let Some(row) = row.about(&self.bond, "cannot write its rules")? {
                rules.push(row);
                of.push((class.number, place));
            }
        }
        if self.rules.as_ref() != Some(&rules) || of != self.of {
            tables.set_rules(&rules).about(&self.bond, "cannot write its rules")?;
            (self.rules, self.of) = (Some(rules), of);
        }
        Ok(())
    }
}

/// All rules in the order in which they are tried: those of the classes' own control groups, then class after class.
fn in_order(classes: &[SavedClass]) -> impl Iterator<Item = (&SavedClass, Option<usize>)> {
    let own = classes.iter().map(|class| (class, None));
    own.chain(classes.iter().flat_map(|class| (0..class.rules.len()).map(move |i| (class, Some(i)))))
}
