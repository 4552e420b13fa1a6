//! How a member leaves: by `member del`, because it could not join, because it is gone, or because the daemon that was
//! at it died.

use crate::{
    io::{
        error::About as _,
        state::{SavedBond, SavedMember},
    },
    operations::{
        absent,
        current::{moving, of_bond},
        desired::merge::may_leave,
        settle::settle,
        wait::{Outcome, Pending, Wait},
    },
    world::{World, bond::Bond, member::Member},
};
use linkbraid_api::Error;
use linkbraid_link::{Address, Kind, Moved, Netlink, Route, Saved};

/// What becomes of the addresses that a member brought with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Addresses {
    /// The bond is reached by them: they stay with it, and `bond del` gives them to its first member. Those that a fabric was
    /// given, and the bond was not, go back.
    Stay,
    /// They go back with the member.
    GoBack,
}

/// `member del`, unless nobody can replace it and `force` is not given: the peers hear of it, and the member leaves when nothing comes in over it any more.
pub(crate) async fn delete(world: &mut World, of: &str, name: &str, force: bool) -> Result<Outcome, Error> {
    if let Some(bond) = world.bonds.get(of).filter(|_| !force) {
        may_leave(of, &of_bond(bond), &moving(bond), name)?;
    }
    absent::give_up(world, of, name)?;
    let leaves = async |world: &mut World, bond: &mut Bond| match bond.member(name) {
        Some(member) if !member.leaving => {
            leave(world, bond, &member).await.map(|pending| Outcome::Waits(Wait::Member(pending)))
        }
        _ => Ok(Outcome::Done(Vec::new())),
    };
    world.with_bond(of, leaves).await
}

async fn leave(world: &mut World, bond: &mut Bond, member: &Member) -> Result<Pending, Error> {
    // First of all: a daemon that dies on the way leaves a member that is half in and half out.
    set_leaving(&mut bond.saved, member.ifindex, true);
    if let Err(error) = world.state.write(&bond.saved) {
        set_leaving(&mut bond.saved, member.ifindex, false);
        return Err(error);
    }
    // Off the plans, here and (through CHANGE) at the peers, while it still takes frames in.
    if let Err(error) = settle(world, bond).await {
        tracing::error!(%error, "the bond is not up to date");
    }
    bond.announce(&mut world.sender, world.clock);
    Ok(Pending::leave(bond, member, world.clock.now()))
}

fn set_leaving(saved: &mut SavedBond, ifindex: u32, leaving: bool) {
    for member in saved.members.iter_mut().filter(|member| member.before.link.index == ifindex) {
        member.leaving = leaving;
    }
}

/// A member that has left the plans leaves the bond.
pub(crate) async fn detach(world: &mut World, name: &str, ifindex: u32) -> Result<(), Error> {
    let detach = async |world: &mut World, bond: &mut Bond| {
        let addresses = without(&bond.saved, ifindex);
        out(world, bond, ifindex, addresses).await
    };
    world.with_bond(name, detach).await
}

/// A member that joined is not wanted after all: everything as it was.
pub(crate) async fn withdraw(world: &mut World, name: &str, ifindex: u32) -> Result<(), Error> {
    let withdraw =
        async |world: &mut World, bond: &mut Bond| out(world, bond, ifindex, Addresses::GoBack).await;
    world.with_bond(name, withdraw).await
}

/// A member leaves the bond. It does so whatever fails: one that is half in and half out could neither be added nor removed.
pub(super) async fn out(
    world: &mut World,
    bond: &mut Bond,
    ifindex: u32,
    addresses: Addresses,
) -> Result<(), Error> {
    let released = release(world, bond, ifindex, addresses).await;
    let settled = settle(world, bond).await;
    released.and(settled)
}

/// A member that an earlier daemon was adding or removing when it died leaves the bond, as far as that can be. Once:
/// what it is used for afterwards is none of the bond's business.
pub(crate) async fn finish(world: &mut World, bond: &mut Bond, member: &SavedMember) {
    let ifindex = member.before.link.index;
    let addresses = if member.joining { Addresses::GoBack } else { without(&bond.saved, ifindex) };
    if let Err(error) = release(world, bond, ifindex, addresses).await {
        tracing::error!(%error, "not everything could be put back");
    }
}

/// What becomes of the addresses of a member that leaves: with nobody left to reach the bond by, they are of use on the
/// member alone.
fn without(saved: &SavedBond, ifindex: u32) -> Addresses {
    let stays = |member: &SavedMember| member.stays() && member.before.link.index != ifindex;
    if saved.members.iter().any(stays) { Addresses::Stay } else { Addresses::GoBack }
}

/// Takes a member out of everything and puts it back as it was, except for addresses that the bond keeps.
async fn release(
    world: &mut World,
    bond: &mut Bond,
    ifindex: u32,
    addresses: Addresses,
) -> Result<(), Error> {
    bond.driven().members.retain(|member| member.ifindex != ifindex);
    let Some(at) = bond.saved.members.iter().position(|member| member.before.link.index == ifindex) else {
        return Ok(());
    };
    let before = bond.saved.members.remove(at).before;
    let name = before.link.name.clone();
    // In this order: a port without its program hands the bond what another member takes in, too.
    let cleared = match world.netlink.link_by_index(ifindex).await {
        Ok(link) if link.controller == Some(bond.ifindex) => {
            world.netlink.clear_master(ifindex).await.about(&name, "cannot leave the bond")
        }
        _ => Ok(()),
    };
    let detached = bond.path.detach_member(ifindex).about(&name, "cannot detach the data path");
    // Addresses that go back with it, whoever stays: those that a fabric was given.
    let fabric = world.fabrics.values().find(|fabric| fabric.saved.ifindex == ifindex);
    let given = fabric.map(|fabric| fabric.saved.addresses.clone()).unwrap_or_default();
    let back = give_back(&world.netlink, (&mut bond.saved, bond.ifindex), before, addresses, &given).await;
    world.state.write(&bond.saved)?;
    cleared.and(detached).and(back)
}

/// Makes an interface that is no longer a member what it was, except for addresses that the bond keeps: those become
/// the first one's that is left.
async fn give_back(
    netlink: &Netlink,
    (saved, bond): (&mut SavedBond, u32),
    mut before: Saved,
    addresses: Addresses,
    given: &[String],
) -> Result<(), Error> {
    let (index, name) = (before.link.index, before.link.name.clone());
    // Those that the kernel makes itself never moved.
    let (automatic, own): (Vec<_>, Vec<_>) =
        std::mem::take(&mut before.addresses).into_iter().partition(|address| address.automatic);
    let routes = std::mem::take(&mut before.routes);
    let is_given = |address: &Address| {
        let text = format!("{}/{}", address.ip, address.prefix);
        given.contains(&text) && !saved.addresses.contains(&text)
    };
    let (back, stay) = match addresses {
        Addresses::GoBack => ((own, routes), (Vec::new(), Vec::new())),
        Addresses::Stay => {
            let (back, stay) = own.into_iter().partition(is_given);
            ((back, Vec::new()), (stay, routes))
        }
    };
    let moved = Moved {
        from: index,
        from_name: name.clone(),
        to: bond,
        to_name: saved.name.to_string(),
        addresses: back.0.clone(),
        routes: back.1.clone(),
    };
    let moved_back = match netlink.move_back(&moved).await {
        Err(error) if error.kind == Kind::NoDevice => Ok(()),
        result => result.about(&name, "cannot move its addresses back"),
    };
    before.addresses = automatic.into_iter().chain(back.0).collect();
    before.routes = back.1;
    hand_over(saved, index, stay.0, stay.1);
    let restored = match netlink.restore(&before).await {
        Err(error) if error.kind == Kind::NoDevice => Ok(()),
        result => result.about(&name, "cannot put the interface back"),
    };
    moved_back.and(restored)
}

/// Gives what `bond del` is to put back to the first member that stays: the bond is reached by it. One that comes or goes would
/// take it along.
fn hand_over(saved: &mut SavedBond, from: u32, addresses: Vec<Address>, routes: Vec<Route>) {
    let Some(first) = saved.members.iter_mut().find(|member| member.stays()) else { return };
    if addresses.is_empty() && routes.is_empty() {
        return;
    }
    let before = &mut first.before;
    before.addresses.extend(addresses);
    before.routes.extend(routes.into_iter().map(|mut route| {
        route.rebind(from, before.link.index);
        route
    }));
    // Addresses are of use on an interface that is up only.
    before.link.up = true;
}

/// Forgets a member that is gone; what it brought goes to the first one that stays.
pub(crate) fn disinherit(saved: &mut SavedBond, ifindex: u32) {
    let Some(at) = saved.members.iter().position(|member| member.before.link.index == ifindex) else {
        return;
    };
    let gone = saved.members.remove(at).before;
    let own = gone.addresses.into_iter().filter(|address| !address.automatic).collect();
    hand_over(saved, ifindex, own, gone.routes);
}
