//! `bond add`, `bond set` and `bond del`: everything done, or everything as it was.

use crate::{
    io::{
        clock::epoch,
        error::About as _,
        group::Groups,
        identity,
        state::{SavedAbsent, SavedBond, SavedMember, boot_id},
        undo::{Op, UndoLog, not_undone},
    },
    operations::{class, desired::Change, member, settle},
    world::{World, bond::Bond},
};
use linkbraid_api::{
    Error, LinkName,
    config::{BondConfig, MemberConfig},
};
use linkbraid_dataplane::DataPath;
use linkbraid_dataplane::MEMBERS_MAX;
use linkbraid_link::{Kind, LinkInfo, Route};
use std::{collections::HashSet, path::PathBuf, time::SystemTime};

mod addresses;
mod end;

use addresses::set as set_addresses;
pub(crate) use addresses::{cidrs, replace as replace_addresses};
pub(crate) use end::{end, interface};

/// Refuses what can't work, before anything is touched; the members as they are, and the bond's MTU.
async fn check(world: &World, name: &str, to: &BondConfig) -> Result<(Vec<LinkInfo>, u32), Error> {
    let what = "cannot add the bond";
    if world.state.read_all::<SavedBond>().iter().any(|saved| saved.name == name) {
        return Err(Error::new(name, what, "an earlier bond of this name has not been put back whole")
            .hint(format!("linkbraid bond del {name}")));
    }
    if let Ok(link) = world.netlink.link(name).await {
        let cause = format!("an interface of this name exists (a {})", link.kind.as_deref().unwrap_or("NIC"));
        return Err(Error::new(name, what, cause).hint(format!("ip -d link show {name}")));
    }
    let members: Vec<&str> = present(to).map(|member| member.interface.as_str()).collect();
    if members.is_empty() || members.len() > MEMBERS_MAX {
        let cause = format!("{} members; allowed are 1 to {MEMBERS_MAX}", members.len());
        return Err(
            Error::new(name, what, cause).hint(format!("linkbraid bond add {name} --member eth1,eth2"))
        );
    }
    let links = check_links(world, name, &members, to.move_address).await?;
    let first = &links[0];
    if let (None, Some(other)) = (to.mtu, links.iter().find(|link| link.mtu != first.mtu)) {
        let cause =
            format!("mixed MTUs: '{}' has {}, '{}' has {}", first.name, first.mtu, other.name, other.mtu);
        let mtu = first.mtu.min(other.mtu);
        return Err(Error::new(name, what, cause).hint(format!("{} --mtu {mtu}", command(name, &members))));
    }
    let mtu = to.mtu.unwrap_or(first.mtu);
    Ok((links, mtu))
}

/// Refuses interfaces that cannot be members, or not together.
async fn check_links(
    world: &World,
    name: &str,
    members: &[&str],
    move_address: bool,
) -> Result<Vec<LinkInfo>, Error> {
    let mut links: Vec<LinkInfo> = Vec::new();
    for member in members {
        let refuse = |cause: String, hint: String| {
            Err(Error::new(name, format!("cannot add member '{member}'"), cause).hint(hint))
        };
        let link = member::check(world, name, member, move_address, &command(name, members)).await?;
        if links.iter().any(|other| other.index == link.index) {
            let mut once: Vec<&str> = Vec::new();
            for name in members {
                if !once.contains(name) {
                    once.push(name);
                }
            }
            return refuse("it is named twice".into(), command(name, &once));
        }
        if let Some(other) = links.iter().find(|other| other.mac == link.mac) {
            let cause = format!("its MAC {} is that of '{}' too", link.mac, other.name);
            return refuse(cause, format!("ip link set {member} address 02:00:00:00:00:01"));
        }
        links.push(link);
    }
    Ok(links)
}

/// The members whose interfaces are there.
fn present(to: &BondConfig) -> impl Iterator<Item = &MemberConfig> {
    to.members.iter().filter(|member| !member.absent)
}

fn command(name: &str, members: &[&str]) -> String {
    format!("linkbraid bond add {name} --member {}", members.join(","))
}

/// Adds a bond; on failure the machine is as it was.
pub(crate) async fn add(world: &mut World, name: &LinkName, to: &BondConfig) -> Result<Vec<String>, Error> {
    let (links, mtu) = check(world, name, to).await?;
    let mut saved = record(world, name, to, &links, mtu).await?;
    // Control groups of a bond that is not on file are of nobody, such as a network namespace whose number came again.
    if let Ok(groups) = Groups::find() {
        let removed = groups.remove_all(&saved.place);
        removed.about(name, "cannot remove old control groups")?;
    }
    world.state.write(&saved)?;
    let bond = match build(world, &mut saved, &links).await {
        Ok(bond) => bond,
        Err(error) => {
            tracing::warn!(%error, "bond not added, undoing");
            return Err(not_undone(error, end(world, saved).await.err()));
        }
    };
    let before = || bond.saved.members.iter().map(|member| &member.before);
    let mut warnings: Vec<String> =
        before().filter_map(|before| member::lease_warning(name, before)).collect();
    if before().any(|before| before.routes.iter().any(Route::is_default)) {
        warnings.push(format!("{name}: the default route goes through it now, until 'bond del'"));
    }
    bond.announce(&mut world.sender, world.clock);
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    bond.report(Some("up"), "added", format!("added with {}", names.join(", ")));
    world.bonds.insert(bond.saved.name.clone(), bond);
    Ok(warnings)
}

/// A new bond as it will be on file.
async fn record(
    world: &World,
    name: &LinkName,
    to: &BondConfig,
    links: &[LinkInfo],
    mtu: u32,
) -> Result<SavedBond, Error> {
    let classes = class::numbered(&to.classes, &[]);
    let number = |member: &MemberConfig| {
        let own = classes.iter().find(|class| Some(&class.name) == member.class.as_ref());
        own.map_or(0, |class| class.number)
    };
    let mut members = Vec::new();
    for ((slot, link), member) in links.iter().enumerate().zip(present(to)) {
        let before =
            world.netlink.snapshot(link.index).await.about(&link.name, "cannot read the interface")?;
        members.push(SavedMember {
            slot: slot as u8,
            settings: member.settings,
            class: number(member),
            joining: false,
            leaving: false,
            applied: false,
            before,
        });
    }
    let absent = to.members.iter().enumerate().filter(|(_, member)| member.absent);
    let absent = absent.map(|(at, member)| SavedAbsent {
        name: member.interface.to_string(),
        settings: member.settings,
        class: number(member),
        move_address: to.move_address,
        applied: false,
        gives_mac: at == 0,
    });
    Ok(SavedBond {
        name: name.clone(),
        ifindex: None,
        complete: false,
        mtu,
        addresses: to.addresses.clone(),
        settings: to.settings.clone(),
        host_id: identity::new_secret()?,
        epoch: epoch(0, SystemTime::now()),
        boot_id: boot_id(),
        place: place_for(world, name),
        members,
        absent: absent.collect(),
        classes,
        applied: false,
        applied_addresses: Vec::new(),
    })
}

/// `bond set`, once its interfaces have the MTU that it is to have from now on, if that changes ([`super::resize`]).
pub(crate) async fn set(
    world: &mut World,
    change: &Change<BondConfig>,
    mtu: Option<u32>,
) -> Result<Vec<String>, Error> {
    let options = change.options();
    let set = async |log: &mut UndoLog, bond: &mut Bond| {
        if let Some(on) = options.latency {
            bond.measure_latency(on)?;
        }
        bond.saved.mtu = mtu.unwrap_or(bond.saved.mtu);
        if let (Some(from), Some(to)) = (&change.from, &change.to)
            && from.addresses != to.addresses
        {
            set_addresses(log, bond, &to.addresses).await?;
        }
        bond.saved.settings = bond.saved.settings.with(&options);
        Ok(())
    };
    settle::change(world, &change.name, set).await.map(|()| Vec::new())
}

/// The place of a new bond: under its name, or beside that of one that had this name until somebody renamed its interface.
fn place_for(world: &World, name: &str) -> PathBuf {
    let taken: HashSet<PathBuf> =
        world.state.read_all::<SavedBond>().into_iter().map(|saved| saved.place).collect();
    let mut place = world.namespace.join(name);
    let mut number = 1;
    while taken.contains(&place) {
        number += 1;
        place = world.namespace.join(format!("{name}_{number}"));
    }
    place
}

async fn build(world: &mut World, saved: &mut SavedBond, links: &[LinkInfo]) -> Result<Bond, Error> {
    let name = saved.name.clone();
    let netlink = &world.netlink;
    let ifindex = netlink.create_bridge(&name, links[0].mac, saved.mtu).await.map_err(|error| match error
        .kind
    {
        Kind::Unsupported => Error::new(&name, "cannot create the bond", "this kernel has no bridge support")
            .hint("modprobe bridge"),
        _ => Error::new(&name, "cannot create the bond", error.cause()),
    })?;
    saved.ifindex = Some(ifindex);
    world.state.write(saved)?;
    let path = DataPath::load(world.hook).about(&name, "cannot load the data path")?;
    let mut bond =
        Bond::new(saved.clone(), ifindex, links[0].mac, path, world.driving.clone(), world.feed.clone())?;
    let outcome = async {
        bond.mend_port(netlink).await?;
        for link in links {
            member::enslave(netlink, &mut bond, link, true).await?;
            // From the first member on, what the kernel sends by itself finds its way.
            bond.write_tables(world.clock)?;
            // Now, not at the end: the kernel takes up to a second from here until IPv6 works on it.
            if bond.members().len() == 1 {
                netlink.set_up(ifindex).await.about(&name, "cannot set the bond up")?;
            }
        }
        let mut log = UndoLog::new(netlink);
        for (ip, prefix) in cidrs(&name, &saved.addresses)? {
            log.carry_out((&name, ifindex), Op::AddAddress(ip, prefix)).await?;
        }
        start(world, &mut bond).await?;
        bond.saved.complete = true;
        world.state.write(&bond.saved)
    };
    match outcome.await {
        Ok(()) => Ok(bond),
        Err(error) => {
            unload(bond);
            Err(error)
        }
    }
}

/// Starts the protocol and writes the first tables.
pub(crate) async fn start(world: &World, bond: &mut Bond) -> Result<(), Error> {
    bond.make_groups();
    bond.read_addresses(&world.netlink, world.clock).await?;
    bond.write_tables(world.clock)?;
    bond.write_rules()?;
    // Nobody loses a bond over what only measures it.
    if let Err(error) = bond.measure_latency(bond.saved.settings.latency) {
        tracing::error!(%error, "latency is not measured");
    }
    bond.follow_rates(&world.netlink, world.clock.now()).await?;
    bond.start(world.clock).await
}

/// Takes the programs off.
fn unload(bond: Bond) {
    let name = bond.saved.name.clone();
    if let Err(error) = bond.into_path().unload() {
        tracing::error!(bond = %name, %error, "cannot unload the data path");
    }
}

/// `bond del`
pub(crate) async fn delete(world: &mut World, name: &str) -> Result<Vec<String>, Error> {
    let Some(bond) = world.bonds.remove(name) else {
        // What an earlier attempt could not put back.
        let left = world
            .state
            .read_all::<SavedBond>()
            .into_iter()
            .find(|saved| saved.name == name && saved.place.parent() == Some(&world.namespace));
        let saved = left.ok_or_else(|| world.no_bond(name))?;
        return end(world, saved).await.map(|()| Vec::new());
    };
    bond.driven().stop(&mut world.sender, world.clock.now());
    bond.report(None, "deleted", "deleted; its members are as they were");
    let saved = bond.saved.clone();
    unload(bond);
    end(world, saved).await.map(|()| Vec::new())
}

#[cfg(test)]
mod tests;
