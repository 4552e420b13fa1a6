//! The machine as it was before a bond: at its end, or where it came to nothing.

use crate::{
    io::{error::About as _, group::Groups, state::SavedBond},
    world::World,
};
use linkbraid_api::Error;
use linkbraid_link::{Kind, LinkInfo, Netlink};
use std::collections::HashSet;

/// The bond's interface, whatever it is called now; none where somebody deleted it.
pub(crate) async fn interface(
    netlink: &Netlink,
    saved: &SavedBond,
) -> linkbraid_link::Result<Option<LinkInfo>> {
    let found = match (saved.ifindex, saved.members.first()) {
        (Some(ifindex), _) => netlink.link_by_index(ifindex).await,
        // The daemon died when it had made the interface, and before that was on file.
        (None, Some(first)) if !saved.complete => match netlink.link(&saved.name).await {
            Ok(link) if link.up || link.mac != first.before.link.mac => return Ok(None),
            found => found,
        },
        _ => return Ok(None),
    };
    match found {
        Err(error) if error.kind == Kind::NoDevice => Ok(None),
        found => Ok(found.map(Some)?.filter(|link| link.kind.as_deref() == Some("bridge"))),
    }
}

/// Puts everything back; the record goes when nothing is left to do, and else says what is.
pub(crate) async fn end(world: &World, mut saved: SavedBond) -> Result<(), Error> {
    let put_back = put_back(&world.netlink, &mut saved).await;
    if put_back.is_ok() {
        return world.state.remove::<SavedBond>(&saved.name);
    }
    // The next daemon must not take it for a whole bond.
    saved.complete = false;
    let written = world.state.write(&saved);
    put_back.and(written)
}

/// Makes the machine what it was before the bond, as far as it can; the first error. Members that are as they were are
/// taken off the record: a later attempt must not touch what they are used for by then. The data path must be off already,
/// or its programs on interfaces are all that is left of it.
async fn put_back(netlink: &Netlink, saved: &mut SavedBond) -> Result<(), Error> {
    let mut first = Ok(());
    if let Some(bond) = saved.ifindex {
        first = linkbraid_dataplane::take_off(bond, &saved.interfaces())
            .about(&saved.name, "cannot take its programs off");
    }
    if let Some(namespace) = saved.place.parent() {
        linkbraid_dataplane::sweep_pins(namespace);
    }
    if let Ok(groups) = Groups::find() {
        let removed = groups.remove_all(&saved.place).about(&saved.name, "cannot remove its control groups");
        first = first.and(removed);
    }
    if let Some(ifindex) = saved.ifindex {
        let deleted = netlink.delete_internal_port(ifindex).await;
        let deleted = deleted.about(&saved.name, "cannot remove its internal port");
        first = first.and(deleted);
    }
    // The bond goes first: its addresses must not be on two interfaces.
    match interface(netlink, saved).await.about(&saved.name, "cannot find the bond's interface") {
        Ok(Some(link)) => {
            let deleted = netlink.delete_link(link.index).await.about(&saved.name, "cannot delete the bond");
            first = first.and(deleted);
        }
        Ok(None) => {}
        Err(error) => first = first.and(Err(error)),
    }
    let mut seen = HashSet::new();
    for member in std::mem::take(&mut saved.members) {
        let was = &member.before.link;
        if !seen.insert(was.index) {
            continue;
        }
        let now = netlink.link_by_index(was.index).await;
        if now.is_ok_and(|now| now.controller.is_some() && now.controller != saved.ifindex) {
            tracing::warn!(bond = %saved.name, member = %was.name, "somebody else took it, left alone");
            continue;
        }
        match netlink.restore(&member.before).await {
            Err(error) if error.kind == Kind::NoDevice => {}
            result => {
                let restored = result.about(&was.name, "cannot put the interface back");
                let failed = restored.is_err();
                first = first.and(restored);
                if failed {
                    saved.members.push(member);
                }
            }
        }
    }
    first
}
