//! Moving the addresses of a NIC to the bond it joins, with the routes through it, and back.

use nix::libc;
use serde::{Deserialize, Serialize};

use crate::{Netlink, address::Address, error::Result, route::Route};

/// What [`Netlink::move_addresses`] moved: enough to put it back, also by a later process of the same boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Index of the interface that had them.
    pub from: u32,
    /// The name of that interface at that time.
    pub from_name: String,
    /// Index of the interface that has them now.
    pub to: u32,
    /// The name of that interface at that time.
    pub to_name: String,
    /// The addresses, in the order to add them in.
    pub addresses: Vec<Address>,
    /// The routes that do not come with an address by themselves.
    pub routes: Vec<Route>,
}

impl Moved {
    /// Whether there was nothing to move.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.routes.is_empty()
    }
}

impl Netlink {
    /// Moves the addresses of interface `from` to `to`, and all routes through `from` with them: both families, all
    /// tables, metrics, next hops, lifetimes and labels. IPv6 addresses that the kernel makes itself stay.
    ///
    /// Where something fails on the way, everything is put back first.
    ///
    /// # Errors
    /// As the kernel says; [`Kind::Unsupported`](crate::Kind::Unsupported) for a route with a nexthop object.
    pub async fn move_addresses(&self, from: u32, to: u32) -> Result<Moved> {
        let moved = Moved {
            from,
            from_name: self.link_by_index(from).await?.name,
            to,
            to_name: self.link_by_index(to).await?.name,
            addresses: order(self.addresses(from).await?),
            routes: self.movable_routes(from).await?,
        };
        match self.transfer(&moved, from, to, Some((&moved.from_name, &moved.to_name))).await {
            Ok(()) => Ok(moved),
            Err(error) => {
                let _ = self.move_back(&moved).await;
                Err(error)
            }
        }
    }

    /// Puts back what was moved; if part of it is done already, it does what is left. The interface it was moved to may
    /// be gone.
    ///
    /// # Errors
    /// [`Kind::NoDevice`](crate::Kind::NoDevice) when the interface that had the addresses is gone; otherwise as the
    /// kernel says.
    pub async fn move_back(&self, moved: &Moved) -> Result<()> {
        if moved.addresses.iter().any(|address| address.ip.is_ipv6()) {
            self.set_ipv6(moved.from, true).await?;
        }
        self.transfer(moved, moved.to, moved.from, None).await
    }

    async fn transfer(&self, moved: &Moved, a: u32, b: u32, rename: Option<(&str, &str)>) -> Result<()> {
        // From the last to the first: a primary address that goes takes its secondaries along.
        for address in moved.addresses.iter().rev() {
            self.remove_address(address, a).await?;
        }
        self.remove_routes(&moved.routes, moved.from, a).await?;
        self.add_recorded(&moved.addresses, &moved.routes, moved.from, b, rename).await
    }

    /// Adds recorded addresses and routes to interface `index`; `old` is the interface the routes were recorded with.
    pub(crate) async fn add_recorded(
        &self,
        addresses: &[Address],
        routes: &[Route],
        old: u32,
        index: u32,
        rename: Option<(&str, &str)>,
    ) -> Result<()> {
        if !routes.is_empty() {
            // They were on an interface that was up.
            self.set_flag(index, libc::IFF_UP, true, "cannot set the interface up").await?;
        }
        // An address that is refused must not keep the host from its other addresses and its routes.
        let mut first = Ok(());
        for address in addresses {
            let put = self.put_address(address, index, rename).await;
            first = first.and(put);
        }
        let routed = self.put_routes(routes, old, index).await;
        first.and(routed)
    }
}

/// The addresses to carry, in the order to add them in: the kernel appends an IPv4 address to its list and puts an
/// IPv6 address at the head of it (`ipv6_link_dev_addr`, net/ipv6/addrconf.c).
pub(crate) fn order(addresses: Vec<Address>) -> Vec<Address> {
    let (mut v4, v6): (Vec<_>, Vec<_>) =
        addresses.into_iter().filter(|address| !address.automatic).partition(|address| address.ip.is_ipv4());
    v4.extend(v6.into_iter().rev());
    v4
}
