//! `bond set --address`, `fabric set --address`: those that were given before go, those that are given now come; others
//! are not touched.

use super::{cidrs, parse_cidr};
use crate::{bond::Bond, error::About as _};
use linkbraid_api::Error;
use linkbraid_link::{Kind, Netlink};
use std::net::IpAddr;

/// Gives the bond these addresses in place of those it was given before; on failure it has the ones it had.
pub(crate) async fn set(netlink: &Netlink, bond: &mut Bond, texts: &[String]) -> Result<(), Error> {
    // One that a member brought goes back with it, whoever else names it.
    let stays = |address: &(IpAddr, u8)| {
        let before = bond.saved.members.iter().flat_map(|member| &member.before.addresses);
        before.into_iter().any(|before| (before.ip, before.prefix) == *address)
    };
    let interface = (bond.saved.name.as_str(), bond.ifindex);
    bond.saved.addresses = replace(netlink, interface, &bond.saved.addresses, texts, stays).await?;
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
    let mut added = Vec::new();
    for (ip, prefix) in wanted.iter().filter(|address| !has.contains(address)) {
        let result = netlink.add_address(ifindex, *ip, *prefix).await;
        if let Err(error) = result.about(name, format!("cannot add address '{ip}/{prefix}'")) {
            for (ip, prefix) in added {
                let _ = netlink.del_address(ifindex, ip, prefix).await;
            }
            return Err(error);
        }
        added.push((*ip, *prefix));
    }
    let old = before.iter().filter_map(|text| parse_cidr(name, text).ok());
    let goes = |address: &(IpAddr, u8)| has.contains(address) && !wanted.contains(address) && !stays(address);
    let gone: Vec<(IpAddr, u8)> = old.filter(goes).collect();
    for (ip, prefix) in &gone {
        match netlink.del_address(ifindex, *ip, *prefix).await {
            Err(error) if error.kind == Kind::NotFound => {}
            result => result.about(name, format!("cannot remove address '{ip}/{prefix}'"))?,
        }
    }
    // The first IPv4 address of a subnet takes the others of it with it (`promote_secondaries` of ip-sysctl.rst).
    for (ip, prefix) in has.iter().chain(&added).filter(|address| !gone.is_empty() && !gone.contains(address))
    {
        match netlink.add_address(ifindex, *ip, *prefix).await {
            Err(error) if error.kind == Kind::Exists => {}
            result => result.about(name, format!("cannot put address '{ip}/{prefix}' back"))?,
        }
    }
    Ok(wanted.iter().map(|(ip, prefix)| format!("{ip}/{prefix}")).collect())
}
