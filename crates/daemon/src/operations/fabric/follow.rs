//! What others change of the interfaces of fabrics.

use super::adopt::{link_gone, write};
use crate::world::{
    World,
    fabric::{Fabric, State, saved::SavedFabric},
    history::{Change, History},
};
use linkbraid_api::LinkName;
use linkbraid_link::LinkInfo;
use std::collections::{BTreeMap, BTreeSet};

/// How often all interfaces are read until no two have one name: one may be renamed while they are read.
const READS_MAX: usize = 8;

/// Somebody renamed the interface, or gave it another MTU or MAC.
pub(crate) async fn link_changed(world: &mut World, index: u32) {
    let found = world.fabrics.values().find(|fabric| fabric.saved.ifindex == index);
    let Some(name) = found.map(|fabric| fabric.saved.name.clone()) else { return };
    // What an event says may be over: it waited while the loop did something else.
    let Ok(link) = world.netlink.link_by_index(index).await else { return };
    if *link.name == *name {
        return take_over(world, &BTreeMap::from([(index, link)]));
    }
    // Its new name may be that of another one in our list, whose own news is still to come.
    let Some(links) = all(world).await else {
        return tracing::error!(fabric = %name, "interfaces are renamed all the time, not followed");
    };
    let indexes: Vec<u32> = world.fabrics.values().map(|fabric| fabric.saved.ifindex).collect();
    for index in indexes.into_iter().filter(|index| !links.contains_key(index)) {
        link_gone(world, index).await;
    }
    take_over(world, &links);
}

/// The interfaces of all fabrics by index, as they were at one time.
async fn all(world: &World) -> Option<BTreeMap<u32, LinkInfo>> {
    for _ in 0..READS_MAX {
        let links = world.netlink.links().await.ok()?;
        let is_ours = |link: &LinkInfo| world.fabrics.values().any(|f| f.saved.ifindex == link.index);
        let ours: BTreeMap<u32, LinkInfo> =
            links.into_iter().filter(is_ours).map(|link| (link.index, link)).collect();
        let names: BTreeSet<&String> = ours.values().map(|link| &link.name).collect();
        if names.len() == ours.len() {
            return Some(ours);
        }
    }
    None
}

/// Makes the fabrics of these interfaces what those are. No two have one name, and no other fabric has one of those names.
fn take_over(world: &mut World, links: &BTreeMap<u32, LinkInfo>) {
    let mut changed = Vec::new();
    for (name, mut fabric) in std::mem::take(&mut world.fabrics) {
        if let Some(link) = links.get(&fabric.saved.ifindex)
            && changes(world, &mut fabric, link)
        {
            changed.push((name, fabric.saved.clone()));
        }
        world.fabrics.insert(fabric.saved.name.clone(), fabric);
    }
    let (names, saved): (Vec<LinkName>, Vec<SavedFabric>) = changed.into_iter().unzip();
    write(world, saved.iter(), &names);
}

/// Makes one what its interface is; whether that changes anything.
fn changes(world: &World, fabric: &mut Fabric, link: &LinkInfo) -> bool {
    let before = fabric.saved.clone();
    fabric.saved.follow(link);
    if fabric.saved == before {
        return false;
    }
    if fabric.saved.name != before.name {
        let text = format!("its interface was called '{}', and so was the fabric", before.name);
        fabric.history = History::new(&link.name, world.feed.clone());
        fabric.history.add(Change::fabric(&link.name, "renamed", text));
    }
    if let State::Runs(node) = &fabric.state
        && let Err(error) = node.set(&fabric.saved, world.clock.now())
    {
        tracing::warn!(%error, "the fabric does not follow its interface");
    }
    true
}
