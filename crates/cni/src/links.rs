//! The kernel's interfaces, in the network namespace of the thread or, by [`inside`], in that of a container.

use crate::failure::{Code, Failure};
use futures_util::{StreamExt as _, TryStreamExt as _};
use nix::sched::{CloneFlags, setns};
use rtnetlink::{
    Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder, new_connection,
    packet_route::{
        address::{AddressAttribute, AddressFlags},
        link::{
            InfoData, InfoKind, InfoMacVlan, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
            MacVlanMode,
        },
        route::{RouteAttribute, RouteMessage, RouteScope},
    },
};
use std::{
    fs::{self, File},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::{AsFd as _, AsRawFd as _},
    path::Path,
    thread,
};
use tokio::runtime::{Builder, Runtime};

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// Six numbers, with colons between them.
    pub mac: String,
    pub mtu: u32,
    /// The longest buffer that it is handed for segmentation, in bytes.
    pub gso: u32,
    pub up: bool,
    /// The bridge that it is a port of.
    pub controller: Option<u32>,
    pub is_veth: bool,
    /// Free text.
    pub alias: Option<String>,
}

impl Link {
    fn read(message: &LinkMessage) -> Self {
        let mut link = Self {
            index: message.header.index,
            name: String::new(),
            mac: String::new(),
            mtu: 0,
            gso: 0,
            up: message.header.flags.contains(LinkFlags::Up),
            controller: None,
            is_veth: false,
            alias: None,
        };
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => link.name.clone_from(name),
                LinkAttribute::Address(mac) => {
                    link.mac = mac.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
                }
                LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
                LinkAttribute::GsoMaxSize(bytes) => link.gso = *bytes,
                LinkAttribute::Controller(index) => link.controller = Some(*index),
                LinkAttribute::IfAlias(alias) => link.alias = Some(alias.clone()),
                LinkAttribute::LinkInfo(infos) => {
                    link.is_veth = infos.iter().any(|info| matches!(info, LinkInfo::Kind(InfoKind::Veth)));
                }
                _ => {}
            }
        }
        link
    }
}

/// An address of a container, and the length of its network's prefix.
pub type Address = (IpAddr, u8);

/// A route of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub to: Address,
    pub gateway: Option<IpAddr>,
    pub priority: Option<u32>,
    pub table: Option<u32>,
}

/// A connection to the kernel.
#[derive(Debug)]
pub struct Links {
    runtime: Runtime,
    handle: Handle,
}

/// What the kernel says of something that this plugin is about to use or has made.
fn refused(what: impl std::fmt::Display, error: &rtnetlink::Error) -> Failure {
    let cause = match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io().to_string(),
        error => error.to_string(),
    };
    Failure::new(Code::Refused, what, cause)
}

impl Links {
    /// # Errors
    /// The kernel gives no socket.
    pub fn open() -> Result<Self, Failure> {
        let failed = |error| Failure::new(Code::Io, "cannot ask the kernel", error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (connection, handle, _) = {
            let _within = runtime.enter();
            new_connection().map_err(failed)?
        };
        runtime.spawn(connection);
        Ok(Self { runtime, handle })
    }

    /// All interfaces here.
    pub fn all(&self) -> Result<Vec<Link>, Failure> {
        let found = self.runtime.block_on(self.handle.link().get().execute().try_collect::<Vec<_>>());
        let found = found.map_err(|error| refused("cannot list interfaces", &error))?;
        Ok(found.iter().map(Link::read).collect())
    }

    /// The one of this name; none where there is none.
    pub fn find(&self, name: &str) -> Result<Option<Link>, Failure> {
        let request = self.handle.link().get().match_name(name.to_owned()).execute();
        match self.runtime.block_on(async { Box::pin(request).next().await }) {
            Some(Ok(message)) => Ok(Some(Link::read(&message))),
            Some(Err(rtnetlink::Error::NetlinkError(error))) if error.raw_code() == -nix::libc::ENODEV => {
                Ok(None)
            }
            Some(Err(error)) => Err(refused(name, &error)),
            None => Ok(None),
        }
    }

    /// Makes a veth pair: one end here, which is a port of the bridge and has free text, the other one in a container, where it is not up.
    pub fn add_pair(&self, host: &str, alias: &str, bridge: u32, container: &Inside) -> Result<(), Failure> {
        let peer = container.message(LinkMessageBuilder::<LinkUnspec>::default());
        let pair = LinkMessageBuilder::<LinkVeth>::new_with_info_kind(InfoKind::Veth)
            .name(host)
            .mtu(container.mtu)
            .append_extra_attribute(LinkAttribute::GsoMaxSize(container.gso))
            .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
            .build();
        self.runtime
            .block_on(self.handle.link().add(pair).execute())
            .map_err(|error| refused(format!("cannot make '{}'", container.nic), &error))?;
        // The pair takes the alias only once it is there.
        let port = LinkUnspec::new_with_name(host).alias(alias).controller(bridge).up().build();
        let done = self.runtime.block_on(self.handle.link().set(port).execute());
        done.map_err(|error| refused(format!("cannot make '{host}' a port"), &error))
            .inspect_err(|_| _ = self.remove(host))
    }

    /// Makes a macvlan of this interface in a container, where it is not up.
    pub fn add_macvlan(&self, lower: u32, container: &Inside) -> Result<(), Failure> {
        let info = InfoData::MacVlan(vec![InfoMacVlan::Mode(MacVlanMode::Bridge)]);
        let message = container.message(
            LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(InfoKind::MacVlan)
                .link(lower)
                .set_info_data(info),
        );
        self.runtime
            .block_on(self.handle.link().add(message).execute())
            .map_err(|error| refused(format!("cannot make '{}'", container.nic), &error))
    }

    /// Removes an interface; one that is not there is fine.
    pub fn remove(&self, name: &str) -> Result<(), Failure> {
        let Some(link) = self.find(name)? else { return Ok(()) };
        match self.runtime.block_on(self.handle.link().del(link.index).execute()) {
            Err(rtnetlink::Error::NetlinkError(error)) if error.raw_code() == -nix::libc::ENODEV => Ok(()),
            done => done.map_err(|error| refused(format!("cannot remove '{name}'"), &error)),
        }
    }

    /// Gives an interface its addresses and routes, and switches it on. It says to all on the network that it is there.
    pub fn configure(&self, name: &str, addresses: &[Address], routes: &[Route]) -> Result<Link, Failure> {
        let missing = || Failure::new(Code::Refused, name, "no such interface");
        let index = self.find(name)?.ok_or_else(missing)?.index;
        // Switches and hosts that knew a former owner of an address learn of it. Without IPv6 there is no second file.
        for file in ["ipv4/conf/{}/arp_notify", "ipv6/conf/{}/ndisc_notify"] {
            _ = fs::write(Path::new("/proc/sys/net").join(file.replace("{}", name)), "1");
        }
        let failed = |what: String| move |error| refused(what, &error);
        self.runtime.block_on(async {
            for (address, length) in addresses {
                let mut add = self.handle.address().add(index, *address, *length);
                // Whoever gives addresses gives each one once: nobody has to be asked for a second before it can be used.
                if address.is_ipv6() {
                    add.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
                }
                add.execute().await.map_err(failed(format!("{name}: cannot add '{address}/{length}'")))?;
            }
            let up = LinkUnspec::new_with_index(index).up().build();
            self.handle
                .link()
                .set(up)
                .execute()
                .await
                .map_err(failed(format!("cannot switch '{name}' on")))?;
            for route in routes {
                let (to, length) = route.to;
                let what = format!("{name}: cannot add the route to '{to}/{length}'");
                let add = self.handle.route().add(message(route, index));
                add.execute().await.map_err(failed(what))?;
            }
            Ok::<(), Failure>(())
        })?;
        self.find(name)?.ok_or_else(missing)
    }

    /// The addresses of an interface.
    pub fn addresses(&self, index: u32) -> Result<Vec<Address>, Failure> {
        let request = self.handle.address().get().set_link_index_filter(index).execute();
        let found = self.runtime.block_on(request.try_collect::<Vec<_>>());
        let found = found.map_err(|error| refused("cannot list addresses", &error))?;
        let address = |attribute: &AddressAttribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        };
        let of = found.iter().filter_map(|message| {
            Some((message.attributes.iter().find_map(address)?, message.header.prefix_len))
        });
        Ok(of.collect())
    }
}

fn message(route: &Route, index: u32) -> RouteMessage {
    // All 32 bits of a table's number are in an attribute; without one it is the main table.
    let mut message = match (route.to.0, route.gateway) {
        (IpAddr::V4(to), gateway) => {
            let builder = RouteMessageBuilder::<Ipv4Addr>::new()
                .destination_prefix(to, route.to.1)
                .output_interface(index);
            match gateway {
                Some(IpAddr::V4(gateway)) => builder.gateway(gateway).build(),
                _ => builder.scope(RouteScope::Link).build(),
            }
        }
        (IpAddr::V6(to), gateway) => {
            let builder = RouteMessageBuilder::<Ipv6Addr>::new()
                .destination_prefix(to, route.to.1)
                .output_interface(index);
            match gateway {
                Some(IpAddr::V6(gateway)) => builder.gateway(gateway).build(),
                _ => builder.build(),
            }
        }
    };
    if let Some(priority) = route.priority {
        message.attributes.push(RouteAttribute::Priority(priority));
    }
    if let Some(table) = route.table {
        message.header.table = 0;
        message.attributes.push(RouteAttribute::Table(table));
    }
    message
}

/// What an interface in a container is to be.
#[derive(Debug)]
pub struct Inside {
    pub namespace: File,
    pub nic: String,
    pub mtu: u32,
    /// The bond's, so that a buffer of the container's TCP is no longer than a stripe (docs/design/guest-lanes.md).
    pub gso: u32,
    /// Its MAC, where it is not for the kernel to choose.
    pub mac: Option<[u8; 6]>,
}

impl Inside {
    fn message<T>(&self, builder: LinkMessageBuilder<T>) -> LinkMessage {
        let builder = builder
            .name(&self.nic)
            .mtu(self.mtu)
            .append_extra_attribute(LinkAttribute::GsoMaxSize(self.gso))
            .setns_by_fd(self.namespace.as_raw_fd());
        match self.mac {
            Some(mac) => builder.address(mac.to_vec()).build(),
            None => builder.build(),
        }
    }
}

/// Does something in another network namespace, on a thread of its own.
///
/// # Errors
/// There is no such namespace, or what is done fails.
pub fn inside<T: Send>(
    namespace: &File,
    work: impl FnOnce(Links) -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET).map_err(|error| {
                Failure::new(Code::Refused, "cannot enter the container's network namespace", error)
            })?;
            work(Links::open()?)
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
