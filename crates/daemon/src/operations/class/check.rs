//! What is refused of classes, before anything is touched, and what is said of those that are taken.

use super::Classes;
use crate::{
    io::{group::Groups, state::SavedClass},
    world::{bond::Bond, member::Member},
};
use linkbraid_api::{BondAdd, ClassSettings, Error, Policy, Rule, default_rules, limits::RULES_MAX};
use std::collections::HashMap;

/// The classes that `bond add` makes, and the class of each of its members by name.
pub(crate) fn of_bond_add(add: &BondAdd) -> Result<(Vec<SavedClass>, HashMap<&str, u8>), Error> {
    let mut classes = Vec::new();
    let mut members = HashMap::new();
    let hint = |cause: String, what: String| {
        let rest = add.members.join(",");
        Error::new(&add.name, what, cause).hint(format!("linkbraid bond add {} --member {rest}", add.name))
    };
    for (at, class) in add.classes.iter().enumerate() {
        let what = format!("cannot add class '{}'", class.name);
        if at > 0 {
            let cause =
                "a second class would have the rules of the first; 'class add' gives it rules of its own";
            return Err(hint(cause.into(), what));
        }
        for name in &class.members {
            if !add.members.contains(name) {
                return Err(hint(format!("'{name}' is not among the bond's members"), what));
            }
            if members.insert(name.as_str(), 1).is_some() {
                return Err(hint(format!("member '{name}' is named twice"), what));
            }
        }
        if members.len() == add.members.len() {
            return Err(hint("it would leave no member for the rest of the traffic".into(), what));
        }
        classes.push(SavedClass {
            number: 1,
            name: class.name.clone(),
            rules: default_rules(),
            has_members: true,
            settings: ClassSettings::default(),
            applied: false,
        });
    }
    Ok((classes, members))
}

/// Refuses classes that cannot work together. What was so before is no reason: members may have gone, and whoever changes
/// something else, or takes a class away, makes that no worse.
pub(super) fn check(bond: &Bond, classes: &Classes, old: &Classes, what: &str) -> Result<(), Error> {
    let name = &bond.saved.name;
    let refuse = |cause: String, hint: String| Err(Error::new(name, what, cause).hint(hint));
    if let Some(class) = classes.list.iter().find(|class| class.rules.is_empty()) {
        let hint = format!("linkbraid class add {name} {} --match priority=6", class.name);
        return refuse("a class without rules would match nothing".into(), hint);
    }
    let rules: usize = classes.list.iter().map(|class| class.rules.len() + 1).sum();
    if rules > RULES_MAX {
        let cause = format!(
            "{rules} rules, counting one for each class's own control group; allowed are {RULES_MAX}"
        );
        return refuse(cause, format!("linkbraid class show {name}"));
    }
    if let Some((rule, first)) = shadowed(&classes.list) {
        let cause = format!("rule '{rule}' can't match: '{}' of class '{}' comes first", first.1, first.0);
        return refuse(cause, format!("linkbraid class show {name}"));
    }
    let groups = |classes: &Classes| -> Vec<String> {
        let rules = classes.list.iter().flat_map(|class| &class.rules);
        rules.filter_map(|rule| rule.cgroup.clone()).collect()
    };
    let known = groups(old);
    if groups(classes).iter().any(|group| !known.contains(group)) {
        Groups::find()?;
    }
    let mut staying = bond.members();
    staying.retain(|member| !member.leaving);
    let staying = || staying.iter();
    let count = |classes: &Classes, number: u8| {
        let of = |member: &&Member| classes.members.get(&member.ifindex).copied().unwrap_or(0) == number;
        staying().filter(of).count()
    };
    let no_rest = |classes: &Classes| staying().next().is_some() && count(classes, 0) == 0;
    if no_rest(classes) && !no_rest(old) {
        let cause = "it would leave no member for the rest of the traffic".to_owned();
        return refuse(cause, format!("linkbraid show {name}"));
    }
    let lonely = |classes: &Classes, class: &SavedClass| {
        let own = count(classes, class.number);
        class.settings.policy == Policy::Mirror && (if own == 0 { count(classes, 0) } else { own }) < 2
    };
    for class in classes.list.iter().filter(|class| lonely(classes, class)) {
        let before = old.list.iter().find(|before| before.name == class.name);
        if !before.is_some_and(|before| lonely(old, before)) {
            let cause = format!("class '{}' mirrors, which takes two members at least", class.name);
            return refuse(cause, format!("linkbraid show {name}"));
        }
    }
    Ok(())
}

/// The first rule that an earlier one leaves nothing of, with that one and its class.
fn shadowed(classes: &[SavedClass]) -> Option<(&Rule, (&str, &Rule))> {
    let all: Vec<(&str, &Rule)> = classes
        .iter()
        .flat_map(|class| class.rules.iter().map(move |rule| (class.name.as_str(), rule)))
        .collect();
    all.iter().enumerate().find_map(|(i, (_, rule))| {
        let first = all[..i].iter().find(|(_, earlier)| earlier.covers(rule))?;
        Some((*rule, *first))
    })
}

/// What the user should know of classes that were taken.
pub(super) fn warnings(bond: &Bond, classes: &Classes, old: &Classes) -> Vec<String> {
    let name = &bond.saved.name;
    let mut warnings = Vec::new();
    let members = bond.members();
    let first = members.iter().find(|member| member.mac == bond.mac);
    let moved =
        first.filter(|member| member.class != 0 && old.members.get(&member.ifindex) != Some(&member.class));
    if let Some(member) = moved {
        warnings.push(format!(
            "{name}: '{}' gives the bond its MAC: plain hosts send everything there; another member suits a class better",
            member.name
        ));
    }
    let rules = || classes.list.iter().flat_map(|class| class.rules.iter().map(move |rule| (class, rule)));
    let is_new = |class: &SavedClass, rule: &Rule| {
        !old.list.iter().any(|other| other.name == class.name && other.rules.contains(rule))
    };
    if let Ok(groups) = Groups::find() {
        for (class, rule) in rules().filter(|(class, rule)| is_new(class, rule)) {
            if let Some(path) = rule.cgroup.as_ref().filter(|path| groups.lookup(path).is_none()) {
                warnings.push(format!(
                    "{name}: class '{}': there is no control group '{path}' now; the rule matches once there is",
                    class.name
                ));
            }
        }
    }
    warnings
}
