//! `bond add` and `bond del`: everything done, or everything as it was.

use crate::{
    bond::Bond,
    class,
    error::About as _,
    group::Groups,
    identity, member,
    state::{SavedBond, SavedMember, boot_id},
    world::World,
};
use linkbraid_api::{
    BondAdd, Error, InspectorSet, Policy, Weight,
    limits::{
        INTERFACE_NAME_MAX, MTU_MAX, MTU_MIN, PROBE_INTERVAL_MS_MAX, PROBE_INTERVAL_MS_MIN,
        PROBE_MULTIPLIER_MAX, PROBE_MULTIPLIER_MIN, UP_DELAY_MS_MAX,
    },
};
use linkbraid_dataplane::MEMBERS_MAX;
use linkbraid_link::{Kind, LinkInfo, Route};
use std::{collections::HashSet, net::IpAddr, path::PathBuf};

mod addresses;
mod undo;

pub(crate) use addresses::{replace as replace_addresses, set as set_addresses};
use undo::end;
pub(crate) use undo::{interface, undo};

/// The inspector's settings unless told otherwise: those of docs/arp-plus.md, section 11.
const PROBE_INTERVAL_MS: u32 = 50;
const PROBE_MULTIPLIER: u8 = 3;
const UP_DELAY_MS: u32 = 100;
/// The same as settings.
pub(crate) const INSPECTOR: InspectorSet = InspectorSet {
    probes: Some(true),
    probe_interval_ms: Some(PROBE_INTERVAL_MS),
    probe_multiplier: Some(PROBE_MULTIPLIER),
    up_delay_ms: Some(UP_DELAY_MS),
};

/// Refuses what can't work, before anything is touched; the members as they are, and the bond's MTU.
async fn check(world: &World, add: &BondAdd) -> Result<(Vec<LinkInfo>, u32), Error> {
    check_name(&add.name, "cannot add the bond", "linkbraid bond add bond0 --member eth1,eth2")?;
    check_inspector(&add.name, &add.inspector)?;
    check_policy(&add.name, Some(add.policy))?;
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
    for address in &add.addresses {
        parse_cidr(&add.name, address)?;
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
    let mtu = match add.mtu {
        Some(mtu) => check_mtu(&add.name, mtu)?,
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

/// Refuses what no interface can be called.
pub(crate) fn check_name(name: &str, what: &str, hint: &str) -> Result<(), Error> {
    let bad = name.is_empty()
        || name.len() > INTERFACE_NAME_MAX
        || name == "."
        || name == ".."
        || name.chars().any(|c| c == '/' || c == ':' || c.is_whitespace() || c.is_control());
    if bad {
        let cause =
            format!("not an interface name: 1 to {INTERFACE_NAME_MAX} bytes without '/', ':' and spaces");
        return Err(Error::new(format!("'{name}'"), what, cause).hint(hint));
    }
    Ok(())
}

/// The MTU, if a bond can have it.
pub(crate) fn check_mtu(name: &str, mtu: u32) -> Result<u32, Error> {
    if (MTU_MIN..=MTU_MAX).contains(&mtu) {
        return Ok(mtu);
    }
    let cause = format!("{mtu} is outside the allowed range {MTU_MIN} to {MTU_MAX}");
    Err(Error::new(name, "option '--mtu'", cause).hint("ip -br link"))
}

/// Refuses settings of the inspector that are out of range.
pub(crate) fn check_inspector(name: &str, set: &InspectorSet) -> Result<(), Error> {
    let refuse = |option: &str, value: String, allowed: String| {
        let cause = format!("{value} is outside the allowed range {allowed}");
        Err(Error::new(name, format!("option '{option}'"), cause)
            .hint(format!("linkbraid bond set {name} --probe-interval 50ms --probe-multiplier 3")))
    };
    match *set {
        InspectorSet { probe_interval_ms: Some(ms), .. }
            if !(PROBE_INTERVAL_MS_MIN..=PROBE_INTERVAL_MS_MAX).contains(&ms) =>
        {
            let allowed = format!("{PROBE_INTERVAL_MS_MIN}ms to {PROBE_INTERVAL_MS_MAX}ms");
            refuse("--probe-interval", format!("{ms}ms"), allowed)
        }
        InspectorSet { probe_multiplier: Some(multiplier), .. }
            if !(PROBE_MULTIPLIER_MIN..=PROBE_MULTIPLIER_MAX).contains(&multiplier) =>
        {
            let allowed = format!("{PROBE_MULTIPLIER_MIN} to {PROBE_MULTIPLIER_MAX}");
            refuse("--probe-multiplier", multiplier.to_string(), allowed)
        }
        InspectorSet { up_delay_ms: Some(ms), .. } if ms > UP_DELAY_MS_MAX => {
            refuse("--up-delay", format!("{ms}ms"), format!("0ms to {UP_DELAY_MS_MAX}ms"))
        }
        _ => Ok(()),
    }
}

/// Refuses a policy that is for classes only.
pub(crate) fn check_policy(name: &str, policy: Option<Policy>) -> Result<(), Error> {
    match policy {
        Some(Policy::Mirror) => {
            let cause = "'mirror' sends everything twice: it is for a class";
            Err(Error::new(name, "option '--policy'", cause).hint("linkbraid class add --help"))
        }
        _ => Ok(()),
    }
}

/// `ADDRESS/PREFIX`.
pub(crate) fn parse_cidr(name: &str, text: &str) -> Result<(IpAddr, u8), Error> {
    let refuse = |cause: &str| {
        Error::new(name, format!("option '--address': '{text}'"), cause)
            .hint(format!("linkbraid bond add {name} --member eth1,eth2 --address 198.18.0.1/24"))
    };
    let (ip, prefix) = text.split_once('/').ok_or_else(|| refuse("not ADDRESS/PREFIX"))?;
    let ip: IpAddr = ip.parse().map_err(|_| refuse("not an IP address"))?;
    let longest = if ip.is_ipv4() { 32 } else { 128 };
    let prefix: u8 = prefix
        .parse()
        .ok()
        .filter(|prefix| *prefix <= longest)
        .ok_or_else(|| refuse(&format!("the prefix is outside the allowed range 0 to {longest}")))?;
    Ok((ip, prefix))
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
            weight: Weight::Auto,
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
        policy: add.policy,
        stripe: add.stripe,
        damping: add.damping,
        probes: true,
        probe_interval_ms: PROBE_INTERVAL_MS,
        probe_multiplier: PROBE_MULTIPLIER,
        up_delay_ms: UP_DELAY_MS,
        host_id: identity::new_host_id()?,
        boot_id: boot_id(),
        pins: pins_for(world, &add.name),
        members,
        classes,
        latency: false,
        applied: false,
        applied_addresses: Vec::new(),
    };
    saved.set_inspector(add.inspector);
    // Pins of a bond that is not on file are of nobody, such as a network namespace whose number came again.
    linkbraid_dataplane::forget_pins(&saved.pins).about(&add.name, "cannot remove old pins")?;
    // Likewise control groups.
    if let Ok(groups) = Groups::find() {
        let removed = groups.remove_all(&class::class_group(&saved.pins));
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
            bond.history.bond(Some("up"), "added", format!("added with {}", add.members.join(", ")));
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
        world.events.clone(),
        world.feed.clone(),
    )?;
    let outcome = async {
        for link in links {
            member::enslave(netlink, &mut bond, link, true).await?;
            // From the first member on, what the kernel sends by itself finds its way.
            bond.tell_members(world.clock);
            bond.write_tables(world.clock)?;
            // Now, not at the end: the kernel takes up to a second from here until IPv6 works on it.
            if bond.members.len() == 1 {
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
    bond.tell_members(world.clock);
    bond.read_addresses(&world.netlink, world.clock).await?;
    bond.write_tables(world.clock)?;
    bond.write_rules()?;
    // Nobody loses a bond over what only measures it.
    if let Err(error) = bond.measure_latency(bond.saved.latency) {
        tracing::error!(%error, "latency is not measured");
    }
    bond.write_stripe(&world.netlink).await?;
    bond.arp_plus.handle(world.clock.now(), linkbraid_proto::arp_plus::Input::Start);
    Ok(())
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
    let Some(mut bond) = world.bonds.remove(name) else {
        // What an earlier attempt could not put back.
        let left = world
            .state
            .read_all()
            .into_iter()
            .find(|saved| saved.name == name && saved.pins.parent() == Some(&world.pins));
        let saved = left.ok_or_else(|| world.no_bond(name))?;
        return end(world, saved).await.map(|()| Vec::new());
    };
    bond.arp_plus.handle(world.clock.now(), linkbraid_proto::arp_plus::Input::Stop);
    bond.history.bond(None, "deleted", "deleted; its members are as they were");
    bond.act(&mut world.sender, world.clock);
    let saved = bond.saved.clone();
    unload(bond);
    end(world, saved).await.map(|()| Vec::new())
}

#[cfg(test)]
mod tests;
