//! `bond add` and `bond del`: everything done, or everything as it was.

use crate::{
    io::{
        error::About as _,
        group::Groups,
        identity,
        state::{SavedBond, SavedMember, boot_id},
    },
    operations::{class, member},
    world::{World, bond::Bond, rules::class_group},
};
use linkbraid_api::{BondAdd, BondSettings, Error, MemberSettings, value};
use linkbraid_dataplane::MEMBERS_MAX;
use linkbraid_link::{Kind, LinkInfo, Route};
use std::{collections::HashSet, net::IpAddr, path::PathBuf};

mod addresses;
mod undo;

pub(crate) use addresses::{replace as replace_addresses, set as set_addresses};
use undo::end;
pub(crate) use undo::{interface, undo};

/// Refuses what can't work, before anything is touched; the members as they are, and the bond's MTU.
async fn check(world: &World, add: &BondAdd) -> Result<(Vec<LinkInfo>, u32), Error> {
    let what = "cannot add the bond";
    if world.bonds.contains_key(&add.name) {
        return Err(Error::new(&add.name, what, "a bond of this name is there already")
            .hint(format!("linkbraid show {}", add.name)));
    }
    if world.state.read_all().iter().any(|saved| saved.name == add.name) {
        return Err(Error::new(&add.name, what, "an earlier bond of this name has not been put back whole")
            .hint(format!("linkbraid bond del {}", add.name)));
    }
    if let Ok(link) = world.netlink.link(&add.name).await {
        let cause = format!("an interface of this name exists (a {})", link.kind.as_deref().unwrap_or("NIC"));
        return Err(Error::new(&add.name, what, cause).hint(format!("ip -d link show {}", add.name)));
    }
    if add.members.is_empty() || add.members.len() > MEMBERS_MAX {
        let cause = format!("{} members; allowed are 1 to {MEMBERS_MAX}", add.members.len());
        return Err(Error::new(&add.name, what, cause)
            .hint(format!("linkbraid bond add {} --member eth1,eth2", add.name)));
    }
    let command = format!("linkbraid bond add {} --member {}", add.name, add.members.join(","));
    let mut links: Vec<LinkInfo> = Vec::new();
    for name in &add.members {
        let link = member::check(world, &add.name, name, add.move_address, &command).await?;
        if links.iter().any(|other| other.index == link.index) {
            let mut once: Vec<&str> = Vec::new();
            for name in &add.members {
                if !once.contains(&name.as_str()) {
                    once.push(name);
                }
            }
            let hint = format!("linkbraid bond add {} --member {}", add.name, once.join(","));
            return Err(
                Error::new(&add.name, format!("cannot add member '{name}'"), "it is named twice").hint(hint)
            );
        }
        if let Some(other) = links.iter().find(|other| other.mac == link.mac) {
            let cause = format!("its MAC {} is that of '{}' too", link.mac, other.name);
            return Err(Error::new(&add.name, format!("cannot add member '{name}'"), cause)
                .hint(format!("ip link set {name} address 02:00:00:00:00:01")));
        }
        links.push(link);
    }
    let mtu = match add.options.mtu {
        Some(mtu) => mtu.0,
        None => {
            let first = &links[0];
            if let Some(other) = links.iter().find(|link| link.mtu != first.mtu) {
                let cause = format!(
                    "mixed MTUs: '{}' has {}, '{}' has {}",
                    first.name, first.mtu, other.name, other.mtu
                );
                return Err(Error::new(&add.name, what, cause)
                    .hint(format!("{command} --mtu {}", first.mtu.min(other.mtu))));
            }
            first.mtu
        }
    };
    Ok((links, mtu))
}

/// `ADDRESS/PREFIX`.
pub(crate) fn parse_cidr(name: &str, text: &str) -> Result<(IpAddr, u8), Error> {
    value::address(text).map_err(|cause| {
        Error::new(name, "option '--address'", cause)
            .hint(format!("linkbraid bond set {name} --address 198.18.0.1/24"))
    })
}

/// Reads addresses, each once.
pub(crate) fn cidrs(name: &str, texts: &[String]) -> Result<Vec<(IpAddr, u8)>, Error> {
    let mut read = Vec::with_capacity(texts.len());
    for text in texts {
        let address = parse_cidr(name, text)?;
        if !read.contains(&address) {
            read.push(address);
        }
    }
    Ok(read)
}

/// Adds a bond; on failure the machine is as it was.
pub(crate) async fn add(world: &mut World, add: BondAdd) -> Result<Vec<String>, Error> {
    let (links, mtu) = check(world, &add).await?;
    let (classes, class_of) = class::of_bond_add(&add)?;
    let mut warnings = Vec::new();
    let mut members = Vec::new();
    for (slot, link) in links.iter().enumerate() {
        let before =
            world.netlink.snapshot(link.index).await.about(&link.name, "cannot read the interface")?;
        members.push(SavedMember {
            slot: slot as u8,
            settings: MemberSettings::default(),
            class: class_of.get(add.members[slot].as_str()).copied().unwrap_or(0),
            joining: false,
            leaving: false,
            applied: false,
            before,
        });
    }
    let mut saved = SavedBond {
        name: add.name.clone(),
        ifindex: None,
        complete: false,
        mtu,
        addresses: add.addresses.clone(),
        settings: BondSettings::default().with(&add.options),
        host_id: identity::new_host_id()?,
        boot_id: boot_id(),
        pins: pins_for(world, &add.name),
        members,
        absent: Vec::new(),
        classes,
        applied: false,
        applied_addresses: Vec::new(),
    };
    // Pins of a bond that is not on file are of nobody, such as a network namespace whose number came again.
    linkbraid_dataplane::forget_pins(&saved.pins).about(&add.name, "cannot remove old pins")?;
    // Likewise control groups.
    if let Ok(groups) = Groups::find() {
        let removed = groups.remove_all(&class_group(&saved.pins));
        removed.about(&add.name, "cannot remove old control groups")?;
    }
    world.state.write(&saved)?;
    match build(world, &mut saved, &links, &mut warnings).await {
        Ok(mut bond) => {
            bond.saved.complete = true;
            if let Err(error) = world.state.write(&bond.saved) {
                unload(bond);
                undo(world, &saved).await;
                return Err(error);
            }
            bond.announce(&mut world.sender, world.clock);
            bond.tell(Some("up"), "added", format!("added with {}", add.members.join(", ")));
            warnings.extend(class::first_warnings(&bond));
            world.bonds.insert(add.name, bond);
            Ok(warnings)
        }
        Err(error) => {
            tracing::warn!(%error, "bond not added, undoing");
            undo(world, &saved).await;
            Err(error)
        }
    }
}

/// Where a new bond is pinned: under its name, or beside the pins of one that had this name until somebody renamed its
/// interface.
fn pins_for(world: &World, name: &str) -> PathBuf {
    let taken: HashSet<PathBuf> = world.state.read_all().into_iter().map(|saved| saved.pins).collect();
    let mut pins = world.pins.join(name);
    let mut number = 1;
    while taken.contains(&pins) {
        number += 1;
        pins = world.pins.join(format!("{name}_{number}"));
    }
    pins
}

async fn build(
    world: &mut World,
    saved: &mut SavedBond,
    links: &[LinkInfo],
    warnings: &mut Vec<String>,
) -> Result<Bond, Error> {
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
    let mut bond = Bond::new(
        saved.clone(),
        ifindex,
        links[0].mac,
        world.hook,
        world.driving.clone(),
        world.feed.clone(),
    )?;
    let outcome = async {
        for link in links {
            member::enslave(netlink, &mut bond, link, true).await?;
            // From the first member on, what the kernel sends by itself finds its way.
            bond.write_tables(world.clock)?;
            // Now, not at the end: the kernel takes up to a second from here until IPv6 works on it.
            if bond.members().len() == 1 {
                netlink.set_up(ifindex).await.about(&name, "cannot set the bond up")?;
            }
        }
        for text in &saved.addresses {
            let (ip, prefix) = parse_cidr(&name, text)?;
            netlink
                .add_address(ifindex, ip, prefix)
                .await
                .about(&name, format!("cannot add address '{text}'"))?;
        }
        start(world, &mut bond).await
    }
    .await;
    match outcome {
        Ok(()) => {
            let before = bond.saved.members.iter().map(|member| &member.before);
            warnings.extend(before.filter_map(|before| member::lease_warning(&name, before)));
            if bond.saved.members.iter().any(|member| member.before.routes.iter().any(Route::is_default)) {
                warnings.push(format!("{name}: the default route goes through it now, until 'bond del'"));
            }
            Ok(bond)
        }
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
    bond.write_stripe(&world.netlink).await?;
    bond.start(world.clock).await
}

/// Takes the programs off and removes the pins.
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
            .read_all()
            .into_iter()
            .find(|saved| saved.name == name && saved.pins.parent() == Some(&world.pins));
        let saved = left.ok_or_else(|| world.no_bond(name))?;
        return end(world, saved).await.map(|()| Vec::new());
    };
    bond.driven().stop(&mut world.sender, world.clock.now());
    bond.tell(None, "deleted", "deleted; its members are as they were");
    let saved = bond.saved.clone();
    unload(bond);
    end(world, saved).await.map(|()| Vec::new())
}

#[cfg(test)]
mod tests;
