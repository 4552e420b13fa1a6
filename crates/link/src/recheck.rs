//! Makes connections that exist look at their interface's limits again.
//!
//! A socket takes `gso_max_size` from its route, once (`sk_setup_caps` in net/core/sock.c), and keeps it until it has to look its
//! route up again. All IPv4 sockets of a network namespace do so whenever a route is added (`fib_table_insert` in
//! net/ipv4/fib_trie.c), those of IPv6 whenever one comes below theirs (`fib6_update_sernum_upto_root` in net/ipv6/ip6_fib.c).

use nix::libc;
use std::net::IpAddr;

use crate::{
    Netlink,
    error::Result,
    netlink::{CREATE, EXCL},
    rtnl::Builder,
};

/// `RTN_BLACKHOLE` and `RT_TABLE_MAIN` (linux/rtnetlink.h).
const BLACKHOLE: u8 = 6;
const MAIN: u8 = 254;
/// Who has made the route (`rtm_protocol`): none of those that others use, so that nobody takes it for theirs.
const PROTOCOL: u8 = 0x4c;
/// `RTA_EXPIRES` (linux/rtnetlink.h): should a route of IPv6 not be removed, it is gone after so many seconds.
const RTA_EXPIRES: u16 = 23;
const EXPIRES: u32 = 1;

impl Netlink {
    /// Makes the connections over this interface look their routes up again: a route to each of the interface's own addresses is
    /// added and removed. It leads nothing astray, for local addresses are looked up before all routes.
    ///
    /// # Errors
    /// The interface is gone, or the kernel does not allow it. Then those connections keep the old limits.
    pub async fn recheck_routes(&self, index: u32) -> Result<()> {
        let mut done = Ok(());
        for address in self.addresses(index).await? {
            let added = self.ask(libc::RTM_NEWROUTE, CREATE | EXCL, to_nowhere(address.ip)).await;
            let removed = match added {
                Ok(_) => self.ask(libc::RTM_DELROUTE, 0, to_nowhere(address.ip)).await,
                // One that is there is somebody's.
                Err(refusal) => Err(refusal),
            };
            let what = "cannot make connections look their routes up again";
            done = done.and(self.about_link(index, what, async { removed }).await);
        }
        done
    }
}

fn to_nowhere(ip: IpAddr) -> Vec<u8> {
    let header = |family: i32, bits: u8| [family as u8, bits, 0, 0, MAIN, PROTOCOL, 0, BLACKHOLE, 0, 0, 0, 0];
    match ip {
        IpAddr::V4(ip) => Builder::new(&header(libc::AF_INET, 32))
            .bytes(libc::RTA_DST, &ip.octets())
            .u32(libc::RTA_PRIORITY, u32::MAX),
        IpAddr::V6(ip) => Builder::new(&header(libc::AF_INET6, 128))
            .bytes(libc::RTA_DST, &ip.octets())
            .u32(libc::RTA_PRIORITY, u32::MAX)
            .u32(RTA_EXPIRES, EXPIRES),
    }
    .finish()
}
