//! A request in the words of the command that asks for it.

use crate::{MemberDel, Request, options::Given};

impl Request {
    /// The command line that makes this request, without the socket, where it changes something; `linkbraid ...` with the
    /// name of the request in it for those that only ask. Names are as the kernel takes them, so no word needs quotes but
    /// the place of a fabric may.
    pub fn command(&self) -> String {
        let mut line = Line(vec!["linkbraid".to_owned()]);
        match self {
            Self::BondAdd(add) => {
                line.words(&["bond", "add", &add.name]);
                line.list("--member", &add.members);
                line.each("--address", &add.addresses);
                line.options(add.options.given());
                line.flag("--move-address", add.move_address);
                line.each("--class", add.classes.iter().map(|class| class.text()));
            }
            Self::BondSet(set) => {
                line.words(&["bond", "set", &set.name]);
                line.options(set.options.given());
                line.addresses(set.addresses.as_ref());
            }
            Self::BondDel(del) => line.words(&["bond", "del", &del.name]),
            Self::MemberAdd(add) => {
                line.words(&["member", "add", &add.bond, &add.interface]);
                line.options(add.options.given());
                line.option("--class", add.class.as_ref());
                line.flag("--move-address", add.move_address);
                line.flag("--force", add.force);
            }
            Self::MemberSet(set) => {
                line.words(&["member", "set", &set.bond, &set.interface]);
                line.options(set.options.given());
            }
            Self::MemberDel(MemberDel { bond, interface, force }) => {
                line.words(&["member", "del", bond, interface]);
                line.flag("--force", *force);
            }
            Self::ClassAdd(add) => {
                line.words(&["class", "add", &add.bond, &add.name]);
                line.list("--member", &add.members);
                line.each("--match", add.rules.iter().map(ToString::to_string));
                line.options(add.options.given());
            }
            Self::ClassSet(set) => {
                line.words(&["class", "set", &set.bond, &set.name]);
                match &set.members {
                    Some(none) if none.is_empty() => line.words(&["--no-members"]),
                    Some(members) => line.list("--member", members),
                    None => {}
                }
                line.each("--match", set.rules.iter().flatten().map(ToString::to_string));
                line.options(set.options.given());
            }
            Self::ClassDel(del) => line.words(&["class", "del", &del.bond, &del.name]),
            Self::FabricAdd(add) => {
                line.words(&["fabric", "add", &add.name]);
                line.option("--node", Some(add.node.to_string()));
                line.option("--nodes", Some(add.nodes.to_string()));
                line.option("--transport", Some(&add.transport));
                line.options(add.options.given());
                line.option("--queues", add.queues.map(|queues| queues.to_string()));
                line.option("--mac", add.mac.as_ref());
                line.each("--address", &add.addresses);
            }
            Self::FabricSet(set) => {
                line.words(&["fabric", "set", &set.name]);
                line.options(set.options.given());
                line.option("--nodes", set.nodes.map(|nodes| nodes.to_string()));
                line.addresses(set.addresses.as_ref());
            }
            Self::FabricDel(del) => line.words(&["fabric", "del", &del.name]),
            // These change nothing, and none of them is a step of anything.
            Self::ClassShow { .. } => line.words(&["class", "show"]),
            Self::Run(run) => line.words(&["run", "--class", &run.class]),
            Self::FabricShow { .. } => line.words(&["fabric", "show"]),
            Self::FabricStats { .. } | Self::Stats { .. } | Self::Latency { .. } => line.words(&["stats"]),
            Self::Apply(apply) => line.words(&["apply", &apply.file]),
            Self::Show { .. } => line.words(&["show"]),
            Self::Peers { .. } => line.words(&["peers"]),
            Self::Lanes { .. } => line.words(&["lanes"]),
            Self::Monitor { .. } => line.words(&["monitor"]),
            Self::Check { .. } => line.words(&["check"]),
        }
        line.0.join(" ")
    }
}

struct Line(Vec<String>);

impl Line {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|word| quoted(word)));
    }

    fn option(&mut self, name: &str, value: Option<impl AsRef<str>>) {
        if let Some(value) = value {
            self.words(&[name, value.as_ref()]);
        }
    }

    fn options(&mut self, given: Vec<Given>) {
        given.iter().for_each(|given| self.words(&[&given.option, &given.value]));
    }

    fn flag(&mut self, name: &str, on: bool) {
        if on {
            self.words(&[name]);
        }
    }

    fn each(&mut self, name: &str, values: impl IntoIterator<Item = impl AsRef<str>>) {
        values.into_iter().for_each(|value| self.option(name, Some(value)));
    }

    fn list(&mut self, name: &str, values: &[String]) {
        self.option(name, (!values.is_empty()).then(|| values.join(",")));
    }

    /// Addresses in place of earlier ones.
    fn addresses(&mut self, addresses: Option<&Vec<String>>) {
        match addresses {
            Some(none) if none.is_empty() => self.words(&["--no-addresses"]),
            Some(addresses) => self.each("--address", addresses),
            None => {}
        }
    }
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,=@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
