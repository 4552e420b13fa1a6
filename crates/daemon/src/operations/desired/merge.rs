//! A request merged with what there is: what is wanted then, or why that cannot be. What depends on the machine, such as
//! whether an interface is there, is refused when the step is taken.

use super::step::{Current, Moving};
use linkbraid_api::{
    BondAdd, BondSet, BondSettings, ClassAdd, ClassDel, ClassName, ClassSet, ClassSettings, Error, FabricAdd,
    FabricSet, FabricSettings, LinkName, MemberAdd, MemberDel, MemberSet, MemberSettings, Request,
    config::{BondConfig, ClassConfig, Config, MemberConfig},
    default_rules, value,
};

/// What is wanted after this request. One that asks, or is about a bond or fabric that is not there, changes nothing.
pub(in crate::operations) fn merge(has: &Current, request: &Request) -> Result<Config, Error> {
    let mut to = has.config.clone();
    match request {
        Request::FabricAdd(add) => add_fabric(&mut to, add)?,
        Request::FabricSet(set) => set_fabric(has, &mut to, set)?,
        Request::FabricDel(del) => {
            is_free(has, &del.name)?;
            to.fabrics.remove(&del.name);
        }
        Request::BondAdd(add) => add_bond(has, &mut to, add)?,
        Request::BondSet(set) => {
            if let Some(bond) = to.bonds.get_mut(&set.name) {
                set_bond(bond, set);
            }
        }
        Request::BondDel(del) => drop(to.bonds.remove(&del.name)),
        Request::MemberAdd(add) if to.bonds.contains_key(&add.bond) => add_member(&mut to, add)?,
        Request::MemberSet(MemberSet { bond: name, interface, options }) => {
            if let Some(bond) = to.bonds.get_mut(name) {
                if bond.member(interface).is_none() {
                    return Err(no_member(name, bond, interface));
                }
                for member in bond.members.iter_mut().filter(|member| member.interface == *interface) {
                    member.settings = member.settings.with(options);
                }
            }
        }
        Request::MemberDel(del) => {
            if let Some(bond) = to.bonds.get_mut(&del.bond) {
                del_member(has, bond, del)?;
            }
        }
        Request::ClassAdd(ClassAdd { bond: name, .. })
        | Request::ClassSet(ClassSet { bond: name, .. })
        | Request::ClassDel(ClassDel { bond: name, .. }) => {
            if let Some(bond) = to.bonds.get_mut(name) {
                change_classes(name, bond, request)?;
            }
        }
        _ => {}
    }
    Ok(to)
}

fn add_fabric(to: &mut Config, add: &FabricAdd) -> Result<(), Error> {
    if to.fabrics.contains_key(&add.name) {
        let cause = "a fabric of this name is there already";
        return Err(Error::new(&add.name, "cannot add the fabric", cause)
            .hint(format!("linkbraid fabric show {}", add.name)));
    }
    let fabric = FabricAdd {
        options: add.settings().besides(&FabricSettings::default()),
        queues: Some(add.queues.unwrap_or(1)),
        addresses: once(&add.addresses),
        ..add.clone()
    };
    to.fabrics.insert(add.name.clone(), fabric);
    Ok(())
}

fn set_fabric(has: &Current, to: &mut Config, set: &FabricSet) -> Result<(), Error> {
    let Some(fabric) = to.fabrics.get_mut(&set.name) else { return Ok(()) };
    // A node that cannot start again is as it was before, and by then others may have changed addresses.
    if let (Some(nodes), Some(_)) = (set.nodes, &set.addresses) {
        let cause = "the number of nodes and addresses change one after the other";
        return Err(Error::new(&set.name, "option '--address'", cause)
            .hint(format!("linkbraid fabric set {} --nodes {nodes}", set.name)));
    }
    if let Some(new) = set.nodes.filter(|new| *new < fabric.nodes) {
        let cause = format!("{new} is less than the {} there are; nodes can only be added", fabric.nodes);
        return Err(Error::new(&set.name, "option '--nodes'", cause)
            .hint(format!("linkbraid fabric del {}", set.name)));
    }
    let settings = fabric.settings().with(&set.options);
    if settings.mtu != fabric.settings().mtu || set.addresses.is_some() {
        is_free(has, &set.name)?;
    }
    fabric.options = settings.besides(&FabricSettings::default());
    fabric.nodes = set.nodes.unwrap_or(fabric.nodes);
    if let Some(addresses) = &set.addresses {
        fabric.addresses = once(addresses);
    }
    Ok(())
}

/// Addresses as the kernel writes them, each once.
fn once(texts: &[String]) -> Vec<String> {
    let mut addresses: Vec<String> = Vec::new();
    for address in texts.iter().map(|text| value::cidr(text).unwrap_or_else(|_| text.clone())) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Refuses a fabric that is a member of a bond: it is the bond's to change.
fn is_free(has: &Current, name: &str) -> Result<(), Error> {
    let leaves =
        |bond| has.moving.get(bond).is_some_and(|moving| moving.leaving.iter().any(|one| *one == *name));
    let has_it = |of: &BondConfig| of.member(name).is_some_and(|member| !member.absent);
    let mut bonds = has.config.bonds.iter();
    let Some((bond, _)) = bonds.find(|(bond, of)| has_it(of) || leaves(*bond)) else {
        return Ok(());
    };
    Err(member_of(name, bond))
}

/// Says that a fabric is a member of a bond.
pub(in crate::operations) fn member_of(fabric: &str, bond: &str) -> Error {
    let cause = format!("it is a member of bond '{bond}'");
    Error::new(fabric, "cannot change the fabric", cause)
        .hint(format!("linkbraid member del {bond} {fabric}"))
}

fn add_bond(has: &Current, to: &mut Config, add: &BondAdd) -> Result<(), Error> {
    if has.config.bonds.contains_key(&add.name) {
        let cause = "a bond of this name is there already";
        return Err(
            Error::new(&add.name, "cannot add the bond", cause).hint(format!("linkbraid show {}", add.name))
        );
    }
    let mut bond = BondConfig {
        members: add.members.iter().cloned().map(MemberConfig::new).collect(),
        addresses: once(&add.addresses),
        settings: BondSettings::default().with(&add.options),
        mtu: add.options.mtu.map(|mtu| mtu.0),
        move_address: add.move_address,
        classes: Vec::new(),
    };
    for name in &add.members {
        free(to, &add.name, name)?;
    }
    give_class(&mut bond, add)?;
    to.bonds.insert(add.name.clone(), bond);
    Ok(())
}

/// `bond add --class`
fn give_class(bond: &mut BondConfig, add: &BondAdd) -> Result<(), Error> {
    let Some(class) = add.classes.first() else { return Ok(()) };
    let refuse = |class: &str, cause: String| {
        let members = add.members.join(",");
        Err(Error::new(&add.name, format!("cannot add class '{class}'"), cause)
            .hint(format!("linkbraid bond add {} --member {members}", add.name)))
    };
    for (i, name) in class.members.iter().enumerate() {
        if !add.members.contains(name) {
            return refuse(&class.name, format!("'{name}' is not among the bond's members"));
        }
        if class.members[..i].contains(name) {
            return refuse(&class.name, format!("member '{name}' is named twice"));
        }
    }
    if class.members.len() == add.members.len() {
        return refuse(&class.name, "it would leave no member for the default class".into());
    }
    if let Some(second) = add.classes.get(1) {
        let cause = "a second class would have the rules of the first; 'class add' gives it rules of its own";
        return refuse(&second.name, cause.into());
    }
    bond.classes.push(ClassConfig {
        name: class.name.clone(),
        rules: default_rules(),
        settings: ClassSettings::default(),
        has_members: true,
    });
    bond.give(&class.name, &class.members);
    Ok(())
}

fn set_bond(bond: &mut BondConfig, set: &BondSet) {
    bond.settings = bond.settings.with(&set.options);
    bond.mtu = set.options.mtu.map(|mtu| mtu.0).or(bond.mtu);
    if let Some(addresses) = &set.addresses {
        bond.addresses = once(addresses);
    }
}

fn add_member(to: &mut Config, add: &MemberAdd) -> Result<(), Error> {
    free(to, &add.bond, &add.interface)?;
    let Some(bond) = to.bonds.get_mut(&add.bond) else { return Ok(()) };
    if let Some(name) = add.class.as_ref().filter(|name| bond.class(name).is_none()) {
        return Err(no_class(&add.bond, bond.classes.iter().map(|class| class.name.as_str()), name));
    }
    bond.move_address = add.move_address;
    bond.members.push(MemberConfig {
        interface: add.interface.clone(),
        settings: MemberSettings::default().with(&add.options),
        class: add.class.clone(),
        force: add.force,
        absent: false,
    });
    for class in bond.classes.iter_mut().filter(|class| Some(&class.name) == add.class.as_ref()) {
        class.has_members = true;
    }
    Ok(())
}

/// Refuses a link that a bond has. Others that only wait for it do so until it has joined: whoever asks last has it.
fn free(to: &mut Config, bond: &str, name: &str) -> Result<(), Error> {
    let has = |of: &BondConfig| of.member(name).is_some_and(|member| !member.absent);
    if let Some((of, _)) = to.bonds.iter().find(|(_, of)| has(of)) {
        let cause = format!("it is already in '{of}'");
        return Err(Error::new(bond, format!("cannot add member '{name}'"), cause)
            .hint(format!("linkbraid member del {of} {name}")));
    }
    if let Some(own) = to.bonds.get_mut(bond) {
        own.members.retain(|member| *member.interface != *name);
    }
    Ok(())
}

fn del_member(has: &Current, bond: &mut BondConfig, del: &MemberDel) -> Result<(), Error> {
    let moving = has.moving.get(&del.bond).cloned().unwrap_or_default();
    if moving.leaving.contains(&del.interface) {
        let what = format!("cannot remove member '{}'", del.interface);
        return Err(
            Error::new(&del.bond, what, "it is leaving already").hint(format!("linkbraid show {}", del.bond))
        );
    }
    if bond.member(&del.interface).is_none() {
        return Err(no_member(&del.bond, bond, &del.interface));
    }
    if !del.force {
        may_leave(&del.bond, bond, &moving, &del.interface)?;
    }
    bond.members.retain(|member| member.interface != del.interface);
    Ok(())
}

/// Refuses that a bond loses a member which nobody can replace.
pub(in crate::operations) fn may_leave(
    name: &str,
    bond: &BondConfig,
    moving: &Moving,
    interface: &str,
) -> Result<(), Error> {
    let refuse = |cause: &str, hint: String| {
        Err(Error::new(name, format!("cannot remove member '{interface}'"), cause).hint(hint))
    };
    let Some(member) = bond.member(interface).filter(|member| !member.absent) else { return Ok(()) };
    let mut others = bond.members.iter().filter(|other| *other.interface != *interface && !other.absent);
    let Some(other) = others.clone().next() else {
        return refuse("it is the last one", format!("linkbraid bond del {name}"));
    };
    if let (None, Some(class)) = (&member.class, &other.class)
        && others.clone().all(|other| other.class.is_some())
    {
        let hint = format!("linkbraid class set {name} {class} --no-members");
        return refuse("it is the last one that is in no class", hint);
    }
    // One that is still to prove itself may be withdrawn again.
    if others.all(|other| moving.joining.contains(&other.interface)) {
        return refuse("the others are still joining", format!("linkbraid show {name}"));
    }
    Ok(())
}

fn change_classes(bond_name: &str, bond: &mut BondConfig, request: &Request) -> Result<(), Error> {
    let at = |bond: &BondConfig, name: &str| {
        let at = bond.classes.iter().position(|class| *class.name == *name);
        at.ok_or_else(|| no_class(bond_name, bond.classes.iter().map(|class| class.name.as_str()), name))
    };
    match request {
        Request::ClassAdd(add) => {
            let what = format!("cannot add class '{}'", add.name);
            if bond.class(&add.name).is_some() {
                return Err(Error::new(bond_name, what, "a class of this name is there already")
                    .hint(format!("linkbraid class show {bond_name}")));
            }
            give(bond_name, bond, &add.name, &add.members, &what)?;
            bond.classes.push(ClassConfig {
                name: add.name.clone(),
                rules: add.rules.clone(),
                settings: ClassSettings::default().with(&add.options),
                has_members: !add.members.is_empty(),
            });
        }
        Request::ClassSet(set) => {
            let at = at(bond, &set.name)?;
            if let Some(members) = &set.members {
                let what = format!("cannot change class '{}'", set.name);
                give(bond_name, bond, &set.name, members, &what)?;
                bond.classes[at].has_members = !members.is_empty();
            }
            let class = &mut bond.classes[at];
            class.rules = set.rules.clone().unwrap_or_else(|| std::mem::take(&mut class.rules));
            class.settings = class.settings.with(&set.options);
        }
        Request::ClassDel(del) => {
            bond.classes.remove(at(bond, &del.name)?);
            bond.give(&del.name, &[]);
        }
        _ => {}
    }
    Ok(())
}

/// Makes these members, and no others, those of a class.
fn give(
    bond_name: &str,
    bond: &mut BondConfig,
    class: &ClassName,
    names: &[LinkName],
    what: &str,
) -> Result<(), Error> {
    for (i, name) in names.iter().enumerate() {
        let refuse = |cause: String, hint: String| {
            Err(Error::new(bond_name, format!("{what}: member '{name}'"), cause).hint(hint))
        };
        if names[..i].contains(name) {
            return refuse("it is named twice".into(), format!("linkbraid class show {bond_name}"));
        }
        let Some(member) = bond.member(name) else { return Err(no_member(bond_name, bond, name)) };
        if let Some(other) = member.class.as_ref().filter(|other| *other != class) {
            let hint = format!("linkbraid class set {bond_name} {other} --no-members");
            return refuse(format!("it is in class '{other}' already"), hint);
        }
    }
    bond.give(class, names);
    Ok(())
}

fn no_member(bond_name: &str, bond: &BondConfig, name: &str) -> Error {
    let there = bond.members.iter().filter(|member| !member.absent);
    let members: Vec<&str> = there.map(|member| member.interface.as_str()).collect();
    let cause = format!("its members are {}", members.join(", "));
    Error::new(bond_name, format!("no member '{name}'"), cause).hint(format!("linkbraid show {bond_name}"))
}

/// Says that there is no such class.
pub(in crate::operations) fn no_class<'c>(
    bond: &str,
    classes: impl Iterator<Item = &'c str>,
    name: &str,
) -> Error {
    let names: Vec<&str> = classes.collect();
    let cause = match names.is_empty() {
        true => "there are no classes".to_owned(),
        false => format!("the classes are {}", names.join(", ")),
    };
    Error::new(bond, format!("no class '{name}'"), cause).hint(format!("linkbraid class show {bond}"))
}

#[cfg(test)]
mod tests;
