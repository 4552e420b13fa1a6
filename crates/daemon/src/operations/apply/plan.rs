//! From bonds and fabrics as they are to those that are wanted, in requests. Pure.
//!
//! Nothing is taken down that can be changed, and what frames need comes before what they no longer need: fabrics before the
//! bonds that have them as members, new members before old ones leave, removals last. Only where two bonds want the same
//! link, or a bond has no room for both, must one leave first.

mod classes;

use super::simulate::simulate;
use linkbraid_api::{
    BondAdd, BondDel, BondOptions, BondSet, BondSettings, FabricDel, FabricOptions, FabricSet, MemberAdd,
    MemberDel, MemberOptions, MemberSet, MemberSettings, Request,
    config::{BondConfig, Config, MemberConfig},
    limits::MEMBERS_MAX,
    value::Number,
};
use std::collections::BTreeSet;

/// The requests that make `to` of `from`, in order. Both are complete: what a file leaves out has been filled in; an MTU
/// that is absent in `to` is whatever it is. Fabrics of one name differ in nothing that `fabric set` cannot change.
pub(super) fn plan(from: &Config, to: &Config) -> Vec<Request> {
    let mut planner = Planner { now: from.clone(), to, steps: Vec::new() };
    planner.add_fabrics();
    planner.set_fabrics();
    planner.make_room();
    let there: Vec<&String> = to.bonds.keys().filter(|name| planner.now.bonds.contains_key(*name)).collect();
    there.iter().for_each(|name| planner.change_bond(name));
    for (name, bond) in &to.bonds {
        if !there.contains(&name) {
            planner.add_bond(name, bond);
        }
    }
    let gone: Vec<String> =
        planner.now.bonds.keys().filter(|name| !to.bonds.contains_key(*name)).cloned().collect();
    gone.into_iter().for_each(|name| planner.step(Request::BondDel(BondDel { name })));
    planner.set_fabrics();
    let gone: Vec<String> =
        planner.now.fabrics.keys().filter(|name| !to.fabrics.contains_key(*name)).cloned().collect();
    gone.into_iter().for_each(|name| planner.step(Request::FabricDel(FabricDel { name })));
    planner.steps
}

struct Planner<'c> {
    /// What there is after the steps so far.
    now: Config,
    to: &'c Config,
    steps: Vec<Request>,
}

impl Planner<'_> {
    fn step(&mut self, request: Request) {
        simulate(&mut self.now, &request);
        self.steps.push(request);
    }

    fn add_fabrics(&mut self) {
        for (name, fabric) in &self.to.fabrics {
            if !self.now.fabrics.contains_key(name) {
                self.step(Request::FabricAdd(fabric.clone()));
            }
        }
    }

    /// Changes fabrics that may be changed now: MTU and addresses of a member are its bond's to say.
    fn set_fabrics(&mut self) {
        for (name, fabric) in &self.to.fabrics {
            let Some(now) = self.now.fabrics.get(name) else { continue };
            let free = self.now.bonds.values().all(|bond| bond.member(name).is_none());
            let options = fabric.settings().besides(&now.settings());
            let set = FabricSet {
                name: name.clone(),
                options: FabricOptions { mtu: options.mtu.filter(|_| free), ..options },
                nodes: (fabric.nodes != now.nodes).then_some(fabric.nodes),
                addresses: None,
            };
            let same = FabricSet { name: name.clone(), ..FabricSet::default() };
            let differ = free && differ(&fabric.addresses, &now.addresses);
            // One after the other, for the number of nodes may be refused later.
            let give = FabricSet { addresses: differ.then(|| fabric.addresses.clone()), ..same.clone() };
            for set in [set, give] {
                if set != same {
                    self.step(Request::FabricSet(set));
                }
            }
        }
    }

    /// Frees links that another bond is to have.
    fn make_room(&mut self) {
        let wanted = |bond: &str, member: &str| {
            self.to.bonds.iter().any(|(other, of)| other != bond && of.member(member).is_some())
        };
        let mut free = Vec::new();
        let mut release = Vec::new();
        for (name, bond) in &self.now.bonds {
            let leaving: Vec<&MemberConfig> =
                bond.members.iter().filter(|member| wanted(name, &member.interface)).collect();
            match self.to.bonds.contains_key(name) {
                _ if leaving.is_empty() => {}
                true => release.extend(leaving.iter().map(|member| (name.clone(), member.interface.clone()))),
                false => free.push(name.clone()),
            }
        }
        free.into_iter().for_each(|name| self.step(Request::BondDel(BondDel { name })));
        let bonds: BTreeSet<String> = release.iter().map(|(bond, _)| bond.clone()).collect();
        bonds.iter().for_each(|name| self.add_members(name));
        release.into_iter().for_each(|(bond, member)| self.del_member(&bond, &member));
    }

    fn change_bond(&mut self, name: &str) {
        self.add_members(name);
        self.change_classes(name);
        let (Some(now), Some(to)) = (self.now.bonds.get(name), self.to.bonds.get(name)) else { return };
        let gone = now.members.iter().filter(|member| to.member(&member.interface).is_none());
        let gone: Vec<String> = gone.map(|member| member.interface.clone()).collect();
        gone.iter().for_each(|member| self.del_member(name, member));
        self.weigh(name, to);
        self.set_bond(name, to);
    }

    /// Adds the members that are free. Where the bond is full, one that is to leave does so first.
    fn add_members(&mut self, name: &str) {
        let Some(to) = self.to.bonds.get(name) else { return };
        for member in &to.members {
            let taken = self.now.bonds.values().any(|bond| bond.member(&member.interface).is_some());
            let Some(now) = self.now.bonds.get(name).filter(|_| !taken) else { continue };
            if now.members.len() >= MEMBERS_MAX
                && let Some(old) = spare(now, to).map(|old| old.interface.clone())
            {
                self.del_member(name, &old);
            }
            let Some(now) = self.now.bonds.get(name) else { continue };
            let kept = classes::kept(now, to);
            self.step(Request::MemberAdd(MemberAdd {
                bond: name.to_owned(),
                interface: member.interface.clone(),
                options: member.settings.besides(&MemberSettings::default()),
                move_address: to.move_address,
                force: member.force,
                class: member.class.clone().filter(|class| kept.contains(&class.as_str())),
            }));
        }
    }

    fn del_member(&mut self, bond: &str, interface: &str) {
        let others = self.now.bonds.get(bond).into_iter().flat_map(|bond| &bond.members);
        let rest = others.filter(|other| other.interface != interface && other.class.is_none()).count();
        self.step(Request::MemberDel(MemberDel {
            bond: bond.to_owned(),
            interface: interface.to_owned(),
            // The last one for the rest of the traffic leaves only when told twice.
            force: rest == 0,
        }));
    }

    fn weigh(&mut self, name: &str, to: &BondConfig) {
        let Some(now) = self.now.bonds.get(name) else { return };
        let set = |member: &MemberConfig| {
            let options = member.settings.besides(&now.member(&member.interface)?.settings);
            let (bond, interface) = (name.to_owned(), member.interface.clone());
            (options != MemberOptions::default()).then_some(MemberSet { bond, interface, options })
        };
        let sets: Vec<MemberSet> = to.members.iter().filter_map(set).collect();
        sets.into_iter().for_each(|set| self.step(Request::MemberSet(set)));
    }

    fn set_bond(&mut self, name: &str, to: &BondConfig) {
        let Some(now) = self.now.bonds.get(name) else { return };
        let set = BondSet {
            name: name.to_owned(),
            options: BondOptions {
                mtu: to.mtu.filter(|mtu| now.mtu != Some(*mtu)).map(Number),
                ..to.settings.besides(&now.settings)
            },
            addresses: differ(&to.addresses, &now.addresses).then(|| to.addresses.clone()),
        };
        if set != (BondSet { name: name.to_owned(), ..BondSet::default() }) {
            self.step(Request::BondSet(set));
        }
    }

    fn add_bond(&mut self, name: &str, to: &BondConfig) {
        self.step(Request::BondAdd(BondAdd {
            name: name.to_owned(),
            members: to.members.iter().map(|member| member.interface.clone()).collect(),
            addresses: to.addresses.clone(),
            options: BondOptions { mtu: to.mtu.map(Number), ..to.settings.besides(&BondSettings::default()) },
            move_address: to.move_address,
            classes: Vec::new(),
        }));
        self.change_classes(name);
        self.weigh(name, to);
        self.set_bond(name, to);
    }
}

/// Whether two lists of addresses have not the same ones.
fn differ(these: &[String], others: &[String]) -> bool {
    these.iter().collect::<BTreeSet<_>>() != others.iter().collect::<BTreeSet<_>>()
}

/// A member that may leave to make room for another one.
fn spare<'c>(now: &'c BondConfig, to: &BondConfig) -> Option<&'c MemberConfig> {
    let rest = now.members.iter().filter(|member| member.class.is_none()).count();
    let leaves = |member: &&MemberConfig| to.member(&member.interface).is_none();
    now.members.iter().filter(leaves).find(|member| member.class.is_some() || rest > 1)
}

#[cfg(test)]
mod tests;
