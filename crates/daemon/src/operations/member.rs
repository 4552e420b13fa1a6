//! `member add`, `member set` and `member del`.

use crate::{
    io::{
        error::About as _,
        state::SavedMember,
        undo::{Op, UndoLog, not_undone},
    },
    operations::{
        class,
        settle::{change, settle},
        wait::{Outcome, Pending, Wait},
    },
    world::{World, bond::Bond, member::Member},
};
use linkbraid_api::{Error, config::MemberConfig};
use linkbraid_dataplane::MEMBERS_MAX;
use linkbraid_link::{Kind, LinkInfo, Netlink, PortFlags, Saved};

mod leave;

use leave::Addresses;
pub(crate) use leave::{delete, detach, disinherit, finish, withdraw};

/// Refuses an interface that can't be a member. `command` is what the user gave, for the hint.
pub(crate) async fn check(
    world: &World,
    bond: &str,
    name: &str,
    move_address: bool,
    command: &str,
) -> Result<LinkInfo, Error> {
    let refuse = |cause: String| Error::new(bond, format!("cannot add member '{name}'"), cause);
    let link = match world.netlink.link(name).await {
        Err(error) if error.kind == Kind::NoDevice => {
            return Err(refuse("no such interface".into()).hint("ip -br link"));
        }
        other => other.about(bond, format!("cannot add member '{name}'"))?,
    };
    if link.loopback {
        return Err(refuse("it is the loopback interface".into()).hint("ip -br link"));
    }
    if !link.ethernet {
        return Err(refuse("it is not an Ethernet interface".into()).hint("ip -br link"));
    }
    if link.wireless {
        return Err(refuse("a wireless station cannot send from other interfaces' addresses".into())
            .hint("ip -br link"));
    }
    if let Some(controller) = link.controller {
        let of = world.netlink.link_by_index(controller).await.map_or_else(|_| "another".into(), |l| l.name);
        let hint = match world.bonds.contains_key(of.as_str()) {
            true => format!("linkbraid member del {of} {name}"),
            false => format!("ip link set {name} nomaster"),
        };
        return Err(refuse(format!("it is already in '{of}'")).hint(hint));
    }
    if world.bonds.contains_key(name) || matches!(link.kind.as_deref(), Some("bridge" | "bond" | "team")) {
        let kind = link.kind.as_deref().unwrap_or("bond");
        return Err(refuse(format!("it is itself a {kind}")).hint(format!("ip -d link show {name}")));
    }
    let default = world
        .netlink
        .carries_default_route(link.index)
        .await
        .about(bond, format!("cannot read the routes of '{name}'"))?;
    if default && !move_address {
        return Err(refuse("it carries the default route, and its addresses would move to the bond".into())
            .hint(format!("{command} --move-address")));
    }
    Ok(link)
}

/// Makes an interface a member: addresses to the bond, programs on, then into the bridge.
pub(crate) async fn enslave(
    netlink: &Netlink,
    bond: &mut Bond,
    link: &LinkInfo,
    is_new: bool,
) -> Result<(), Error> {
    let name = &link.name;
    let saved = bond.saved.members.iter().find(|member| member.before.link.index == link.index);
    let joining = saved.is_some_and(|saved| saved.joining);
    let (slot, settings, class) =
        saved.map_or_else(Default::default, |saved| (saved.slot, saved.settings, saved.class));
    // That of one that was adopted is looked at with those of the others.
    if is_new && link.mtu != bond.saved.mtu {
        netlink
            .set_mtu(link.index, bond.saved.mtu)
            .await
            .about(name, format!("cannot set MTU {}", bond.saved.mtu))?;
    }
    if is_new {
        netlink
            .move_addresses(link.index, bond.ifindex)
            .await
            .about(name, "cannot move its addresses to the bond")?;
    }
    // A member speaks for the bond only: no addresses of its own, no router solicitations.
    if netlink.ipv6(link.index).await.about(name, "cannot read its IPv6 setting")? == Some(true) {
        netlink.set_ipv6(link.index, false).await.about(name, "cannot turn its IPv6 off")?;
    }
    bond.path.attach_member(link.index).about(name, "cannot attach the data path")?;
    if link.controller != Some(bond.ifindex) {
        netlink.set_master(link.index, bond.ifindex).await.about(name, "cannot join the bond")?;
    }
    netlink
        .set_port_flags(link.index, PortFlags::MEMBER)
        .await
        .about(name, "cannot set its bridge port flags")?;
    // One that was adopted and is down was set down by somebody.
    if is_new {
        netlink.set_up(link.index).await.about(name, "cannot set it up")?;
    }
    let mut member = Member {
        slot,
        ifindex: link.index,
        name: name.clone(),
        mac: link.mac,
        mtu: link.mtu,
        mtu_wanted: bond.saved.mtu,
        admin_up: false,
        carrier: false,
        polled: None,
        ours: false,
        joining,
        leaving: false,
        withdrawn: false,
        was_reset: is_new,
        speed_mbit: None,
        full_duplex: None,
        settings,
        class,
        announced: 0,
    };
    let now = netlink.link_by_index(link.index).await.about(name, "cannot read the interface")?;
    member.read_link(&now, bond.ifindex);
    member.read_speed(linkbraid_link::speed(&now.name));
    bond.driven().members.push(member);
    Ok(())
}

/// `member add`: in the bond, but without traffic until a peer answers through it.
pub(crate) async fn add(
    world: &mut World,
    of: &str,
    add: &MemberConfig,
    move_address: bool,
) -> Result<Outcome, Error> {
    let command = format!("linkbraid member add {of} {}", add.interface);
    let link = check(world, of, &add.interface, move_address, &command).await?;
    let joins = async |world: &mut World, bond: &mut Bond| {
        join(world, bond, add, &link).await?;
        let joined = bond.saved.members.iter().find(|member| member.before.link.index == link.index);
        let warning = joined.and_then(|member| lease_warning(of, &member.before));
        let member = bond.members().into_iter().find(|member| member.ifindex == link.index);
        let gone = || Error::new(of, format!("cannot add member '{}'", add.interface), "it is gone again");
        let pending = Pending::join(bond, &member.ok_or_else(gone)?, world.clock.now(), add.force);
        Ok(Outcome::Waits(Wait::Member(pending.warn(warning))))
    };
    world.with_bond(of, joins).await
}

async fn join(world: &mut World, bond: &mut Bond, add: &MemberConfig, link: &LinkInfo) -> Result<(), Error> {
    let what = format!("cannot add member '{}'", add.interface);
    let of = bond.saved.name.clone();
    let class = match &add.class {
        Some(name) => bond.class_number(name).ok_or_else(|| class::no_such(bond, name))?,
        None => 0,
    };
    let Some(slot) = bond.free_slot() else {
        return Err(Error::new(&of, what, format!("it has {MEMBERS_MAX} members already"))
            .hint(format!("linkbraid show {of}")));
    };
    if let Some(other) = bond.members().iter().find(|member| member.mac == link.mac) {
        let cause = format!("its MAC {} is that of '{}' too", link.mac, other.name);
        return Err(Error::new(&of, what, cause)
            .hint(format!("ip link set {} address 02:00:00:00:00:01", add.interface)));
    }
    let before = world.netlink.snapshot(link.index).await.about(&link.name, "cannot read the interface")?;
    bond.saved.members.push(SavedMember {
        slot,
        settings: add.settings,
        class,
        joining: true,
        leaving: false,
        applied: false,
        before,
    });
    if let Err(error) = world.state.write(&bond.saved) {
        bond.saved.members.pop();
        return Err(error);
    }
    let joined = async {
        enslave(&world.netlink, bond, link, true).await?;
        settle(world, bond).await
    };
    let Err(error) = joined.await else { return Ok(()) };
    Err(not_undone(error, leave::out(world, bond, link.index, Addresses::GoBack).await.err()))
}

/// A member that joined is in from now on; else it leaves again.
pub(crate) async fn admit(world: &mut World, name: &str, ifindex: u32) -> Result<(), Error> {
    let admit = async |log: &mut UndoLog, bond: &mut Bond| {
        let mut gives_mac = false;
        for member in bond.saved.members.iter_mut().filter(|member| member.before.link.index == ifindex) {
            member.joining = false;
            // It is there again, or for the first time; a file that wanted it once still does.
            let name = &member.before.link.name;
            member.applied |= bond.saved.absent.iter().any(|absent| absent.applied && absent.name == *name);
            gives_mac |= bond.saved.absent.iter().any(|absent| absent.gives_mac && absent.name == *name);
            bond.saved.absent.retain(|absent| absent.name != *name);
            // Not before: a member that is withdrawn would leave behind a class that is blocked for want of members.
            for own in bond.saved.classes.iter_mut().filter(|own| own.number == member.class) {
                own.has_members = true;
            }
        }
        let member = bond.members().into_iter().find(|member| member.ifindex == ifindex && gives_mac);
        if let Some(Member { mac, .. }) = member {
            let of = bond.saved.name.clone();
            log.carry_out((&of, bond.ifindex), Op::Mac { from: bond.mac, to: mac }).await?;
            bond.mac = mac;
        }
        Ok(())
    };
    if let Err(error) = change(world, name, admit).await {
        return Err(not_undone(error, withdraw(world, name, ifindex).await.err()));
    }
    let World { bonds, sender, clock, .. } = world;
    bonds.values().filter(|bond| bond.saved.name == name).for_each(|bond| bond.announce(sender, *clock));
    Ok(())
}

/// What the user should know of the addresses that a member brings.
pub(crate) fn lease_warning(bond: &str, before: &Saved) -> Option<String> {
    let leased = before.addresses.iter().find(|address| address.is_leased())?;
    let name = &before.link.name;
    Some(format!(
        "{bond}: {} came to '{name}' by DHCP and ends with its lease: stop the client on '{name}', run it on '{bond}'",
        leased.ip
    ))
}

/// `member set`
pub(crate) async fn set(world: &mut World, of: &str, to: &MemberConfig) -> Result<Vec<String>, Error> {
    let set = async |_: &mut UndoLog, bond: &mut Bond| {
        for absent in bond.saved.absent.iter_mut().filter(|absent| *absent.name == *to.interface) {
            absent.settings = to.settings;
        }
        let slot = bond.member(&to.interface).map(|member| member.slot);
        for saved in bond.saved.members.iter_mut().filter(|saved| Some(saved.slot) == slot) {
            saved.settings = to.settings;
        }
        Ok(())
    };
    change(world, of, set).await.map(|()| Vec::new())
}
