//! Interfaces as the kernel describes them.

use linkbraid_wire::MacAddr;
use nix::libc;
use serde::{Deserialize, Serialize};

use crate::{
    Netlink,
    control::is_wireless,
    error::{Error, Kind, Result},
    rtnl::{Builder, LINK_HEADER, Raw, attribute, attributes, number, number_at, text},
};

/// `RTEXT_FILTER_SKIP_STATS` (linux/rtnetlink.h): leave the counters out of link messages.
const SKIP_STATS: u32 = 1 << 3;
/// `IFLA_VXLAN_LINK` (linux/if_link.h).
const VXLAN_LINK: u16 = 3;
/// `IFLA_MAX_MTU` (linux/if_link.h).
const MAX_MTU: u16 = 51;
/// `IFLA_GSO_IPV4_MAX_SIZE` (linux/if_link.h), from kernel 6.3 on.
pub(crate) const GSO_IPV4_MAX_SIZE: u16 = 63;
/// `IFLA_INET6_ADDR_GEN_MODE` (linux/if_link.h).
pub(crate) const ADDR_GEN_MODE: u16 = 8;

/// The operational state of an interface, RFC 2863.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperState {
    /// The driver does not report the state.
    Unknown,
    /// A component of the device is missing.
    NotPresent,
    /// The interface cannot carry frames.
    Down,
    /// Down because the interface below is.
    LowerLayerDown,
    /// The device is in a test mode.
    Testing,
    /// Waiting for an authenticator or the like.
    Dormant,
    /// The interface carries frames.
    Up,
}

impl OperState {
    fn of(value: u32) -> Self {
        match value {
            1 => Self::NotPresent,
            2 => Self::Down,
            3 => Self::LowerLayerDown,
            4 => Self::Testing,
            5 => Self::Dormant,
            6 => Self::Up,
            _ => Self::Unknown,
        }
    }
}

/// How a bridge treats one of its ports (`IFLA_BRPORT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortFlags {
    /// Frames do not pass between two isolated ports.
    pub isolated: bool,
    /// Source addresses are learned.
    pub learning: bool,
    /// Frames to unknown unicast addresses leave here.
    pub unicast_flood: bool,
    /// The bridge floods multicast to this port.
    pub multicast_flood: bool,
    /// The bridge floods broadcast to this port.
    pub broadcast_flood: bool,
    /// The bridge answers ARP and ND for others here.
    pub neigh_suppress: bool,
    /// Frames are taken in from addresses only that the bridge was told of.
    #[serde(default)]
    pub locked: bool,
}

impl PortFlags {
    /// A bond's member: the bridge by itself sends nothing out of it and learns nothing from it.
    pub const MEMBER: Self = Self {
        isolated: true,
        learning: false,
        unicast_flood: false,
        multicast_flood: false,
        broadcast_flood: false,
        neigh_suppress: false,
        locked: false,
    };

    /// A bond's internal port: all that the bridge sends goes there, but for what came in by a member.
    pub const INTERNAL: Self = Self {
        isolated: true,
        learning: false,
        unicast_flood: true,
        multicast_flood: true,
        broadcast_flood: true,
        neigh_suppress: false,
        locked: false,
    };
}

/// What a bridge does beyond forwarding (`IFLA_BR_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeSwitches {
    /// It speaks the spanning tree protocol, and blocks ports.
    pub stp: bool,
    /// It keeps VLANs apart, and drops frames of those that it was not told of.
    pub vlan_filtering: bool,
    /// It sends multicast only where it has heard that somebody wants it.
    pub snooping: bool,
}

impl BridgeSwitches {
    /// A bond's bridge.
    pub const BOND: Self = Self { stp: false, vlan_filtering: false, snooping: false };
}

/// `IFLA_BR_*` (linux/if_link.h).
pub(crate) mod bridge {
    pub const FORWARD_DELAY: u16 = 1;
    pub const STP_STATE: u16 = 5;
    pub const VLAN_FILTERING: u16 = 7;
    pub const MCAST_SNOOPING: u16 = 23;
    pub const MULTI_BOOLOPT: u16 = 46;
    /// Bit of `BR_BOOLOPT_NO_LL_LEARN` (linux/if_bridge.h).
    pub const NO_LINK_LOCAL_LEARN: u32 = 1;
}

/// `IFLA_BRPORT_*` (linux/if_link.h).
pub(crate) mod port {
    pub const STATE: u16 = 1;
    pub const LEARNING: u16 = 8;
    pub const UNICAST_FLOOD: u16 = 9;
    pub const FLUSH: u16 = 24;
    pub const MULTICAST_FLOOD: u16 = 27;
    pub const BROADCAST_FLOOD: u16 = 30;
    pub const NEIGH_SUPPRESS: u16 = 32;
    pub const ISOLATED: u16 = 33;
    pub const LOCKED: u16 = 39;
    /// `BR_STATE_FORWARDING` (linux/if_bridge.h).
    pub const FORWARDING: u8 = 3;
}

/// An interface, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkInfo {
    /// Its number in its network namespace, never 0.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its hardware address; zeros where it has none of six bytes.
    pub mac: MacAddr,
    /// Largest payload of a frame, in bytes, without the Ethernet header.
    pub mtu: u32,
    /// The largest MTU that its driver takes, in bytes; none where it does not say.
    #[serde(default)]
    pub max_mtu: Option<u32>,
    /// Set up by the administrator (`IFF_UP`).
    pub up: bool,
    /// The driver sees a carrier (`IFLA_CARRIER`).
    pub carrier: bool,
    /// Whether it can carry frames, RFC 2863.
    pub oper_state: OperState,
    /// How many users want promiscuous mode.
    pub promiscuity: u32,
    /// Promiscuous mode asked for by the administrator (`ip link set IF promisc on`).
    pub promisc_flag: bool,
    /// All-multicast mode asked for by the administrator.
    pub allmulti_flag: bool,
    /// The kind of a virtual interface: `bridge`, `veth`, `bond`, `vlan`, `macvlan`, `tun`; none for a NIC.
    pub kind: Option<String>,
    /// The kind of what controls it: `bridge`, `bond`, ...
    pub port_kind: Option<String>,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// Frames have Ethernet headers (`ARPHRD_ETHER`).
    pub ethernet: bool,
    /// Whether it is a wireless station.
    pub wireless: bool,
    /// Index of the bridge, bond or VRF it is a port of.
    pub controller: Option<u32>,
    /// Index of the interface it is stacked on (a VLAN's or macvlan's, a VXLAN device's `dev`), if that is in the same network
    /// namespace.
    #[serde(default)]
    pub lower: Option<u32>,
    /// The free text a user gave it (`ip link set IF alias`).
    pub alias: Option<String>,
    /// Largest buffer it is handed for segmentation, in bytes (`IFLA_GSO_MAX_SIZE`).
    pub gso_max_size: u32,
    /// The same for IPv4 alone; none before kernel 6.3.
    pub gso_ipv4_max_size: Option<u32>,
    /// Most segments in such a buffer.
    pub gso_max_segs: u32,
    /// The largest `gso_max_size` the device takes, in bytes; none before kernel 5.19.
    pub tso_max_size: Option<u32>,
    /// The number of transmit queues.
    pub tx_queues: u32,
    /// Name of its qdisc at the root.
    pub qdisc: String,
    /// How IPv6 makes its link-local address: 0 EUI-64, 1 none, 2 stable, 3 random; none without IPv6.
    pub addr_gen_mode: Option<u8>,
    /// How its bridge treats it, where a bridge controls it.
    pub port: Option<PortFlags>,
    /// It could carry frames, and its bridge lets none pass.
    #[serde(default)]
    pub port_blocked: bool,
    /// What it does if it is a bridge itself.
    #[serde(default)]
    pub bridge: Option<BridgeSwitches>,
}

impl LinkInfo {
    /// Frames can be sent: set up, with carrier.
    #[must_use]
    pub fn running(&self) -> bool {
        self.up && self.carrier
    }

    /// Reads a link message; none for one without a name or an index.
    pub(crate) fn parse(raw: &Raw) -> Option<Self> {
        let message = &raw.payload;
        let hardware = number(message.get(2..4)?)?;
        let index = number_at(message, 4);
        let flags = number_at(message, 8);
        let find = |kind| attribute(message, LINK_HEADER, kind);
        let get = |kind| find(kind).and_then(number);
        let name = text(find(libc::IFLA_IFNAME)?);
        if index == 0 || name.is_empty() {
            return None;
        }
        let info = find(libc::IFLA_LINKINFO).unwrap_or_default();
        let set = |bit: libc::c_int| flags & bit as u32 != 0;
        let port_kind = attribute(info, 0, libc::IFLA_INFO_SLAVE_KIND).map(text);
        let port =
            attribute(info, 0, libc::IFLA_INFO_SLAVE_DATA).filter(|_| port_kind.as_deref() == Some("bridge"));
        let kind = attribute(info, 0, libc::IFLA_INFO_KIND).map(text);
        let bridge = attribute(info, 0, libc::IFLA_INFO_DATA).filter(|_| kind.as_deref() == Some("bridge"));
        let ethernet = hardware == u32::from(libc::ARPHRD_ETHER);
        Some(Self {
            index,
            mac: find(libc::IFLA_ADDRESS)
                .and_then(|mac| mac.try_into().ok())
                .map(MacAddr)
                .unwrap_or_default(),
            mtu: get(libc::IFLA_MTU).unwrap_or(0),
            max_mtu: get(MAX_MTU).filter(|mtu| *mtu > 0),
            up: set(libc::IFF_UP),
            carrier: get(libc::IFLA_CARRIER).is_some_and(|carrier| carrier != 0),
            oper_state: oper_state(message),
            promiscuity: get(libc::IFLA_PROMISCUITY).unwrap_or(0),
            promisc_flag: set(libc::IFF_PROMISC),
            allmulti_flag: set(libc::IFF_ALLMULTI),
            kind,
            port_kind,
            loopback: set(libc::IFF_LOOPBACK),
            ethernet,
            wireless: ethernet && is_wireless(&name),
            controller: get(libc::IFLA_MASTER),
            lower: get(libc::IFLA_LINK)
                .or_else(|| vxlan_lower(info))
                .filter(|_| find(libc::IFLA_LINK_NETNSID).is_none()),
            alias: find(libc::IFLA_IFALIAS).map(text),
            gso_max_size: get(libc::IFLA_GSO_MAX_SIZE).unwrap_or(0),
            gso_ipv4_max_size: get(GSO_IPV4_MAX_SIZE),
            gso_max_segs: get(libc::IFLA_GSO_MAX_SEGS).unwrap_or(0),
            tso_max_size: get(libc::IFLA_TSO_MAX_SIZE),
            tx_queues: get(libc::IFLA_NUM_TX_QUEUES).unwrap_or(1),
            qdisc: find(libc::IFLA_QDISC).map(text).unwrap_or_default(),
            addr_gen_mode: find(libc::IFLA_AF_SPEC)
                .and_then(|families| attribute(families, 0, libc::AF_INET6 as u16))
                .and_then(|inet6| attribute(inet6, 0, ADDR_GEN_MODE))
                .and_then(|mode| mode.first().copied()),
            port: port.map(parse_port),
            port_blocked: can_forward(message) && port.is_some_and(is_blocked),
            bridge: bridge.map(parse_bridge),
            name,
        })
    }
}

/// The interface that a VXLAN device was told to send by; the kernel does not name it as it names others'.
fn vxlan_lower(info: &[u8]) -> Option<u32> {
    let kind = attribute(info, 0, libc::IFLA_INFO_KIND).map(text)?;
    let data = attribute(info, 0, libc::IFLA_INFO_DATA).filter(|_| kind == "vxlan")?;
    attribute(data, 0, VXLAN_LINK).and_then(number).filter(|index| *index != 0)
}

fn oper_state(message: &[u8]) -> OperState {
    OperState::of(attribute(message, LINK_HEADER, libc::IFLA_OPERSTATE).and_then(number).unwrap_or(0))
}

/// Whether a bridge has any reason to let frames pass by the interface of a link message: it hears of a carrier that comes when that
/// state does.
pub(crate) fn can_forward(message: &[u8]) -> bool {
    number_at(message, 8) & libc::IFF_UP as u32 != 0 && oper_state(message) == OperState::Up
}

/// Whether a port, of which these are the settings, lets no frames pass.
pub(crate) fn is_blocked(port: &[u8]) -> bool {
    attribute(port, 0, port::STATE).is_some_and(|state| state != [port::FORWARDING])
}

fn parse_bridge(data: &[u8]) -> BridgeSwitches {
    let is_on = |kind| attribute(data, 0, kind).is_some_and(|value| value.iter().any(|byte| *byte != 0));
    BridgeSwitches {
        stp: is_on(bridge::STP_STATE),
        vlan_filtering: is_on(bridge::VLAN_FILTERING),
        snooping: is_on(bridge::MCAST_SNOOPING),
    }
}

pub(crate) fn parse_port(data: &[u8]) -> PortFlags {
    let mut flags = PortFlags {
        isolated: false,
        learning: false,
        unicast_flood: false,
        multicast_flood: false,
        broadcast_flood: false,
        neigh_suppress: false,
        locked: false,
    };
    for (kind, value) in attributes(data, 0) {
        let on = value.first().is_some_and(|byte| *byte != 0);
        match kind {
            port::LEARNING => flags.learning = on,
            port::UNICAST_FLOOD => flags.unicast_flood = on,
            port::MULTICAST_FLOOD => flags.multicast_flood = on,
            port::BROADCAST_FLOOD => flags.broadcast_flood = on,
            port::NEIGH_SUPPRESS => flags.neigh_suppress = on,
            port::ISOLATED => flags.isolated = on,
            port::LOCKED => flags.locked = on,
            _ => {}
        }
    }
    flags
}

impl Netlink {
    /// The interface called `name`.
    ///
    /// # Errors
    /// [`Kind::NoDevice`] when there is none.
    pub async fn link(&self, name: &str) -> Result<LinkInfo> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Err(Error::new(name, "cannot read the interface", Kind::NoDevice));
        }
        let request = Builder::link(0, 0, 0, 0)
            .text(libc::IFLA_IFNAME, name)
            .u32(libc::IFLA_EXT_MASK, SKIP_STATS)
            .finish();
        self.one_link(request, name).await
    }

    /// The interface with this index.
    ///
    /// # Errors
    /// [`Kind::NoDevice`] when there is none.
    pub async fn link_by_index(&self, index: u32) -> Result<LinkInfo> {
        let request = Builder::link(0, index, 0, 0).u32(libc::IFLA_EXT_MASK, SKIP_STATS).finish();
        self.one_link(request, &format!("interface {index}")).await
    }

    async fn one_link(&self, request: Vec<u8>, object: &str) -> Result<LinkInfo> {
        let answers = self
            .ask(libc::RTM_GETLINK, 0, request)
            .await
            .map_err(|refusal| refusal.about(object, "cannot read the interface"))?;
        answers
            .iter()
            .find_map(LinkInfo::parse)
            .ok_or_else(|| Error::new(object, "cannot read the interface", Kind::NoDevice))
    }

    /// All interfaces of the network namespace, by index.
    ///
    /// # Errors
    /// When the kernel refuses the list.
    pub async fn links(&self) -> Result<Vec<LinkInfo>> {
        let mut links: Vec<_> = self.raw_links().await?.iter().filter_map(LinkInfo::parse).collect();
        links.sort_by_key(|link| link.index);
        Ok(links)
    }

    pub(crate) async fn raw_links(&self) -> Result<Vec<Raw>> {
        let request = Builder::link(0, 0, 0, 0).u32(libc::IFLA_EXT_MASK, SKIP_STATS).finish();
        self.dump(libc::RTM_GETLINK, request)
            .await
            .map_err(|refusal| refusal.about("netlink", "cannot list the interfaces"))
    }

    /// The name for error texts: the interface's, or its index when it is gone.
    pub(crate) async fn name_of(&self, index: u32) -> String {
        self.link_by_index(index).await.map_or_else(|_| format!("interface {index}"), |link| link.name)
    }
}
