//! The kernel's interfaces, in the network namespace of the thread or, by [`inside`], in that of a container.

use crate::failure::{Code, Failure};
use futures_util::TryStreamExt as _;
use linkbraid_link::{Kind, LinkInfo, MacAddr, Netlink, OperState};
use nix::{
    libc,
    sched::{CloneFlags, setns},
};
use rtnetlink::{
    Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder, new_connection,
    packet_route::{
        address::{AddressAttribute, AddressFlags},
        link::{InfoData, InfoKind, InfoMacVlan, InfoVeth, LinkAttribute, LinkMessage, MacVlanMode},
        route::{RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteScope},
    },
};
use std::{
    fs::{self, File},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::{AsFd as _, AsRawFd as _},
    path::Path,
    thread,
    time::Duration,
};
use tokio::runtime::{Builder, Runtime};

/// How long it is waited until frames pass an interface: looks, and the pause between two.
const READY_TRIES: u32 = 200;
const READY_PAUSE: Duration = Duration::from_millis(5);

/// An address of a container, and the length of its network's prefix.
pub type Address = (IpAddr, u8);

/// A route of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub to: Address,
    pub gateway: Option<IpAddr>,
    pub priority: Option<u32>,
    pub table: Option<u32>,
    pub scope: Option<u8>,
    pub mtu: Option<u32>,
    pub advmss: Option<u32>,
}

/// A connection to the kernel.
#[derive(Debug)]
pub struct Links {
    runtime: Runtime,
    netlink: Netlink,
    /// For what the daemon never does: links in other namespaces, and routes with all that CNI has.
    handle: Handle,
}

impl From<linkbraid_link::Error> for Failure {
    fn from(error: linkbraid_link::Error) -> Self {
        Self::new(Code::Refused, format!("{}: {}", error.object, error.what), error.cause())
    }
}

/// What the kernel says of something that this plugin is about to use or has made.
fn refused(what: impl std::fmt::Display, error: &rtnetlink::Error) -> Failure {
    let cause = match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io().to_string(),
        error => error.to_string(),
    };
    Failure::new(Code::Refused, what, cause)
}

/// Whether the kernel refused with this number.
fn is(error: &rtnetlink::Error, number: i32) -> bool {
    matches!(error, rtnetlink::Error::NetlinkError(message) if message.raw_code() == -number)
}

impl Links {
    /// # Errors
    /// The kernel gives no socket.
    pub fn open() -> Result<Self, Failure> {
        let failed = |error| Failure::new(Code::Io, "cannot ask the kernel", error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let within = runtime.enter();
        let (connection, handle, _) = new_connection().map_err(failed)?;
        let netlink = Netlink::new()?;
        drop(within);
        runtime.spawn(connection);
        Ok(Self { runtime, netlink, handle })
    }

    /// All interfaces here.
    pub fn all(&self) -> Result<Vec<LinkInfo>, Failure> {
        Ok(self.runtime.block_on(self.netlink.links())?)
    }

    /// The one of this name; none where there is none.
    pub fn find(&self, name: &str) -> Result<Option<LinkInfo>, Failure> {
        match self.runtime.block_on(self.netlink.link(name)) {
            Err(error) if error.kind == Kind::NoDevice => Ok(None),
            found => Ok(Some(found?)),
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
        let index = self.there(host)?.index;
        let done = self.runtime.block_on(async {
            self.netlink.set_alias(index, alias).await?;
            self.netlink.set_master(index, bridge).await?;
            self.netlink.set_up(index).await
        });
        done.inspect_err(|_| _ = self.remove(host)).map_err(Into::into)
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
        match self.runtime.block_on(self.netlink.delete_link(link.index)) {
            Err(error) if error.kind == Kind::NoDevice => Ok(()),
            done => Ok(done?),
        }
    }

    /// Gives an interface its free text, addresses and routes, and switches it on.
    pub fn configure(
        &self,
        name: &str,
        alias: &str,
        addresses: &[Address],
        routes: &[Route],
    ) -> Result<(), Failure> {
        let index = self.there(name)?.index;
        // See [`Links::announce`]. Without IPv6 there is no second file.
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
                match add.execute().await {
                    // A plugin such as `dhcp` may have added it.
                    Err(error) if is(&error, libc::EEXIST) => {}
                    done => done.map_err(failed(format!("{name}: cannot add '{address}/{length}'")))?,
                }
            }
            self.netlink.set_alias(index, alias).await?;
            self.netlink.set_up(index).await?;
            for route in routes {
                let (to, length) = route.to;
                let what = format!("{name}: cannot add the route to '{to}/{length}'");
                match self.handle.route().add(message(route, index)).execute().await {
                    // The container keeps the one that it has, of its first network for example.
                    Err(error) if is(&error, libc::EEXIST) => {}
                    done => done.map_err(failed(what))?,
                }
            }
            Ok(())
        })
    }

    /// Has an interface say that its addresses are here, to switches and hosts that knew a former owner: once frames pass at the host's
    /// end, which is some milliseconds after it was switched on. Setting the MAC that it has makes the kernel do so.
    pub fn announce(&self, name: &str) -> Result<LinkInfo, Failure> {
        let link = self.there(name)?;
        self.runtime.block_on(self.netlink.set_mac(link.index, link.mac))?;
        Ok(link)
    }

    /// Waits until frames pass an interface, but no longer than they ever take.
    pub fn wait_ready(&self, name: &str) -> Result<LinkInfo, Failure> {
        for _ in 0..READY_TRIES {
            let link = self.there(name)?;
            if link.oper_state == OperState::Up {
                return Ok(link);
            }
            thread::sleep(READY_PAUSE);
        }
        self.there(name)
    }

    fn there(&self, name: &str) -> Result<LinkInfo, Failure> {
        self.find(name)?.ok_or_else(|| Failure::new(Code::Refused, name, "no such interface"))
    }

    /// Whether there is a route to this network.
    pub fn has_route(&self, to: Address) -> Result<bool, Failure> {
        let (request, address) = match to.0 {
            IpAddr::V4(to) => (RouteMessageBuilder::<Ipv4Addr>::new().build(), RouteAddress::Inet(to)),
            IpAddr::V6(to) => (RouteMessageBuilder::<Ipv6Addr>::new().build(), RouteAddress::Inet6(to)),
        };
        let found = self.runtime.block_on(self.handle.route().get(request).execute().try_collect::<Vec<_>>());
        let found = found.map_err(|error| refused("cannot list routes", &error))?;
        let destination = RouteAttribute::Destination(address);
        Ok(found.iter().any(|route| {
            let is_so_long = route.header.destination_prefix_length == to.1;
            // A default route has no destination.
            is_so_long && (to.1 == 0 || route.attributes.contains(&destination))
        }))
    }

    /// The addresses of an interface.
    pub fn addresses(&self, index: u32) -> Result<Vec<Address>, Failure> {
        let found = self.runtime.block_on(self.netlink.addresses(index))?;
        Ok(found.iter().map(|address| (address.ip, address.prefix)).collect())
    }
}

/// Both ends of a route are of one family.
fn message(route: &Route, index: u32) -> RouteMessage {
    let mut message = match (route.to.0, route.gateway) {
        (IpAddr::V4(to), gateway) => {
            let builder = RouteMessageBuilder::<Ipv4Addr>::new();
            let builder = builder.destination_prefix(to, route.to.1).output_interface(index);
            match gateway {
                Some(IpAddr::V4(gateway)) => builder.gateway(gateway).build(),
                _ => builder.scope(RouteScope::Link).build(),
            }
        }
        (IpAddr::V6(to), gateway) => {
            let builder = RouteMessageBuilder::<Ipv6Addr>::new();
            let builder = builder.destination_prefix(to, route.to.1).output_interface(index);
            match gateway {
                Some(IpAddr::V6(gateway)) => builder.gateway(gateway).build(),
                _ => builder.build(),
            }
        }
    };
    message.attributes.extend(route.priority.map(RouteAttribute::Priority));
    if let Some(scope) = route.scope {
        message.header.scope = RouteScope::from(scope);
    }
    if let Some(table) = route.table {
        // All 32 bits of it are in an attribute.
        message.header.table = 0;
        message.attributes.push(RouteAttribute::Table(table));
    }
    let metrics = [route.mtu.map(RouteMetric::Mtu), route.advmss.map(RouteMetric::Advmss)];
    let metrics: Vec<_> = metrics.into_iter().flatten().collect();
    if !metrics.is_empty() {
        message.attributes.push(RouteAttribute::Metrics(metrics));
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
    pub mac: Option<MacAddr>,
}

impl Inside {
    fn message<T>(&self, builder: LinkMessageBuilder<T>) -> LinkMessage {
        let builder = builder
            .name(&self.nic)
            .mtu(self.mtu)
            .append_extra_attribute(LinkAttribute::GsoMaxSize(self.gso))
            .setns_by_fd(self.namespace.as_raw_fd());
        match self.mac {
            Some(mac) => builder.address(mac.0.to_vec()).build(),
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
