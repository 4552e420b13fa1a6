//! What a request makes of bonds and fabrics, if it is carried out.

use crate::{fabric, setup};
use linkbraid_api::{
    BondAdd, BondSet, InspectorSet, Request,
    config::{BondConfig, ClassConfig, Config, MemberConfig},
};

/// Changes `config` as the request would. What asks, and what does not fit, changes nothing.
pub(super) fn simulate(config: &mut Config, request: &Request) {
    match request {
        Request::FabricAdd(add) => {
            let mut fabric = add.clone();
            fabric.mtu.get_or_insert(fabric::MTU);
            fabric.queues.get_or_insert(1);
            config.fabrics.insert(add.name.clone(), fabric);
        }
        Request::FabricSet(set) => {
            let Some(fabric) = config.fabrics.get_mut(&set.name) else { return };
            fabric.mtu = set.mtu.or(fabric.mtu);
            fabric.poll = set.poll.unwrap_or(fabric.poll);
            fabric.nodes = set.nodes.unwrap_or(fabric.nodes);
            if let Some(addresses) = &set.addresses {
                fabric.addresses.clone_from(addresses);
            }
        }
        Request::FabricDel(del) => drop(config.fabrics.remove(&del.name)),
        Request::BondAdd(add) => drop(config.bonds.insert(add.name.clone(), added(add))),
        Request::BondDel(del) => drop(config.bonds.remove(&del.name)),
        _ => {
            if let Some(bond) = bond_of(request).and_then(|name| config.bonds.get_mut(name)) {
                in_bond(bond, request);
            }
        }
    }
}

/// The bond that a request is about, if it is about one that is there.
fn bond_of(request: &Request) -> Option<&str> {
    Some(match request {
        Request::BondSet(set) => &set.name,
        Request::MemberAdd(add) => &add.bond,
        Request::MemberSet(set) => &set.bond,
        Request::MemberDel(del) => &del.bond,
        Request::ClassAdd(add) => &add.bond,
        Request::ClassSet(set) => &set.bond,
        Request::ClassDel(del) => &del.bond,
        _ => return None,
    })
}

fn added(add: &BondAdd) -> BondConfig {
    let member = |name: &String| MemberConfig { interface: name.clone(), ..MemberConfig::default() };
    BondConfig {
        members: add.members.iter().map(member).collect(),
        addresses: add.addresses.clone(),
        policy: add.policy,
        mtu: add.mtu,
        stripe: add.stripe,
        damping: add.damping,
        move_address: add.move_address,
        inspector: over(setup::INSPECTOR, add.inspector),
        latency: false,
        classes: Vec::new(),
    }
}

/// The settings, with those that are given instead.
pub(super) fn over(old: InspectorSet, given: InspectorSet) -> InspectorSet {
    InspectorSet {
        probes: given.probes.or(old.probes),
        probe_interval_ms: given.probe_interval_ms.or(old.probe_interval_ms),
        probe_multiplier: given.probe_multiplier.or(old.probe_multiplier),
        up_delay_ms: given.up_delay_ms.or(old.up_delay_ms),
    }
}

fn in_bond(bond: &mut BondConfig, request: &Request) {
    match request {
        Request::BondSet(set) => set_bond(bond, set),
        Request::MemberAdd(add) => bond.members.push(MemberConfig {
            interface: add.interface.clone(),
            weight: add.weight,
            class: add.class.clone(),
            force: add.force,
        }),
        Request::MemberSet(set) => {
            for member in bond.members.iter_mut().filter(|member| member.interface == set.interface) {
                member.weight = set.weight.unwrap_or(member.weight);
            }
        }
        Request::MemberDel(del) => bond.members.retain(|member| member.interface != del.interface),
        Request::ClassAdd(add) => {
            bond.classes.push(ClassConfig {
                name: add.name.clone(),
                rules: add.rules.clone(),
                policy: add.policy,
                fallback: add.fallback,
                borrow: add.borrow,
            });
            give(bond, &add.name, &add.members);
        }
        Request::ClassSet(set) => {
            for class in bond.classes.iter_mut().filter(|class| class.name == set.name) {
                class.rules = set.rules.clone().unwrap_or_else(|| std::mem::take(&mut class.rules));
                class.policy = set.policy.unwrap_or(class.policy);
                class.fallback = set.fallback.unwrap_or(class.fallback);
                class.borrow = set.borrow.unwrap_or(class.borrow);
            }
            if let Some(members) = &set.members {
                give(bond, &set.name, members);
            }
        }
        Request::ClassDel(del) => {
            bond.classes.retain(|class| class.name != del.name);
            give(bond, &del.name, &[]);
        }
        _ => {}
    }
}

fn set_bond(bond: &mut BondConfig, set: &BondSet) {
    bond.policy = set.policy.unwrap_or(bond.policy);
    bond.mtu = set.mtu.or(bond.mtu);
    bond.stripe = set.stripe.unwrap_or(bond.stripe);
    bond.damping = set.damping.unwrap_or(bond.damping);
    bond.inspector = over(bond.inspector, set.inspector);
    bond.latency = set.latency.unwrap_or(bond.latency);
    if let Some(addresses) = &set.addresses {
        bond.addresses.clone_from(addresses);
    }
}

/// Makes these members, and no others, those of a class.
fn give(bond: &mut BondConfig, class: &str, names: &[String]) {
    for member in &mut bond.members {
        if names.contains(&member.interface) {
            member.class = Some(class.to_owned());
        } else if member.class.as_deref() == Some(class) {
            member.class = None;
        }
    }
}
