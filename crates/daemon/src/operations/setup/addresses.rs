//! `bond set --address`, `fabric set --address`: those that were given before go, those that are given now come; others
//! are not touched.

use crate::{io::error::About as _, world::bond::Bond};
use linkbraid_api::{Error, value};
use linkbraid_link::{Kind, Netlink};
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

/// Gives the bond these addresses in place of those it was given before; on failure it has the ones it had.
pub(crate) async fn set(netlink: &Netlink, bond: &mut Bond, texts: &[String]) -> Result<(), Error> {
    // One that a member brought goes back with it, whoever else names it.
    let stays = |address: &(IpAddr, u8)| {
        let before = bond.saved.members.iter().flat_map(|member| &member.before.addresses);
        before.into_iter().any(|before| (before.ip, before.prefix) == *address)
    };
    let interface = (bond.saved.name.as_str(), bond.ifindex);
    let addresses = replace(netlink, interface, &bond.saved.addresses, texts, stays).await?;
    // One that goes and comes again is no longer a file's.
    bond.saved.applied_addresses.retain(|address| addresses.contains(address));
    bond.saved.addresses = addresses;
    Ok(())
}

/// Gives an interface, by name and index, these addresses in place of those it was given before but for those that stay; on
/// failure it has the ones it had. The addresses as the kernel writes them.
pub(crate) async fn replace(
    netlink: &Netlink,
    (name, ifindex): (&str, u32),
    before: &[String],
    texts: &[String],
    stays: impl Fn(&(IpAddr, u8)) -> bool,
) -> Result<Vec<String>, Error> {
    let wanted = cidrs(name, texts)?;
    let found = netlink.addresses(ifindex).await.about(name, "cannot read its addresses")?;
    let has: Vec<(IpAddr, u8)> = found.iter().map(|address| (address.ip, address.prefix)).collect();
    let old = before.iter().filter_map(|text| parse_cidr(name, text).ok());
    let goes = |address: &(IpAddr, u8)| has.contains(address) && !wanted.contains(address) && !stays(address);
    let gone: Vec<(IpAddr, u8)> = old.filter(goes).collect();
    let (mut added, mut exchanged) = (Vec::new(), Vec::new());
    for (ip, prefix) in wanted.iter().filter(|address| !has.contains(address)) {
        // An interface has an IPv6 address once, whatever its prefix.
        let same = gone.iter().find(|(old, _)| old == ip && ip.is_ipv6());
        if let Some((_, old)) = same
            && netlink.del_address(ifindex, *ip, *old).await.is_ok()
        {
            exchanged.push((*ip, *old));
        }
        let result = netlink.add_address(ifindex, *ip, *prefix).await;
        if let Err(error) = result.about(name, format!("cannot add address '{ip}/{prefix}'")) {
            for (ip, prefix) in added {
                let _ = netlink.del_address(ifindex, ip, prefix).await;
            }
            for (ip, prefix) in exchanged {
                let _ = netlink.add_address(ifindex, ip, prefix).await;
            }
            return Err(error);
        }
        added.push((*ip, *prefix));
    }
    if gone.iter().any(|address| !exchanged.contains(address)) {
        // Else routes over the interface might go with the old address, and the host with them. Where it cannot be set, what went
        // along is put back below, without the routes.
        let promoted = netlink.set_promote_secondaries(ifindex, true).await;
        let removed = remove(netlink, (name, ifindex), &gone).await;
        if promoted.is_ok_and(|before| !before) {
            let _ = netlink.set_promote_secondaries(ifindex, false).await;
        }
        removed?;
    }
    for (ip, prefix) in has.iter().chain(&added).filter(|address| !gone.is_empty() && !gone.contains(address))
    {
        match netlink.add_address(ifindex, *ip, *prefix).await {
            Err(error) if error.kind == Kind::Exists => {}
            result => result.about(name, format!("cannot put address '{ip}/{prefix}' back"))?,
        }
    }
    Ok(wanted.iter().map(|(ip, prefix)| format!("{ip}/{prefix}")).collect())
}

/// Removes addresses that may be gone already.
async fn remove(
    netlink: &Netlink,
    (name, ifindex): (&str, u32),
    addresses: &[(IpAddr, u8)],
) -> Result<(), Error> {
    for (ip, prefix) in addresses {
        match netlink.del_address(ifindex, *ip, *prefix).await {
            Err(error) if error.kind == Kind::NotFound => {}
            result => result.about(name, format!("cannot remove address '{ip}/{prefix}'"))?,
        }
    }
    Ok(())
}
