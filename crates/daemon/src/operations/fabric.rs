//! `fabric add`, `fabric set` and `fabric del`, and what others do to the interfaces of fabrics.

mod adopt;
mod check;
mod done;
mod follow;

pub(crate) use adopt::{addresses_changed, all as adopt_all, link_gone, next_try, retry};
pub(crate) use check::add as check_add;
pub(crate) use done::{done, stop_all};
pub(crate) use follow::link_changed;

use crate::{
    io::{error::About as _, state::boot_id},
    operations::{outcome::Outcome, setup::replace_addresses},
    world::{
        World,
        fabric::{
            Fabric, State, Ticket,
            job::{Why, Work},
            node, number_of,
            saved::{self, SavedFabric},
        },
        told,
    },
};
use linkbraid_api::{Error, FabricAdd, FabricSet};
use linkbraid_fabric::engine::derive_mac;

/// `fabric add`: everything done, or everything as it was.
pub(crate) async fn add(world: &mut World, add: FabricAdd) -> Result<Outcome, Error> {
    let mac = check::add(world, &add).await?;
    let addresses = check::addresses(&add.name, &add.addresses)?;
    let (number, settings) = (number_of(&add.name), add.settings());
    let saved = SavedFabric {
        name: add.name,
        ifindex: 0,
        node: add.node,
        nodes: add.nodes,
        transport: add.transport,
        queues: add.queues.unwrap_or(1),
        mac: mac.unwrap_or_else(|| derive_mac(number, add.node)),
        number,
        settings,
        boot_id: boot_id(),
        namespace: saved::namespace(),
        applied: false,
        addresses,
        applied_addresses: Vec::new(),
    };
    check::mac(world, &saved)?;
    world.jobs.join(&saved, Work::Add, None).map(Outcome::Fabric)
}

/// `fabric del`
pub(crate) async fn delete(world: &mut World, name: &str) -> Result<Outcome, Error> {
    let ifindex = world.fabrics.get(name).ok_or_else(|| world.no_fabric(name))?.saved.ifindex;
    check::is_free(world, name, ifindex).await?;
    let Some(fabric) = world.fabrics.remove(name) else { return Ok(Outcome::Done(Vec::new())) };
    let ticket = end(world, fabric, "deleted", "deleted, and its interface with it").await;
    Ok(ticket.map_or_else(|| Outcome::Done(Vec::new()), Outcome::Fabric))
}

/// Ends a fabric for good; its interface goes, if it is still there. What of that is still under way.
async fn end(world: &mut World, mut fabric: Fabric, reason: &'static str, text: &str) -> Option<Ticket> {
    let name = fabric.saved.name.clone();
    fabric.history.tell(told::fabric(&name, reason, text.to_owned()));
    let ticket = match fabric.state {
        State::Runs(node) => {
            node.let_go();
            Some(world.jobs.end(&fabric.saved, Ok(()), None, move || node.stop()))
        }
        // The kernel keeps its interface.
        State::Joins { .. } | State::Waits { .. } => {
            if let Err(error) = world.netlink.delete_link(fabric.saved.ifindex).await {
                tracing::debug!(%error, "the interface is gone already");
            }
            match fabric.state {
                State::Joins { ticket, .. } => {
                    world.jobs.cancel(ticket);
                    Some(ticket)
                }
                _ => None,
            }
        }
    };
    if let Err(error) = world.state.remove_fabric(&name) {
        tracing::error!(%error, "the next daemon will try to bring it back");
    }
    ticket
}

/// `fabric set`
pub(crate) async fn set(world: &mut World, set: FabricSet) -> Result<Outcome, Error> {
    let fabric = world.fabrics.get(&set.name).ok_or_else(|| world.no_fabric(&set.name))?;
    check::set(&fabric.saved, &set)?;
    let (ifindex, old) = (fabric.saved.ifindex, fabric.saved.clone());
    let nodes = set.nodes.filter(|nodes| *nodes != old.nodes);
    if nodes.is_some() && matches!(fabric.state, State::Joins { .. }) {
        let cause = "it is taking its place on the transport just now";
        return Err(Error::new(&set.name, "cannot change the fabric", cause)
            .hint(format!("linkbraid fabric show {}", set.name)));
    }
    let settings = old.settings.with(&set.options);
    let mtu = settings.mtu.0;
    let resized = settings.mtu != old.settings.mtu;
    if resized {
        check::is_free(world, &set.name, ifindex).await?;
        let what = format!("cannot set MTU {mtu}");
        if let State::Runs(node) = &fabric.state {
            node::fits(node.room, mtu).map_err(|(cause, mtu)| {
                let hint = format!("linkbraid fabric set {} --mtu {mtu}", set.name);
                Error::new(&set.name, &what, cause).hint(hint)
            })?;
        }
        world.netlink.set_mtu(ifindex, mtu).await.about(&set.name, what)?;
    }
    let addresses = match set_addresses(world, &set, &old).await {
        Ok(addresses) => addresses,
        Err(error) => {
            if resized {
                let _ = world.netlink.set_mtu(ifindex, old.settings.mtu.0).await;
            }
            return Err(error);
        }
    };
    let Some(fabric) = world.fabrics.get_mut(&set.name) else { return Ok(Outcome::Done(Vec::new())) };
    fabric.saved.applied_addresses.retain(|address| addresses.contains(address));
    fabric.saved.addresses = addresses;
    fabric.saved.settings = settings;
    if let Some(nodes) = nodes {
        return start_anew(world, &set.name, nodes, old).map(Outcome::Fabric);
    }
    if let State::Runs(node) = &fabric.state {
        node.set(&fabric.saved, world.clock.now())?;
    }
    world.state.write_fabric(&fabric.saved).map(|()| Outcome::Done(Vec::new()))
}

/// Changes the addresses that a fabric was given, if that is asked for. Those that it has been given then.
async fn set_addresses(world: &World, set: &FabricSet, old: &SavedFabric) -> Result<Vec<String>, Error> {
    let Some(wanted) = &set.addresses else { return Ok(old.addresses.clone()) };
    check::is_free(world, &set.name, old.ifindex).await?;
    let interface = (set.name.as_str(), old.ifindex);
    replace_addresses(&world.netlink, interface, &old.addresses, wanted, |_| false).await
}

/// Ends this start of a node and begins another one with so many nodes; if that fails, one as it was before.
fn start_anew(world: &mut World, name: &str, nodes: u16, old: SavedFabric) -> Result<Ticket, Error> {
    let Some(fabric) = world.fabrics.get_mut(name) else { return Err(world.no_fabric(name)) };
    let error = Error::new(name, "not ready", "it is started anew");
    let now = world.clock.now();
    let before = std::mem::replace(&mut fabric.state, State::Waits { error: error.clone(), until: now });
    let node = match before {
        State::Runs(node) => Some(node),
        State::Joins { .. } | State::Waits { .. } => None,
    };
    let wanted = SavedFabric { nodes, ..fabric.saved.clone() };
    let ticket = world.jobs.join(&wanted, Work::Join(Why::Anew(Box::new(old))), node)?;
    fabric.state = State::Joins { ticket, error };
    Ok(ticket)
}
