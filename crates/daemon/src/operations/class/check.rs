//! What is refused of classes, before anything is touched, and what is said of those that are taken.

use crate::{io::group::Groups, world::bond::Bond};
use linkbraid_api::{
    Error, Policy, Rule,
    config::{BondConfig, ClassConfig, MemberConfig},
    limits::{CLASSES_MAX, RULES_MAX},
};

/// Refuses classes that cannot work together. What was so before is no reason: members may have gone, and whoever changes
/// something else, or takes a class away, makes that no worse.
///
/// Who takes a change back comes by states that nobody would ask for, and ends in one that was there before.
pub(super) fn check(
    name: &str,
    new: &BondConfig,
    old: &BondConfig,
    (what, back): (&str, bool),
) -> Result<(), Error> {
    let refuse = |cause: String, hint: String| Err(Error::new(name, what, cause).hint(hint));
    if new.classes.len() > CLASSES_MAX {
        let cause = format!("it has {CLASSES_MAX} classes already");
        return refuse(cause, format!("linkbraid class show {name}"));
    }
    if let Some(class) = new.classes.iter().find(|class| class.rules.is_empty()) {
        let hint = format!("linkbraid class add {name} {} --match priority=6", class.name);
        return refuse("a class without rules would match nothing".into(), hint);
    }
    let rules: usize = new.classes.iter().map(|class| class.rules.len() + 1).sum();
    if rules > RULES_MAX {
        let cause = format!(
            "{rules} rules, counting one for each class's own control group; allowed are {RULES_MAX}"
        );
        return refuse(cause, format!("linkbraid class show {name}"));
    }
    if let Some((rule, first)) = shadowed(&new.classes) {
        let cause = format!("rule '{rule}' can't match: '{}' of class '{}' comes first", first.1, first.0);
        return refuse(cause, format!("linkbraid class show {name}"));
    }
    let groups = |of: &BondConfig| -> Vec<String> {
        let rules = of.classes.iter().flat_map(|class| &class.rules);
        rules.filter_map(|rule| rule.cgroup.clone()).collect()
    };
    let known = groups(old);
    if groups(new).iter().any(|group| !known.contains(group)) {
        Groups::find()?;
    }
    if back {
        return Ok(());
    }
    if bare(new) && !bare(old) {
        let cause = "it would leave no member for the default class".to_owned();
        return refuse(cause, format!("linkbraid show {name}"));
    }
    for class in new.classes.iter().filter(|class| lonely(new, class)) {
        if !old.class(&class.name).is_some_and(|before| lonely(old, before)) {
            let cause = format!("class '{}' mirrors, which needs at least two members", class.name);
            return refuse(cause, format!("linkbraid show {name}"));
        }
    }
    Ok(())
}

/// How many members whose interfaces are there a class has; without one, those that are in no class.
fn count(bond: &BondConfig, class: Option<&str>) -> usize {
    let of = |member: &&MemberConfig| !member.absent && member.class.as_deref() == class;
    bond.members.iter().filter(of).count()
}

/// Whether its classes have all its members.
fn bare(bond: &BondConfig) -> bool {
    bond.members.iter().any(|member| !member.absent) && count(bond, None) == 0
}

/// Whether a class mirrors over less than two members.
fn lonely(bond: &BondConfig, class: &ClassConfig) -> bool {
    let own = count(bond, Some(&class.name));
    class.settings.policy == Policy::Mirror && (if own == 0 { count(bond, None) } else { own }) < 2
}

/// The first rule that an earlier one leaves nothing of, with that one and its class.
fn shadowed(classes: &[ClassConfig]) -> Option<(&Rule, (&str, &Rule))> {
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
pub(super) fn warnings(bond: &Bond, new: &BondConfig, old: &BondConfig) -> Vec<String> {
    let name = &bond.saved.name;
    let mut warnings = Vec::new();
    let class = |of: &BondConfig, member: &str| of.member(member)?.class.clone();
    let members = bond.members();
    let first = members.iter().find(|member| member.mac == bond.mac).map(|member| &member.name);
    let moved = |first: &&String| class(new, first).is_some() && class(new, first) != class(old, first);
    if let Some(member) = first.filter(moved) {
        warnings.push(format!(
            "{name}: '{member}' gives the bond its MAC: plain hosts send everything there; another member suits a class better",
        ));
    }
    let rules = || new.classes.iter().flat_map(|class| class.rules.iter().map(move |rule| (class, rule)));
    let is_new = |class: &ClassConfig, rule: &Rule| {
        !old.class(&class.name).is_some_and(|other| other.rules.contains(rule))
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
