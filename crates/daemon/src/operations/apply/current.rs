//! What the daemon holds, in the shape of a configuration file; and the marks that tell what `apply` has added.

use super::wanted::{Current, Held, Made, MadeOfBond, MadeOfFabric};
use crate::{
    operations::setup,
    world::{
        World,
        bond::Bond,
        fabric::{Fabric, read_addresses},
    },
};
use linkbraid_api::{
    BondSettings, Error, FabricAdd, FabricSettings, MemberSettings, Request,
    config::{BondConfig, ClassConfig, Config, MemberConfig},
};
use linkbraid_wire::MacAddr;
use std::net::IpAddr;

/// All bonds and fabrics as they are now.
///
/// # Errors
/// The kernel does not tell a bond's addresses.
pub(super) async fn current(world: &mut World) -> Result<Current, Error> {
    let (netlink, clock) = (&world.netlink, world.clock);
    for bond in world.bonds.values_mut() {
        // The kernel may have told of changes that the loop has not come to yet.
        bond.read_addresses(netlink, clock).await?;
    }
    for fabric in world.fabrics.values_mut() {
        read_addresses(netlink, fabric).await;
    }
    let bonds = world.bonds.iter().map(|(name, bond)| (name.clone(), of_bond(bond))).collect();
    let is_member = |fabric: &Fabric| {
        let mut members = world.bonds.values().flat_map(Bond::members);
        members.any(|member| member.ifindex == fabric.saved.ifindex)
    };
    let of_fabric = |fabric: &Fabric| of_fabric(fabric, is_member(fabric));
    let fabrics = world.fabrics.iter().map(|(name, fabric)| (name.clone(), of_fabric(fabric))).collect();
    let made = Made {
        fabrics: world.fabrics.iter().map(|(name, fabric)| (name.clone(), made_of_fabric(fabric))).collect(),
        bonds: world.bonds.iter().map(|(name, bond)| (name.clone(), made_of(bond))).collect(),
    };
    let of_bonds = world.bonds.iter().map(|(name, bond)| {
        let all = bond.addresses.iter().map(|(ip, prefix)| format!("{ip}/{prefix}"));
        (name.clone(), all.collect())
    });
    let of_fabrics = world.fabrics.iter().map(|(name, fabric)| (name.clone(), fabric.addresses.clone()));
    let held = of_bonds.chain(of_fabrics).collect();
    Ok(Current { config: Config { fabrics, bonds }, made, held })
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

fn made_of_fabric(fabric: &Fabric) -> MadeOfFabric {
    let saved = &fabric.saved;
    MadeOfFabric { whole: saved.applied, addresses: saved.applied_addresses.iter().cloned().collect() }
}

fn of_bond(bond: &Bond) -> BondConfig {
    let saved = &bond.saved;
    let member = |member: &crate::world::member::Member| MemberConfig {
        interface: member.name.clone(),
        settings: MemberSettings { weight: member.weight },
        class: bond.class_name(member.class),
        // One that was in the bond before is put back whoever answers through it.
        force: true,
    };
    let class = |class: &crate::io::state::SavedClass| ClassConfig {
        name: class.name.clone(),
        rules: class.rules.clone(),
        settings: class.settings,
    };
    // What is to come back has its place.
    let absent = bond.absent().map(|absent| MemberConfig {
        interface: absent.name.clone(),
        settings: absent.settings,
        class: bond.class_name(absent.class),
        force: true,
    });
    BondConfig {
        members: bond.members().iter().filter(|member| !member.leaving).map(member).chain(absent).collect(),
        addresses: addresses(bond),
        settings: BondSettings { latency: bond.latency.is_some(), ..saved.settings },
        mtu: Some(saved.mtu),
        move_address: true,
        classes: saved.classes.iter().map(class).collect(),
    }
}

/// Those that it was given and still has.
fn addresses(bond: &Bond) -> Vec<String> {
    let given = bond.saved.addresses.iter().filter_map(|text| setup::parse_cidr(&bond.saved.name, text).ok());
    let has = |address: &(IpAddr, u8)| bond.addresses.contains(address);
    given.filter(has).map(|(ip, prefix)| format!("{ip}/{prefix}")).collect()
}

fn made_of(bond: &Bond) -> MadeOfBond {
    let saved = &bond.saved;
    let made =
        |index: u32| saved.members.iter().any(|member| member.before.link.index == index && member.applied);
    let members = bond.members().into_iter().filter(|member| made(member.ifindex));
    let classes = saved.classes.iter().filter(|class| class.applied);
    MadeOfBond {
        whole: saved.applied,
        members: members
            .map(|member| member.name)
            .chain(saved.absent.iter().filter(|absent| absent.applied).map(|absent| absent.name.clone()))
            .collect(),
        classes: classes.map(|class| class.name.clone()).collect(),
        addresses: saved.applied_addresses.iter().cloned().collect(),
    }
}

/// Notes that a request that was carried out was one of `apply`. `before` is what there was, `held` the addresses that there were
/// before all requests.
pub(super) fn mark(world: &mut World, request: &Request, before: &Config, held: &Held) {
    let others = |name: &str| held.get(name).map(Vec::as_slice).unwrap_or_default();
    let written = match request {
        Request::FabricAdd(add) => {
            let Some(fabric) = world.fabrics.get_mut(&add.name) else { return };
            fabric.saved.applied = true;
            fabric.saved.applied_addresses.clone_from(&fabric.saved.addresses);
            world.state.write_fabric(&fabric.saved)
        }
        Request::FabricSet(set) => {
            let (Some(fabric), Some(addresses)) = (world.fabrics.get_mut(&set.name), &set.addresses) else {
                return;
            };
            let had = before.fabrics.get(&set.name).map(|fabric| fabric.addresses.as_slice());
            let had = [had.unwrap_or_default(), others(&set.name)].concat();
            fabric.saved.applied_addresses = applied(&fabric.saved.applied_addresses, &had, addresses);
            world.state.write_fabric(&fabric.saved)
        }
        Request::BondAdd(add) => {
            let Some(bond) = world.bonds.get_mut(&add.name) else { return };
            bond.saved.applied = true;
            bond.saved.applied_addresses.clone_from(&add.addresses);
            bond.saved.members.iter_mut().for_each(|member| member.applied = true);
            world.state.write(&bond.saved)
        }
        Request::MemberAdd(add) => {
            let Some(bond) = world.bonds.get_mut(&add.bond) else { return };
            let Some(index) = bond.member(&add.interface).map(|member| member.ifindex) else { return };
            for member in bond.saved.members.iter_mut().filter(|member| member.before.link.index == index) {
                member.applied = true;
            }
            world.state.write(&bond.saved)
        }
        Request::ClassAdd(add) => {
            let Some(bond) = world.bonds.get_mut(&add.bond) else { return };
            for class in bond.saved.classes.iter_mut().filter(|class| class.name == add.name) {
                class.applied = true;
            }
            world.state.write(&bond.saved)
        }
        Request::BondSet(set) => {
            let (Some(bond), Some(addresses)) = (world.bonds.get_mut(&set.name), &set.addresses) else {
                return;
            };
            let had = before.bonds.get(&set.name).map(|bond| bond.addresses.as_slice());
            let had = [had.unwrap_or_default(), others(&set.name)].concat();
            bond.saved.applied_addresses = applied(&bond.saved.applied_addresses, &had, addresses);
            world.state.write(&bond.saved)
        }
        _ => Ok(()),
    };
    if let Err(error) = written {
        tracing::error!(%error, "a later file will not remove it");
    }
}

/// Those of `now` that a file gave: it had given them before, or nobody had.
fn applied(made: &[String], had: &[String], now: &[String]) -> Vec<String> {
    now.iter().filter(|address| made.contains(address) || !had.contains(address)).cloned().collect()
}
