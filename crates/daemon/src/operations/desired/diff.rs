//! From bonds and fabrics as they are to those that are wanted, in steps.
//!
//! Nothing is taken down that can be changed, and what frames need comes before what they no longer need: fabrics before the
//! bonds that have them as members, new members before old ones leave, removals last. Only where two bonds want the same
//! link, or a bond has no room for both, must one leave first.

mod classes;
mod planner;

use super::step::{Change, Step, differ};
use linkbraid_api::{
    FabricAdd, FabricSettings, LinkName,
    config::{BondConfig, Config, MemberConfig},
    limits::MEMBERS_MAX,
};
use planner::Planner;
use std::collections::BTreeSet;

/// The steps that make `to` of `from`, in order. Both are complete: what a file leaves out has been filled in; an MTU
/// that is absent in `to` is whatever it is. Fabrics of one name differ in nothing that `fabric set` cannot change.
pub(in crate::operations) fn diff(from: &Config, to: &Config) -> Vec<Step> {
    let mut planner = Planner::new(from, to);
    planner.add_fabrics();
    planner.set_fabrics();
    planner.make_room();
    let there: Vec<&LinkName> =
        to.bonds.keys().filter(|name| planner.now.bonds.contains_key(*name)).collect();
    there.iter().for_each(|name| planner.change_bond(name));
    for (name, bond) in &to.bonds {
        if !there.contains(&name) {
            planner.add_bond(name, bond);
        }
    }
    let gone: Vec<LinkName> =
        planner.now.bonds.keys().filter(|name| !to.bonds.contains_key(*name)).cloned().collect();
    gone.iter().for_each(|name| planner.del_bond(name));
    planner.set_fabrics();
    let gone: Vec<FabricAdd> =
        planner.now.fabrics.values().filter(|one| !to.fabrics.contains_key(&one.name)).cloned().collect();
    for fabric in gone {
        planner.step(Step::Fabric(Change::new(&fabric.name.clone(), Some(fabric), None)));
    }
    planner.steps
}

impl Planner<'_> {
    fn add_fabrics(&mut self) {
        for (name, fabric) in &self.to.fabrics {
            if !self.now.fabrics.contains_key(name) {
                self.step(Step::Fabric(Change::new(name, None, Some(fabric.clone()))));
            }
        }
    }

    /// Changes fabrics that may be changed now: MTU and addresses of a member are its bond's to say.
    fn set_fabrics(&mut self) {
        for (name, to) in &self.to.fabrics {
            let Some(now) = self.now.fabrics.get(name).cloned() else { continue };
            let free = self.now.bonds.values().all(|bond| bond.member(name).is_none());
            let mut settings = to.settings();
            if !free {
                settings.mtu = now.settings().mtu;
            }
            let options = settings.besides(&FabricSettings::default());
            let set = FabricAdd { options, nodes: to.nodes, ..now.clone() };
            // One after the other, for the number of nodes may be refused later.
            let gives = free && differ(&to.addresses, &now.addresses);
            let give = gives.then(|| FabricAdd { addresses: to.addresses.clone(), ..set.clone() });
            if set != now {
                self.step(Step::Fabric(Change::new(name, Some(now), Some(set.clone()))));
            }
            if give.is_some() {
                self.step(Step::Fabric(Change::new(name, Some(set), give)));
            }
        }
    }

    /// Frees links that another bond is to have.
    fn make_room(&mut self) {
        let is_there = |bond: Option<&BondConfig>, name: &str| {
            bond.and_then(|bond| bond.member(name)).is_some_and(|member| !member.absent)
        };
        // A bond may wait for a link that another one has.
        let wanted = |bond: &LinkName, member: &MemberConfig| {
            let name = &member.interface;
            let stays = self.to.bonds.get(bond).is_some_and(|to| to.member(name).is_some());
            let mut others = self.to.bonds.keys().filter(|other| *other != bond);
            !(member.absent && stays)
                && others.any(|of| {
                    is_there(self.to.bonds.get(of), name) && !is_there(self.now.bonds.get(of), name)
                })
        };
        let mut free = Vec::new();
        let mut release = Vec::new();
        for (name, bond) in &self.now.bonds {
            let leaving: Vec<&MemberConfig> =
                bond.members.iter().filter(|member| wanted(name, member)).collect();
            match self.to.bonds.contains_key(name) {
                _ if leaving.is_empty() => {}
                true => release.extend(leaving.iter().map(|member| (name.clone(), member.interface.clone()))),
                false => free.push(name.clone()),
            }
        }
        free.iter().for_each(|name| self.del_bond(name));
        let bonds: BTreeSet<LinkName> = release.iter().map(|(bond, _)| bond.clone()).collect();
        bonds.iter().for_each(|name| self.add_members(name));
        release.into_iter().for_each(|(bond, member)| self.del_member(&bond, &member));
    }

    fn change_bond(&mut self, name: &LinkName) {
        self.add_members(name);
        self.change_classes(name);
        let (Some(now), Some(to)) = (self.now.bonds.get(name), self.to.bonds.get(name)) else { return };
        let gone = now.members.iter().filter(|member| to.member(&member.interface).is_none());
        let gone: Vec<LinkName> = gone.map(|member| member.interface.clone()).collect();
        gone.iter().for_each(|member| self.del_member(name, member));
        self.set_members(name, to);
        self.set_bond(name, to);
    }

    /// Adds the members that are free. Where the bond is full, one that is to leave does so first.
    fn add_members(&mut self, name: &LinkName) {
        let Some(to) = self.to.bonds.get(name) else { return };
        for member in &to.members {
            let is_taken = |of: &LinkName, there: &MemberConfig| !there.absent || of == name && member.absent;
            let taken =
                self.now.bonds.iter().any(|(of, bond)| {
                    bond.member(&member.interface).is_some_and(|there| is_taken(of, there))
                });
            let Some(now) = self.now.bonds.get(name).filter(|_| !taken) else { continue };
            if now.members.len() >= MEMBERS_MAX
                && let Some(old) = spare(now, to).map(|old| old.interface.clone())
            {
                self.del_member(name, &old);
            }
            let Some(now) = self.now.bonds.get(name) else { continue };
            let kept = classes::kept(now, to);
            let class = member.class.clone().filter(|class| kept.contains(&class));
            let (from, to_be) =
                (now.member(&member.interface).cloned(), MemberConfig { class, ..member.clone() });
            self.step(Step::Member {
                bond: name.clone(),
                member: Change::new(&member.interface, from, Some(to_be)),
                move_address: to.move_address,
                force: false,
            });
        }
    }

    fn del_member(&mut self, bond: &LinkName, interface: &LinkName) {
        let Some(now) = self.now.bonds.get(bond) else { return };
        let Some(member) = now.member(interface).cloned() else { return };
        let mut others = now.members.iter().filter(|other| other.interface != *interface && !other.absent);
        self.step(Step::Member {
            // The last one that is in no class leaves only by force.
            force: !member.absent && others.all(|other| other.class.is_some()),
            bond: bond.clone(),
            member: Change::new(interface, Some(member), None),
            move_address: false,
        });
    }

    fn set_members(&mut self, name: &LinkName, to: &BondConfig) {
        for member in &to.members {
            let now = self.now.bonds.get(name).and_then(|now| now.member(&member.interface)).cloned();
            let Some(now) = now.filter(|now| now.settings != member.settings) else { continue };
            let set = MemberConfig { settings: member.settings, ..now.clone() };
            self.step(Step::Member {
                bond: name.clone(),
                member: Change::new(&member.interface, Some(now), Some(set)),
                move_address: false,
                force: false,
            });
        }
    }

    fn set_bond(&mut self, name: &LinkName, to: &BondConfig) {
        let Some(now) = self.now.bonds.get(name).cloned() else { return };
        let set = BondConfig {
            settings: to.settings.clone(),
            mtu: to.mtu.or(now.mtu),
            addresses: match differ(&to.addresses, &now.addresses) {
                true => to.addresses.clone(),
                false => now.addresses.clone(),
            },
            ..now.clone()
        };
        if set != now {
            self.step(Step::Bond(Change::new(name, Some(now), Some(set))));
        }
    }

    fn add_bond(&mut self, name: &LinkName, to: &BondConfig) {
        let bare = |member: &MemberConfig| MemberConfig {
            absent: member.absent,
            ..MemberConfig::new(member.interface.clone())
        };
        let members = to.members.iter().map(bare).collect();
        let bond = BondConfig { members, classes: Vec::new(), ..to.clone() };
        self.step(Step::Bond(Change::new(name, None, Some(bond))));
        self.change_classes(name);
        self.set_members(name, to);
    }

    fn del_bond(&mut self, name: &LinkName) {
        let bond = self.now.bonds.get(name).cloned();
        self.step(Step::Bond(Change::new(name, bond, None)));
    }
}

/// A member that may leave to make room for another one.
fn spare<'c>(now: &'c BondConfig, to: &BondConfig) -> Option<&'c MemberConfig> {
    let in_none = now.members.iter().filter(|member| member.class.is_none()).count();
    let leaves = |member: &&MemberConfig| to.member(&member.interface).is_none();
    now.members.iter().filter(leaves).find(|member| member.class.is_some() || in_none > 1)
}

#[cfg(test)]
mod tests;
