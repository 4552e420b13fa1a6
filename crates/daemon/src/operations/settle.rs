//! What follows for a bond from a change of its members, classes or settings; and such changes, whole or not at all.

use crate::{
    io::{
        error::About as _,
        undo::{UndoLog, not_undone},
    },
    world::{World, bond::Bond},
};
use linkbraid_api::Error;
use linkbraid_link::Netlink;

/// Makes `change` to what a bond is to be, and to its interfaces, and all that follows; on failure the bond is as it was.
pub(crate) async fn change(
    world: &mut World,
    name: &str,
    change: impl AsyncFnOnce(&mut UndoLog, &mut Bond) -> Result<(), Error>,
) -> Result<(), Error> {
    let whole = async |world: &mut World, bond: &mut Bond| {
        // Before anything is touched: a disk that takes no file takes none of what follows either.
        world.state.write(&bond.saved)?;
        let (before, mac, measures) = (bond.saved.clone(), bond.mac, bond.latency.is_some());
        let mut log = UndoLog::new(&world.netlink);
        let changed = async {
            change(&mut log, bond).await?;
            follow(world, bond).await?;
            world.state.write(&bond.saved)
        };
        let changed = match changed.await {
            Ok(()) => Ok(()),
            Err(error) => {
                let error = log.take_back(error).await;
                // As it is on file.
                (bond.saved, bond.mac) = (before, mac);
                let measured = bond.measure_latency(measures);
                Err(not_undone(error, measured.and(follow(world, bond).await).err()))
            }
        };
        bond.remove_groups();
        changed
    };
    world.with_bond(name, whole).await
}

/// All that follows. Control groups come first, and those of classes that are gone go last, so that no rule names one that is not
/// there, and nobody has been put out of one if this fails.
async fn follow(world: &mut World, bond: &mut Bond) -> Result<(), Error> {
    bond.make_groups();
    // The kernel announces what was just set; that may not have been followed yet.
    for member in bond.members().into_iter().filter(|member| member.mtu != bond.saved.mtu) {
        bond.read_member(&world.netlink, member.ifindex, world.clock).await;
    }
    // Rules before plans: what is of a class without a plan goes where the rest goes, and no plan outlives its rules.
    let rules = bond.write_rules();
    settle(world, bond).await?;
    rules
}

/// After the members changed: MAC, protocol, tables, stripe.
pub(crate) async fn settle(world: &mut World, bond: &mut Bond) -> Result<(), Error> {
    bond.follow_saved();
    let kept = keep_mac(&world.netlink, bond).await;
    bond.read_addresses(&world.netlink, world.clock).await?;
    bond.write_tables(world.clock)?;
    bond.follow_rates(&world.netlink, world.clock.now()).await?;
    kept
}

/// The bond's MAC is that of one of its members: if that one has left, the first one's that is left, of the rest if there is
/// one: plain hosts send everything there.
pub(crate) async fn keep_mac(netlink: &Netlink, bond: &mut Bond) -> Result<(), Error> {
    let mut staying = bond.members();
    staying.retain(|member| !member.leaving);
    if staying.iter().any(|member| member.mac == bond.mac) {
        return Ok(());
    }
    let Some(mac) = staying.iter().min_by_key(|member| member.class != 0).map(|member| member.mac) else {
        return Ok(());
    };
    netlink.set_mac(bond.ifindex, mac).await.about(&bond.saved.name, "cannot change the bond's MAC")?;
    bond.mac = mac;
    Ok(())
}
