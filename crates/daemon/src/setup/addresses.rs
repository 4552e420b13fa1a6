//! `bond set --address`: those that were given before go, those that are given now come; others are not touched.

use super::parse_cidr;
use crate::{bond::Bond, error::About as _};
use linkbraid_api::Error;
use linkbraid_link::{Kind, Netlink};
use std::net::IpAddr;

/// Gives the bond these addresses in place of those it was given before; on failure it has the ones it had.
pub(crate) async fn set(netlink: &Netlink, bond: &mut Bond, texts: &[String]) -> Result<(), Error> {
    let name = bond.saved.name.clone();
    let mut wanted: Vec<(IpAddr, u8)> = Vec::new();
    for text in texts {
        let address = parse_cidr(&name, text)?;
        if !wanted.contains(&address) {
            wanted.push(address);
        }
    }
    let found = netlink.addresses(bond.ifindex).await.about(&name, "cannot read its addresses")?;
    let has: Vec<(IpAddr, u8)> = found.iter().map(|address| (address.ip, address.prefix)).collect();
    let mut added = Vec::new();
    for (ip, prefix) in wanted.iter().filter(|address| !has.contains(address)) {
        let result = netlink.add_address(bond.ifindex, *ip, *prefix).await;
        if let Err(error) = result.about(&name, format!("cannot add address '{ip}/{prefix}'")) {
            for (ip, prefix) in added {
                let _ = netlink.del_address(bond.ifindex, ip, prefix).await;
            }
            return Err(error);
        }
        added.push((*ip, *prefix));
    }
    let old = bond.saved.addresses.iter().filter_map(|text| parse_cidr(&name, text).ok());
    // One that a member brought goes back with it, whoever else names it.
    let moved = |address: &(IpAddr, u8)| {
        let before = bond.saved.members.iter().flat_map(|member| &member.before.addresses);
        before.into_iter().any(|before| (before.ip, before.prefix) == *address)
    };
    let goes = |address: &(IpAddr, u8)| has.contains(address) && !wanted.contains(address) && !moved(address);
    let gone: Vec<(IpAddr, u8)> = old.filter(goes).collect();
    for (ip, prefix) in &gone {
        match netlink.del_address(bond.ifindex, *ip, *prefix).await {
            Err(error) if error.kind == Kind::NotFound => {}
            result => result.about(&name, format!("cannot remove address '{ip}/{prefix}'"))?,
        }
    }
    // The first IPv4 address of a subnet takes the others of it with it (`promote_secondaries` of ip-sysctl.rst).
    for (ip, prefix) in has.iter().chain(&added).filter(|address| !gone.is_empty() && !gone.contains(address))
    {
        match netlink.add_address(bond.ifindex, *ip, *prefix).await {
            Err(error) if error.kind == Kind::Exists => {}
            result => result.about(&name, format!("cannot put address '{ip}/{prefix}' back"))?,
        }
    }
    bond.saved.addresses = wanted.iter().map(|(ip, prefix)| format!("{ip}/{prefix}")).collect();
    Ok(())
}
