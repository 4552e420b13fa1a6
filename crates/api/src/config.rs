//! The configuration file: what bonds and fabrics a machine is to have, in TOML, with the options of the command under
//! the same names. docs/config.md is for its users.
//!
//! A file describes whole objects: an option that it leaves out has the command's default, except for an MTU and a MAC,
//! which then stay as they are.

mod read;
mod table;

pub use read::tables;
pub(crate) use table::{Table, number, string, switch};

use crate::{
    BondSettings, ClassName, ClassSettings, ConfigFile, Error, FabricAdd, LinkName, MemberSettings,
    MetricsAddress, Rule,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Bonds and fabrics: those that a file names, or those that a machine has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Fabrics, by name.
    pub fabrics: BTreeMap<LinkName, FabricAdd>,
    /// Bonds, by name.
    pub bonds: BTreeMap<LinkName, BondConfig>,
}

/// A bond, as a file wants it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BondConfig {
    /// Its members; the first one gives a new bond its MAC.
    pub members: Vec<MemberConfig>,
    /// Addresses of its own, `ADDRESS/PREFIX`.
    pub addresses: Vec<String>,
    /// How it carries traffic.
    pub settings: BondSettings,
    /// The MTU in bytes; absent: whatever it is.
    pub mtu: Option<u32>,
    /// Whether members that carry the default route may join.
    pub move_address: bool,
    /// Its classes, in the order in which their rules are tried.
    pub classes: Vec<ClassConfig>,
}

/// A member of a bond, as a file wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberConfig {
    /// Its interface name.
    pub interface: LinkName,
    /// Its settings, such as its weight.
    pub settings: MemberSettings,
    /// The class that it is for; absent: it carries all other traffic.
    pub class: Option<ClassName>,
    /// Whether it joins though no peer answers through it.
    pub force: bool,
    /// Whether it is wanted and its interface is not there; never in a file.
    pub absent: bool,
}

/// One class of a bond. Its members name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassConfig {
    /// The name of the class.
    pub name: ClassName,
    /// Its rules, in the order in which they are tried.
    pub rules: Vec<Rule>,
    /// How it uses its members.
    pub settings: ClassSettings,
    /// Whether it was given members, whatever has become of them since; in a file they name it.
    pub has_members: bool,
}

impl MemberConfig {
    /// A member with default settings, in no class.
    pub fn new(interface: LinkName) -> Self {
        Self { interface, settings: MemberSettings::default(), class: None, force: false, absent: false }
    }
}

impl BondConfig {
    /// A member by name.
    pub fn member(&self, interface: &str) -> Option<&MemberConfig> {
        self.members.iter().find(|member| *member.interface == *interface)
    }

    /// A class by name.
    pub fn class(&self, name: &str) -> Option<&ClassConfig> {
        self.classes.iter().find(|class| *class.name == *name)
    }

    /// The members of a class, in order.
    pub fn members_of(&self, class: &str) -> Vec<LinkName> {
        let own = self.members.iter().filter(|member| member.class.as_deref() == Some(class));
        own.map(|member| member.interface.clone()).collect()
    }

    /// Makes these members, and no others, those of a class.
    pub fn give(&mut self, class: &ClassName, names: &[LinkName]) {
        for member in &mut self.members {
            if names.contains(&member.interface) {
                member.class = Some(class.clone());
            } else if member.class.as_ref() == Some(class) {
                member.class = None;
            }
        }
    }
}

/// A part of a bond or fabric that stands somewhere in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The whole.
    Whole,
    /// A member.
    Member(LinkName),
    /// A class.
    Class(ClassName),
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path of the file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Where the parts of bonds and fabrics stand.
type Places = BTreeMap<(String, Part), Place>;

/// Files that were read and belong together: what they say, and where.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The paths of the files, in the order in which they were read.
    files: Vec<String>,
    /// The bonds and fabrics that they name. Each is in one file.
    pub config: Config,
    /// Where the daemon is to serve its metrics from its next start on, and where that stands; none: nowhere.
    pub metrics: Option<(MetricsAddress, Place)>,
    places: Places,
}

impl Document {
    /// Reads whole files.
    ///
    /// # Errors
    /// What is not TOML, unknown keys, values of the wrong type or out of range, names that are given twice, in one file or in
    /// two, and classes that cannot be; the object is `FILE:LINE`.
    pub fn read(files: &[ConfigFile]) -> Result<Self, Error> {
        read::document(files)
    }

    /// How messages name the files.
    pub fn name(&self) -> String {
        self.files.join(", ")
    }

    /// The same files, as if they said this.
    #[must_use]
    pub fn saying(self, config: Config) -> Self {
        Self { config, ..self }
    }

    /// Where the part is named, or else the whole; nowhere if neither is.
    pub fn find(&self, object: &str, part: &Part) -> Option<&Place> {
        let found = |part: &Part| self.places.get(&(object.to_owned(), part.clone()));
        found(part).or_else(|| found(&Part::Whole))
    }

    /// How messages name the place: `FILE:LINE`, or the files alone.
    pub fn place(&self, object: &str, part: &Part) -> String {
        self.find(object, part).map_or_else(|| self.name(), Place::to_string)
    }
}

#[cfg(test)]
mod tests;
