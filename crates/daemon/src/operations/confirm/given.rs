//! What others gave to the interfaces of bonds and fabrics: addresses, routes and ports. It ends with the interface, so a bond that was
//! removed and is made again would be reached by nobody.

use crate::{io::error::About as _, world::World};
use linkbraid_api::{Error, LinkName};
use linkbraid_link::{Netlink, Saved};
use serde::{Deserialize, Serialize};

/// What one interface has.
#[derive(Serialize, Deserialize)]
pub(super) struct Given {
    name: LinkName,
    /// Addresses and routes, among them those that linkbraid gives it by itself.
    had: Saved,
    /// Indices of a bond's other ports: interfaces of guests.
    ports: Vec<u32>,
}

/// What all of them have now. One that cannot be read is left out, which the log says: most changes do not remove it.
pub(super) async fn read(world: &World) -> Vec<Given> {
    let links = world.netlink.links().await.unwrap_or_default();
    let bonds = world.bonds.iter().map(|(name, bond)| {
        let own: Vec<u32> = bond.members().iter().map(|member| member.ifindex).chain([bond.port()]).collect();
        let ports = links.iter().filter(|link| link.controller == Some(bond.ifindex));
        let ports: Vec<u32> = ports.map(|link| link.index).filter(|index| !own.contains(index)).collect();
        (name, bond.ifindex, ports)
    });
    let fabrics = world.fabrics.iter().map(|(name, fabric)| (name, fabric.saved.ifindex, Vec::new()));
    let mut given = Vec::new();
    for (name, index, ports) in bonds.chain(fabrics) {
        match world.netlink.snapshot(index).await {
            Ok(had) => given.push(Given { name: name.clone(), had, ports }),
            Err(error) => tracing::warn!(%error, "'{name}' would not get its addresses again"),
        }
    }
    given
}

/// Gives it to those that were made anew since; what could not be given.
pub(super) async fn put_back(world: &World, given: &[Given]) -> Vec<Error> {
    let mut errors = Vec::new();
    for Given { name, had, ports } in given {
        let bond = world.bonds.get(name).map(|bond| bond.ifindex);
        let now = bond.or_else(|| world.fabrics.get(name).map(|fabric| fabric.saved.ifindex));
        let Some(index) = now.filter(|index| *index != had.link.index) else { continue };
        let done = world.netlink.give(had, index).await;
        errors.extend(done.about(name, "cannot give it its addresses and routes again").err());
        errors.extend(join(&world.netlink, name, index, ports).await.err());
    }
    errors
}

/// Makes interfaces that are in nothing else ports again.
async fn join(netlink: &Netlink, name: &LinkName, index: u32, ports: &[u32]) -> Result<(), Error> {
    let what = "cannot make interfaces its ports again";
    for link in netlink.links().await.about(name, what)? {
        if ports.contains(&link.index) && link.controller.is_none() {
            netlink.set_master(link.index, index).await.about(name, what)?;
        }
    }
    Ok(())
}
