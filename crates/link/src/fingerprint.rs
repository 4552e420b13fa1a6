//! The state of a network namespace as comparable text: for tests that claim "the machine is as it was".

use std::fmt::Write;

use nix::libc;

use crate::{
    Netlink,
    address::Address,
    error::Result,
    route::Route,
    rtnl::{QDISC_HEADER, attribute, number_at, text},
};

impl Netlink {
    /// Everything about interfaces (with port flags and limits), addresses, routes and qdiscs of the namespace, one
    /// object a line, in an order that does not depend on how it came about. Left out: what changes by itself
    /// (counters, remaining lifetimes, search for duplicate addresses).
    ///
    /// # Errors
    /// When the kernel refuses a list.
    pub async fn fingerprint(&self) -> Result<String> {
        let mut lines = String::new();
        let addresses = self.all_addresses().await?;
        for link in self.links().await? {
            let ipv6 = self.ipv6(link.index).await?;
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "link {link:?} ipv6={ipv6:?}");
            for address in addresses.iter().filter(|address| address.index == link.index) {
                let _ = writeln!(lines, "address on {}: {}", link.name, describe_address(address));
            }
        }
        let mut rest: Vec<_> = self.all_routes().await?.iter().map(describe_route).collect();
        let qdiscs = self
            .dump(libc::RTM_GETQDISC, vec![0; QDISC_HEADER])
            .await
            .map_err(|refusal| refusal.about("netlink", "cannot list the qdiscs"))?;
        for qdisc in &qdiscs {
            let message = &qdisc.payload;
            let kind = attribute(message, QDISC_HEADER, libc::TCA_KIND).map(text).unwrap_or_default();
            let options = attribute(message, QDISC_HEADER, libc::TCA_OPTIONS).unwrap_or_default();
            let (index, handle, parent) =
                (number_at(message, 4), number_at(message, 8), number_at(message, 12));
            rest.push(format!("qdisc on {index}: {kind} {handle:x} {parent:x} {options:x?}"));
        }
        rest.sort();
        lines.extend(rest.into_iter().flat_map(|line| [line, "\n".into()]));
        Ok(lines)
    }
}

fn describe_address(address: &Address) -> String {
    let flags = address.flags & !libc::IFA_F_TENTATIVE;
    let attributes = address.stable_attributes();
    format!("{}/{} flags {flags:x} {attributes:x?}", address.ip, address.prefix)
}

fn describe_route(route: &Route) -> String {
    let Route { table, protocol, kind, priority, gateway, interfaces, .. } = route;
    let attributes = route.stable_attributes();
    format!(
        "route {} {table} {protocol} {kind} {priority:?} {gateway:?} {interfaces:?} {attributes:x?}",
        route.name()
    )
}
