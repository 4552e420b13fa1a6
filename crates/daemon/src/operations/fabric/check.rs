//! What is refused before anything is touched.

use crate::{
    operations::{desired::merge::member_of, setup},
    world::{
        World,
        bond::Bond,
        fabric::{Fabric, refusal::of_transport, saved::SavedFabric},
    },
};
use linkbraid_api::{Auth, Encrypt, Error, FabricAdd, FabricSettings, KeySource, value::Value as _};
use linkbraid_fabric::Address;
use linkbraid_wire::MacAddr;

const WHAT: &str = "cannot add the fabric";

/// Refuses what `fabric add` cannot do. The MAC that it asks for.
pub(crate) async fn add(world: &World, add: &FabricAdd) -> Result<Option<[u8; 6]>, Error> {
    let name = &add.name;
    let command = |node: u16| format!("linkbraid fabric add {name} --node {node} --nodes {}", add.nodes);
    if add.node >= add.nodes {
        let cause =
            format!("{} is outside the range 0 to {} of {} nodes", add.node, add.nodes - 1, add.nodes);
        let hint = format!("{} --transport {}", command(add.nodes - 1), add.transport);
        return Err(Error::new(name, "option '--node'", cause).hint(hint));
    }
    addresses(name, &add.addresses)?;
    let mac = add.mac.as_deref().map(|text| host_mac(name, text)).transpose()?;
    if let Ok(link) = world.netlink.link(name).await {
        let cause = format!("an interface of this name exists (a {})", link.kind.as_deref().unwrap_or("NIC"));
        return Err(Error::new(name, WHAT, cause).hint(format!("ip -d link show {name}")));
    }
    if let Some(words) = world.jobs.busy(name) {
        return Err(Error::new(name, WHAT, words).hint("linkbraid fabric show"));
    }
    let taken = |other: &&SavedFabric| other.transport == add.transport && other.node == add.node;
    if let Some(other) = all(world).find(taken) {
        let cause = format!("'{}' is node {} of {} already", other.name, other.node, other.transport);
        return Err(Error::new(name, WHAT, cause).hint(format!("linkbraid fabric show {}", other.name)));
    }
    let address = add.transport.parse::<Address>();
    address.map_err(|error| of_transport(error, name, add.node, add.nodes))?;
    let command = format!("{} --transport {}", command(add.node), add.transport);
    encryption(name, &add.transport, &add.settings(), &command)?;
    Ok(mac)
}

/// Refuses encryption where nobody knows with whom, and where the transport cannot. `command` is what gets on without.
pub(super) fn encryption(
    name: &str,
    transport: &str,
    settings: &FabricSettings,
    command: &str,
) -> Result<(), Error> {
    if settings.encrypt == Encrypt::Off {
        return Ok(());
    }
    let refuse =
        |cause: String, hint: String| Err(Error::new(name, "cannot encrypt frames", cause).hint(hint));
    if settings.auth != Auth::Require {
        let key = match &settings.key {
            KeySource::None => format!("/etc/linkbraid/{name}.key"),
            key => key.text(),
        };
        let cause =
            format!("auth is {}, and only nodes that have the key can decrypt them", settings.auth.text());
        return refuse(cause, format!("{command} --key {key} --auth require --encrypt on"));
    }
    match transport.parse::<Address>().ok().and_then(|address| address.refuses_encryption()) {
        Some(cause) => refuse(cause, format!("{command} --encrypt off")),
        None => Ok(()),
    }
}

/// All that there are, come or go.
fn all(world: &World) -> impl Iterator<Item = &SavedFabric> {
    world.fabrics.values().map(|fabric| &fabric.saved).chain(world.jobs.saved())
}

/// Refuses what cannot be addresses. Those, each once, as the kernel writes them.
pub(super) fn addresses(name: &str, texts: &[String]) -> Result<Vec<String>, Error> {
    let read = setup::cidrs(name, texts).map_err(|error| error.hint("linkbraid fabric add --help"))?;
    Ok(read.iter().map(|(ip, prefix)| format!("{ip}/{prefix}")).collect())
}

fn host_mac(name: &str, text: &str) -> Result<[u8; 6], Error> {
    let mac = text.parse::<MacAddr>().ok().filter(|mac| mac.is_host());
    mac.map(|mac| mac.0).ok_or_else(|| {
        Error::new(name, "option '--mac'", format!("'{text}' is not the MAC of one interface"))
            .hint("linkbraid fabric add --help")
    })
}

/// Refuses the MAC of another fabric: both may meet in one bond.
pub(super) fn mac(world: &World, saved: &SavedFabric) -> Result<(), Error> {
    let Some(other) = all(world).find(|other| other.mac == saved.mac) else { return Ok(()) };
    let cause = format!("its MAC {} is that of '{}' too", MacAddr(saved.mac), other.name);
    Err(Error::new(&saved.name, WHAT, cause).hint(format!(
        "linkbraid fabric add {} --node {} --nodes {} --transport {} --mac 02:00:00:00:00:01",
        saved.name, saved.node, saved.nodes, saved.transport
    )))
}

/// Refuses a fabric that is a member of a bond: it is the bond's to change.
pub(super) fn is_free(world: &World, fabric: &Fabric) -> Result<(), Error> {
    let has = |bond: &&Bond| bond.members().iter().any(|member| member.ifindex == fabric.saved.ifindex);
    let Some(bond) = world.bonds.values().find(has) else { return Ok(()) };
    Err(member_of(&fabric.saved.name, &bond.saved.name))
}
