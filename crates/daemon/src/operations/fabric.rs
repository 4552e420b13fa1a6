//! `fabric add`, `fabric set` and `fabric del`, and what others do to the interfaces of fabrics.

mod adopt;
mod check;
mod done;
mod end;
mod follow;

pub(crate) use adopt::{addresses_changed, all as adopt_all, link_gone, next_try, retry};
pub(crate) use check::add as check_add;
pub(crate) use done::{done, stop_all};
pub(crate) use follow::link_changed;

use crate::{
    io::{
        state::boot_id,
        undo::{Op, UndoLog, not_undone},
    },
    operations::{
        setup::replace_addresses,
        wait::{Outcome, Wait},
    },
    world::{
        World,
        fabric::{
            State, Ticket,
            job::{Why, Work},
            node, number_of,
            saved::{self, SavedFabric},
        },
    },
};
use end::end;
use linkbraid_api::{Error, FabricAdd};
use linkbraid_fabric::engine::derive_mac;

/// `fabric add`: everything done, or everything as it was.
pub(crate) async fn add(world: &mut World, add: &FabricAdd) -> Result<Outcome, Error> {
    let mac = check::add(world, add).await?;
    let addresses = check::addresses(&add.name, &add.addresses)?;
    let (number, settings) = (number_of(&add.name), add.settings());
    let saved = SavedFabric {
        name: add.name.clone(),
        ifindex: 0,
        node: add.node,
        nodes: add.nodes,
        transport: add.transport.clone(),
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
    let ticket = world.jobs.join(&saved, Work::Add, None)?;
    Ok(wait(world, Some(ticket)))
}

/// `fabric del`
pub(crate) async fn delete(world: &mut World, name: &str) -> Result<Outcome, Error> {
    let fabric = world.fabrics.get(name).ok_or_else(|| world.no_fabric(name))?;
    check::is_free(world, fabric)?;
    let fabric = world.fabrics.remove(name).ok_or_else(|| world.no_fabric(name))?;
    let ticket = end(world, fabric, "deleted", "deleted, and its interface with it").await;
    Ok(wait(world, ticket))
}

/// What is done when a thread is, if one is at it.
fn wait(world: &mut World, ticket: Option<Ticket>) -> Outcome {
    let wait = ticket.and_then(|ticket| world.jobs.wait(ticket));
    wait.map_or_else(|| Outcome::Done(Vec::new()), |wait| Outcome::Waits(Wait::Fabric(wait)))
}

/// `fabric set`
pub(crate) async fn set(world: &mut World, from: &FabricAdd, to: &FabricAdd) -> Result<Outcome, Error> {
    let name = &to.name;
    let fabric = world.fabrics.get(name).ok_or_else(|| world.no_fabric(name))?;
    let old = fabric.saved.clone();
    let nodes = Some(to.nodes).filter(|nodes| *nodes != from.nodes && *nodes != old.nodes);
    let settings = old.settings.with(&to.settings().besides(&from.settings()));
    check::encryption(name, &old.transport, &settings, &format!("linkbraid fabric set {name}"))?;
    let anew = nodes.is_some() || settings.encrypt != old.settings.encrypt;
    if anew && matches!(fabric.state, State::Joins { .. }) {
        let cause = "it is taking its place on the transport just now";
        return Err(
            Error::new(name, "cannot change the fabric", cause).hint(format!("linkbraid fabric show {name}"))
        );
    }
    let mtu = settings.mtu.0;
    let resized = settings.mtu != old.settings.mtu;
    if resized || to.addresses != from.addresses {
        check::is_free(world, fabric)?;
    }
    if let (true, State::Runs(node)) = (resized, &fabric.state) {
        node::fits(node.room, mtu).map_err(|(cause, most)| {
            Error::new(name, format!("cannot set MTU {mtu}"), cause)
                .hint(format!("linkbraid fabric set {name} --mtu {most}"))
        })?;
    }
    // Before anything is touched: a disk that takes no file takes none of what follows either.
    world.state.write(&old)?;
    let mut log = UndoLog::new(&world.netlink);
    let interface = (name.as_str(), old.ifindex);
    let mut wanted = SavedFabric { settings, ..old.clone() };
    let set = async {
        if resized {
            log.carry_out(interface, Op::Mtu { from: old.settings.mtu.0, to: mtu }).await?;
        }
        if to.addresses != from.addresses {
            let replaced = replace_addresses(&mut log, interface, &old.addresses, &to.addresses, |_| false);
            wanted.addresses = replaced.await?;
            wanted.applied_addresses.retain(|address| wanted.addresses.contains(address));
        }
        let Some(fabric) = world.fabrics.get_mut(name) else { return Err(world.no_fabric(name)) };
        fabric.saved = wanted;
        if anew {
            let ticket = restart(world, name, nodes.unwrap_or(old.nodes), old.clone())?;
            return Ok(wait(world, Some(ticket)));
        }
        fabric.look_at_keys(world.clock.now());
        if let State::Runs(node) = &fabric.state {
            node.set(&fabric.saved, world.clock.now())?;
        }
        world.state.write(&fabric.saved).map(|()| Outcome::Done(Vec::new()))
    };
    let error = match set.await {
        Ok(outcome) => return Ok(outcome),
        Err(error) => log.take_back(error).await,
    };
    let Some(fabric) = world.fabrics.get_mut(name) else { return Err(error) };
    fabric.saved = old;
    fabric.look_at_keys(world.clock.now());
    let back = match &fabric.state {
        State::Runs(node) => node.set(&fabric.saved, world.clock.now()).err(),
        State::Joins { .. } | State::Waits { .. } => None,
    };
    Err(not_undone(error, back))
}

/// Ends this start of a node and begins another one with so many nodes, and frames encrypted or not; if that fails, one as it was before.
fn restart(world: &mut World, name: &str, nodes: u16, old: SavedFabric) -> Result<Ticket, Error> {
    let Some(fabric) = world.fabrics.get_mut(name) else { return Err(world.no_fabric(name)) };
    let error = Error::new(name, "not ready", "it is restarted");
    let now = world.clock.now();
    let before = std::mem::replace(&mut fabric.state, State::Waits { error: error.clone(), until: now });
    let node = match before {
        State::Runs(node) => Some(node),
        State::Joins { .. } | State::Waits { .. } => None,
    };
    let wanted = SavedFabric { nodes, ..fabric.saved.clone() };
    let ticket = world.jobs.join(&wanted, Work::Join(Why::Changed(Box::new(old))), node)?;
    fabric.state = State::Joins { ticket, error };
    Ok(ticket)
}
