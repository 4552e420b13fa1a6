//! The port by which a bond's frames leave it: all that its bridge sends goes there, and a program on that port's way out sends it on.
//! One end of a veth pair; the other end only gives it a carrier.

use crate::{
    Netlink,
    error::{Kind, Result},
    link::{ADDR_GEN_MODE, LinkInfo, PortFlags},
    netlink::{CREATE, EXCL},
    rtnl::Builder,
};
use nix::libc;

/// `VETH_INFO_PEER` (linux/veth.h).
const PEER: u16 = 1;
/// `IN6_ADDR_GEN_MODE_NONE` (linux/if_link.h).
const NO_ADDRESS: u8 = 1;
/// Names of the port and of its other end: these, and the index of the bond.
const PORT: &str = "lbint";
const END: &str = "lbend";
/// No frame of a bond is longer: its MTU is the bond's business, not this one's. The most that a veth takes, in bytes.
const MTU: u32 = 65535;

/// The internal port of the bridge `bond` among all interfaces, by its name or, where somebody changed that, by its other end's.
fn find(links: &[LinkInfo], bond: u32) -> Option<&LinkInfo> {
    let veths = || links.iter().filter(|link| link.kind.as_deref() == Some("veth"));
    let named = |name: String| veths().find(|link| link.name == name);
    let end = || named(format!("{END}{bond}"))?.lower;
    named(format!("{PORT}{bond}"))
        .or_else(|| end().and_then(|index| veths().find(|link| link.index == index)))
}

impl Netlink {
    /// The internal port of the bridge `bond`: the one that is there, put right where it is not as it should be, or a new one,
    /// which is down. Its index, and that of its other end: what that sends the bridge has from this port.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] where the kernel has no veth, [`Kind::Exists`] when something else has the name.
    pub async fn internal_port(&self, bond: u32) -> Result<(u32, Option<u32>)> {
        let links = self.links().await?;
        let port = match find(&links, bond) {
            Some(link) => link.index,
            None => {
                // One whose other end somebody has moved to another network namespace.
                let end = format!("{END}{bond}");
                let is_left = |link: &&LinkInfo| link.name == end && link.kind.as_deref() == Some("veth");
                if let Some(left) = links.iter().find(is_left) {
                    self.delete_link(left.index).await?;
                }
                self.create_internal_port(bond).await?
            }
        };
        let found = self.link_by_index(port).await?;
        if found.controller != Some(bond) {
            self.set_master(port, bond).await?;
        }
        if found.port != Some(PortFlags::INTERNAL) {
            self.set_port_flags(port, PortFlags::INTERNAL).await?;
        }
        // Without its other end it has no carrier.
        if let Some(end) = found.lower {
            self.set_up(end).await?;
        }
        if found.port_blocked {
            self.unblock_port(port).await?;
        }
        Ok((port, found.lower))
    }

    async fn create_internal_port(&self, bond: u32) -> Result<u32> {
        let (port, end) = (format!("{PORT}{bond}"), format!("{END}{bond}"));
        let noarp = libc::IFF_NOARP as u32;
        let named = |name: &str| {
            Builder::link(0, 0, noarp, noarp).text(libc::IFLA_IFNAME, name).u32(libc::IFLA_MTU, MTU)
        };
        let kind = Builder::default()
            .text(libc::IFLA_INFO_KIND, "veth")
            .nested(libc::IFLA_INFO_DATA, Builder::default().nested(PEER, named(&end)));
        let request = named(&port).nested(libc::IFLA_LINKINFO, kind).finish();
        self.ask(libc::RTM_NEWLINK, CREATE | EXCL, request)
            .await
            .map_err(|refusal| refusal.about(&port, "cannot make the internal port"))?;
        for name in [&port, &end] {
            let families = Builder::default()
                .nested(libc::AF_INET6 as u16, Builder::default().u8(ADDR_GEN_MODE, NO_ADDRESS));
            let index = self.link(name).await?.index;
            // It is nobody's way to an address; a kernel without IPv6 refuses to hear of it.
            let quiet = Builder::link(0, index, 0, 0).nested(libc::IFLA_AF_SPEC, families).finish();
            let _ = self.ask(libc::RTM_SETLINK, 0, quiet).await;
        }
        Ok(self.link(&port).await?.index)
    }

    /// Removes the internal port of the bridge `bond`, which may be gone itself; nothing happens where there is none.
    ///
    /// # Errors
    /// As the kernel says.
    pub async fn delete_internal_port(&self, bond: u32) -> Result<()> {
        let links = self.links().await?;
        let Some(port) = find(&links, bond) else { return Ok(()) };
        match self.delete_link(port.index).await {
            Err(error) if error.kind == Kind::NoDevice => Ok(()),
            deleted => deleted,
        }
    }

    /// Removes what earlier builds had above the bridge `bond` to cut buffers of UDP.
    pub async fn delete_cutter(&self, bond: u32) {
        if let Ok(link) = self.link(&format!("lbc{bond}")).await
            && link.kind.as_deref() == Some("macvlan")
            && link.lower == Some(bond)
        {
            // One that stays has no use and does no harm.
            let _ = self.delete_link(link.index).await;
        }
    }
}
