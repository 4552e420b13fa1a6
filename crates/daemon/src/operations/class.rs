//! `class add`, `class set`, `class del` and `run`: everything done, or everything as it was.

use crate::{
    io::{error::About as _, group::Groups, state::SavedClass},
    operations::settle::settle,
    world::{World, bond::Bond},
};
use linkbraid_api::{ClassAdd, ClassDel, ClassSet, ClassSettings, Error, Run, limits::CLASSES_MAX};
use std::collections::BTreeMap;

mod check;

pub(crate) use check::of_bond_add;

/// The classes of a bond, in the order in which their rules are tried, and the class of each member, by index.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Classes {
    pub list: Vec<SavedClass>,
    pub members: BTreeMap<u32, u8>,
    /// The same of members that are to come back, by name.
    pub absent: BTreeMap<String, u8>,
}

impl Classes {
    pub(crate) fn of(bond: &Bond) -> Self {
        Self {
            list: bond.saved.classes.clone(),
            members: bond.members().iter().map(|member| (member.ifindex, member.class)).collect(),
            absent: bond.saved.absent.iter().map(|absent| (absent.name.clone(), absent.class)).collect(),
        }
    }

    /// Takes all members from a class.
    fn release(&mut self, number: u8) {
        let all = self.members.values_mut().chain(self.absent.values_mut());
        all.filter(|of| **of == number).for_each(|of| *of = 0);
    }

    /// Gives the members named, and no others, to a class.
    fn give(&mut self, bond: &Bond, class: &SavedClass, names: &[String], what: &str) -> Result<(), Error> {
        self.release(class.number);
        for (i, name) in names.iter().enumerate() {
            let refuse = |cause: String, hint: String| {
                Err(Error::new(&bond.saved.name, format!("{what}: member '{name}'"), cause).hint(hint))
            };
            if names[..i].contains(name) {
                let hint = format!("linkbraid class show {}", bond.saved.name);
                return refuse("it is named twice".into(), hint);
            }
            let of = match self.absent.get_mut(name).filter(|_| bond.member(name).is_none()) {
                Some(of) => of,
                None => self.members.entry(bond.find(name)?.ifindex).or_default(),
            };
            if let Some(other) = self.list.iter().find(|other| other.number == *of && *of != 0) {
                let cause = format!("it is in class '{}' already", other.name);
                return refuse(
                    cause,
                    format!("linkbraid class set {} {} --no-members", bond.saved.name, other.name),
                );
            }
            *of = class.number;
        }
        Ok(())
    }
}

/// `class add`
pub(crate) async fn add(world: &mut World, add: ClassAdd) -> Result<Vec<String>, Error> {
    change(world, &add.bond.clone(), |bond| {
        let what = format!("cannot add class '{}'", add.name);
        let mut classes = Classes::of(bond);
        if classes.list.iter().any(|class| class.name == add.name) {
            return Err(Error::new(&add.bond, what, "a class of this name is there already")
                .hint(format!("linkbraid class show {}", add.bond)));
        }
        let numbers = 1..=CLASSES_MAX as u8;
        let Some(number) = numbers.into_iter().find(|n| classes.list.iter().all(|class| class.number != *n))
        else {
            return Err(Error::new(&add.bond, what, format!("it has {CLASSES_MAX} classes already"))
                .hint(format!("linkbraid class show {}", add.bond)));
        };
        let class = SavedClass {
            number,
            name: add.name,
            rules: add.rules,
            has_members: !add.members.is_empty(),
            settings: ClassSettings::default().with(&add.options),
            applied: false,
        };
        classes.give(bond, &class, &add.members, &what)?;
        classes.list.push(class);
        Ok((classes, what))
    })
    .await
}

/// `class set`
pub(crate) async fn set(world: &mut World, set: ClassSet) -> Result<Vec<String>, Error> {
    change(world, &set.bond.clone(), |bond| {
        let what = format!("cannot change class '{}'", set.name);
        let mut classes = Classes::of(bond);
        let Some(class) = classes.list.iter_mut().find(|class| class.name == set.name) else {
            return Err(bond.no_class(&set.name));
        };
        class.rules = set.rules.unwrap_or_else(|| class.rules.clone());
        class.settings = class.settings.with(&set.options);
        class.has_members = set.members.as_ref().map_or(class.has_members, |members| !members.is_empty());
        let class = class.clone();
        if let Some(members) = &set.members {
            classes.give(bond, &class, members, &what)?;
        }
        Ok((classes, what))
    })
    .await
}

/// `class del`
pub(crate) async fn delete(world: &mut World, del: ClassDel) -> Result<Vec<String>, Error> {
    change(world, &del.bond.clone(), |bond| {
        let mut classes = Classes::of(bond);
        let Some(at) = classes.list.iter().position(|class| class.name == del.name) else {
            return Err(bond.no_class(&del.name));
        };
        let gone = classes.list.remove(at);
        classes.release(gone.number);
        Ok((classes, format!("cannot remove class '{}'", del.name)))
    })
    .await
}

/// Changes the classes of a bond, all of it or nothing. `wanted` tells the new ones and what to call it if that fails.
async fn change(
    world: &mut World,
    name: &str,
    wanted: impl FnOnce(&Bond) -> Result<(Classes, String), Error>,
) -> Result<Vec<String>, Error> {
    let mut bond = world.bonds.remove(name).ok_or_else(|| world.no_bond(name))?;
    let result = match wanted(&bond) {
        Ok((classes, what)) => replace(world, &mut bond, classes, &what).await,
        Err(error) => Err(error),
    };
    world.bonds.insert(name.to_owned(), bond);
    result
}

async fn replace(
    world: &mut World,
    bond: &mut Bond,
    classes: Classes,
    what: &str,
) -> Result<Vec<String>, Error> {
    let old = Classes::of(bond);
    check::check(bond, &classes, &old, what)?;
    for class in classes.list.iter().filter(|class| old.list.iter().all(|old| old.number != class.number)) {
        // An earlier class of this number has counted there.
        let cleared = bond.path.clear_class_counts(class.number);
        let cleared = cleared.and_then(|()| bond.latency.as_ref().map_or(Ok(()), |m| m.clear(class.number)));
        cleared.about(&bond.saved.name, "cannot clear its counters")?;
    }
    if let Err(error) = apply(world, bond, &classes).await {
        if let Err(error) = apply(world, bond, &old).await {
            tracing::error!(bond = %bond.saved.name, %error, "the classes could not be put back");
        }
        return Err(error);
    }
    tell(bond, &old, &classes);
    Ok(check::warnings(bond, &classes, &old))
}

/// Makes these the bond's classes. Control groups come first and go last, so that no rule names one that is not there, and
/// nobody has been put out of one if this fails.
pub(crate) async fn apply(world: &mut World, bond: &mut Bond, classes: &Classes) -> Result<(), Error> {
    bond.saved.classes.clone_from(&classes.list);
    for member in &mut bond.driven().members {
        member.class = classes.members.get(&member.ifindex).copied().unwrap_or(0);
    }
    for saved in &mut bond.saved.members {
        saved.class = classes.members.get(&saved.before.link.index).copied().unwrap_or(0);
    }
    for absent in &mut bond.saved.absent {
        absent.class = classes.absent.get(&absent.name).copied().unwrap_or(0);
    }
    bond.make_groups();
    // Rules before plans: what is of a class without a plan goes where the rest goes, and no plan outlives its rules.
    let rules = bond.write_rules();
    settle(world, bond).await?;
    rules?;
    world.state.write(&bond.saved)?;
    bond.remove_groups();
    Ok(())
}

fn tell(bond: &Bond, old: &Classes, new: &Classes) {
    let has = |classes: &Classes, name: &str| classes.list.iter().any(|class| class.name == name);
    for class in &new.list {
        let (reason, text) = match has(old, &class.name) {
            false => ("class_added", format!("class '{}' added", class.name)),
            true if old != new => ("class_changed", format!("class '{}' changed", class.name)),
            true => continue,
        };
        let same = old.list.iter().find(|before| before.name == class.name).is_some_and(|before| {
            let members = |classes: &Classes| -> Vec<u32> {
                let own = classes.members.iter().filter(|(_, of)| **of == class.number);
                own.map(|(index, _)| *index).collect()
            };
            before == class && members(old) == members(new)
        });
        if !same {
            bond.tell(None, reason, text);
        }
    }
    for class in old.list.iter().filter(|class| !has(new, &class.name)) {
        bond.tell(None, "class_removed", format!("class '{}' removed", class.name));
    }
}

/// What the user should know of the classes that a bond comes with.
pub(crate) fn first_warnings(bond: &Bond) -> Vec<String> {
    check::warnings(bond, &Classes::of(bond), &Classes::default())
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
        return Err(bond.no_class(&run.class));
    }
    let what = format!("cannot run a command in class '{}'", run.class);
    // 0 is a process of a PID namespace that cannot be seen from here; written to a control group it is this daemon.
    let Some(pid) = pid.filter(|pid| *pid > 0) else {
        let cause = "the daemon cannot see the process that asks, which is in another PID namespace";
        return Err(Error::new(&name, what, cause).hint(format!("linkbraid class show {name}")));
    };
    let groups = Groups::find()?;
    // Somebody may have removed it; one that is made anew is another one to the rules.
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
