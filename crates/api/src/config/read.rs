//! A file becomes a [`Document`], or one line that says where and why not.

use super::{
    BondConfig, ClassConfig, Config, Document, MemberConfig, Part, Places,
    table::{Named, Source, Table, number, string},
};
use crate::{
    BondOptions, BondSettings, ClassName, ClassOptions, ClassSettings, ConfigFile, Error, FabricAdd,
    FabricOptions, LinkName, MemberOptions, MemberSettings, MetricsAddress, limits, value,
};
use toml::de::{DeTable, DeValue};

/// Keys outside of all tables.
const ROOT_KEYS: [&str; 1] = ["metrics"];
/// Tables of bonds and fabrics.
const ROOT_TABLES: [&str; 2] = ["bond", "fabric"];
/// Keys besides those of the options.
const FABRIC_KEYS: [&str; 6] = ["node", "nodes", "transport", "queues", "mac", "address"];
const BOND_KEYS: [&str; 4] = ["member", "address", "move-address", "class"];
const MEMBER_KEYS: [&str; 3] = ["name", "class", "force"];
const CLASS_KEYS: [&str; 2] = ["member", "match"];

/// All keys of a table.
fn keys(own: &[&str], options: Vec<String>) -> Vec<String> {
    own.iter().map(|key| (*key).to_owned()).chain(options).collect()
}

/// The tables of a file, each with its keys: what is outside of all tables, a fabric, a bond, a member of a bond, a class of a bond.
pub fn tables() -> [(&'static str, Vec<String>); 5] {
    [
        ("", keys(&ROOT_KEYS, Vec::new())),
        ("fabric.NAME", keys(&FABRIC_KEYS, FabricOptions::keys())),
        ("bond.NAME", keys(&BOND_KEYS, BondOptions::keys())),
        ("bond.NAME.member", keys(&MEMBER_KEYS, MemberOptions::keys())),
        ("bond.NAME.class.NAME", keys(&CLASS_KEYS, ClassOptions::keys())),
    ]
}

pub fn document(files: &[ConfigFile]) -> Result<Document, Error> {
    let names = files.iter().map(|file| file.file.clone()).collect();
    let mut document = Document { files: names, ..Document::default() };
    let bytes: usize = files.iter().map(|file| file.text.len()).sum();
    if bytes > limits::CONFIG_BYTES_MAX {
        let cause = format!("{bytes} bytes; allowed are {}", limits::CONFIG_BYTES_MAX);
        return Err(Error::new(document.name(), "too long", cause).hint("linkbraid apply --help"));
    }
    for ConfigFile { file, text } in files {
        add(&mut document, Source { file, text })?;
    }
    // A bond that stands before the one whose member it names, too.
    let bonds = &document.config.bonds;
    for (bond, member) in bonds.iter().flat_map(|(bond, one)| one.members.iter().map(move |m| (bond, m))) {
        if bonds.contains_key(&member.interface) {
            let place = document.place(bond, &Part::Member(member.interface.clone()));
            let what = format!("bond '{bond}': member '{}'", member.interface);
            return Err(Error::new(place, what, "it is itself a bond").hint("linkbraid apply --help"));
        }
    }
    Ok(document)
}

/// Adds what one file says.
fn add(document: &mut Document, source: Source<'_>) -> Result<(), Error> {
    let root = DeTable::parse(source.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let cause = error.message().lines().collect::<Vec<_>>().join("; ");
        source.refuse(at, "not TOML", cause)
    })?;
    let root = Table::root(
        source,
        root.get_ref(),
        &[keys(&ROOT_TABLES, Vec::new()), keys(&ROOT_KEYS, Vec::new())].concat(),
    )?;
    let Document { config, metrics, places, .. } = document;
    for (at, address) in root.strings("metrics", MetricsAddress::read)? {
        let place = root.place(at);
        if let Some((_, earlier)) = metrics {
            let cause = format!("{} names an address already", root.seen(earlier));
            return Err(source.refuse(at, "key 'metrics'", cause));
        }
        *metrics = Some((address, place));
    }
    for named in root.named("fabric", "NAME")? {
        let name = interface(&root, "fabric", &named)?;
        let table =
            root.below(format!("fabric '{name}'"), &named, &keys(&FABRIC_KEYS, FabricOptions::keys()))?;
        name_once(&name, &table, config, places)?;
        config.fabrics.insert(name.clone(), fabric(name, &table)?);
    }
    for named in root.named("bond", "NAME")? {
        let name = interface(&root, "bond", &named)?;
        let table = root.below(format!("bond '{name}'"), &named, &keys(&BOND_KEYS, BondOptions::keys()))?;
        name_once(&name, &table, config, places)?;
        let bond = Bond { name: &name, table: &table, earlier: config, places }.read()?;
        config.bonds.insert(name, bond);
    }
    Ok(())
}

/// Notes where a bond or fabric stands, the only one of its name.
fn name_once(name: &LinkName, table: &Table<'_>, earlier: &Config, places: &mut Places) -> Result<(), Error> {
    match places.insert((name.to_string(), Part::Whole), table.place(table.at())) {
        None => Ok(()),
        Some(place) => {
            let kind = if earlier.fabrics.contains_key(name) { "fabric" } else { "bond" };
            Err(table.refuse_whole(format!("{} has a {kind} of this name", table.seen(&place))))
        }
    }
}

/// The name of a bond or fabric.
fn interface(root: &Table<'_>, kind: &str, named: &Named<'_>) -> Result<LinkName, Error> {
    let refuse =
        |cause| Error { what: format!("{kind} '{}'", named.name), ..root.refuse_at(named.at, "", cause) };
    named.name.parse().map_err(refuse)
}

fn fabric(name: LinkName, table: &Table<'_>) -> Result<FabricAdd, Error> {
    let fabric = FabricAdd {
        name,
        node: table.need("node", |v| value::node(&number(v)?))?,
        nodes: table.need("nodes", |v| value::nodes(&number(v)?))?,
        transport: table.need("transport", |v| string(v).map(str::to_owned))?,
        options: FabricOptions::read(table)?,
        mac: table.get("mac", |v| string(v).map(str::to_lowercase))?,
        queues: table.get("queues", |v| value::queues(&number(v)?))?,
        addresses: addresses(table)?,
    };
    if fabric.node >= fabric.nodes {
        let (node, nodes) = (fabric.node, fabric.nodes);
        let cause = format!("node {node} is outside the range 0 to {} of {nodes} nodes", nodes - 1);
        return Err(table.refuse_whole(cause));
    }
    Ok(fabric)
}

/// Those of a bond or fabric.
fn addresses(table: &Table<'_>) -> Result<Vec<String>, Error> {
    let mut addresses = Vec::new();
    for (at, address) in table.strings("address", value::cidr)? {
        if addresses.contains(&address) {
            return Err(table.refuse_at(at, format!("address '{address}'"), "it is named twice"));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

fn rule(text: &str) -> Result<crate::Rule, String> {
    text.parse().map_err(|error: Error| format!("{}: {}: {}", error.object, error.what, error.cause))
}

/// What reads one bond.
struct Bond<'r, 'a> {
    name: &'r str,
    table: &'r Table<'a>,
    /// Those that stand before it.
    earlier: &'r Config,
    places: &'r mut Places,
}

impl Bond<'_, '_> {
    fn read(&mut self) -> Result<BondConfig, Error> {
        let table = self.table;
        let options = BondOptions::read(table)?;
        let mut bond = BondConfig {
            members: self.members()?,
            addresses: addresses(table)?,
            settings: BondSettings::default().with(&options),
            mtu: options.mtu.map(|mtu| mtu.0),
            move_address: table.flag("move-address")?,
            classes: Vec::new(),
        };
        self.classes(&mut bond)?;
        Ok(bond)
    }

    fn members(&mut self) -> Result<Vec<MemberConfig>, Error> {
        let table = self.table;
        let mut members: Vec<MemberConfig> = Vec::new();
        for value in table.list("member") {
            let at = value.span().start;
            let member = match value.get_ref() {
                DeValue::Table(_) => {
                    let named = Named { name: "", at, value };
                    let known = keys(&MEMBER_KEYS, MemberOptions::keys());
                    let own = table.below(format!("bond '{}': member", self.name), &named, &known)?;
                    MemberConfig {
                        interface: own.need("name", |v| string(v)?.parse())?,
                        settings: MemberSettings::default().with(&MemberOptions::read(&own)?),
                        class: own.get("class", |v| string(v)?.parse())?,
                        force: own.flag("force")?,
                        absent: false,
                    }
                }
                other => {
                    let named = string(other).and_then(str::parse);
                    MemberConfig::new(named.map_err(|cause| table.refuse_at(at, "key 'member'", cause))?)
                }
            };
            let refuse =
                |cause: String| Err(table.refuse_at(at, format!("member '{}'", member.interface), cause));
            if members.iter().any(|other| other.interface == member.interface) {
                return refuse("it is named twice".into());
            }
            let part = Part::Member(member.interface.clone());
            let mut others = self.earlier.bonds.iter();
            if let Some((other, _)) = others.find(|(_, other)| other.member(&member.interface).is_some()) {
                let place = self.places.get(&(other.to_string(), part)).map(|place| table.seen(place));
                let place = place.unwrap_or_default();
                return refuse(format!("{place} gives it to bond '{other}'"));
            }
            self.places.insert((self.name.to_owned(), part), table.place(at));
            members.push(member);
        }
        if members.is_empty() || members.len() > limits::MEMBERS_MAX {
            let cause = format!("{} members; allowed are 1 to {}", members.len(), limits::MEMBERS_MAX);
            return Err(table.refuse_whole(cause));
        }
        Ok(members)
    }

    fn classes(&mut self, bond: &mut BondConfig) -> Result<(), Error> {
        for named in self.table.named("class", "NAME")? {
            let name = format!("bond '{}': class '{}'", self.name, named.name);
            let table = self.table.below(name, &named, &keys(&CLASS_KEYS, ClassOptions::keys()))?;
            let class: ClassName = named.name.parse().map_err(|cause: String| table.refuse_whole(cause))?;
            self.places.insert((self.name.to_owned(), Part::Class(class.clone())), table.place(named.at));
            let rules: Vec<_> = table.strings("match", rule)?.into_iter().map(|(_, rule)| rule).collect();
            if rules.is_empty() {
                return Err(table
                    .refuse_whole("a class without rules would match nothing; write match = [\"dscp=ef\"]"));
            }
            for (at, interface) in table.strings("member", str::parse::<LinkName>)? {
                let refuse = |cause: String| Err(table.refuse_at(at, format!("member '{interface}'"), cause));
                let mut members = bond.members.iter_mut();
                let Some(member) = members.find(|member| member.interface == interface) else {
                    return refuse("it is not among the bond's members".into());
                };
                match &member.class {
                    Some(other) if *other != class => {
                        return refuse(format!("it is in class '{other}' already"));
                    }
                    _ => member.class = Some(class.clone()),
                }
            }
            bond.classes.push(ClassConfig {
                name: class,
                rules,
                settings: ClassSettings::default().with(&ClassOptions::read(&table)?),
                has_members: false,
            });
        }
        for class in &mut bond.classes {
            class.has_members = bond.members.iter().any(|member| member.class.as_ref() == Some(&class.name));
        }
        self.check_classes(bond)
    }

    /// What can be said only once all of them are known.
    fn check_classes(&self, bond: &BondConfig) -> Result<(), Error> {
        if bond.classes.len() > limits::CLASSES_MAX {
            let cause = format!("{} classes; allowed are up to {}", bond.classes.len(), limits::CLASSES_MAX);
            return Err(self.table.refuse_whole(cause));
        }
        let no_class =
            |member: &&MemberConfig| member.class.as_ref().is_some_and(|class| bond.class(class).is_none());
        if let Some(member) = bond.members.iter().find(no_class) {
            let class = member.class.as_deref().unwrap_or_default();
            let cause =
                format!("member '{}' is for class '{class}', which the bond has not", member.interface);
            return Err(self.table.refuse_whole(cause));
        }
        if bond.members.iter().all(|member| member.class.is_some()) {
            return Err(self.table.refuse_whole("its classes leave no member for the rest of the traffic"));
        }
        Ok(())
    }
}
