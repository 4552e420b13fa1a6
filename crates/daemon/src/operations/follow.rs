//! What follows from what the kernel reports of interfaces and addresses.

use crate::{
    operations::{
        settle::{keep_mac, settle},
        upkeep, {Operations, absent, fabric, member, setup},
    },
    world::{World, bond::Bond},
};
use linkbraid_api::LinkName;
use linkbraid_link::LinkEvent;

/// Something changed.
pub(crate) async fn link_event(world: &mut World, operations: &mut Operations, event: LinkEvent) {
    match event {
        LinkEvent::LinkChanged(link) => link_changed(world, operations, &link).await,
        LinkEvent::LinkGone { index, .. } => {
            operations.link_gone(world, index);
            link_gone(world, operations, index).await;
        }
        LinkEvent::PortChanged { index, port, blocked } => {
            upkeep::port_changed(world, index, (!blocked).then_some(port)).await;
        }
        LinkEvent::AddressesChanged { index } => addresses_changed(world, index).await,
        // The thread that drives the bonds follows it.
        LinkEvent::NeighbourChanged { .. } => {}
        LinkEvent::Resync => resync(world, operations).await,
    }
}

async fn link_changed(world: &mut World, operations: &mut Operations, link: &linkbraid_link::LinkInfo) {
    operations.link_came(world, link);
    fabric::link_changed(world, link.index).await;
    let clock = world.clock;
    for bond in world.bonds.values_mut() {
        // What an event says may be over: it waited while the loop did something else.
        let fresh = bond.read_member(&world.netlink, link.index, clock).await;
        let link = fresh.as_ref().unwrap_or(link);
        // Somebody may have taken it out and put it back: the bridge has given it the flags of an ordinary port.
        if fresh.is_some() {
            upkeep::keep_flags(&world.netlink, bond, link, clock.now()).await;
        }
        bond.write_stripe_above(&world.netlink, link).await;
        if fresh.is_some() {
            if bond.follow_name(link)
                && let Err(error) = world.state.write(&bond.saved)
            {
                tracing::error!(%error, "a later daemon will look for its old name");
            }
            let mac = bond.mac;
            if let Err(error) = keep_mac(&world.netlink, bond).await {
                tracing::error!(%error, "the bond has the MAC of no member");
            }
            // Precedence follows with the look at all members below.
            if let Err(error) = bond.write_stripe(&world.netlink).await {
                tracing::error!(%error, "stripe length not set");
            }
            if bond.mac != mac {
                bond.announce(&mut world.sender, clock);
            }
        }
    }
    upkeep::link_changed(world, link.index).await;
}

/// A bond or a member was deleted, or a member moved to another namespace, under us.
async fn link_gone(world: &mut World, operations: &mut Operations, index: u32) {
    fabric::link_gone(world, index).await;
    upkeep::link_gone(world, index).await;
    if let Some(name) = world.bonds.values().find(|bond| bond.ifindex == index).map(|b| b.saved.name.clone())
    {
        tracing::warn!(bond = %name, "somebody deleted the bond's interface, putting its members back");
        if let Err(error) = setup::delete(world, &name).await {
            tracing::error!(%error, "not everything could be put back");
        }
        if let Some(wait) = operations.bond_gone(world, &name) {
            let seconds = wait.as_secs();
            tracing::warn!(bond = %name, "the file names it, so it is made again in {seconds} s; 'linkbraid bond del {name}' removes it");
        }
        return;
    }
    let Some(name) = bond_of(world, index) else { return };
    let lost = async |world: &mut World, bond: &mut Bond| {
        let gone = bond.members().into_iter().find(|member| member.ifindex == index);
        let gone = gone.map(|member| member.name).unwrap_or_default();
        let text = "deleted, or moved to another network namespace, by somebody else; it joins again when it is back";
        bond.report_member(&gone, "gone", text);
        absent::lost(bond, &gone, index);
        bond.driven().members.retain(|member| member.ifindex != index);
        member::disinherit(&mut bond.saved, index);
        if let Err(error) = bond.path.detach_member(index) {
            tracing::debug!(%error, "nothing to detach");
        }
        let settled = settle(world, bond).await;
        let saved = world.state.write(&bond.saved);
        bond.announce(&mut world.sender, world.clock);
        settled.and(saved)
    };
    if let Err(error) = world.with_bond(&name, lost).await {
        tracing::error!(%error, "the bond is not up to date");
    }
}

/// The bond that has a member of that index.
fn bond_of(world: &World, index: u32) -> Option<LinkName> {
    let has = |bond: &&Bond| bond.driven().announced(index).is_some();
    world.bonds.values().find(has).map(|bond| bond.saved.name.clone())
}

async fn addresses_changed(world: &mut World, index: u32) {
    fabric::addresses_changed(world, index).await;
    upkeep::addresses(world, index).await;
    for bond in world.bonds.values_mut().filter(|bond| bond.ifindex == index) {
        if let Err(error) = bond.read_addresses(&world.netlink, world.clock).await {
            tracing::warn!(%error, "addresses not read");
        }
    }
}

/// Events were lost: read everything again.
async fn resync(world: &mut World, operations: &mut Operations) {
    let links = match world.netlink.links().await {
        Ok(links) => links,
        Err(error) => return tracing::error!(%error, "cannot read the interfaces"),
    };
    let members = world.bonds.values().flat_map(Bond::members).map(|member| member.ifindex);
    let made = world.fabrics.values().map(|fabric| fabric.saved.ifindex);
    let made = made.chain(world.bonds.values().map(|bond| bond.ifindex));
    let gone: Vec<u32> =
        members.chain(made).filter(|index| links.iter().all(|link| link.index != *index)).collect();
    for index in gone {
        link_gone(world, operations, index).await;
    }
    for link in &links {
        link_changed(world, operations, link).await;
        addresses_changed(world, link.index).await;
    }
}
