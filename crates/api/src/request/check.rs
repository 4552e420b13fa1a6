//! What is refused of a request whatever the daemon has: names, addresses and values that cannot be. The command does not send
//! such a one, but anybody who may use the socket can, and names become parts of paths.

use super::Request;
use crate::{
    BondAdd, BondDel, BondSet, ClassAdd, ClassDel, ClassSet, Error, FabricAdd, FabricDel, FabricSet,
    MemberAdd, MemberDel, MemberSet, Run, options::Given, value,
};

impl Request {
    /// Reads one line from a client.
    ///
    /// # Errors
    /// It is no request, or one that no daemon carries out.
    pub fn read(line: &[u8]) -> Result<Self, Error> {
        let read = serde_json::from_slice::<Self>(line);
        let request = read.map_err(|error| Error::new("request", "not understood", error.to_string()))?;
        request.check()?;
        Ok(request)
    }

    /// Each field is named here, so that a new one is not forgotten.
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::BondAdd(BondAdd { name, members, addresses, options, move_address: _, classes }) => {
                let of = Of { command: "bond add", object: name };
                of.interface(name)?;
                of.interfaces(members)?;
                of.addresses(addresses)?;
                for class in classes {
                    of.class(&class.name)?;
                    of.interfaces(&class.members)?;
                }
                of.options(options.given())
            }
            Self::BondSet(BondSet { name, options, addresses }) => {
                let of = Of { command: "bond set", object: name };
                of.interface(name)?;
                of.addresses(addresses.iter().flatten())?;
                of.options(options.given())
            }
            Self::BondDel(BondDel { name }) => Of { command: "bond del", object: name }.interface(name),
            Self::MemberAdd(MemberAdd { bond, interface, options, move_address: _, force: _, class }) => {
                let of = Of { command: "member add", object: bond };
                of.interfaces([bond, interface])?;
                class.iter().try_for_each(|class| of.class(class))?;
                of.options(options.given())
            }
            Self::MemberSet(MemberSet { bond, interface, options }) => {
                let of = Of { command: "member set", object: bond };
                of.interfaces([bond, interface])?;
                of.options(options.given())
            }
            Self::MemberDel(MemberDel { bond, interface, force: _ }) => {
                Of { command: "member del", object: bond }.interfaces([bond, interface])
            }
            Self::ClassAdd(ClassAdd { bond, name, members, rules: _, options }) => {
                let of = Of { command: "class add", object: bond };
                of.interface(bond)?;
                of.class(name)?;
                of.interfaces(members)?;
                of.options(options.given())
            }
            Self::ClassSet(ClassSet { bond, name, members, rules: _, options }) => {
                let of = Of { command: "class set", object: bond };
                of.interface(bond)?;
                of.class(name)?;
                of.interfaces(members.iter().flatten())?;
                of.options(options.given())
            }
            Self::ClassDel(ClassDel { bond, name }) => {
                let of = Of { command: "class del", object: bond };
                of.interface(bond)?;
                of.class(name)
            }
            Self::Run(Run { bond, class }) => {
                let of = Of { command: "run", object: class };
                of.interfaces(bond)?;
                of.class(class)
            }
            Self::FabricAdd(add) => fabric_add(add),
            Self::FabricSet(FabricSet { name, options, nodes, addresses }) => {
                let of = Of { command: "fabric set", object: name };
                of.interface(name)?;
                of.option("--nodes", nodes.iter().try_for_each(|nodes| number(*nodes, value::nodes)))?;
                of.addresses(addresses.iter().flatten())?;
                of.options(options.given())
            }
            Self::FabricDel(FabricDel { name }) => Of { command: "fabric del", object: name }.interface(name),
            Self::Check { interfaces } => Of { command: "check", object: "check" }.interfaces(interfaces),
            Self::ClassShow { bond: name }
            | Self::FabricShow { name }
            | Self::FabricStats { name }
            | Self::Show { name }
            | Self::Peers { bond: name }
            | Self::Lanes { bond: name }
            | Self::Stats { name }
            | Self::Latency { name }
            | Self::Monitor { bond: name } => Of { command: "show", object: "show" }.interfaces(name),
            // What it reads from the file is checked there.
            Self::Apply(_) => Ok(()),
        }
    }
}

fn fabric_add(add: &FabricAdd) -> Result<(), Error> {
    let FabricAdd { name, node, nodes, transport: _, options, mac: _, queues, addresses } = add;
    let of = Of { command: "fabric add", object: name };
    of.interface(name)?;
    of.option("--nodes", number(*nodes, value::nodes))?;
    of.option("--node", number(*node, value::node))?;
    of.option("--queues", queues.iter().try_for_each(|queues| number(*queues, value::queues)))?;
    of.addresses(addresses)?;
    of.options(options.given())
}

fn number<T>(number: u16, read: impl Fn(&str) -> Result<T, String>) -> Result<(), String> {
    read(&number.to_string()).map(drop)
}

/// What a refusal is about.
struct Of<'r> {
    /// The words of the command.
    command: &'static str,
    /// The bond or fabric.
    object: &'r str,
}

impl Of<'_> {
    fn refuse(&self, object: &str, what: String, cause: String) -> Error {
        Error::new(object, what, cause).hint(format!("linkbraid {} --help", self.command))
    }

    fn interface(&self, name: &str) -> Result<(), Error> {
        let refuse = |cause| self.refuse(self.command, "name of an interface".to_owned(), cause);
        value::interface(name).map(drop).map_err(refuse)
    }

    fn interfaces(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<(), Error> {
        names.into_iter().try_for_each(|name| self.interface(name.as_ref()))
    }

    fn class(&self, name: &str) -> Result<(), Error> {
        let refuse = |cause| self.refuse(self.command, "name of a class".to_owned(), cause);
        value::class(name).map(drop).map_err(refuse)
    }

    fn addresses(&self, texts: impl IntoIterator<Item = impl AsRef<str>>) -> Result<(), Error> {
        let mut texts = texts.into_iter();
        self.option("--address", texts.try_for_each(|text| value::cidr(text.as_ref()).map(drop)))
    }

    fn options(&self, given: Vec<Given>) -> Result<(), Error> {
        given.into_iter().try_for_each(|given| self.option(&given.option, given.refused.map_or(Ok(()), Err)))
    }

    fn option(&self, option: &str, checked: Result<(), String>) -> Result<(), Error> {
        checked.map_err(|cause| self.refuse(self.object, format!("option '{option}'"), cause))
    }
}
