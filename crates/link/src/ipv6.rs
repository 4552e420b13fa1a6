//! IPv6 of an interface, on or off: a bond's member must not send router solicitations or claim addresses.
//!
//! Switched by the sysctl `net.ipv6.conf.IF.disable_ipv6`. `/proc/sys/net` shows the network namespace of whoever
//! reads it, unlike sysfs. Netlink has no message for it.

use std::io::ErrorKind;

use crate::{
    Netlink,
    error::{Error, Result},
};

fn path(name: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
}

/// Whether this host forwards IPv6 that comes in on that interface.
#[must_use]
pub fn forwards_ipv6(name: &str) -> bool {
    let forwarding = format!("/proc/sys/net/ipv6/conf/{name}/forwarding");
    std::fs::read_to_string(forwarding).is_ok_and(|text| text.trim() == "1")
}

impl Netlink {
    /// Whether the interface does IPv6; none where it cannot (a kernel without IPv6, an MTU below 1280 bytes).
    ///
    /// # Errors
    /// When the interface is gone, or /proc is not to be read.
    pub async fn ipv6(&self, index: u32) -> Result<Option<bool>> {
        let name = self.link_by_index(index).await?.name;
        match std::fs::read_to_string(path(&name)) {
            Ok(text) => Ok(Some(text.trim() == "0")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(name, "cannot read whether IPv6 is on", &error)),
        }
    }

    /// Switches the interface's IPv6. Off removes all its IPv6 addresses and routes; on gives it a link-local address
    /// again, if its `addr_gen_mode` says so. Nothing happens where it is so already, or where there is no IPv6.
    ///
    /// # Errors
    /// When the interface is gone, or the sysctl is not to be written.
    pub async fn set_ipv6(&self, index: u32, on: bool) -> Result<()> {
        match self.ipv6(index).await? {
            Some(now) if now != on => {}
            _ => return Ok(()),
        }
        let name = self.link_by_index(index).await?.name;
        std::fs::write(path(&name), if on { "0" } else { "1" }).map_err(|error| {
            Error::io(&name, if on { "cannot switch IPv6 on" } else { "cannot switch IPv6 off" }, &error)
        })
    }
}
