//! VXLAN devices whose frames say themselves where they go and what they carry ("external", or metadata mode).

use crate::{
    Netlink,
    error::Result,
    ioctl::Ioctl,
    link::{ADDR_GEN_MODE, LinkInfo},
    netlink::{CREATE, EXCL},
    rtnl::Builder,
};
use linkbraid_wire::MacAddr;
use nix::libc;

/// `IFLA_VXLAN_*` (linux/if_link.h).
mod attribute {
    pub const LEARNING: u16 = 7;
    pub const PORT: u16 = 15;
    pub const GROUP_POLICY: u16 = 23;
    pub const COLLECT_METADATA: u16 = 25;
}
/// Switches generic receive offload (linux/ethtool.h).
const ETHTOOL_SGRO: u32 = 0x2c;
/// `IN6_ADDR_GEN_MODE_NONE` (linux/if_link.h).
const NO_ADDRESS: u8 = 1;
/// The MAC of all such devices of this program, which is how it knows them again: no node has it, and it was there from the
/// first moment.
const MARK: MacAddr = MacAddr([0x02, 0x6c, 0x62, 0x00, 0xff, 0xff]);
/// Their names: this, and the index of the interface that they serve.
const NAME: &str = "lbv";

/// The name of the device that serves the interface with this index.
#[must_use]
pub fn vxlan_name(of: u32) -> String {
    format!("{NAME}{of}")
}

/// The interface that a device serves, if it is one of this program.
#[must_use]
pub fn vxlan_serves(link: &LinkInfo) -> Option<u32> {
    let ours = link.kind.as_deref() == Some("vxlan") && link.mac == MARK;
    link.name.strip_prefix(NAME).filter(|_| ours)?.parse().ok()
}

impl Netlink {
    /// Makes the device that serves the interface with index `of`, on this UDP port, with group policies and without learning.
    /// Left down, for nobody looks yet at what comes; its index. With `joins` it joins what the interfaces below have not (GRO).
    ///
    /// # Errors
    /// [`Kind::Unsupported`](crate::Kind::Unsupported) where the kernel has no VXLAN, [`Kind::Exists`](crate::Kind::Exists) when the
    /// name is taken, or another such device has the port; nothing is left then. That something else has the port is said when
    /// it is set up.
    pub async fn create_vxlan(&self, of: u32, alias: &str, port: u16, joins: bool) -> Result<u32> {
        let name = vxlan_name(of);
        let options = Builder::default()
            .u8(attribute::LEARNING, 0)
            .bytes(attribute::PORT, &port.to_be_bytes())
            .bytes(attribute::GROUP_POLICY, &[])
            .u8(attribute::COLLECT_METADATA, 1);
        let kind =
            Builder::default().text(libc::IFLA_INFO_KIND, "vxlan").nested(libc::IFLA_INFO_DATA, options);
        let families = Builder::default()
            .nested(libc::AF_INET6 as u16, Builder::default().u8(ADDR_GEN_MODE, NO_ADDRESS));
        let noarp = libc::IFF_NOARP as u32;
        let request = Builder::link(0, 0, noarp, noarp)
            .text(libc::IFLA_IFNAME, &name)
            .bytes(libc::IFLA_ADDRESS, &MARK.0)
            .nested(libc::IFLA_LINKINFO, kind)
            .finish();
        self.ask(libc::RTM_NEWLINK, CREATE | EXCL, request)
            .await
            .map_err(|refusal| refusal.about(&name, "cannot make the VXLAN device"))?;
        let index = self.link(&name).await?.index;
        // It is nobody's way to an address; a kernel without IPv6 refuses to hear of it.
        let quiet = Builder::link(0, index, 0, 0).nested(libc::IFLA_AF_SPEC, families).finish();
        let _ = self.ask(libc::RTM_SETLINK, 0, quiet).await;
        if let Err(error) = self.set_alias(index, alias).await {
            let _ = self.delete_link(index).await;
            return Err(error);
        }
        if !joins && let Ok(socket) = Ioctl::open() {
            // A device that joins all the same is only slower.
            let _ = socket.ethtool(&name, &mut [ETHTOOL_SGRO, 0]);
        }
        Ok(index)
    }
}

/// Whether the interface of that name is there, has that index and is set up, in the network namespace of the calling thread.
#[must_use]
pub fn is_up(name: &str, index: u32) -> bool {
    Ioctl::open().is_ok_and(|socket| socket.index_of(name) == Some(index) && socket.is_up(name))
}
