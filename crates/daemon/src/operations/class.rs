//! `class add`, `class set`, `class del` and `run`: everything done, or everything as it was.

use super::{
    current::of_bond,
    desired::{Change, Class, merge::no_class},
};
use crate::{
    io::{error::About as _, group::Groups, state::SavedClass, undo::UndoLog},
    operations::settle,
    world::{World, bond::Bond},
};
use linkbraid_api::{ClassName, Error, Run, config::ClassConfig, limits::CLASSES_MAX};

mod check;

/// Classes as they are on file. Those that are `known` keep their numbers, and others have numbers that are free.
pub(crate) fn numbered(classes: &[ClassConfig], known: &[SavedClass]) -> Vec<SavedClass> {
    let before = |class: &ClassConfig| known.iter().find(|known| known.name == class.name);
    let taken: Vec<u8> = classes.iter().filter_map(before).map(|known| known.number).collect();
    let mut free = (1..=CLASSES_MAX as u8).filter(|number| !taken.contains(number));
    let number = |class: &ClassConfig| {
        let before = before(class);
        Some(SavedClass {
            number: before.map(|known| known.number).or_else(|| free.next())?,
            name: class.name.clone(),
            rules: class.rules.clone(),
            has_members: class.has_members,
            settings: class.settings,
            applied: before.is_some_and(|known| known.applied),
        })
    };
    classes.iter().filter_map(number).collect()
}

/// Says that there is no such class.
pub(crate) fn no_such(bond: &Bond, name: &str) -> Error {
    no_class(&bond.saved.name, bond.saved.classes.iter().map(|class| class.name.as_str()), name)
}

/// Adds, changes or removes a class; `back` if an earlier change is taken back.
pub(crate) async fn change(
    world: &mut World,
    name: &str,
    class: &Change<Class, ClassName>,
    back: bool,
) -> Result<Vec<String>, Error> {
    let unknown = world.no_bond(name);
    let bond = world.bonds.get_mut(name).ok_or(unknown)?;
    let (doing, reason, done) = match (&class.from, &class.to) {
        (_, None) => ("remove", "class_removed", "removed"),
        (None, Some(_)) => ("add", "class_added", "added"),
        (Some(_), Some(_)) => ("change", "class_changed", "changed"),
    };
    let old = of_bond(bond);
    let mut new = old.clone();
    class.apply(&mut new);
    let what = format!("cannot {doing} class '{}'", class.name);
    check::check(name, &new, &old, (&what, back))?;
    let known = &bond.saved.classes;
    let classes = numbered(&new.classes, known);
    for class in classes.iter().filter(|class| known.iter().all(|known| known.number != class.number)) {
        // An earlier class of this number has counted there.
        let cleared = bond.path.clear_class_counts(class.number);
        let cleared = cleared.and_then(|()| bond.latency.as_ref().map_or(Ok(()), |m| m.clear(class.number)));
        cleared.about(name, "cannot clear its counters")?;
    }
    let replace = async |_: &mut UndoLog, bond: &mut Bond| {
        let number = |name: &str| {
            let class = new.member(name)?.class.as_ref()?;
            classes.iter().find(|own| own.name == *class).map(|own| own.number)
        };
        for member in bond.members() {
            let own = bond.saved.members.iter_mut().filter(|own| own.slot == member.slot);
            own.for_each(|own| own.class = number(&member.name).unwrap_or(0));
        }
        for absent in &mut bond.saved.absent {
            absent.class = number(&absent.name).unwrap_or(0);
        }
        bond.saved.classes = classes;
        Ok(())
    };
    settle::change(world, name, replace).await?;
    let Some(bond) = world.bonds.get(name) else { return Ok(Vec::new()) };
    bond.report(None, reason, format!("class '{}' {done}", class.name));
    Ok(check::warnings(bond, &new, &old))
}

/// `run`: the client's process goes into the class's control group.
pub(crate) fn run(world: &mut World, run: &Run, pid: Option<i32>) -> Result<Vec<String>, Error> {
    let name = match &run.bond {
        Some(name) => name.clone(),
        None => only(world, &run.class)?.saved.name.clone(),
    };
    let unknown = world.no_bond(&name);
    let bond = world.bonds.get_mut(&name).ok_or(unknown)?;
    if bond.saved.classes.iter().all(|class| class.name != run.class) {
        return Err(no_such(bond, &run.class));
    }
    let what = format!("cannot run a command in class '{}'", run.class);
    // 0 is a process of a PID namespace that cannot be seen from here; written to a control group it is this daemon.
    let Some(pid) = pid.filter(|pid| *pid > 0) else {
        let cause = "the daemon cannot see the process that asks, which is in another PID namespace";
        return Err(Error::new(&name, what, cause).hint(format!("linkbraid class show {name}")));
    };
    let groups = Groups::find()?;
    // Somebody may have removed it; one that is made again is another one to the rules.
    bond.make_groups();
    bond.write_rules()?;
    let entered = groups.enter(&bond.rules.group, &run.class, pid).about(&name, what);
    entered.map_err(|error| error.hint(format!("linkbraid class show {name}")))?;
    Ok(Vec::new())
}

/// The only bond that has such a class.
fn only<'c>(world: &'c World, class: &str) -> Result<&'c Bond, Error> {
    let has = |bond: &&Bond| bond.saved.classes.iter().any(|other| other.name == class);
    let mut bonds = world.bonds.values().filter(has);
    match (bonds.next(), bonds.next()) {
        (Some(bond), None) => Ok(bond),
        (Some(bond), Some(other)) => {
            let (name, other) = (&bond.saved.name, &other.saved.name);
            let cause = format!("'{name}' and '{other}' both have such a class");
            Err(Error::new(class, "cannot run a command", cause)
                .hint(format!("linkbraid run --bond {name} --class {class} -- COMMAND")))
        }
        (None, _) => {
            let mut classes: Vec<&str> = world
                .bonds
                .values()
                .flat_map(|bond| bond.saved.classes.iter().map(|class| class.name.as_str()))
                .collect();
            classes.dedup();
            let cause = match classes.is_empty() {
                true => "there are no classes".to_owned(),
                false => format!("the classes are {}", classes.join(", ")),
            };
            Err(Error::new(class, "no such class", cause).hint("linkbraid class show"))
        }
    }
}
