//! Whether another IPv4 address of a subnet takes the place of the first one when that is removed, as `ip-sysctl.rst` describes for
//! `promote_secondaries`. Else the first one takes the others with it, and the last address of an interface all its routes.

use std::net::IpAddr;

use crate::{
    Netlink,
    address::Address,
    error::{Error, Kind, Result},
};

impl Netlink {
    /// Takes an address from the interface, and no other one: those that go with it where `promote_secondaries` cannot be set are
    /// put back, without their routes. Nothing happens where the interface does not have it.
    ///
    /// # Errors
    /// When the interface is gone, its addresses are not to be read, or one of them cannot be put back.
    pub async fn del_address_alone(&self, index: u32, ip: IpAddr, prefix: u8) -> Result<()> {
        let before = self.addresses(index).await?;
        let promotes = self.set_promote_secondaries(index, true).await;
        let done = self.del_address(index, ip, prefix).await;
        if promotes.is_ok_and(|before| !before) {
            let _ = self.set_promote_secondaries(index, false).await;
        }
        match done {
            Err(error) if error.kind == Kind::NotFound => {}
            done => done?,
        }
        let after = self.addresses(index).await?;
        let stays = |other: &Address| {
            let same = (other.ip, other.prefix);
            same == (ip, prefix) || after.iter().any(|one| (one.ip, one.prefix) == same)
        };
        for gone in before.iter().filter(|other| !stays(other)) {
            self.put_address(gone, index, None).await?;
        }
        Ok(())
    }

    /// Switches it for an interface; whether it was on. It is on, too, where the setting for all interfaces is.
    async fn set_promote_secondaries(&self, index: u32, on: bool) -> Result<bool> {
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
