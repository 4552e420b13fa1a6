//! The operations.

use crate::{
    NEWEST,
    call::Container,
    config::{Attachment, Config, Place},
    failure::{Code, Failure},
    ipam::Ipam,
    links::{Address, Inside, Links, Route, inside},
    mark, object,
};
use linkbraid_api::Health;
use linkbraid_link::{LinkInfo, MacAddr};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{fmt::Display, fs::File, net::IpAddr, os::unix::fs::MetadataExt as _};

/// How interfaces at the host's end begin.
const PREFIX: &str = "lbc";

/// The interface at the host's end of an attachment: the same name each time, so that nothing has to be remembered.
fn port_name(network: &str, container: &str, nic: &str) -> String {
    let digest = Sha256::digest(format!("{network} {container} {nic}"));
    digest.iter().take(6).fold(PREFIX.to_owned(), |name, byte| name + &format!("{byte:02x}"))
}

fn port_of(config: &Config, container: &Container) -> String {
    port_name(&config.words.name, &container.id, &container.nic)
}

/// The free text of interfaces at the host's end.
fn alias(config: &Config) -> String {
    format!("linkbraid-cni {}", config.words.name)
}

/// The container's network namespace.
///
/// # Errors
/// There is none, or it is the one that this program is in, where it has nothing to add or to remove.
fn open(container: &Container) -> Result<File, Failure> {
    let path = container.namespace.as_deref().unwrap_or_else(|| "".as_ref());
    let wrong =
        |code, cause: &dyn Display| Failure::new(code, format!("CNI_NETNS '{}'", path.display()), cause);
    let file = File::open(path).map_err(|error| wrong(Code::Environment, &error))?;
    let id = |file: &File| file.metadata().map(|data| (data.dev(), data.ino()));
    let own = File::open("/proc/thread-self/ns/net").and_then(|own| id(&own));
    match (own, id(&file)) {
        (Ok(own), Ok(other)) if own != other => Ok(file),
        (Ok(_), Ok(_)) => Err(wrong(Code::Namespace, &"it is the host's own")),
        (Err(error), _) | (_, Err(error)) => Err(wrong(Code::Io, &error)),
    }
}

/// The interface of the bond or fabric.
fn interface(links: &Links, place: &Place) -> Result<LinkInfo, Failure> {
    let name = place.name();
    links
        .find(name)?
        .ok_or_else(|| Failure::new(Code::Later, name, "no such interface").hint("linkbraid show"))
}

/// What a plugin for addresses answers, as far as it is used here.
#[derive(Debug, Default, Deserialize)]
struct Given {
    #[serde(default)]
    ips: Vec<GivenAddress>,
    #[serde(default)]
    routes: Vec<GivenRoute>,
    #[serde(default)]
    interfaces: Vec<GivenInterface>,
}

#[derive(Debug, Deserialize)]
struct GivenAddress {
    address: String,
    gateway: Option<IpAddr>,
    /// Its place among the interfaces.
    interface: Option<usize>,
}

/// An interface that ADD has answered.
#[derive(Debug, Deserialize)]
struct GivenInterface {
    name: String,
    mac: Option<String>,
    sandbox: Option<String>,
}

#[derive(Debug, Deserialize)]
struct GivenRoute {
    dst: String,
    gw: Option<IpAddr>,
    priority: Option<u32>,
    table: Option<u32>,
    scope: Option<u8>,
    mtu: Option<u32>,
    advmss: Option<u32>,
}

/// `198.18.0.64/24`
fn prefix(text: &str) -> Result<Address, Failure> {
    let read = || {
        let (address, length) = text.split_once('/')?;
        let (address, length): (IpAddr, u8) = (address.parse().ok()?, length.parse().ok()?);
        (length <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, length))
    };
    read().ok_or_else(|| {
        Failure::new(Code::Configuration, format!("'{text}'"), "it is no address with a length")
    })
}

impl Given {
    /// # Errors
    /// It is no answer.
    fn read(said: &Value) -> Result<Self, Failure> {
        if said.is_null() {
            return Ok(Self::default());
        }
        Self::deserialize(said)
            .map_err(|error| Failure::new(Code::Decoding, "cannot read what gives addresses", error))
    }

    fn addresses(&self) -> Result<Vec<Address>, Failure> {
        self.ips.iter().map(|ip| prefix(&ip.address)).collect()
    }

    /// Routes without a gateway of their own lead to that of the addresses of their family, if there is one.
    fn routes(&self) -> Result<Vec<Route>, Failure> {
        let gateway = |to: IpAddr| {
            let all = self.ips.iter().filter_map(|ip| ip.gateway);
            all.into_iter().find(|gateway| gateway.is_ipv4() == to.is_ipv4())
        };
        let route = |route: &GivenRoute| {
            let to = prefix(&route.dst)?;
            let gateway = route.gw.or_else(|| gateway(to.0).filter(|_| route.scope.is_none()));
            if gateway.is_some_and(|gateway| gateway.is_ipv4() != to.0.is_ipv4()) {
                let cause = "its gateway is of the other family";
                return Err(Failure::new(
                    Code::Configuration,
                    format!("the route to '{}'", route.dst),
                    cause,
                ));
            }
            let GivenRoute { priority, table, scope, mtu, advmss, .. } = *route;
            Ok(Route { to, gateway, priority, table, scope, mtu, advmss })
        };
        self.routes.iter().map(route).collect()
    }
}

/// One that an interface may have.
fn mac(text: &str) -> Result<MacAddr, Failure> {
    let mac = text.parse().ok().filter(|mac: &MacAddr| !mac.is_multicast());
    mac.ok_or_else(|| Failure::new(Code::Configuration, format!("'{text}'"), "it is no MAC of an interface"))
}

/// ADD: attaches a container; the answer as the interface has it. What fails leaves nothing behind.
///
/// # Errors
/// See [`Code`].
pub fn add(config: &Config, container: &Container) -> Result<Value, Failure> {
    if config.words.prev_result.is_some() {
        let cause = "it makes the interface, so no other plugin comes before it";
        return Err(Failure::new(Code::Configuration, "cannot follow another plugin", cause));
    }
    let place = config.place()?;
    let ipam = Ipam::of(config)?;
    let wanted = config.words.runtime_config.mac.as_deref().map(mac).transpose()?;
    let namespace = open(container)?;
    object::health(config, &place)?;
    let mark = object::mark(config, &place)?;
    let links = Links::open()?;
    let below = interface(&links, &place)?;
    let mtu = config.words.mtu.unwrap_or(below.mtu);
    let end = Inside { namespace, nic: container.nic.to_string(), mtu, gso: below.gso_max_size, mac: wanted };

    let port = port_of(config, container);
    let port = match place {
        Place::Bond(_) => {
            links.add_pair(&port, &alias(config), below.index, &end)?;
            Some(port)
        }
        Place::Fabric(_) => {
            links.add_macvlan(below.index, &end)?;
            None
        }
    };
    // Only what this attempt has made: what was there before would have failed it above.
    let undo = |_: &Failure| match &port {
        Some(port) => {
            _ = links.remove(port);
            mark::remove(port);
        }
        None => _ = inside(&end.namespace, |links| links.remove(&end.nic)),
    };
    let finished = || {
        if let (Some(port), Some(mark)) = (&port, mark) {
            mark::set(port, mark)?;
        }
        // Whatever became of it: addresses may have been given away.
        finish(config, &links, &end, port.as_deref(), ipam.as_ref())
            .inspect_err(|_| _ = ipam.as_ref().map(|ipam| ipam.does("DEL")))
    };
    finished().inspect_err(undo)
}

/// What follows once a container has its interface.
fn finish(
    config: &Config,
    links: &Links,
    end: &Inside,
    port: Option<&str>,
    ipam: Option<&Ipam<'_>>,
) -> Result<Value, Failure> {
    let mut said = ipam.map_or(Ok(Value::Null), |ipam| ipam.does("ADD"))?;
    let given = Given::read(&said)?;
    let (addresses, routes) = (given.addresses()?, given.routes()?);
    inside(&end.namespace, |links| links.configure(&end.nic, &alias(config), &addresses, &routes))?;
    let mut interfaces = Vec::new();
    if let Some(port) = port {
        let host = links.wait_ready(port)?;
        interfaces.push(json!({ "name": host.name, "mac": host.mac.to_string() }));
    }
    let nic = inside(&end.namespace, |links| links.announce(&end.nic))?;
    let own = interfaces.len();
    let sandbox = std::env::var("CNI_NETNS").unwrap_or_default();
    interfaces.push(json!({ "name": nic.name, "mac": nic.mac.to_string(), "sandbox": sandbox }));
    if config.words.cni_version == NEWEST {
        interfaces[own]["mtu"] = json!(nic.mtu);
    }
    for ip in said["ips"].as_array_mut().into_iter().flatten() {
        ip["interface"] = json!(own);
    }
    let mut answer = json!({ "cniVersion": config.words.cni_version, "interfaces": interfaces });
    for key in ["ips", "routes"] {
        if !said[key].is_null() {
            answer[key] = said[key].take();
        }
    }
    let has_words = |dns: &&Value| dns.as_object().is_some_and(|dns| !dns.is_empty());
    if let Some(dns) = [&config.raw["dns"], &said["dns"]].into_iter().find(has_words) {
        answer["dns"] = dns.clone();
    }
    Ok(answer)
}

/// DEL: undoes [`add`], whatever of it is there. The daemon is not needed.
///
/// # Errors
/// The kernel or the plugin for addresses refuses; all else is undone all the same.
pub fn del(config: &Config, container: &Container) -> Result<(), Failure> {
    let freed = Ipam::of(config).and_then(|ipam| ipam.map_or(Ok(Value::Null), |ipam| ipam.does("DEL")));
    let port = port_of(config, container);
    let alias = alias(config);
    let removed = Links::open().and_then(|links| links.remove(&port));
    mark::remove(&port);
    // A namespace that is gone has taken its interfaces with it. What this plugin has not made there is not its own.
    if let Ok(namespace) = open(container)
        && config.words.fabric.is_some()
    {
        _ = inside(&namespace, |links| match links.find(&container.nic)? {
            Some(link) if link.alias.as_deref() == Some(alias.as_str()) => links.remove(&link.name),
            _ => Ok(()),
        });
    }
    freed.and(removed)
}

/// CHECK: whether all is as [`add`] made it.
///
/// # Errors
/// It is not.
pub fn check(config: &Config, container: &Container) -> Result<(), Failure> {
    let differs = |what: &dyn Display, cause: &str| Err(Failure::new(Code::Differs, what, cause));
    let Some(before) = &config.words.prev_result else {
        let cause = "CHECK needs what ADD has answered, as prevResult";
        return Err(Failure::new(Code::Configuration, "cannot check", cause));
    };
    let place = config.place()?;
    if let Some(ipam) = Ipam::of(config)? {
        ipam.does("CHECK")?;
    }
    let links = Links::open()?;
    let below = interface(&links, &place)?;
    if let Place::Bond(_) = place {
        let port = port_of(config, container);
        match links.find(&port)? {
            Some(link) if link.controller == Some(below.index) && link.up => {}
            Some(link) if link.up => return differs(&port, &format!("it is no port of '{}'", below.name)),
            Some(_) => return differs(&port, "it is switched off"),
            None => return differs(&port, "no such interface"),
        }
        if let Some(mark) = object::mark(config, &place)?
            && !mark::is_set(&port, mark)
        {
            return differs(&port, &format!("nothing gives the mark {mark:#x} to what the container sends"));
        }
    }
    let given = Given::read(before)?;
    let is_own = |one: &GivenInterface| {
        one.name == *container.nic && one.sandbox.as_ref().is_some_and(|at| !at.is_empty())
    };
    let Some(own) = given.interfaces.iter().position(is_own) else {
        return differs(&container.nic, "prevResult has no such interface");
    };
    let of_own = |ip: &&GivenAddress| ip.interface.is_none_or(|interface| interface == own);
    let wanted =
        given.ips.iter().filter(of_own).map(|ip| prefix(&ip.address)).collect::<Result<Vec<_>, _>>()?;
    let routes = given.routes()?;
    let nic = &container.nic;
    inside(&open(container)?, |links| {
        let Some(link) = links.find(nic)? else { return differs(nic, "no such interface in the container") };
        if !link.up {
            return differs(nic, "it is switched off");
        }
        if let Some(mac) = given.interfaces[own].mac.as_ref().filter(|mac| mac.parse() != Ok(link.mac)) {
            return differs(nic, &format!("its MAC is {} and was {mac}", link.mac));
        }
        // What it is on cannot be another one without it being another interface.
        if link.alias.as_deref() != Some(alias(config).as_str()) {
            return differs(nic, "it is not the one that this plugin has made");
        }
        let has = links.addresses(link.index)?;
        if let Some((address, length)) = wanted.iter().find(|address| !has.contains(address)) {
            return differs(nic, &format!("it does not have the address {address}/{length}"));
        }
        for Route { to: (to, length), .. } in &routes {
            if !links.has_route((*to, *length))? {
                return differs(nic, &format!("the container has no route to {to}/{length}"));
            }
        }
        Ok(())
    })
}

/// GC: takes away all attachments of this network that are not among those that are in use, and marks of interfaces that are gone.
///
/// # Errors
/// One of them cannot be taken away; all others are.
pub fn gc(config: &Config) -> Result<(), Failure> {
    let valid = config.valid()?;
    let is_it =
        |one: &Attachment, name: &str| port_name(&config.words.name, &one.container, &one.nic) == name;
    let is_valid = |name: &str| valid.as_ref().is_none_or(|valid| valid.iter().any(|one| is_it(one, name)));
    let links = Links::open()?;
    let alias = alias(config);
    let is_ours = |link: &LinkInfo| {
        link.kind.as_deref() == Some("veth")
            && link.name.starts_with(PREFIX)
            && link.alias.as_deref() == Some(alias.as_str())
    };
    // An interface is there before its mark, so one that comes meanwhile keeps it.
    let marked = mark::all();
    let mut failures = Vec::new();
    for link in links.all()?.iter().filter(|link| is_ours(link) && !is_valid(&link.name)) {
        failures.extend(links.remove(&link.name).err());
    }
    for name in marked {
        match links.find(&name) {
            Ok(None) => mark::remove(&name),
            Ok(Some(_)) => {}
            Err(failure) => failures.push(failure),
        }
    }
    match Ipam::of(config) {
        Ok(Some(ipam)) if ipam.knows(NEWEST) => failures.extend(ipam.does("GC").err()),
        Ok(_) => {}
        Err(failure) => failures.push(failure),
    }
    failures.into_iter().next().map_or(Ok(()), Err)
}

/// STATUS: whether containers can be attached now.
///
/// # Errors
/// They cannot, or reach nothing.
pub fn status(config: &Config) -> Result<(), Failure> {
    let unavailable = |failure: Failure| failure.with_code(Code::Unavailable);
    let place = config.place()?;
    let (health, reason) = object::health(config, &place).map_err(unavailable)?;
    object::mark(config, &place).map_err(unavailable)?;
    if health == Health::Down {
        return Err(Failure::new(Code::Unreachable, place.name(), reason).hint("linkbraid show"));
    }
    match Ipam::of(config).map_err(unavailable)? {
        Some(ipam) if ipam.knows(NEWEST) => ipam.does("STATUS").map(drop),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Given, MacAddr, Route, mac, port_name, prefix};
    use serde_json::{Value, json};

    #[test]
    fn an_attachment_has_one_name_that_the_kernel_takes() {
        let name = port_name("net", "c1", "net1");
        assert_eq!((name.len(), name.as_str()), (15, port_name("net", "c1", "net1").as_str()));
        for other in [("other", "c1", "net1"), ("net", "c2", "net1"), ("net", "c1", "net2")] {
            assert_ne!(name, port_name(other.0, other.1, other.2));
        }
    }

    #[test]
    fn routes_lead_to_the_gateway_of_their_family() {
        let given = Given::read(&json!({
            "ips": [
                { "address": "198.18.0.64/24", "gateway": "198.18.0.254" },
                { "address": "2001:db8::64/64" }
            ],
            "routes": [
                { "dst": "0.0.0.0/0" },
                { "dst": "198.19.0.0/16", "gw": "198.18.0.253", "priority": 7, "table": 300, "mtu": 1400 },
                { "dst": "2001:db8:1::/48" }
            ]
        }))
        .unwrap();
        let route = |to: &str, gateway: Option<&str>| Route {
            to: prefix(to).unwrap(),
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
            priority: None,
            table: None,
            scope: None,
            mtu: None,
            advmss: None,
        };
        let second = Route {
            priority: Some(7),
            table: Some(300),
            mtu: Some(1400),
            ..route("198.19.0.0/16", Some("198.18.0.253"))
        };
        let wanted = [route("0.0.0.0/0", Some("198.18.0.254")), second, route("2001:db8:1::/48", None)];
        assert_eq!(given.routes().unwrap(), wanted);
        assert_eq!(
            given.addresses().unwrap(),
            [prefix("198.18.0.64/24").unwrap(), prefix("2001:db8::64/64").unwrap()]
        );
        assert!(Given::read(&Value::Null).unwrap().ips.is_empty());
        let mixed = json!({ "routes": [{ "dst": "198.19.0.0/16", "gw": "2001:db8::1" }] });
        assert!(Given::read(&mixed).unwrap().routes().is_err());
        // One on the link itself has no gateway.
        let near = json!({
            "ips": [{ "address": "198.18.0.64/24", "gateway": "198.18.0.254" }],
            "routes": [{ "dst": "198.19.0.0/16", "scope": 253 }]
        });
        assert_eq!(Given::read(&near).unwrap().routes().unwrap()[0].gateway, None);
    }

    #[test]
    fn what_is_no_address_and_no_mac_is_refused() {
        for bad in ["198.18.0.64", "198.18.0.64/33", "2001:db8::/129", "x/24", "198.18.0.64/-1"] {
            assert!(prefix(bad).is_err(), "{bad}");
        }
        assert_eq!(mac("02:00:00:00:00:0a").unwrap(), MacAddr([2, 0, 0, 0, 0, 10]));
        for bad in ["", "02:00:00:00:00", "03:00:00:00:00:01", "02:00:00:00:00:0g", "02:00:00:00:00:00:01"] {
            assert!(mac(bad).is_err(), "{bad}");
        }
    }
}
