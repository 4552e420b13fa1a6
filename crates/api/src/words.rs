//! A request in the words of the command that asks for it, and what is refused of it whatever the daemon has: addresses and
//! values that cannot be. The command does not send such a one, but anybody who may use the socket can.

use crate::{
    BondAdd, BondClass, BondDel, BondSet, ClassAdd, ClassDel, ClassSet, Confirm, ConfirmTime, Error, Explain,
    FabricAdd, FabricDel, FabricSet, LinkName, MemberAdd, MemberDel, MemberSet, Request, Run, Tentative,
    options::Given,
    value::{self, Value as _},
    varlink::Method,
};

impl Request {
    /// Reads a call from a client.
    ///
    /// # Errors
    /// It is no request, or one that no daemon carries out.
    pub fn read(method: Method) -> Result<Self, Error> {
        let read = Self::try_from(method);
        let request = read.map_err(|error| Error::new("request", "not understood", error.to_string()))?;
        if let Self::Tentative(tentative) = &request
            && !tentative.request.is_change()
        {
            let cause = "only a change can wait to be confirmed";
            return Err(Error::new("request", "refused", cause).hint("linkbraid apply --help"));
        }
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
                Line::new("bond add")
                    .word(name)
                    .list("--member", members)
                    .addresses(addresses)
                    .options(options.given())
                    .flag("--move-address", *move_address)
                    .each("--class", classes.iter().map(BondClass::text), anything)
            }
            Self::BondSet(BondSet { name, options, addresses }) => {
                let line = Line::new("bond set").word(name).options(options.given());
                line.replaced("--no-addresses", addresses.as_deref(), Line::addresses)
            }
            Self::BondDel(BondDel { name }) => Line::new("bond del").word(name),
            Self::MemberAdd(MemberAdd { bond, interface, options, move_address, force, class }) => {
                let line = Line::new("member add").word(bond).word(interface);
                line.options(options.given())
                    .each("--class", class, anything)
                    .flag("--move-address", *move_address)
                    .flag("--force", *force)
            }
            Self::MemberSet(MemberSet { bond, interface, options }) => {
                Line::new("member set").word(bond).word(interface).options(options.given())
            }
            Self::MemberDel(MemberDel { bond, interface, force }) => {
                Line::new("member del").word(bond).word(interface).flag("--force", *force)
            }
            Self::ClassAdd(ClassAdd { bond, name, members, rules, options }) => {
                let line = Line::new("class add").word(bond).word(name).list("--member", members);
                line.each("--match", rules, anything).options(options.given())
            }
            Self::ClassSet(ClassSet { bond, name, members, rules, options }) => {
                let line = Line::new("class set").word(bond).word(name);
                line.replaced("--no-members", members.as_deref(), |line, list| line.list("--member", list))
                    .each("--match", rules.iter().flatten(), anything)
                    .options(options.given())
            }
            Self::ClassDel(ClassDel { bond, name }) => Line::new("class del").word(bond).word(name),
            Self::Run(Run { bond, class }) => {
                Line::new("run").each("--bond", bond, anything).each("--class", [class], anything)
            }
            Self::FabricAdd(add) => {
                let FabricAdd { name, node, nodes, transport, options, mac, queues, addresses } = add;
                Line::new("fabric add")
                    .word(name)
                    .each("--node", [node], value::node)
                    .each("--nodes", [nodes], value::nodes)
                    .each("--transport", [transport], anything)
                    .options(options.given())
                    .each("--queues", queues, value::queues)
                    .each("--mac", mac, anything)
                    .addresses(addresses)
            }
            Self::FabricSet(FabricSet { name, options, nodes, addresses }) => {
                let line = Line::new("fabric set").word(name).options(options.given());
                line.each("--nodes", nodes, value::nodes).replaced(
                    "--no-addresses",
                    addresses.as_deref(),
                    Line::addresses,
                )
            }
            Self::FabricDel(FabricDel { name }) => Line::new("fabric del").word(name),
            // What it reads from the file is checked there.
            Self::Apply(apply) => {
                Line::new("apply").word(&apply.first.file).words(apply.more.iter().map(|file| &file.file))
            }
            Self::Tentative(Tentative { request, confirm_ms }) => {
                request.line().each("--confirm", [confirm_ms.text()], ConfirmTime::read)
            }
            Self::Confirm(Confirm { undo }) => Line::new("confirm").flag("--undo", *undo),
            Self::Leave { bond, undo } => Line::new("leave").words(bond).flag("--undo", *undo),
            Self::Changes {} => Line::new("show"),
            Self::ClassShow { bond } => Line::new("class show").words(bond),
            Self::FabricShow { name } => Line::new("fabric show").words(name),
            Self::FabricStats { name } | Self::Stats { name } => Line::new("stats").words(name),
            Self::Latency { name } => Line::new("stats").flag("--latency", true).words(name),
            Self::Show { name } => Line::new("show").words(name),
            Self::Peers { bond, peer } => Line::new("peers").words(bond).each("--peer", peer, anything),
            Self::Lanes { bond, peer } => Line::new("lanes").words(bond).each("--peer", peer, anything),
            Self::Monitor { bond } => Line::new("monitor").words(bond),
            Self::Explain(Explain { bond, flow, dscp, priority, fwmark }) => Line::new("explain")
                .word(bond)
                .words([flow])
                .each("--dscp", dscp, value::dscp)
                .each("--priority", priority, anything)
                .each("--fwmark", fwmark, anything),
            Self::Check { interfaces } => Line::new("check").words(interfaces),
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

    fn word(self, word: &str) -> Self {
        self.each("", [word], anything)
    }

    fn words(self, names: impl IntoIterator<Item = impl ToString>) -> Self {
        self.each("", names, anything)
    }

    fn each<T>(
        mut self,
        option: &str,
        values: impl IntoIterator<Item = impl ToString>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Self {
        self.words.extend(values.into_iter().map(|value| {
            let value = value.to_string();
            let refused = read(&value).err();
            Given { option: option.to_owned(), value, refused }
        }));
        self
    }

    fn addresses(self, addresses: &[String]) -> Self {
        self.each("--address", addresses, value::cidr)
    }

    /// Interfaces in one value.
    fn list(self, option: &str, names: &[LinkName]) -> Self {
        self.each(option, (!names.is_empty()).then(|| LinkName::list(names)), anything)
    }

    /// A list in place of an earlier one, if one is given; none at all is an option of its own.
    fn replaced<T>(self, none: &str, list: Option<&[T]>, some: impl FnOnce(Self, &[T]) -> Self) -> Self {
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

    fn flag(self, option: &str, on: bool) -> Self {
        self.each(option, on.then_some(""), anything)
    }

    /// Refuses the first option whose value cannot be. The bond or fabric comes before all options.
    fn check(self) -> Result<(), Error> {
        for Given { option, refused, .. } in &self.words {
            if let Some(cause) = refused {
                return Err(Error::new(&self.words[0].value, format!("option '{option}'"), cause)
                    .hint(format!("linkbraid {} --help", self.command)));
            }
        }
        Ok(())
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
