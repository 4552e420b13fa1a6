//! What others do to the interfaces of a bond with ordinary commands. The MTU of the bond is followed; its MAC, and the MTU of a
//! member, are put back, and so are its internal port, the settings of its bridge, and members that were taken out. What cannot be is tried again, and `show` says it ([`Found`]).
//!
//! [`Found`]: crate::world::bond::found::Found

mod bridge;
mod forward;
mod taken;

pub(super) use bridge::keep_flags;
pub(super) use forward::forward_chains;

use crate::{
    io::{error::About as _, state::SavedClass, undo::not_undone},
    world::{
        World,
        bond::found::{Interface, Kept},
        member::Member,
    },
};
use linkbraid_api::{Error, LinkName, Mtu, value::Value as _};
use linkbraid_link::{BridgeSwitches, LinkInfo, PortFlags};
use linkbraid_proto::Time;

/// An MTU that a bond's interface was given by hand.
pub(super) struct ByHand {
    pub bond: LinkName,
    pub from: u32,
    pub to: u32,
}

/// Looks at the interface of a bond and at all its members: the daemon has just taken it over, or something is tried again.
pub(super) async fn all(world: &mut World, name: &str) {
    own_interface(world, name).await;
    keep_port(world, name).await;
    members(world, name).await;
    bridge::keep_all_flags(world, name).await;
}

/// An interface is gone.
pub(super) async fn link_gone(world: &mut World, index: u32) {
    let ports = world.bonds.values().filter(|bond| bond.port() == index);
    let names: Vec<_> = ports.map(|bond| bond.saved.name.clone()).collect();
    for name in names {
        keep_port(world, &name).await;
    }
}

/// Something about an interface has changed.
pub(super) async fn link_changed(world: &mut World, index: u32) {
    let names: Vec<_> = world.bonds.keys().cloned().collect();
    for name in names {
        let Some(bond) = world.bonds.get_mut(&name) else { continue };
        if bond.ifindex == index {
            own_interface(world, &name).await;
        } else if bond.port() == index {
            keep_port(world, &name).await;
        } else if bond.driven().announced(index).is_some() {
            members(world, &name).await;
        } else {
            bond.found.hurry();
        }
    }
}

/// A bridge treats one of its ports like this; none: it lets no frames pass. While cables come and go the kernel says so again and again,
/// and a port that is as it is to be needs no look.
pub(super) async fn port_changed(world: &mut World, index: u32, flags: Option<PortFlags>) {
    let names: Vec<_> = world.bonds.keys().cloned().collect();
    for name in names {
        let Some(bond) = world.bonds.get_mut(&name) else { continue };
        if bond.port() == index {
            if flags != Some(PortFlags::INTERNAL) {
                keep_port(world, &name).await;
            }
        } else if flags != Some(PortFlags::MEMBER)
            && bond.driven().announced(index).is_some()
            && let Ok(link) = world.netlink.link_by_index(index).await
        {
            bridge::keep_flags(&world.netlink, bond, &link, world.clock.now()).await;
        }
    }
}

/// When something is to be tried again.
pub(crate) fn wake(world: &World) -> Option<Time> {
    world.bonds.values().filter_map(|bond| bond.found.wake()).min()
}

/// Tries again what it is time for.
pub(super) async fn advance(world: &mut World) {
    let now = world.clock.now();
    let due = world.bonds.values_mut().filter(|bond| bond.found.wake().is_some_and(|at| at <= now));
    let due: Vec<_> =
        due.filter_map(|bond| bond.found.take_due(now).then(|| bond.saved.name.clone())).collect();
    for name in due {
        all(world, &name).await;
    }
}

/// Reads the addresses that an interface has of its own, if it is a member.
pub(super) async fn addresses(world: &mut World, index: u32) {
    for bond in world.bonds.values_mut() {
        let Some(member) = bond.members().into_iter().find(|member| member.ifindex == index) else {
            continue;
        };
        let read = world.netlink.addresses(index).await;
        let Ok(read) = read.inspect_err(|error| tracing::warn!(%error, "addresses not read")) else {
            continue;
        };
        // Those that the kernel makes itself bring no traffic.
        let own = read.iter().filter(|address| !address.automatic);
        let own: Vec<String> = own.map(|address| format!("{}/{}", address.ip, address.prefix)).collect();
        let before = bond.found.addresses.insert(index, own.clone()).unwrap_or_default();
        if let Some(new) = own.iter().find(|address| !before.contains(address)) {
            let text = format!("somebody gave it the address {new}, which bypasses the bond");
            bond.report_member(&member.name, "address", text);
        }
    }
}

/// Reads the queues of members.
pub(super) async fn queues(world: &mut World) {
    for bond in
        world.bonds.values_mut().filter(|bond| bond.saved.classes.iter().any(SavedClass::has_precedence))
    {
        bond.read_queues(&world.netlink).await;
    }
}

/// Reads which members have a default route of their own: the kernel has so many routes to announce that nobody listens.
pub(super) async fn default_routes(world: &mut World) {
    for bond in world.bonds.values_mut() {
        bond.found.default_routes.clear();
        for index in bond.members().into_iter().map(|member| member.ifindex) {
            for ipv6 in [false, true] {
                if world.netlink.has_default_route(index, ipv6).await.unwrap_or(false) {
                    bond.found.default_routes.insert((index, ipv6));
                }
            }
        }
    }
}

/// Looks at the interface of a bond.
async fn own_interface(world: &mut World, name: &str) {
    let Some(link) = read_interface(world, name).await else { return };
    keep_mac(world, name, &link).await;
    bridge::keep_switches(world, name, &link).await;
    follow_mtu(world, name, link.mtu).await;
}

/// Reads what the bond's interface is like now; none where it is gone, which is followed elsewhere.
async fn read_interface(world: &mut World, name: &str) -> Option<LinkInfo> {
    let bond = world.bonds.get_mut(name)?;
    let link = world.netlink.link_by_index(bond.ifindex).await.ok()?;
    let switches = link.bridge.unwrap_or(BridgeSwitches::BOND);
    let now = Interface { up: link.up, mtu: link.mtu, mac: link.mac, switches };
    let was_up = bond.found.interface.replace(now).is_none_or(|before| before.up);
    match (was_up, now.up) {
        (true, false) => {
            bond.report(Some("down"), "set_down", "set down by hand; it carries no traffic");
            bond.driven().stop(&mut world.sender, world.clock.now());
        }
        (false, true) => {
            bond.report(Some("up"), "set_up", "set up by hand");
            bond.driven().start(world.clock.now());
        }
        _ => {}
    }
    Some(link)
}

/// Puts the bond's MAC back: peers and plain hosts know it, and it is a member's.
async fn keep_mac(world: &mut World, name: &str, link: &LinkInfo) {
    let World { bonds, netlink, sender, clock, .. } = world;
    let Some(bond) = bonds.get_mut(name) else { return };
    if link.mac == bond.mac {
        return bond.found.is_right(Kept::Mac);
    }
    if !bond.found.is_due(Kept::Mac, clock.now()) {
        return;
    }
    let (theirs, mac) = (link.mac, bond.mac);
    match netlink.set_mac(bond.ifindex, mac).await.about(name, format!("cannot put its MAC {mac} back")) {
        Ok(()) => {
            bond.found.is_right(Kept::Mac);
            if let Some(interface) = &mut bond.found.interface {
                interface.mac = mac;
            }
            let text = format!("somebody gave it the MAC {theirs}; it has {mac} again, which is a member's");
            bond.report(None, "mac_put_back", text);
            // Whoever was asked for meanwhile has learned the other one.
            bond.announce(sender, *clock);
        }
        Err(error) => {
            if bond.found.refused(Kept::Mac, &error.cause) {
                bond.report(None, "mac_refused", format!("its MAC was changed to {theirs}: {error}"));
            }
        }
    }
}

/// Somebody has given the bond's interface another MTU: its members are to get it, as `bond set --mtu` gives it to them
/// ([`by_hand`]), or it is put back where a bond cannot have it.
async fn follow_mtu(world: &mut World, name: &str, mtu: u32) {
    let now = world.clock.now();
    let Some(bond) = world.bonds.get_mut(name) else { return };
    let from = bond.saved.mtu;
    // What is under way looks again at its end.
    if bond.mtu_meanwhile.is_some() {
        return;
    }
    if mtu == from {
        bond.mtu_by_hand = None;
        return bond.found.is_right(Kept::Mtu);
    }
    if !bond.found.is_due(Kept::Mtu, now) {
        return;
    }
    let Err(cause) = Mtu::read(&mtu.to_string()) else {
        bond.mtu_by_hand = Some(mtu);
        return;
    };
    let mut error = Error::new(name, format!("cannot have MTU {mtu}"), cause);
    let what = format!("cannot set MTU {from}");
    error = not_undone(error, world.netlink.set_mtu(bond.ifindex, from).await.about(name, what).err());
    mtu_followed(world, name, (from, mtu), Some(error)).await;
}

/// An MTU that a bond's interface was given by hand, and that its members are to get now.
pub(super) fn by_hand(world: &mut World) -> Option<ByHand> {
    world.bonds.iter_mut().find_map(|(name, bond)| {
        let to = bond.mtu_by_hand.take()?;
        Some(ByHand { bond: name.clone(), from: bond.saved.mtu, to })
    })
}

/// The members have the MTU that somebody gave their bond, or all is as it was, for this reason.
pub(super) async fn mtu_followed(
    world: &mut World,
    name: &str,
    (from, to): (u32, u32),
    error: Option<Error>,
) {
    let is_back = read_interface(world, name).await.is_some_and(|link| link.mtu == from);
    let Some(bond) = world.bonds.get_mut(name) else { return };
    match error {
        None => {
            bond.found.is_right(Kept::Mtu);
            bond.report(
                None,
                "mtu",
                format!("somebody set its MTU from {from} to {to}; its members have it, too"),
            );
        }
        Some(error) if is_back => {
            bond.found.is_right(Kept::Mtu);
            let text = format!("somebody set its MTU to {to}; it is {from} again: {error}");
            bond.report(None, "mtu_put_back", text);
        }
        Some(error) => {
            if bond.found.refused(Kept::Mtu, &error.cause) {
                bond.report(None, "mtu_refused", format!("somebody set its MTU to {to}: {error}"));
            }
        }
    }
}

/// Puts the internal port right, by which the bond's frames leave.
async fn keep_port(world: &mut World, name: &str) {
    let World { bonds, netlink, clock, .. } = world;
    let Some(bond) = bonds.get_mut(name) else { return };
    if bond.has_port(netlink).await {
        return bond.found.is_right(Kept::Port);
    }
    if !bond.found.is_due(Kept::Port, clock.now()) {
        return;
    }
    match bond.mend_port(netlink).await {
        Ok(()) => {
            bond.found.is_right(Kept::Port);
            bond.report(None, "port_put_back", "somebody changed its internal port; it is as it was");
        }
        Err(error) => {
            if bond.found.refused(Kept::Port, &error.cause) {
                bond.report(Some("down"), "port_refused", format!("nothing leaves by it: {error}"));
            }
        }
    }
}

/// Looks at whether members are in the bond, and at their MTU. Those that somebody has taken out of it keep their programs: put back
/// into the bridge by hand, without them, they would make a loop until they have a member's flags.
async fn members(world: &mut World, name: &str) {
    let Some(bond) = world.bonds.get_mut(name) else { return };
    let members = bond.members();
    bond.found.keep_members(|index| members.iter().any(|member| member.ifindex == index));
    for member in members {
        taken::put_back(world, name, &member).await;
        keep_member(world, name, &member).await;
    }
    // A link that was never up had no queue yet.
    let World { bonds, netlink, clock, .. } = world;
    if let Some(bond) = bonds.get_mut(name)
        && let Err(error) = bond.write_precedence(netlink, clock.now()).await
    {
        tracing::warn!(%error, "classes may have no precedence");
    }
}

/// Puts the MTU of a member back. One with a smaller one has stopped to carry traffic when that was announced.
async fn keep_member(world: &mut World, name: &str, member: &Member) {
    let World { bonds, netlink, clock, .. } = world;
    let Some(bond) = bonds.get_mut(name) else { return };
    let (what, mtu) = (Kept::Member(member.ifindex), bond.saved.mtu);
    let changes = bond.mtu_meanwhile.is_some();
    let is_kept = |member: &Member| member.ours && !member.leaving && member.mtu != mtu && !changes;
    if !is_kept(member) {
        return bond.found.is_right(what);
    }
    if !bond.found.is_due(what, clock.now()) {
        return;
    }
    let theirs = member.mtu;
    bond.driven().reset_link(clock.now(), member.ifindex, false);
    let done =
        netlink.set_mtu(member.ifindex, mtu).await.about(&member.name, format!("cannot set MTU {mtu}"));
    match done {
        Ok(()) => {
            // The thread that drives the bond hears of it, too; what comes first counts.
            bond.read_member(netlink, member.ifindex, *clock).await;
            bond.found.is_right(what);
            let text = format!("somebody set its MTU to {theirs}; it is {mtu} again, as the bond's");
            bond.report_member(&member.name, "mtu_put_back", text);
        }
        Err(error) => {
            if bond.found.refused(what, &error.cause) {
                let text = format!("its MTU is {theirs}, not the bond's: {error}");
                bond.report_member(&member.name, "mtu_refused", text);
            }
        }
    }
}
