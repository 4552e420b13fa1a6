//! A request in the words of the command that asks for it, and what is refused of it whatever the daemon has: names,
//! addresses and values that cannot be. The command does not send such a one, but anybody who may use the socket can, and
//! names become parts of paths.

use crate::{
    BondAdd, BondDel, BondSet, ClassAdd, ClassDel, ClassSet, Error, FabricAdd, FabricDel, FabricSet,
    MemberAdd, MemberDel, MemberSet, Request, Run, options::Given, value,
};

impl Request {
    /// Reads one line from a client.
    ///
    /// # Errors
    /// It is no request, or one that no daemon carries out.
    pub fn read(line: &[u8]) -> Result<Self, Error> {
        let read = serde_json::from_slice::<Self>(line);
        let request = read.map_err(|error| Error::new("request", "not understood", error.to_string()))?;
        request.line().check()?;
        Ok(request)
    }

    /// The command line that makes this request, without the socket. Names are as the kernel takes them, so no word needs
    /// quotes but the place of a fabric may.
    pub fn command(&self) -> String {
        let line = self.line();
        let mut words = vec!["linkbraid".to_owned(), line.command.to_owned()];
        for word in &line.words {
            let both = [&word.option, &word.value];
            words.extend(both.into_iter().filter(|word| !word.is_empty()).map(|word| quoted(word)));
        }
        words.join(" ")
    }

    /// Each field is named here, so that a new one is not forgotten.
    fn line(&self) -> Line {
        match self {
            Self::BondAdd(BondAdd { name, members, addresses, options, move_address, classes }) => {
                let class = |class: &crate::BondClass| {
                    let members = class.members.iter().try_for_each(|name| value::interface(name).map(drop));
                    let refused = value::class(&class.name).map(drop).and(members).err();
                    Given { option: "--class".to_owned(), value: class.text(), refused }
                };
                Line::new("bond add")
                    .interface(name)
                    .list("--member", members)
                    .addresses(addresses)
                    .options(options.given())
                    .flag("--move-address", *move_address)
                    .options(classes.iter().map(class).collect())
            }
            Self::BondSet(BondSet { name, options, addresses }) => {
                let line = Line::new("bond set").interface(name).options(options.given());
                line.replaced("--no-addresses", addresses.as_deref(), Line::addresses)
            }
            Self::BondDel(BondDel { name }) => Line::new("bond del").interface(name),
            Self::MemberAdd(MemberAdd { bond, interface, options, move_address, force, class }) => {
                let line = Line::new("member add").interface(bond).interface(interface);
                line.options(options.given())
                    .each("--class", class, value::class)
                    .flag("--move-address", *move_address)
                    .flag("--force", *force)
            }
            Self::MemberSet(MemberSet { bond, interface, options }) => {
                Line::new("member set").interface(bond).interface(interface).options(options.given())
            }
            Self::MemberDel(MemberDel { bond, interface, force }) => {
                Line::new("member del").interface(bond).interface(interface).flag("--force", *force)
            }
            Self::ClassAdd(ClassAdd { bond, name, members, rules, options }) => {
                let line = Line::new("class add").interface(bond).class(name).list("--member", members);
                line.each("--match", rules, value::rule).options(options.given())
            }
            Self::ClassSet(ClassSet { bond, name, members, rules, options }) => {
                let line = Line::new("class set").interface(bond).class(name);
                line.replaced("--no-members", members.as_deref(), |line, list| line.list("--member", list))
                    .each("--match", rules.iter().flatten(), value::rule)
                    .options(options.given())
            }
            Self::ClassDel(ClassDel { bond, name }) => Line::new("class del").interface(bond).class(name),
            Self::Run(Run { bond, class }) => {
                Line::new("run").each("--bond", bond, value::interface).each("--class", [class], value::class)
            }
            Self::FabricAdd(add) => {
                let FabricAdd { name, node, nodes, transport, options, mac, queues, addresses } = add;
                Line::new("fabric add")
                    .interface(name)
                    .each("--node", [node], value::node)
                    .each("--nodes", [nodes], value::nodes)
                    .each("--transport", [transport], anything)
                    .options(options.given())
                    .each("--queues", queues, value::queues)
                    .each("--mac", mac, anything)
                    .addresses(addresses)
            }
            Self::FabricSet(FabricSet { name, options, nodes, addresses }) => {
                let line = Line::new("fabric set").interface(name).options(options.given());
                line.each("--nodes", nodes, value::nodes).replaced(
                    "--no-addresses",
                    addresses.as_deref(),
                    Line::addresses,
                )
            }
            Self::FabricDel(FabricDel { name }) => Line::new("fabric del").interface(name),
            // What it reads from the file is checked there.
            Self::Apply(apply) => Line::new("apply").word(&apply.file, anything),
            Self::ClassShow { bond } => Line::new("class show").interfaces(bond),
            Self::FabricShow { name } => Line::new("fabric show").interfaces(name),
            Self::FabricStats { name } | Self::Stats { name } => Line::new("stats").interfaces(name),
            Self::Latency { name } => Line::new("stats").flag("--latency", true).interfaces(name),
            Self::Show { name } => Line::new("show").interfaces(name),
            Self::Peers { bond } => Line::new("peers").interfaces(bond),
            Self::Lanes { bond } => Line::new("lanes").interfaces(bond),
            Self::Monitor { bond } => Line::new("monitor").interfaces(bond),
            Self::Check { interfaces } => Line::new("check").interfaces(interfaces),
        }
    }
}

fn anything(_: &str) -> Result<(), String> {
    Ok(())
}

/// What follows the words of a command: a name has no option before it, a flag has no value.
struct Line {
    command: &'static str,
    words: Vec<Given>,
}

impl Line {
    const fn new(command: &'static str) -> Self {
        Self { command, words: Vec::new() }
    }

    fn push<T, E: ToString>(&mut self, option: &str, value: String, read: impl Fn(&str) -> Result<T, E>) {
        let refused = read(&value).err().map(|cause| cause.to_string());
        self.words.push(Given { option: option.to_owned(), value, refused });
    }

    fn word<T>(mut self, word: &str, read: impl Fn(&str) -> Result<T, String>) -> Self {
        self.push("", word.to_owned(), read);
        self
    }

    fn interface(self, name: &str) -> Self {
        self.word(name, value::interface)
    }

    fn interfaces<'n>(self, names: impl IntoIterator<Item = &'n String>) -> Self {
        names.into_iter().fold(self, |line, name| line.interface(name))
    }

    fn class(self, name: &str) -> Self {
        self.word(name, value::class)
    }

    fn each<T, E: ToString>(
        mut self,
        option: &str,
        values: impl IntoIterator<Item = impl ToString>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Self {
        values.into_iter().for_each(|value| self.push(option, value.to_string(), &read));
        self
    }

    fn addresses(self, addresses: &[String]) -> Self {
        self.each("--address", addresses, value::cidr)
    }

    /// Interfaces in one value.
    fn list(mut self, option: &str, names: &[String]) -> Self {
        if !names.is_empty() {
            let refused = names.iter().find_map(|name| value::interface(name).err());
            self.words.push(Given { option: option.to_owned(), value: names.join(","), refused });
        }
        self
    }

    /// A list in place of an earlier one, if one is given; none at all is an option of its own.
    fn replaced(
        self,
        none: &str,
        list: Option<&[String]>,
        some: impl FnOnce(Self, &[String]) -> Self,
    ) -> Self {
        match list {
            None => self,
            Some([]) => self.flag(none, true),
            Some(list) => some(self, list),
        }
    }

    fn options(mut self, given: Vec<Given>) -> Self {
        self.words.extend(given);
        self
    }

    fn flag(mut self, option: &str, on: bool) -> Self {
        if on {
            self.push(option, String::new(), anything);
        }
        self
    }

    /// The first word that cannot be. The bond or fabric comes first of all, so a refusal may name it.
    fn check(self) -> Result<(), Error> {
        let Some(at) = self.words.iter().position(|word| word.refused.is_some()) else { return Ok(()) };
        let Given { option, refused, .. } = &self.words[at];
        let (object, what) = match (option.as_str(), self.words.first()) {
            ("", _) | (_, None) => (self.command, "name".to_owned()),
            (option, Some(name)) if name.option.is_empty() => {
                (name.value.as_str(), format!("option '{option}'"))
            }
            (option, _) => (self.command, format!("option '{option}'")),
        };
        let cause = refused.clone().unwrap_or_default();
        Err(Error::new(object, what, cause).hint(format!("linkbraid {} --help", self.command)))
    }
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,=@%+".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
