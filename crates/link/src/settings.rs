//! Changes to interfaces.

use linkbraid_wire::MacAddr;
use nix::libc;

use crate::{
    Netlink,
    error::{Kind, Result},
    link::{BridgeSwitches, GSO_IPV4_MAX_SIZE, LinkInfo, PortFlags, bridge, port},
    netlink::{CREATE, EXCL},
    rtnl::Builder,
};

/// MTU that the kernel gives a new bridge, in bytes.
const MTU_OF_NEW_BRIDGE: u32 = 1500;

impl Netlink {
    /// Makes a bridge that is to be a bond: no spanning tree, no snooping (nor a VLAN filter, which is off by default), with a MAC and an MTU that
    /// stay when ports come and go. Left down; its index.
    ///
    /// # Errors
    /// [`Kind::Exists`] when the name is taken. A bridge that cannot be finished is removed again.
    pub async fn create_bridge(&self, name: &str, mac: MacAddr, mtu: u32) -> Result<u32> {
        let mut no_learn = bridge::NO_LINK_LOCAL_LEARN.to_ne_bytes().to_vec();
        no_learn.extend(bridge::NO_LINK_LOCAL_LEARN.to_ne_bytes());
        let options = Builder::default()
            .u32(bridge::FORWARD_DELAY, 0)
            .u32(bridge::STP_STATE, 0)
            .u8(bridge::MCAST_SNOOPING, 0)
            .bytes(bridge::MULTI_BOOLOPT, &no_learn);
        let kind =
            Builder::default().text(libc::IFLA_INFO_KIND, "bridge").nested(libc::IFLA_INFO_DATA, options);
        let request = Builder::link(0, 0, 0, 0)
            .text(libc::IFLA_IFNAME, name)
            .bytes(libc::IFLA_ADDRESS, &mac.0)
            .nested(libc::IFLA_LINKINFO, kind)
            .finish();
        self.ask(libc::RTM_NEWLINK, CREATE | EXCL, request)
            .await
            .map_err(|refusal| refusal.about(name, "cannot create the bridge"))?;
        let index = self.link(name).await?.index;
        let finished = async {
            // A bridge follows the smallest MTU of its ports until its own has been changed once; setting what it
            // has already does not count as a change (net/bridge/br_device.c, net/core/dev.c).
            if mtu == MTU_OF_NEW_BRIDGE {
                self.set_mtu(index, mtu + 1).await?;
            }
            self.set_mtu(index, mtu).await
        };
        if let Err(error) = finished.await {
            let _ = self.delete_link(index).await;
            return Err(error);
        }
        Ok(index)
    }

    /// Removes a virtual interface.
    ///
    /// # Errors
    /// [`Kind::NoDevice`] when it is gone already, [`Kind::Unsupported`] for a real NIC.
    pub async fn delete_link(&self, index: u32) -> Result<()> {
        let request = Builder::link(0, index, 0, 0).finish();
        self.about_link(index, "cannot delete the interface", self.ask(libc::RTM_DELLINK, 0, request)).await
    }

    /// Gives the interface a hardware address.
    ///
    /// # Errors
    /// As the kernel says.
    pub async fn set_mac(&self, index: u32, mac: MacAddr) -> Result<()> {
        let request = Builder::link(0, index, 0, 0).bytes(libc::IFLA_ADDRESS, &mac.0);
        self.set_link(index, "cannot set the hardware address", request).await
    }

    /// Sets the interface up.
    ///
    /// # Errors
    /// As the kernel or the driver says.
    pub async fn set_up(&self, index: u32) -> Result<()> {
        self.set_flag(index, libc::IFF_UP, true, "cannot set the interface up").await
    }

    /// Sets the interface down; its routes and, by default, its IPv6 addresses go.
    ///
    /// # Errors
    /// As the kernel or the driver says.
    pub async fn set_down(&self, index: u32) -> Result<()> {
        self.set_flag(index, libc::IFF_UP, false, "cannot set the interface down").await
    }

    /// Sets or clears one `IFF_*` flag.
    pub(crate) async fn set_flag(&self, index: u32, flag: libc::c_int, on: bool, what: &str) -> Result<()> {
        let flag = flag as u32;
        self.set_link(index, what, Builder::link(0, index, if on { flag } else { 0 }, flag)).await
    }

    /// Sets the MTU, in bytes.
    ///
    /// # Errors
    /// [`Kind::BadValue`] outside of what the driver takes.
    pub async fn set_mtu(&self, index: u32, mtu: u32) -> Result<()> {
        let request = Builder::link(0, index, 0, 0).u32(libc::IFLA_MTU, mtu);
        self.set_link(index, &format!("cannot set the MTU to {mtu}"), request).await
    }

    /// Makes `port` a port of the bridge.
    ///
    /// # Errors
    /// [`Kind::Busy`] when something else controls it or uses its frames, [`Kind::BadValue`] for what a bridge
    /// does not take (loopback, wireless stations), [`Kind::Loop`].
    pub async fn set_master(&self, port: u32, bridge: u32) -> Result<()> {
        let request = Builder::link(0, port, 0, 0).u32(libc::IFLA_MASTER, bridge);
        self.set_link(port, "cannot join the bridge", request).await
    }

    /// Takes `port` out of whatever controls it; nothing happens where nothing does.
    ///
    /// # Errors
    /// As the kernel says.
    pub async fn clear_master(&self, port: u32) -> Result<()> {
        let request = Builder::link(0, port, 0, 0).u32(libc::IFLA_MASTER, 0);
        self.set_link(port, "cannot leave the bridge", request).await
    }

    /// Sets how the bridge treats its port, see [`PortFlags::MEMBER`], and has it forget what it learned there before.
    ///
    /// # Errors
    /// [`Kind::BadValue`] when it is not a bridge's port.
    pub async fn set_port_flags(&self, index: u32, flags: PortFlags) -> Result<()> {
        let data = Builder::default()
            .u8(port::ISOLATED, flags.isolated.into())
            .u8(port::LEARNING, flags.learning.into())
            .u8(port::UNICAST_FLOOD, flags.unicast_flood.into())
            .u8(port::MULTICAST_FLOOD, flags.multicast_flood.into())
            .u8(port::BROADCAST_FLOOD, flags.broadcast_flood.into())
            .u8(port::NEIGH_SUPPRESS, flags.neigh_suppress.into())
            .u8(port::LOCKED, flags.locked.into())
            .bytes(port::FLUSH, &[]);
        let info = Builder::default()
            .text(libc::IFLA_INFO_SLAVE_KIND, "bridge")
            .nested(libc::IFLA_INFO_SLAVE_DATA, data);
        let request = Builder::link(0, index, 0, 0).nested(libc::IFLA_LINKINFO, info).finish();
        let asked = self.ask(libc::RTM_NEWLINK, 0, request);
        self.about_link(index, "cannot set the flags of the bridge's port", asked).await
    }

    /// Has the interface's bridge let frames pass by this port.
    ///
    /// # Errors
    /// [`Kind::Down`] while it has no carrier, [`Kind::Busy`] while the bridge has a spanning tree.
    pub async fn unblock_port(&self, index: u32) -> Result<()> {
        let data = Builder::default().u8(port::STATE, port::FORWARDING);
        let info = Builder::default()
            .text(libc::IFLA_INFO_SLAVE_KIND, "bridge")
            .nested(libc::IFLA_INFO_SLAVE_DATA, data);
        let request = Builder::link(0, index, 0, 0).nested(libc::IFLA_LINKINFO, info).finish();
        let asked = self.ask(libc::RTM_NEWLINK, 0, request);
        self.about_link(index, "cannot have its bridge let frames pass", asked).await
    }

    /// Makes a bridge a bond's again: what is on goes off, and all ports forward.
    ///
    /// # Errors
    /// As the kernel says.
    pub async fn mend_bridge(&self, index: u32, on: BridgeSwitches) -> Result<()> {
        let mut switches = Builder::default();
        if on.stp {
            switches = switches.u32(bridge::STP_STATE, 0);
        }
        // A kernel without it refuses to hear of it.
        if on.vlan_filtering {
            switches = switches.u8(bridge::VLAN_FILTERING, 0);
        }
        if on.snooping {
            switches = switches.u8(bridge::MCAST_SNOOPING, 0);
        }
        // The spanning tree has raised it, and takes no such value itself.
        let delay = Builder::default().u32(bridge::FORWARD_DELAY, 0);
        for data in [switches, delay] {
            let info =
                Builder::default().text(libc::IFLA_INFO_KIND, "bridge").nested(libc::IFLA_INFO_DATA, data);
            let request = Builder::link(0, index, 0, 0).nested(libc::IFLA_LINKINFO, info).finish();
            let asked = self.ask(libc::RTM_NEWLINK, 0, request);
            self.about_link(index, "cannot set what the bridge does", asked).await?;
        }
        // Else they would wait for the delay that the spanning tree had.
        for port in
            self.links().await?.iter().filter(|link| link.controller == Some(index) && link.port_blocked)
        {
            self.unblock_port(port.index).await?;
        }
        Ok(())
    }

    /// Limits the buffers that the interface is handed for segmentation to `size` bytes and, where given, `segs`
    /// segments. Kernels with a limit of its own for IPv4 (6.3 and newer) get that one set too.
    ///
    /// # Errors
    /// [`Kind::BadValue`] above the device's own limit.
    pub async fn set_gso_max(&self, index: u32, size: u32, segs: Option<u32>) -> Result<()> {
        let what = format!("cannot set the largest segmentation buffer to {size} bytes");
        let mut request = Builder::link(0, index, 0, 0).u32(libc::IFLA_GSO_MAX_SIZE, size);
        if let Some(segs) = segs {
            request = request.u32(libc::IFLA_GSO_MAX_SEGS, segs);
        }
        self.set_link(index, &what, request).await?;
        self.set_gso_ipv4_max(index, size).await
    }

    async fn set_gso_ipv4_max(&self, index: u32, size: u32) -> Result<()> {
        let request = Builder::link(0, index, 0, 0).u32(GSO_IPV4_MAX_SIZE, size);
        match self.set_link(index, "cannot set the largest segmentation buffer for IPv4", request).await {
            // The kernel has no such limit, and the one for both families covers IPv4.
            Err(error) if matches!(error.kind, Kind::BadValue | Kind::Unsupported) => Ok(()),
            other => other,
        }
    }

    /// Puts back the segmentation limits that `was` recorded.
    pub(crate) async fn set_gso_limits(&self, was: &LinkInfo) -> Result<()> {
        self.set_gso_max(was.index, was.gso_max_size, Some(was.gso_max_segs)).await?;
        match was.gso_ipv4_max_size {
            Some(size) if size != was.gso_max_size => self.set_gso_ipv4_max(was.index, size).await,
            _ => Ok(()),
        }
    }

    /// Sets the interface's free text; an empty one removes it.
    ///
    /// # Errors
    /// [`Kind::BadValue`] above 255 bytes.
    pub async fn set_alias(&self, index: u32, alias: &str) -> Result<()> {
        let request = Builder::link(0, index, 0, 0).bytes(libc::IFLA_IFALIAS, alias.as_bytes());
        self.set_link(index, "cannot set the alias", request).await
    }

    async fn set_link(&self, index: u32, what: &str, request: Builder) -> Result<()> {
        self.about_link(index, what, self.ask(libc::RTM_SETLINK, 0, request.finish())).await
    }

    /// Waits for a request and turns a refusal into an error about the interface.
    pub(crate) async fn about_link<T>(
        &self,
        index: u32,
        what: &str,
        request: impl Future<Output = Result<T, crate::netlink::Refusal>>,
    ) -> Result<()> {
        match request.await {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.about(self.name_of(index).await, what)),
        }
    }
}
