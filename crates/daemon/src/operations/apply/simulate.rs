//! What a request makes of bonds and fabrics, if it is carried out.

use linkbraid_api::{
    BondAdd, BondSet, BondSettings, ClassSettings, FabricSettings, MemberSettings, Request,
    config::{BondConfig, ClassConfig, Config, MemberConfig},
};

/// Changes `config` as the request would. What asks, and what does not fit, changes nothing.
pub(super) fn simulate(config: &mut Config, request: &Request) {
    match request {
        Request::FabricAdd(add) => {
            let mut fabric = add.clone();
            fabric.options = fabric.settings().besides(&FabricSettings::default());
            fabric.queues.get_or_insert(1);
            config.fabrics.insert(add.name.clone(), fabric);
        }
        Request::FabricSet(set) => {
            let Some(fabric) = config.fabrics.get_mut(&set.name) else { return };
            let settings = fabric.settings().with(&set.options);
            fabric.options = settings.besides(&FabricSettings::default());
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
        settings: BondSettings::default().with(&add.options),
        mtu: add.options.mtu.map(|mtu| mtu.0),
        move_address: add.move_address,
        classes: Vec::new(),
    }
}

fn in_bond(bond: &mut BondConfig, request: &Request) {
    match request {
        Request::BondSet(set) => set_bond(bond, set),
        Request::MemberAdd(add) => bond.members.push(MemberConfig {
            interface: add.interface.clone(),
            settings: MemberSettings::default().with(&add.options),
            class: add.class.clone(),
            force: add.force,
        }),
        Request::MemberSet(set) => {
            for member in bond.members.iter_mut().filter(|member| member.interface == set.interface) {
                member.settings = member.settings.with(&set.options);
            }
        }
        Request::MemberDel(del) => bond.members.retain(|member| member.interface != del.interface),
        Request::ClassAdd(add) => {
            bond.classes.push(ClassConfig {
                name: add.name.clone(),
                rules: add.rules.clone(),
                settings: ClassSettings::default().with(&add.options),
            });
            give(bond, &add.name, &add.members);
        }
        Request::ClassSet(set) => {
            for class in bond.classes.iter_mut().filter(|class| class.name == set.name) {
                class.rules = set.rules.clone().unwrap_or_else(|| std::mem::take(&mut class.rules));
                class.settings = class.settings.with(&set.options);
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
    bond.settings = bond.settings.with(&set.options);
    bond.mtu = set.options.mtu.map(|mtu| mtu.0).or(bond.mtu);
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
