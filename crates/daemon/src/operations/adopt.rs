//! What a daemon finds at its start: bonds of an earlier one, whole or half made.

use crate::{
    io::{
        clock::epoch,
        error::About as _,
        programs::can_restart,
        state::{SavedAbsent, SavedBond, SavedMember},
    },
    operations::{
        settle::keep_mac,
        {member, setup, upkeep},
    },
    world::{World, bond::Bond, driven::INHERIT},
};
use linkbraid_api::{Error, LinkName};
use linkbraid_dataplane::DataPath;
use linkbraid_link::LinkInfo;
use std::time::SystemTime;

/// Takes over every bond on file; what was half made is undone, and so is what somebody took away by hand.
pub(crate) async fn all(world: &mut World) {
    if let Err(error) = can_restart() {
        let hint = error.hint.as_deref().unwrap_or_default();
        tracing::warn!(%error, hint, "bonds carry on when this daemon ends, and nothing more");
    }
    let mut waiting = Vec::new();
    for saved in world.state.read_all::<SavedBond>() {
        let name = saved.name.clone();
        if saved.place.parent() != Some(&world.namespace) {
            tracing::warn!(bond = %name, "belongs to another network namespace, left alone");
            continue;
        }
        let index = saved.ifindex;
        if let Some(bond) = world.bonds.values().find(|bond| Some(bond.ifindex) == index) {
            // A daemon that died while it renamed a bond left two files of it.
            if bond.saved.name != name
                && let Err(error) = world.state.remove::<SavedBond>(&name)
            {
                tracing::error!(%error, "the bond is on file twice");
            }
            continue;
        }
        let found = setup::interface(&world.netlink, &saved).await;
        let gone = matches!(found, Ok(None));
        if !saved.complete || gone {
            let why = if gone { "its interface is gone" } else { "an earlier daemon died while it added it" };
            tracing::warn!(bond = %name, why, "putting the bond's members back");
            if let Err(error) = setup::end(world, saved).await {
                tracing::error!(%error, "not everything could be undone; 'bond del' tries again");
            }
            continue;
        }
        let adopted = match found.about(&name, "cannot find the bond's interface") {
            Ok(Some(link)) => one(world, saved, &link).await,
            Ok(None) => continue,
            Err(error) => Err(error),
        };
        match adopted {
            Ok(bond) if bond.path.waits() => waiting.push((bond, name)),
            Ok(bond) => adopted_as(world, bond, &name).await,
            Err(error) => tracing::error!(%error, "{LEFT}"),
        }
    }
    take_over(world, waiting).await;
    sweep(world).await;
}

/// What becomes of a bond that cannot be adopted.
const LEFT: &str = "cannot adopt the bond; it continues as it is";

/// Bonds whose programs have maps of another layout, which say nothing to this build. Those programs go on until peers have said again
/// who they are, and all tables are written.
async fn take_over(world: &mut World, waiting: Vec<(Bond, LinkName)>) {
    if waiting.is_empty() {
        return;
    }
    for (_, name) in &waiting {
        let seconds = INHERIT.as_secs();
        tracing::info!(bond = %name, seconds, "its programs are of another version, and go on until peers are known");
    }
    tokio::time::sleep(INHERIT).await;
    for (mut bond, name) in waiting {
        match bond.path.take_over().about(&name, "cannot replace the programs of another version") {
            Ok(()) => {
                bond.driven().listens = false;
                adopted_as(world, bond, &name).await;
            }
            Err(error) => tracing::error!(%error, "{LEFT}"),
        }
    }
}

/// A bond is driven by this daemon, and was called `name` by the one before.
async fn adopted_as(world: &mut World, bond: Bond, name: &LinkName) {
    bond.announce(&mut world.sender, world.clock);
    bond.report(Some("up"), "adopted", "taken over from an earlier daemon");
    if bond.saved.name != *name {
        let text = format!("its interface was called '{name}', and so was the bond");
        bond.report(None, "renamed", text);
    }
    let (name, members) = (bond.saved.name.clone(), bond.members());
    world.bonds.insert(name.clone(), bond);
    // What was done to it while no daemon ran.
    upkeep::all(world, &name).await;
    for member in members {
        upkeep::addresses(world, member.ifindex).await;
    }
}

/// Takes off the programs of bonds that are no more, and removes what earlier builds pinned.
async fn sweep(world: &World) {
    let links = world.netlink.links().await.unwrap_or_default();
    let indices: Vec<u32> = links.iter().map(|link| link.index).collect();
    if let Err(error) = linkbraid_dataplane::take_off_strays(&indices) {
        tracing::warn!(%error, "programs of bonds that are gone may be left");
    }
    linkbraid_dataplane::sweep_pins(&world.namespace);
}

/// The bond goes by the name of its interface, which somebody changed.
fn rename(world: &World, saved: &mut SavedBond, name: &str) -> Result<(), Error> {
    let is_other = |other: &SavedBond| other.name == *name && other.place != saved.place;
    if world.state.read_all::<SavedBond>().iter().any(is_other) {
        let cause = format!("its interface is called '{name}' now, which is the name of another bond");
        return Err(Error::new(&saved.name, "cannot adopt", cause)
            .hint(format!("ip link set {name} name {}", saved.name)));
    }
    let old = std::mem::replace(&mut saved.name, LinkName::of_link(name));
    world.state.write(saved)?;
    world.state.remove::<SavedBond>(&old)
}

async fn one(world: &mut World, mut saved: SavedBond, link: &LinkInfo) -> Result<Bond, Error> {
    if *link.name != *saved.name {
        rename(world, &mut saved, &link.name)?;
    }
    let name = saved.name.clone();
    let (driving, feed) = (world.driving.clone(), world.feed.clone());
    // The internal port among them.
    let links = world.netlink.links().await.about(&name, "cannot list its ports")?;
    let ports = links.iter().filter(|port| port.controller == Some(link.index)).map(|port| port.index);
    let interfaces: Vec<u32> = saved.interfaces().into_iter().chain(ports).collect();
    let path = DataPath::adopt(link.index, &interfaces, world.hook);
    let path = path.about(&name, "cannot load the data path")?;
    // On file before it is used, with what follows.
    saved.epoch = epoch(saved.epoch, SystemTime::now());
    let mut bond = Bond::new(saved, link.index, link.mac, path, driving, feed)?;
    bond.driven().listens = bond.path.waits();
    let mut members = Vec::new();
    // Those that join or leave first: what becomes of their addresses depends on who stays, whether or not that one is there.
    let mut on_file = bond.saved.members.clone();
    on_file.sort_by_key(SavedMember::stays);
    for member in on_file {
        let (index, stays) = (member.before.link.index, member.stays());
        let why = match world.netlink.link_by_index(index).await {
            Ok(found) if found.controller.is_none_or(|controller| controller == link.index) => {
                if stays {
                    bond.follow_name(&found);
                    members.push(found);
                    continue;
                }
                let doing = if member.joining { "added" } else { "removed" };
                tracing::warn!(bond = %name, member = %found.name, doing, "an earlier daemon died at it");
                member::finish(world, &mut bond, &member).await;
                continue;
            }
            Ok(found) => format!("somebody else took '{}'", found.name),
            Err(error) => {
                let gone = stays.then(|| SavedAbsent::of(&member, &member.before.link.name));
                bond.saved.absent.extend(gone);
                let back = if stays { ", and joins again when it is back" } else { "" };
                format!("a member is gone{back}: {error}")
            }
        };
        tracing::warn!(bond = %name, "{why}");
        if let Err(error) = bond.path.detach_member(index) {
            tracing::error!(%error, "its program stays on");
        }
        member::disinherit(&mut bond.saved, index);
    }
    // Now, or the next daemon would do all this again to interfaces that are in use for something else by then.
    if let Err(error) = world.state.write(&bond.saved) {
        tracing::error!(%error, "the next daemon will not know, and peers refuse it if the clock is set back before that");
    }
    for link in &members {
        member::enslave(&world.netlink, &mut bond, link, false).await?;
    }
    // After the members: those of earlier builds have no program yet that drops what the bridge itself sends there. If it fails, it is
    // tried again later.
    if let Err(error) = bond.mend_port(&world.netlink).await {
        tracing::error!(%error, "nothing leaves by the bond");
    }
    world.netlink.delete_cutter(link.index).await;
    // The member that gave the bond its MAC may have gone meanwhile.
    keep_mac(&world.netlink, &mut bond).await?;
    setup::start(world, &mut bond).await?;
    Ok(bond)
}
