//! `bond set --address`, `fabric set --address`: those that were given before go, those that are given now come; others
//! are not touched.

use crate::{
    io::{
        error::About as _,
        undo::{Op, UndoLog},
    },
    world::bond::Bond,
};
use linkbraid_api::{Error, value};
use std::net::IpAddr;

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

/// Gives the bond these addresses in place of those it was given before.
pub(crate) async fn set(log: &mut UndoLog, bond: &mut Bond, texts: &[String]) -> Result<(), Error> {
    // One that a member brought goes back with it, whoever else names it.
    let stays = |address: &(IpAddr, u8)| {
        let before = bond.saved.members.iter().flat_map(|member| &member.before.addresses);
        before.into_iter().any(|before| (before.ip, before.prefix) == *address)
    };
    let interface = (bond.saved.name.as_str(), bond.ifindex);
    let addresses = replace(log, interface, &bond.saved.addresses, texts, stays).await?;
    // One that goes and comes again is no longer a file's.
    bond.saved.applied_addresses.retain(|address| addresses.contains(address));
    bond.saved.addresses = addresses;
    Ok(())
}

/// Gives an interface, by name and index, these addresses in place of those it was given before but for those that stay. The
/// addresses as the kernel writes them.
pub(crate) async fn replace(
    log: &mut UndoLog,
    (name, ifindex): (&str, u32),
    before: &[String],
    texts: &[String],
    stays: impl Fn(&(IpAddr, u8)) -> bool,
) -> Result<Vec<String>, Error> {
    let wanted = cidrs(name, texts)?;
    let found = log.netlink.addresses(ifindex).await.about(name, "cannot read its addresses")?;
    let given: Vec<(IpAddr, u8)> = before.iter().filter_map(|text| parse_cidr(name, text).ok()).collect();
    let goes =
        |address: &(IpAddr, u8)| given.contains(address) && !wanted.contains(address) && !stays(address);
    let has = found.iter().map(|address| (address.ip, address.prefix));
    let (mut gone, kept): (Vec<(IpAddr, u8)>, Vec<_>) = has.partition(goes);
    for (ip, prefix) in wanted.iter().filter(|address| !kept.contains(address)) {
        // An interface has an IPv6 address once, whatever its prefix.
        if let Some(same) = gone.iter().position(|(old, _)| old == ip && ip.is_ipv6()) {
            let (ip, prefix) = gone.swap_remove(same);
            log.carry_out((name, ifindex), Op::RemoveAddress(ip, prefix)).await?;
        }
        log.carry_out((name, ifindex), Op::AddAddress(*ip, *prefix)).await?;
    }
    for (ip, prefix) in &gone {
        log.carry_out((name, ifindex), Op::RemoveAddress(*ip, *prefix)).await?;
    }
    Ok(wanted.iter().map(|(ip, prefix)| format!("{ip}/{prefix}")).collect())
}
