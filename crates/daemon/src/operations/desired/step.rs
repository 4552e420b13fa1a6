//! What a machine has, as values, and the steps that change it. A step changes one object, and has an inverse.

use linkbraid_api::{
    BondAdd, BondDel, BondOptions, BondSet, BondSettings, ClassAdd, ClassDel, ClassName, ClassSet,
    ClassSettings, FabricAdd, FabricDel, FabricSet, LinkName, MemberAdd, MemberDel, MemberSet,
    MemberSettings, Request,
    config::{BondConfig, ClassConfig, Config, MemberConfig, Part},
    value::Number,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a machine has.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::operations) struct Current {
    /// All of it.
    pub config: Config,
    /// What of it an earlier `apply` has added, by the name of the bond or fabric.
    pub made: BTreeMap<LinkName, Made>,
    /// All addresses of its bonds and fabrics, whoever gave them, by name.
    pub held: Held,
    /// Members that come or go just now, by the name of their bond.
    pub moving: BTreeMap<LinkName, Moving>,
}

/// Addresses of interfaces, `ADDRESS/PREFIX`.
pub(in crate::operations) type Held = BTreeMap<LinkName, Vec<String>>;

/// Members of a bond that have not proven themselves yet, and those that are about to leave: these are no longer wanted, so
/// the bond's configuration is without them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::operations) struct Moving {
    pub joining: Vec<LinkName>,
    pub leaving: Vec<LinkName>,
}

/// What an earlier `apply` has added of a bond or fabric, and so may remove.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::operations) struct Made {
    /// The bond or fabric itself.
    pub whole: bool,
    pub members: BTreeSet<LinkName>,
    pub classes: BTreeSet<ClassName>,
    pub addresses: BTreeSet<String>,
}

/// What an object is, and what it is to be; `None` where there is none.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::operations) struct Change<T, N = LinkName> {
    pub name: N,
    pub from: Option<T>,
    pub to: Option<T>,
}

impl<T, N: Clone> Change<T, N> {
    pub(super) fn new(name: &N, from: Option<T>, to: Option<T>) -> Self {
        Self { name: name.clone(), from, to }
    }

    fn inverse(self) -> Self {
        Self { name: self.name, from: self.to, to: self.from }
    }
}

impl<T> Change<T> {
    /// The inverse of what changes an interface, which keeps those of its addresses that it held before.
    fn back(self, held: &Held, addresses: fn(&mut T) -> &mut Vec<String>) -> Self {
        let mut back = self.inverse();
        if let (Some(held), Some(from), Some(to)) = (held.get(&back.name), &mut back.from, &mut back.to) {
            let (mut kept, to) = (addresses(from).clone(), addresses(to));
            kept.retain(|address| held.contains(address) && !to.contains(address));
            to.extend(kept);
        }
        back
    }
}

/// A class with its place among the others, and its members.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::operations) struct Class {
    pub at: usize,
    pub config: ClassConfig,
    pub members: Vec<LinkName>,
}

impl Class {
    /// A class of a bond as it is.
    pub(super) fn of(bond: &BondConfig, name: &str) -> Option<Self> {
        let at = bond.classes.iter().position(|class| *class.name == *name)?;
        Some(Self { at, config: bond.classes[at].clone(), members: bond.members_of(name) })
    }
}

/// The change of one object.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::operations) enum Step {
    Fabric(Change<FabricAdd>),
    /// A bond that comes or goes, with all it has; or its settings, MTU and addresses.
    Bond(Change<BondConfig>),
    Member {
        bond: LinkName,
        member: Change<MemberConfig>,
        /// Whether one that carries the default route may join.
        move_address: bool,
        /// Whether one leaves though it is the last one for the default class.
        force: bool,
    },
    Class {
        bond: LinkName,
        class: Change<Class, ClassName>,
    },
}

impl Step {
    /// Changes `config` as this step changes the machine.
    pub(in crate::operations) fn apply(&self, config: &mut Config) {
        match self {
            Self::Fabric(Change { name, to, .. }) => match to {
                Some(to) => drop(config.fabrics.insert(name.clone(), to.clone())),
                None => drop(config.fabrics.remove(name)),
            },
            Self::Bond(Change { name, to: Some(to), .. }) => match config.bonds.get_mut(name) {
                Some(bond) => {
                    (bond.settings, bond.mtu) = (to.settings.clone(), to.mtu);
                    bond.addresses.clone_from(&to.addresses);
                }
                None => drop(config.bonds.insert(name.clone(), to.clone())),
            },
            Self::Bond(Change { name, to: None, .. }) => drop(config.bonds.remove(name)),
            Self::Member { bond, member, .. } => {
                if let Some(bond) = config.bonds.get_mut(bond) {
                    member.apply(bond);
                }
            }
            Self::Class { bond, class } => {
                if let Some(bond) = config.bonds.get_mut(bond) {
                    class.apply(bond);
                }
            }
        }
    }

    /// What takes this step back. Addresses that the object held before, whoever gave them, are not taken from it.
    pub(in crate::operations) fn inverse(self, held: &Held) -> Self {
        match self {
            Self::Fabric(fabric) => Self::Fabric(fabric.back(held, |fabric| &mut fabric.addresses)),
            Self::Bond(bond) => Self::Bond(bond.back(held, |bond| &mut bond.addresses)),
            Self::Member { bond, member, .. } => {
                Self::Member { bond, member: member.inverse(), move_address: true, force: true }
            }
            Self::Class { bond, class } => Self::Class { bond, class: class.inverse() },
        }
    }

    /// What it is about: the bond or fabric, and the part of it.
    pub(in crate::operations) fn target(&self) -> (&str, Part) {
        match self {
            Self::Fabric(fabric) => (&fabric.name, Part::Whole),
            Self::Bond(bond) => (&bond.name, Part::Whole),
            Self::Member { bond, member, .. } => (bond, Part::Member(member.name.clone())),
            Self::Class { bond, class } => (bond, Part::Class(class.name.clone())),
        }
    }

    /// What a user would ask for to take this step. A bond that comes with classes would take more than one request; such a
    /// step is an inverse only.
    pub(in crate::operations) fn request(&self) -> Request {
        match self {
            Self::Fabric(fabric) => fabric.request(),
            Self::Bond(bond) => bond.request(),
            Self::Member { bond, member, move_address, force } => {
                member.request(bond.clone(), *move_address, *force)
            }
            Self::Class { bond, class } => class.request(bond.clone()),
        }
    }
}

impl Change<FabricAdd> {
    fn request(&self) -> Request {
        let name = self.name.clone();
        match (&self.from, &self.to) {
            (_, None) => Request::FabricDel(FabricDel { name }),
            (None, Some(to)) => Request::FabricAdd(to.clone()),
            (Some(from), Some(to)) => Request::FabricSet(FabricSet {
                name,
                options: to.settings().besides(&from.settings()),
                nodes: (to.nodes != from.nodes).then_some(to.nodes),
                addresses: differ(&to.addresses, &from.addresses).then(|| to.addresses.clone()),
            }),
        }
    }
}

impl Change<BondConfig> {
    /// The options that change; those of a new bond that are not its defaults.
    pub(in crate::operations) fn options(&self) -> BondOptions {
        let Some(to) = &self.to else { return BondOptions::default() };
        let (settings, mtu) = match &self.from {
            Some(from) => (from.settings.clone(), from.mtu),
            None => (BondSettings::default(), None),
        };
        BondOptions {
            mtu: to.mtu.filter(|to| mtu != Some(*to)).map(Number),
            ..to.settings.besides(&settings)
        }
    }

    fn request(&self) -> Request {
        let (name, options) = (self.name.clone(), self.options());
        match (&self.from, &self.to) {
            (_, None) => Request::BondDel(BondDel { name }),
            (None, Some(to)) => Request::BondAdd(BondAdd {
                name,
                members: to.members.iter().map(|member| member.interface.clone()).collect(),
                addresses: to.addresses.clone(),
                options,
                move_address: to.move_address,
                classes: Vec::new(),
            }),
            (Some(from), Some(to)) => Request::BondSet(BondSet {
                name,
                options,
                addresses: differ(&to.addresses, &from.addresses).then(|| to.addresses.clone()),
            }),
        }
    }
}

impl Change<MemberConfig> {
    fn apply(&self, bond: &mut BondConfig) {
        let at = bond.members.iter().position(|member| member.interface == self.name);
        match (at, &self.to) {
            (Some(at), None) => drop(bond.members.remove(at)),
            (None, None) => {}
            // Its class is the classes' to say, once it is in the bond.
            (Some(at), Some(to)) if bond.members[at].absent == to.absent => {
                bond.members[at].settings = to.settings;
            }
            (at, Some(to)) => {
                at.into_iter().for_each(|at| drop(bond.members.remove(at)));
                bond.members.push(to.clone());
                let own = bond.classes.iter_mut().find(|class| Some(&class.name) == to.class.as_ref());
                own.into_iter().for_each(|class| class.has_members = true);
            }
        }
    }

    /// Whether its interface joins the bond: it is new, or has come back.
    pub(in crate::operations) fn joins(&self) -> bool {
        self.to.as_ref().is_some_and(|to| !to.absent) && self.from.as_ref().is_none_or(|from| from.absent)
    }

    /// Whether it leaves the bond: it is not wanted, or has to go until it comes back.
    pub(in crate::operations) fn leaves(&self) -> bool {
        let was_there = self.from.as_ref().is_some_and(|from| !from.absent);
        self.to.as_ref().is_none_or(|to| to.absent && was_there)
    }

    fn request(&self, bond: LinkName, move_address: bool, force: bool) -> Request {
        let interface = self.name.clone();
        match (&self.from, &self.to) {
            (_, Some(to)) if self.joins() => Request::MemberAdd(MemberAdd {
                bond,
                interface,
                options: to.settings.besides(&MemberSettings::default()),
                move_address,
                force: to.force,
                class: to.class.clone(),
            }),
            (Some(from), Some(to)) if !self.leaves() => {
                let options = to.settings.besides(&from.settings);
                Request::MemberSet(MemberSet { bond, interface, options })
            }
            _ => Request::MemberDel(MemberDel { bond, interface, force }),
        }
    }
}

impl Change<Class, ClassName> {
    pub(in crate::operations) fn apply(&self, bond: &mut BondConfig) {
        let there = bond.classes.iter().position(|class| class.name == self.name);
        if let Some(there) = there {
            bond.classes.remove(there);
        }
        let Some(to) = &self.to else { return bond.give(&self.name, &[]) };
        let at = there.unwrap_or(to.at).min(bond.classes.len());
        bond.classes.insert(at, to.config.clone());
        bond.give(&self.name, &to.members);
    }

    fn request(&self, bond: LinkName) -> Request {
        let name = self.name.clone();
        match (&self.from, &self.to) {
            (_, None) => Request::ClassDel(ClassDel { bond, name }),
            (None, Some(Class { config, members, .. })) => Request::ClassAdd(ClassAdd {
                bond,
                name,
                members: members.clone(),
                rules: config.rules.clone(),
                options: config.settings.besides(&ClassSettings::default()),
            }),
            (Some(from), Some(to)) => {
                let same =
                    !differ(&from.members, &to.members) && from.config.has_members == to.config.has_members;
                Request::ClassSet(ClassSet {
                    bond,
                    name,
                    members: (!same).then(|| to.members.clone()),
                    rules: (to.config.rules != from.config.rules).then(|| to.config.rules.clone()),
                    options: to.config.settings.besides(&from.config.settings),
                })
            }
        }
    }
}

/// Whether two lists have not the same entries.
pub(super) fn differ<T: Ord>(these: &[T], others: &[T]) -> bool {
    these.iter().collect::<BTreeSet<_>>() != others.iter().collect::<BTreeSet<_>>()
}
