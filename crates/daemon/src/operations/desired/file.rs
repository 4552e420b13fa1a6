//! A file merged with what there is: what the file says, and what there is besides that was not made by a file.

use super::step::{Current, Made};
use linkbraid_api::{
    Error, FabricAdd, FabricSettings, LinkName,
    config::{BondConfig, ClassConfig, Config, Document, MemberConfig, Part},
};
use std::collections::BTreeSet;

/// What is to be there. With `removes`, what an earlier `apply` has added and the file no longer names is not.
///
/// # Errors
/// A fabric that would have to be another one: its interface would lose its addresses and its place in a bridge.
pub(in crate::operations) fn merge(
    current: &Current,
    document: &Document,
    removes: bool,
) -> Result<Config, Error> {
    let (has, file) = (&current.config, &document.config);
    let none = Made::default();
    let made = |name: &LinkName| current.made.get(name).unwrap_or(&none);
    let mut wanted = has.clone();
    wanted.fabrics.retain(|name, _| !(removes && made(name).whole));
    wanted.bonds.retain(|name, _| !(removes && made(name).whole));
    for (name, fabric) in &file.fabrics {
        let mut fabric = fabric_as(fabric, has.fabrics.get(name)).map_err(|(key, cause)| {
            Error::new(document.place(name, &Part::Whole), format!("fabric '{name}': key '{key}'"), cause)
                .hint(format!("linkbraid fabric del {name}"))
        })?;
        if let Some(has) = has.fabrics.get(name) {
            keep_addresses(&mut fabric.addresses, &has.addresses, &made(name).addresses, removes);
        }
        wanted.fabrics.insert(name.clone(), fabric);
    }
    for (name, bond) in &file.bonds {
        let mut bond = bond.clone();
        if let Some(has) = has.bonds.get(name) {
            keep(&mut bond, has, made(name), removes);
        }
        wanted.bonds.insert(name.clone(), bond);
    }
    Ok(wanted)
}

/// A fabric as the file says, with what that leaves out; or the key that cannot be changed, and why.
fn fabric_as(file: &FabricAdd, has: Option<&FabricAdd>) -> Result<FabricAdd, (&'static str, String)> {
    let mut settings = file.settings();
    if let (None, Some(has)) = (file.options.mtu, has) {
        settings.mtu = has.settings().mtu;
    }
    let mut fabric = FabricAdd {
        options: settings.besides(&FabricSettings::default()),
        queues: Some(file.queues.unwrap_or(1)),
        ..file.clone()
    };
    let Some(has) = has else { return Ok(fabric) };
    let cannot = |key, now: String, then: String| {
        Err((key, format!("it is {now} and cannot become {then} while the fabric is there")))
    };
    let number = |queues: Option<u16>| queues.unwrap_or(1).to_string();
    if fabric.node != has.node {
        return cannot("node", has.node.to_string(), fabric.node.to_string());
    }
    if fabric.nodes < has.nodes {
        return cannot("nodes", has.nodes.to_string(), fabric.nodes.to_string());
    }
    if fabric.transport != has.transport {
        return cannot("transport", format!("'{}'", has.transport), format!("'{}'", fabric.transport));
    }
    if fabric.queues != has.queues {
        return cannot("queues", number(has.queues), number(fabric.queues));
    }
    if let (Some(wants), Some(has)) = (&fabric.mac, &has.mac)
        && wants != has
    {
        return cannot("mac", has.clone(), wants.clone());
    }
    fabric.mac.clone_from(&has.mac);
    Ok(fabric)
}

/// Keeps those that the file does not name and that were not made by a file.
fn keep_addresses(addresses: &mut Vec<String>, has: &[String], made: &BTreeSet<String>, removes: bool) {
    for address in has.iter().filter(|address| !(removes && made.contains(*address))) {
        if !addresses.contains(address) {
            addresses.push(address.clone());
        }
    }
}

/// Keeps of a bond what the file does not say, and what was not made by a file.
fn keep(bond: &mut BondConfig, has: &BondConfig, made: &Made, removes: bool) {
    let stays = |made: bool| !(removes && made);
    bond.mtu = bond.mtu.or(has.mtu);
    keep_addresses(&mut bond.addresses, &has.addresses, &made.addresses, removes);
    let by_hand =
        |class: &&ClassConfig| bond.class(&class.name).is_none() && stays(made.classes.contains(&class.name));
    let others: Vec<ClassConfig> = has.classes.iter().filter(by_hand).cloned().collect();
    bond.classes = in_order(std::mem::take(&mut bond.classes), others, has);
    for member in &has.members {
        let stays = stays(made.members.contains(&member.interface));
        let class = member.class.clone().filter(|class| bond.class(class).is_some());
        match bond.members.iter_mut().find(|other| other.interface == member.interface) {
            Some(named) => named.absent = member.absent,
            None if stays => bond.members.push(MemberConfig { class, ..member.clone() }),
            None => {}
        }
    }
    let BondConfig { classes, members, .. } = bond;
    for class in classes {
        // Those that it was given may all be gone, or be about to leave.
        let stays = |name: &LinkName| members.iter().any(|member| member.interface == *name);
        let none = !has.members_of(&class.name).iter().any(stays);
        class.has_members |= members.iter().any(|member| member.class.as_deref() == Some(&class.name));
        class.has_members |= none && has.class(&class.name).is_some_and(|has| has.has_members);
    }
}

/// The classes of the file in its order, and the others, in the order in which they are now if that fits: a class that
/// changes its place has to be made again.
fn in_order(file: Vec<ClassConfig>, others: Vec<ClassConfig>, has: &BondConfig) -> Vec<ClassConfig> {
    let place = |class: &ClassConfig| has.classes.iter().position(|other| other.name == class.name);
    let places: Vec<Option<usize>> = file.iter().map(place).collect();
    // Those that are there first and in order, those that are new behind them.
    let fits = places.is_sorted_by_key(|place| place.unwrap_or(usize::MAX));
    let mut all = file;
    all.extend(others);
    if fits {
        all.sort_by_key(|class| place(class).unwrap_or(usize::MAX));
    }
    all
}

#[cfg(test)]
mod tests;
