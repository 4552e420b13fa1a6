//! What a daemon finds at its start: bonds of an earlier one, whole or half made.

use crate::{bond::Bond, control::Control, error::About as _, member, setup, state::SavedBond};
use linkbraid_api::Error;
use linkbraid_link::Kind;

/// Takes over every bond on file; what was half made is undone, and so is what somebody took away by hand.
pub(crate) async fn all(control: &mut Control) {
    for saved in control.state.read_all() {
        let name = saved.name.clone();
        if saved.pins.parent() != Some(&control.pins) {
            tracing::warn!(bond = %name, "belongs to another network namespace, left alone");
            continue;
        }
        let gone = matches!(control.netlink.link(&name).await, Err(error) if error.kind == Kind::NoDevice);
        if !saved.complete || gone {
            let why = if gone { "its interface is gone" } else { "an earlier daemon died while it added it" };
            tracing::warn!(bond = %name, why, "putting the bond's members back");
            setup::undo(control, &saved).await;
            continue;
        }
        match one(control, saved).await {
            Ok(mut bond) => {
                bond.announce(&mut control.sender, control.clock);
                bond.history.bond(Some("up"), "adopted", "taken over from an earlier daemon");
                control.bonds.insert(name, bond);
            }
            Err(error) => tracing::error!(%error, "cannot adopt the bond; it goes on as it is"),
        }
    }
}

async fn one(control: &mut Control, mut saved: SavedBond) -> Result<Bond, Error> {
    let name = saved.name.clone();
    let link = control.netlink.link(&name).await.about(&name, "cannot find the bond's interface")?;
    if saved.ifindex != Some(link.index) {
        return Err(Error::new(&name, "cannot adopt", "another interface has its name"));
    }
    let mut members = Vec::new();
    let mut left = Vec::new();
    for member in std::mem::take(&mut saved.members) {
        if member.joining {
            tracing::warn!(bond = %name, member = %member.before.link.name, "an earlier daemon died while it added it");
            member::put_back(control, &saved, &member).await;
        } else {
            saved.members.push(member);
        }
    }
    for member in &saved.members {
        let index = member.before.link.index;
        match control.netlink.link_by_index(index).await {
            Ok(found) if found.controller.is_none_or(|controller| controller == link.index) => {
                members.push(found)
            }
            Ok(found) => {
                tracing::warn!(bond = %name, member = %found.name, "somebody else took this member");
                left.push(index);
            }
            Err(error) => {
                tracing::warn!(bond = %name, %error, "a member is gone");
                left.push(index);
            }
        }
    }
    for index in left {
        member::disinherit(&mut saved, index);
    }
    let mut bond =
        Bond::new(saved, link.index, link.mac, control.hook, control.events.clone(), control.feed.clone())?;
    for link in &members {
        member::enslave(&control.netlink, &mut bond, link, false).await?;
    }
    // The member that gave the bond its MAC may have gone meanwhile.
    member::keep_mac(&control.netlink, &mut bond).await?;
    setup::start(control, &mut bond).await?;
    Ok(bond)
}
