//! What others set of the bridge that a bond is, and of its ports. With a spanning tree, a VLAN filter or snooping the bridge keeps frames
//! to itself that are to leave; a member with the flags of an ordinary port gets what is not for it. All of it is put back.

use crate::{
    io::error::About as _,
    world::{
        World,
        bond::{Bond, found::Kept},
    },
};
use linkbraid_link::{BridgeSwitches, LinkInfo, Netlink, PortFlags};
use linkbraid_proto::Time;

/// Puts back what the bond's bridge does.
pub(super) async fn keep_switches(world: &mut World, name: &str, link: &LinkInfo) {
    let World { bonds, netlink, clock, .. } = world;
    let Some(bond) = bonds.get_mut(name) else { return };
    let theirs = link.bridge.unwrap_or(BridgeSwitches::BOND);
    if theirs == BridgeSwitches::BOND {
        return bond.found.is_right(Kept::Switches);
    }
    if !bond.found.is_due(Kept::Switches, clock.now()) {
        return;
    }
    let what = words(theirs);
    match netlink.mend_bridge(bond.ifindex, theirs).await.about(name, "cannot set its bridge") {
        Ok(()) => {
            bond.found.is_right(Kept::Switches);
            if let Some(interface) = &mut bond.found.interface {
                interface.switches = BridgeSwitches::BOND;
            }
            let text = format!("somebody switched on {what} of its bridge, which loses frames; off again");
            bond.report(None, "bridge_put_back", text);
        }
        Err(error) => {
            if bond.found.refused(Kept::Switches, &error.cause) {
                bond.report(
                    None,
                    "bridge_refused",
                    format!("somebody switched on {what} of its bridge: {error}"),
                );
            }
        }
    }
}

/// What is on.
fn words(switches: BridgeSwitches) -> String {
    let BridgeSwitches { stp, vlan_filtering, snooping } = switches;
    let all = [(stp, "stp_state"), (vlan_filtering, "vlan_filtering"), (snooping, "mcast_snooping")];
    all.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect::<Vec<_>>().join(", ")
}

/// Looks at how the bridge treats each member.
pub(super) async fn keep_all_flags(world: &mut World, name: &str) {
    let World { bonds, netlink, clock, .. } = world;
    let Some(bond) = bonds.get_mut(name) else { return };
    for member in bond.members() {
        if let Ok(link) = netlink.link_by_index(member.ifindex).await {
            keep_flags(netlink, bond, &link, clock.now()).await;
        }
    }
}

/// Puts back how the bridge treats a member.
pub(in crate::operations) async fn keep_flags(
    netlink: &Netlink,
    bond: &mut Bond,
    link: &LinkInfo,
    now: Time,
) {
    let what = Kept::Flags(link.index);
    let is_ours = link.controller == Some(bond.ifindex);
    // One that is somebody else's is nobody's business.
    if !is_ours || (link.port == Some(PortFlags::MEMBER) && !link.port_blocked) {
        return bond.found.is_right(what);
    }
    if !bond.found.is_due(what, now) {
        return;
    }
    let done = async {
        netlink.set_port_flags(link.index, PortFlags::MEMBER).await?;
        if link.port_blocked { netlink.unblock_port(link.index).await } else { Ok(()) }
    };
    match done.await.about(&link.name, "cannot set how the bridge treats it") {
        Ok(()) => {
            bond.found.is_right(what);
            let text = "somebody changed how the bridge treats it; it is a member's port again";
            bond.report_member(&link.name, "flags_put_back", text);
        }
        Err(error) => {
            if bond.found.refused(what, &error.cause) {
                let text = format!("somebody changed how the bridge treats it: {error}");
                bond.report_member(&link.name, "flags_refused", text);
            }
        }
    }
}
