//! What the daemon holds, in the shape of a configuration file; and the marks that say what `apply` has added.

use super::desired::{Change, Current, Made, Moving, Step};
use crate::world::{
    World,
    bond::Bond,
    fabric::{Fabric, read_addresses},
    member::Member,
};
use linkbraid_api::{
    BondSettings, FabricAdd, FabricSettings, LinkName,
    config::{BondConfig, ClassConfig, MemberConfig},
    value,
};
use linkbraid_wire::MacAddr;
use std::net::IpAddr;

/// All bonds and fabrics as they are now.
pub(super) async fn current(world: &mut World) -> Current {
    let (netlink, clock) = (&world.netlink, world.clock);
    for bond in world.bonds.values_mut() {
        // The kernel may have reported changes that the loop has not come to yet. Where it says nothing, those have to do.
        if let Err(error) = bond.read_addresses(netlink, clock).await {
            tracing::debug!(%error, "addresses not read");
        }
    }
    for fabric in world.fabrics.values_mut() {
        read_addresses(netlink, fabric).await;
    }
    let is_member = |fabric: &Fabric| {
        let mut members = world.bonds.values().flat_map(Bond::members);
        members.any(|member| member.ifindex == fabric.saved.ifindex)
    };
    let mut has = Current::default();
    for (name, bond) in &world.bonds {
        has.config.bonds.insert(name.clone(), of_bond(bond));
        has.made.insert(name.clone(), made_of(bond));
        has.moving.insert(name.clone(), moving(bond));
        let held = bond.addresses.iter().map(|(ip, prefix)| format!("{ip}/{prefix}"));
        has.held.insert(name.clone(), held.collect());
    }
    for (name, fabric) in &world.fabrics {
        has.config.fabrics.insert(name.clone(), of_fabric(fabric, is_member(fabric)));
        let addresses = fabric.saved.applied_addresses.iter().cloned().collect();
        let made = Made { whole: fabric.saved.applied, addresses, ..Made::default() };
        has.made.insert(name.clone(), made);
        has.held.insert(name.clone(), fabric.addresses.clone());
    }
    has
}

fn of_fabric(fabric: &Fabric, is_member: bool) -> FabricAdd {
    let saved = &fabric.saved;
    // Those that it was given and still has, or will have again when it leaves its bond.
    let has = |given: &&String| is_member || fabric.addresses.contains(given);
    FabricAdd {
        name: saved.name.clone(),
        node: saved.node,
        nodes: saved.nodes,
        transport: saved.transport.clone(),
        options: saved.settings.besides(&FabricSettings::default()),
        mac: Some(MacAddr(saved.mac).to_string()),
        queues: Some(saved.queues),
        addresses: saved.addresses.iter().filter(has).cloned().collect(),
    }
}

/// A bond without members that are about to leave.
pub(super) fn of_bond(bond: &Bond) -> BondConfig {
    let saved = &bond.saved;
    let member = |member: &Member| MemberConfig {
        interface: LinkName::of_link(&member.name),
        settings: member.settings,
        class: bond.class_name(member.class),
        // One that was in the bond before is put back whoever answers through it.
        force: true,
        absent: false,
    };
    let class = |class: &crate::io::state::SavedClass| ClassConfig {
        name: class.name.clone(),
        rules: class.rules.clone(),
        settings: class.settings,
        has_members: class.has_members,
    };
    // What is to come back has its place.
    let absent = bond.absent().map(|absent| MemberConfig {
        interface: LinkName::of_link(&absent.name),
        settings: absent.settings,
        class: bond.class_name(absent.class),
        force: true,
        absent: true,
    });
    BondConfig {
        members: bond.members().iter().filter(|member| !member.leaving).map(member).chain(absent).collect(),
        addresses: addresses(bond),
        settings: BondSettings { latency: bond.latency.is_some(), ..saved.settings.clone() },
        mtu: Some(saved.mtu),
        move_address: true,
        classes: saved.classes.iter().map(class).collect(),
    }
}

/// Those that it was given and still has.
fn addresses(bond: &Bond) -> Vec<String> {
    let given = bond.saved.addresses.iter().filter_map(|text| value::address(text).ok());
    let has = |address: &(IpAddr, u8)| bond.addresses.contains(address);
    given.filter(has).map(|(ip, prefix)| format!("{ip}/{prefix}")).collect()
}

/// Members that come or go just now.
pub(super) fn moving(bond: &Bond) -> Moving {
    let names = |is: fn(&Member) -> bool| {
        bond.members().into_iter().filter(is).map(|member| LinkName::of_link(member.name)).collect()
    };
    Moving { joining: names(|member| member.joining), leaving: names(|member| member.leaving) }
}

fn made_of(bond: &Bond) -> Made {
    let saved = &bond.saved;
    let made =
        |index: u32| saved.members.iter().any(|member| member.before.link.index == index && member.applied);
    let members = bond.members().into_iter().filter(|member| made(member.ifindex));
    let classes = saved.classes.iter().filter(|class| class.applied);
    Made {
        whole: saved.applied,
        members: members
            .map(|member| member.name)
            .chain(saved.absent.iter().filter(|absent| absent.applied).map(|absent| absent.name.clone()))
            .map(LinkName::of_link)
            .collect(),
        classes: classes.map(|class| class.name.clone()).collect(),
        addresses: saved.applied_addresses.iter().cloned().collect(),
    }
}

/// Notes that a step that was taken was one of `apply`; with what there was before all of its steps.
pub(super) fn mark(world: &mut World, step: &Step, before: &Current) {
    // Those that a file gave: it had given them before, or nobody had.
    let given = |name: &str, made: &[String], from: Option<&Vec<String>>, to: &[String]| -> Vec<String> {
        let had: Vec<&String> = from.into_iter().chain(before.held.get(name)).flatten().collect();
        to.iter().filter(|address| made.contains(address) || !had.contains(address)).cloned().collect()
    };
    let written = match step {
        Step::Fabric(Change { name, from, to: Some(to) }) => {
            let Some(Fabric { saved, .. }) = world.fabrics.get_mut(name) else { return };
            let before = from.as_ref().map(|from| &from.addresses);
            saved.applied |= from.is_none();
            saved.applied_addresses = given(name, &saved.applied_addresses, before, &to.addresses);
            world.state.write(saved)
        }
        Step::Bond(Change { name, from, to: Some(to) }) => {
            let Some(Bond { saved, .. }) = world.bonds.get_mut(name) else { return };
            let before = from.as_ref().map(|from| &from.addresses);
            saved.applied |= from.is_none();
            saved.applied_addresses = given(name, &saved.applied_addresses, before, &to.addresses);
            if from.is_none() {
                saved.members.iter_mut().for_each(|member| member.applied = true);
                saved.absent.iter_mut().for_each(|absent| absent.applied = true);
                saved.classes.iter_mut().for_each(|class| class.applied = true);
            }
            world.state.write(saved)
        }
        Step::Member { bond, member, .. } if member.joins() || member.from.is_none() => {
            let Some(bond) = world.bonds.get_mut(bond) else { return };
            let index = bond.member(&member.name).map(|member| member.ifindex);
            let members = bond.saved.members.iter_mut();
            let members = members.filter(|member| Some(member.before.link.index) == index);
            members.for_each(|member| member.applied = true);
            let absent = bond.saved.absent.iter_mut().filter(|absent| *absent.name == *member.name);
            absent.for_each(|absent| absent.applied = true);
            world.state.write(&bond.saved)
        }
        Step::Class { bond: name, class } if class.from.is_none() => {
            let Some(bond) = world.bonds.get_mut(name) else { return };
            // One that only had to be made again is whose it was.
            let was = before.config.bonds.get(name).and_then(|bond| bond.class(&class.name));
            let is_made = before.made.get(name).is_some_and(|made| made.classes.contains(&class.name));
            for own in bond.saved.classes.iter_mut().filter(|own| own.name == class.name) {
                own.applied = was.is_none() || is_made;
            }
            world.state.write(&bond.saved)
        }
        _ => Ok(()),
    };
    if let Err(error) = written {
        tracing::error!(%error, "a later file will not remove it");
    }
}

/// Marks as made by files what was so before, and as without members of their own the classes that were, unless somebody has
/// given them some meanwhile.
pub(super) fn mark_as_before(world: &mut World, before: &Current) {
    let clock = world.clock;
    for (name, made) in &before.made {
        let addresses =
            |has: &[String]| has.iter().filter(|one| made.addresses.contains(*one)).cloned().collect();
        let written = if let Some(bond) = world.bonds.get_mut(name) {
            let members = bond.members();
            let is_made = |index: u32| {
                members
                    .iter()
                    .any(|member| member.ifindex == index && made.members.contains(member.name.as_str()))
            };
            let saved = &mut bond.saved;
            saved.applied = made.whole;
            saved.applied_addresses = addresses(&saved.addresses);
            saved.members.iter_mut().for_each(|member| member.applied = is_made(member.before.link.index));
            saved
                .absent
                .iter_mut()
                .for_each(|absent| absent.applied = made.members.contains(absent.name.as_str()));
            for class in &mut saved.classes {
                class.applied = made.classes.contains(&class.name);
                let had = before.config.bonds.get(name).and_then(|bond| bond.class(&class.name));
                class.has_members &= had.is_none_or(|had| had.has_members)
                    || members.iter().any(|member| member.class == class.number)
                    || saved.absent.iter().any(|absent| absent.class == class.number);
            }
            let kept = world.state.write(&bond.saved);
            bond.write_tables(clock).and(kept)
        } else if let Some(fabric) = world.fabrics.get_mut(name) {
            fabric.saved.applied = made.whole;
            fabric.saved.applied_addresses = addresses(&fabric.saved.addresses);
            world.state.write(&fabric.saved)
        } else {
            Ok(())
        };
        if let Err(error) = written {
            tracing::error!(%error, "a later file will not remove it");
        }
    }
}
