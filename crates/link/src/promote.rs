//! Whether another IPv4 address of a subnet takes the place of the first one when that is removed, as `ip-sysctl.rst` describes for
//! `promote_secondaries`. Else the first one takes the others with it, and the last address of an interface all its routes.

use crate::{
    Netlink,
    error::{Error, Result},
};

impl Netlink {
    /// Switches it for an interface; whether it was on. It is on, too, where the setting for all interfaces is.
    ///
    /// # Errors
    /// When the interface is gone, or the sysctl is not to be read or written.
    pub async fn set_promote_secondaries(&self, index: u32, on: bool) -> Result<bool> {
        let name = self.link_by_index(index).await?.name;
        // As in `ipv6`: of the network namespace of whoever reads it.
        let path = format!("/proc/sys/net/ipv4/conf/{name}/promote_secondaries");
        let failed = |error| Error::io(&name, "cannot keep its other addresses", &error);
        let was = std::fs::read_to_string(&path).map_err(failed)?.trim() != "0";
        if was != on {
            std::fs::write(&path, if on { "1" } else { "0" }).map_err(failed)?;
        }
        Ok(was)
    }
}
