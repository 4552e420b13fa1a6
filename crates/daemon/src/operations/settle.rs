//! What follows for a bond from a change of its members.

use crate::{
    io::error::About as _,
    world::{World, bond::Bond},
};
use linkbraid_api::Error;
use linkbraid_link::Netlink;

/// After the members changed: protocol, tables, stripe.
pub(crate) async fn settle(world: &mut World, bond: &mut Bond) -> Result<(), Error> {
    bond.read_addresses(&world.netlink, world.clock).await?;
    bond.write_tables(world.clock)?;
    bond.write_stripe(&world.netlink).await
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
