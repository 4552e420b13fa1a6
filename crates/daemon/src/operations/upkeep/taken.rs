//! Members that somebody takes out of their bond, or sets down on the way: managers of networks do that to interfaces which they
//! configure. Only `member del` takes one out for good. One that is in another bridge is used for something else, and is left there.

use crate::{
    io::{
        error::About as _,
        manager::{Manager, Managers, Roots},
    },
    world::{World, bond::found::Kept, member::Member},
};
use linkbraid_link::{LinkInfo, Netlink, PortFlags, Result};

/// Puts a member back into its bond.
pub(super) async fn put_back(world: &mut World, name: &str, member: &Member) {
    let World { bonds, netlink, clock, .. } = world;
    let Some(bond) = bonds.get_mut(name) else { return };
    let (what, now) = (Kept::Place(member.ifindex), clock.now());
    let link = match netlink.link_by_index(member.ifindex).await {
        Ok(link) if link.controller.is_none() && !member.leaving => link,
        _ => return bond.found.is_right(what),
    };
    if !bond.found.is_due(what, now) {
        return;
    }
    let manager = manager(netlink, &link).await;
    let by = manager.as_ref().map_or("somebody", Manager::title);
    // Where no manager is at it, an administrator has set it down.
    let sets_up = !link.up && manager.is_some();
    match join(netlink, &link, bond.ifindex, sets_up).await.about(&link.name, "cannot put it back") {
        Ok(()) => {
            bond.found.is_right(what);
            let text = format!(
                "{by} took it out of the bond; it is in again{}",
                advice(manager.as_ref(), &link.name)
            );
            bond.report_member(&link.name, "put_back", text);
            bond.read_member(netlink, link.index, *clock).await;
        }
        Err(error) => {
            if bond.found.refused(what, &error.cause) {
                let text = format!("{by} took it out of the bond: {error}");
                bond.report_member(&link.name, "not_put_back", text);
            }
        }
    }
}

/// The manager that has an interface, if one has.
async fn manager(netlink: &Netlink, link: &LinkInfo) -> Option<Manager> {
    let links = netlink.links().await.unwrap_or_default();
    let managers = Managers::look(&Roots::default(), links.into_iter().map(|link| link.name).collect());
    managers.of(link.index, &link.name, false).into_iter().next()
}

/// What to do about a manager.
fn advice(manager: Option<&Manager>, interface: &str) -> String {
    manager
        .map_or_else(String::new, |manager| format!("; to keep it away: {}", manager.hint(interface, true)))
}

/// As it was added: members speak for their bond only.
async fn join(netlink: &Netlink, link: &LinkInfo, bond: u32, sets_up: bool) -> Result<()> {
    if netlink.ipv6(link.index).await? == Some(true) {
        netlink.set_ipv6(link.index, false).await?;
    }
    netlink.set_master(link.index, bond).await?;
    netlink.set_port_flags(link.index, PortFlags::MEMBER).await?;
    if sets_up { netlink.set_up(link.index).await } else { Ok(()) }
}
