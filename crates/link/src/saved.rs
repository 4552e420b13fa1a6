//! What an interface was like before it joined a bond, and putting it back.

use nix::libc;
use serde::{Deserialize, Serialize};

use crate::{
    Netlink,
    address::Address,
    control::{lro, set_lro},
    error::{Error, Kind, Result},
    link::LinkInfo,
    moved::order,
    route::Route,
};

/// All about an interface that joining a bond changes. Serialisable, so that a later process of the same boot can
/// put it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// The interface itself: MTU, flags, controller, segmentation limits, alias, name of the qdisc.
    pub link: LinkInfo,
    /// Whether it did IPv6; none where it cannot.
    pub ipv6: Option<bool>,
    /// Whether its device merged received segments (LRO), which a bridge switches off; none where that is not known.
    #[serde(default)]
    pub lro: Option<bool>,
    /// Its addresses, those the kernel makes too, in the kernel's order.
    pub addresses: Vec<Address>,
    /// The routes through it that do not come by themselves.
    pub routes: Vec<Route>,
}

impl Netlink {
    /// Records an interface.
    ///
    /// # Errors
    /// When it is gone, or a route through it could not be put back (see [`Netlink::move_addresses`]).
    pub async fn snapshot(&self, index: u32) -> Result<Saved> {
        let link = self.link_by_index(index).await?;
        Ok(Saved {
            lro: lro(&link.name),
            link,
            ipv6: self.ipv6(index).await?,
            addresses: self.addresses(index).await?,
            routes: self.movable_routes(index).await?,
        })
    }

    /// Makes the interface what it was: controller, merging by the device, segmentation limits, MTU, IPv6, up or down, promiscuous and
    /// all-multicast flags, alias, addresses, routes, and the kernel's own qdisc in place of ours. Only what differs is touched. Other
    /// qdiscs and filters are left to whoever put them there.
    ///
    /// Goes on past what fails, so that as much as possible is back.
    ///
    /// # Errors
    /// The first thing that failed. [`Kind::NoDevice`](crate::Kind::NoDevice) when the interface is gone.
    pub async fn restore(&self, saved: &Saved) -> Result<()> {
        let index = saved.link.index;
        let was = &saved.link;
        let now = self.link_by_index(index).await?;
        let mut first = Ok(());
        let mut note = |result: Result<()>| {
            if first.is_ok() {
                first = result;
            }
        };
        if now.controller != was.controller {
            note(match was.controller {
                Some(controller) => self.set_master(index, controller).await,
                None => self.clear_master(index).await,
            });
        }
        note(self.queue_by_default(index).await);
        // After it has left the bridge, which does not let it merge.
        if saved.lro == Some(true) && lro(&now.name) == Some(false) {
            let failed = |errno| {
                Error::new(&now.name, "cannot switch merging by the device (LRO) on again", Kind::of(errno))
            };
            note(set_lro(&now.name).map_err(failed));
        }
        if (now.gso_max_size, now.gso_max_segs, now.gso_ipv4_max_size)
            != (was.gso_max_size, was.gso_max_segs, was.gso_ipv4_max_size)
        {
            note(self.set_gso_limits(was).await);
        }
        if now.mtu != was.mtu {
            note(self.set_mtu(index, was.mtu).await);
        }
        // Before the flags: the link-local address is made when an interface that does IPv6 comes up.
        if let Some(on) = saved.ipv6 {
            note(self.set_ipv6(index, on).await);
        }
        for (flag, is, wanted, what) in [
            (libc::IFF_UP, now.up, was.up, "cannot set the interface up or down"),
            (libc::IFF_PROMISC, now.promisc_flag, was.promisc_flag, "cannot set promiscuous mode"),
            (libc::IFF_ALLMULTI, now.allmulti_flag, was.allmulti_flag, "cannot set all-multicast mode"),
        ] {
            if is != wanted {
                note(self.set_flag(index, flag, wanted, what).await);
            }
        }
        if now.alias != was.alias {
            note(self.set_alias(index, was.alias.as_deref().unwrap_or_default()).await);
        }
        note(self.restore_addresses(saved).await);
        first
    }

    /// Gives interface `index` the addresses and routes that one which is gone had, as far as they are missing.
    ///
    /// # Errors
    /// The first thing that failed; the others are there.
    pub async fn give(&self, saved: &Saved, index: u32) -> Result<()> {
        let addresses = order(saved.addresses.clone());
        self.add_recorded(&addresses, &saved.routes, saved.link.index, index, None).await
    }

    async fn restore_addresses(&self, saved: &Saved) -> Result<()> {
        let index = saved.link.index;
        let now = self.addresses(index).await?;
        let same = |a: &Address, b: &Address| (a.ip, a.prefix) == (b.ip, b.prefix);
        // A link-local address that comes by itself with IPv6, where the interface had none.
        let had_automatic = saved.addresses.iter().any(|address| address.automatic);
        if !had_automatic && saved.link.up {
            for address in now.iter().filter(|address| address.automatic) {
                let _ = self.remove_address(address, index).await;
            }
        }
        let wanted = order(saved.addresses.clone());
        let present = order(now);
        // Order distinguishes a primary address from its secondaries, so if one is missing all are added again.
        if present.len() != wanted.len() || !present.iter().zip(&wanted).all(|(a, b)| same(a, b)) {
            for address in present.iter().rev() {
                let _ = self.remove_address(address, index).await;
            }
        }
        let routes = if saved.link.up { &saved.routes[..] } else { &[] };
        self.add_recorded(&wanted, routes, index, index, None).await
    }
}
