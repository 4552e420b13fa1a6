//! An interface above another one that takes single segments only: the kernel cuts what is longer, and the interface hands
//! each segment down. A macvlan that receives nothing.

use crate::{
    Netlink,
    error::Result,
    link::{ADDR_GEN_MODE, LinkInfo},
    netlink::{CREATE, EXCL},
    rtnl::Builder,
};
use nix::libc;

/// `IFLA_MACVLAN_MODE` (linux/if_link.h).
const MODE: u16 = 1;
/// `MACVLAN_MODE_SOURCE`: it receives from listed senders only, and there is none. In every other mode a broadcast would
/// arrive on it a second time.
const SOURCE: u32 = 16;
/// `IN6_ADDR_GEN_MODE_NONE` (linux/if_link.h).
const NO_ADDRESS: u8 = 1;
/// Their names: this, and the index of the interface below.
const NAME: &str = "lbc";

/// Whether an interface is what [`Netlink::create_cutter`] made above `lower`.
#[must_use]
pub fn cuts_for(link: &LinkInfo, lower: u32) -> bool {
    link.lower == Some(lower)
        && link.name == format!("{NAME}{lower}")
        && link.kind.as_deref() == Some("macvlan")
}

impl Netlink {
    /// Makes such an interface above `lower`, set up; its index. It goes with the one below.
    ///
    /// # Errors
    /// [`Kind::Unsupported`](crate::Kind::Unsupported) where the kernel has no macvlan, [`Kind::Exists`](crate::Kind::Exists) when the
    /// name is taken, [`Kind::Busy`](crate::Kind::Busy) where something else receives for the interface below (an ipvlan);
    /// nothing is left then.
    pub async fn create_cutter(&self, lower: u32) -> Result<u32> {
        let name = format!("{NAME}{lower}");
        let kind = Builder::default()
            .text(libc::IFLA_INFO_KIND, "macvlan")
            .nested(libc::IFLA_INFO_DATA, Builder::default().u32(MODE, SOURCE));
        let noarp = libc::IFF_NOARP as u32;
        let request = Builder::link(0, 0, noarp, noarp)
            .text(libc::IFLA_IFNAME, &name)
            .u32(libc::IFLA_LINK, lower)
            .u32(libc::IFLA_GSO_MAX_SEGS, 1)
            .nested(libc::IFLA_LINKINFO, kind)
            .finish();
        self.ask(libc::RTM_NEWLINK, CREATE | EXCL, request)
            .await
            .map_err(|refusal| refusal.about(&name, "cannot make the macvlan"))?;
        let index = self.link(&name).await?.index;
        let families = Builder::default()
            .nested(libc::AF_INET6 as u16, Builder::default().u8(ADDR_GEN_MODE, NO_ADDRESS));
        // It is nobody's way to an address; a kernel without IPv6 refuses to hear of it.
        let quiet = Builder::link(0, index, 0, 0).nested(libc::IFLA_AF_SPEC, families).finish();
        let _ = self.ask(libc::RTM_SETLINK, 0, quiet).await;
        if let Err(error) = self.set_up(index).await {
            let _ = self.delete_link(index).await;
            return Err(error);
        }
        Ok(index)
    }
}
