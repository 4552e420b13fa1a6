//! Fabrics of an earlier daemon, those that cannot join, and the end of their interfaces.

use super::{done::done, end::end};
use crate::world::{
    World,
    fabric::{
        Fabric, RETRY, State,
        job::{Done, Why, Work},
        read_addresses,
        saved::{SavedFabric, namespace},
        sweep,
    },
    history::History,
};
use linkbraid_api::{Error, LinkName};
use linkbraid_link::Kind;
use linkbraid_proto::Time;
use std::time::Duration;
use tokio::{sync::mpsc::UnboundedReceiver, time::timeout};

/// How long the bonds wait for the fabrics, which may be their members, when a daemon starts: milliseconds where others are
/// there, but whoever is the first one has the memory to reserve.
const ADOPT_MAX: Duration = Duration::from_millis(100);

/// Brings back every fabric on file, all at once. Before the bonds, as far as that takes milliseconds: one may be a member.
pub(crate) async fn all(world: &mut World, news: &mut UnboundedReceiver<Done>) {
    sweep(&world.netlink, None).await;
    let mut names = Vec::new();
    for mut saved in world.state.read_all::<SavedFabric>() {
        let name = saved.name.clone();
        if saved.namespace != namespace() {
            tracing::warn!(fabric = %name, "belongs to another network namespace, left alone");
            continue;
        }
        let link = match world.netlink.link_by_index(saved.ifindex).await {
            Ok(link) => link,
            Err(error) if error.kind == Kind::NoDevice => {
                tracing::warn!(fabric = %name, "its interface is gone; discarded");
                let _ = world.state.remove::<SavedFabric>(&name);
                continue;
            }
            Err(error) => {
                tracing::error!(fabric = %name, %error, "cannot find its interface; it stays as it is");
                continue;
            }
        };
        if link.kind.as_deref() != Some("tun") {
            tracing::warn!(fabric = %name, "its interface is another one now; discarded");
            let _ = world.state.remove::<SavedFabric>(&name);
            continue;
        }
        names.push(name);
        saved.follow(&link);
        // A daemon that was killed while it took over a new name has left it under both.
        if world.fabrics.contains_key(&saved.name) {
            continue;
        }
        let history = History::new(&saved.name, world.feed.clone());
        let state =
            joins(world, &saved, Why::Adopt, Error::new(&saved.name, "not ready", "it is taken over"));
        let mut fabric = Fabric::new(saved, history, state);
        read_addresses(&world.netlink, &mut fabric).await;
        world.fabrics.insert(fabric.saved.name.clone(), fabric);
    }
    write(world, world.fabrics.values().map(|fabric| &fabric.saved), &names);
    let ready = async {
        while world.jobs.tries()
            && let Some(news) = news.recv().await
        {
            done(world, news).await;
        }
    };
    if timeout(ADOPT_MAX, ready).await.is_err() {
        tracing::info!("the bonds do not wait for all fabrics");
    }
}

/// Writes fabrics down, then forgets those of `names` that none has now.
pub(super) fn write<'a>(world: &World, fabrics: impl Iterator<Item = &'a SavedFabric>, names: &[LinkName]) {
    for saved in fabrics {
        if let Err(error) = world.state.write(saved) {
            tracing::error!(%error, "the next daemon will not know");
        }
    }
    for name in names.iter().filter(|name| !world.fabrics.contains_key(*name)) {
        if let Err(error) = world.state.remove::<SavedFabric>(name) {
            tracing::warn!(%error, "the next daemon will look for it");
        }
    }
}

/// Begins to take the place of a fabric that has none.
fn joins(world: &mut World, saved: &SavedFabric, why: Why, error: Error) -> State {
    match world.jobs.join(saved, Work::Join(why), None) {
        Ok(ticket) => State::Joins { ticket, error },
        Err(error) => State::Waits { error, until: world.clock.now() + RETRY },
    }
}

/// When one of those that could not join is to be tried again.
pub(crate) fn next_try(world: &World) -> Option<Time> {
    let untils = world.fabrics.values().filter_map(|fabric| match fabric.state {
        State::Waits { until, .. } => Some(until),
        State::Runs(_) | State::Joins { .. } => None,
    });
    // One at a time: its end wakes the loop.
    untils.min().filter(|_| !world.jobs.tries())
}

/// Tries one again that could not join.
pub(crate) fn retry(world: &mut World) {
    let Some(due) = next_try(world).filter(|until| *until <= world.clock.now()) else { return };
    let found = world.fabrics.values().find_map(|fabric| match &fabric.state {
        State::Waits { error, until } if *until == due => Some((fabric.saved.clone(), error.clone())),
        _ => None,
    });
    let Some((saved, error)) = found else { return };
    let state = joins(world, &saved, Why::Retry, error);
    if let Some(fabric) = world.fabrics.get_mut(&saved.name) {
        fabric.state = state;
    }
}

/// Somebody deleted the interface, or moved it to another network namespace.
pub(crate) async fn link_gone(world: &mut World, index: u32) {
    let found = world.fabrics.values().find(|fabric| fabric.saved.ifindex == index);
    let Some(name) = found.map(|fabric| fabric.saved.name.clone()) else { return };
    if let Some(fabric) = world.fabrics.remove(&name) {
        let text = "its interface was deleted, or moved to another network namespace, by somebody else";
        // Nobody waits for the rest.
        let _ = end(world, fabric, "gone", text).await;
    }
}

/// Somebody gave the interface another address.
pub(crate) async fn addresses_changed(world: &mut World, index: u32) {
    if let Some(fabric) = world.fabrics.values_mut().find(|fabric| fabric.saved.ifindex == index) {
        read_addresses(&world.netlink, fabric).await;
    }
}
