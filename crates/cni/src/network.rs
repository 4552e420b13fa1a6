//! The operations.

use crate::{
    NEWEST,
    call::Container,
    config::{Config, Place},
    failure::{Code, Failure},
    ipam::Ipam,
    links::{Address, Inside, Link, Links, Route, inside},
    mark, object,
};
use linkbraid_api::Health;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{fs::File, net::IpAddr};

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

fn open(container: &Container) -> Result<File, Failure> {
    let path = container.namespace.as_deref().unwrap_or_else(|| "".as_ref());
    File::open(path)
        .map_err(|error| Failure::new(Code::Environment, format!("CNI_NETNS '{}'", path.display()), error))
}

/// The interface of the bond or fabric.
fn place(config: &Config, links: &Links) -> Result<Link, Failure> {
    let name = config.place.name();
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
}

#[derive(Debug, Deserialize)]
struct GivenAddress {
    address: String,
    gateway: Option<IpAddr>,
}

#[derive(Debug, Deserialize)]
struct GivenRoute {
    dst: String,
    gw: Option<IpAddr>,
    priority: Option<u32>,
    table: Option<u32>,
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
            let gateway = route.gw.or_else(|| gateway(to.0));
            Ok(Route { to, gateway, priority: route.priority, table: route.table })
        };
        self.routes.iter().map(route).collect()
    }
}

/// `02:00:00:00:00:01`
fn mac(text: &str) -> Result<[u8; 6], Failure> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    let mac = bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok()).filter(|mac| mac[0] & 1 == 0);
    mac.ok_or_else(|| Failure::new(Code::Configuration, format!("'{text}'"), "it is no MAC of an interface"))
}

/// ADD: attaches a container; the answer as the interface has it. What fails leaves nothing behind.
pub fn add(config: &Config, container: &Container) -> Result<Value, Failure> {
    let ipam = Ipam::of(config)?;
    let wanted = config.words.runtime_config.mac.as_deref().map(mac).transpose()?;
    object::health(config)?;
    let mark = object::mark(config)?;
    let links = Links::open()?;
    let place = place(config, &links)?;
    let namespace = open(container)?;
    let mtu = config.words.mtu.unwrap_or(place.mtu);
    let end = Inside { namespace, nic: container.nic.to_string(), mtu, gso: place.gso, mac: wanted };

    let port = match config.place {
        Place::Bond(_) => Some(port_of(config, container)),
        Place::Fabric(_) => None,
    };
    match &port {
        Some(port) => links.add_pair(port, &alias(config), place.index, &end)?,
        None => links.add_macvlan(place.index, &end)?,
    }
    let answer = finish(config, &links, &end, port.as_deref(), mark, ipam.as_ref());
    // Only what this attempt has made: what was there before would have failed it above.
    answer.inspect_err(|_| _ = take(config, &links, Some(&end.namespace), container))
}

/// What follows once a container has its interface.
fn finish(
    config: &Config,
    links: &Links,
    end: &Inside,
    port: Option<&str>,
    mark: Option<u32>,
    ipam: Option<&Ipam<'_>>,
) -> Result<Value, Failure> {
    if let (Some(port), Some(mark)) = (port, mark) {
        mark::set(port, mark)?;
    }
    let mut said = ipam.map_or(Ok(Value::Null), |ipam| ipam.does("ADD"))?;
    let done = Given::read(&said).and_then(|given| {
        let (addresses, routes) = (given.addresses()?, given.routes()?);
        inside(&end.namespace, |links| links.configure(&end.nic, &addresses, &routes))
    });
    let nic = done.inspect_err(|_| _ = ipam.map(|ipam| ipam.does("DEL")))?;
    let mut interfaces = Vec::new();
    if let Some(port) = port {
        let host = links.find(port)?.map(|link| link.mac).unwrap_or_default();
        interfaces.push(json!({ "name": port, "mac": host }));
    }
    let own = interfaces.len();
    let sandbox = std::env::var("CNI_NETNS").unwrap_or_default();
    interfaces.push(json!({ "name": nic.name, "mac": nic.mac, "sandbox": sandbox }));
    if config.words.cni_version == NEWEST {
        interfaces[own]["mtu"] = json!(nic.mtu);
    }
    for ip in said["ips"].as_array_mut().into_iter().flatten() {
        ip["interface"] = json!(own);
    }
    let mut answer = json!({ "cniVersion": config.words.cni_version, "interfaces": interfaces });
    for key in ["ips", "routes", "dns"] {
        let value = if said[key].is_null() { &config.raw[key] } else { &said[key] };
        if !value.is_null() {
            answer[key] = value.clone();
        }
    }
    Ok(answer)
}

/// Takes away what an attachment has of interfaces and marks, in the host and in the container; what is not there is fine.
fn take(
    config: &Config,
    links: &Links,
    namespace: Option<&File>,
    container: &Container,
) -> Result<(), Failure> {
    if let Place::Fabric(_) = config.place {
        return namespace.map_or(Ok(()), |namespace| inside(namespace, |links| links.remove(&container.nic)));
    }
    let port = port_of(config, container);
    // The other end goes with it.
    links.remove(&port)?;
    let unmarked = mark::remove(&port);
    // Who asks for no class now may have had one; but without nft nobody had.
    if config.class.is_some() { unmarked } else { Ok(()) }
}

/// DEL: undoes [`add`]. What is gone already is fine, and the daemon is not needed.
pub fn del(config: &Config, container: &Container) -> Result<(), Failure> {
    if let Some(ipam) = Ipam::of(config)? {
        ipam.does("DEL")?;
    }
    // A namespace that is gone has taken its interfaces with it.
    let namespace = open(container).ok();
    take(config, &Links::open()?, namespace.as_ref(), container)
}

/// CHECK: whether all is as [`add`] made it.
pub fn check(config: &Config, container: &Container) -> Result<(), Failure> {
    let differs = |what: &dyn std::fmt::Display, cause: &str| Err(Failure::new(Code::Differs, what, cause));
    let Some(before) = &config.words.prev_result else {
        let cause = "CHECK needs what ADD has answered, as prevResult";
        return Err(Failure::new(Code::Configuration, "cannot check", cause));
    };
    if let Some(ipam) = Ipam::of(config)? {
        ipam.does("CHECK")?;
    }
    let links = Links::open()?;
    let place = place(config, &links)?;
    if let Place::Bond(_) = config.place {
        let port = port_of(config, container);
        match links.find(&port)? {
            Some(link) if link.controller == Some(place.index) && link.up => {}
            Some(link) if link.up => return differs(&port, &format!("it is no port of '{}'", place.name)),
            Some(_) => return differs(&port, "it is switched off"),
            None => return differs(&port, "no such interface"),
        }
        if config.class.is_some() && !mark::all().contains(&port) {
            return differs(&port, "nothing marks what the container sends");
        }
    }
    let wanted = Given::read(before)?.addresses()?;
    let nic = &container.nic;
    inside(&open(container)?, |links| {
        let Some(link) = links.find(nic)? else { return differs(nic, "no such interface in the container") };
        let has = links.addresses(link.index)?;
        match wanted.iter().find(|address| !has.contains(address)) {
            Some((address, length)) => {
                differs(nic, &format!("it does not have the address {address}/{length}"))
            }
            None if !link.up => differs(nic, "it is switched off"),
            None => Ok(()),
        }
    })
}

/// GC: takes away all attachments of this network that are not among those that are in use.
pub fn gc(config: &Config) -> Result<(), Failure> {
    let valid = |name: &str| {
        config.words.valid.iter().any(|one| port_name(&config.words.name, &one.container, &one.nic) == name)
    };
    let links = Links::open()?;
    let alias = alias(config);
    let is_ours = |link: &Link| {
        link.is_veth && link.name.starts_with(PREFIX) && link.alias.as_deref() == Some(alias.as_str())
    };
    for link in links.all()?.iter().filter(|link| is_ours(link) && !valid(&link.name)) {
        links.remove(&link.name)?;
    }
    // Marks of interfaces that are gone, with their containers for example.
    let there = links.all()?;
    for name in mark::all().iter().filter(|name| !there.iter().any(|link| link.name == **name)) {
        mark::remove(name)?;
    }
    match Ipam::of(config)? {
        Some(ipam) if ipam.knows(NEWEST) => ipam.does("GC").map(drop),
        _ => Ok(()),
    }
}

/// STATUS: whether containers can be attached now.
pub fn status(config: &Config) -> Result<(), Failure> {
    let unavailable = |failure: Failure| failure.with_code(Code::Unavailable);
    let (health, reason) = object::health(config).map_err(unavailable)?;
    object::mark(config).map_err(unavailable)?;
    if health == Health::Down {
        return Err(Failure::new(Code::Unreachable, config.place.name(), reason).hint("linkbraid show"));
    }
    match Ipam::of(config).map_err(unavailable)? {
        Some(ipam) if ipam.knows(NEWEST) => ipam.does("STATUS").map(drop),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Given, Route, mac, port_name, prefix};
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
                { "dst": "198.19.0.0/16", "gw": "198.18.0.253", "priority": 7, "table": 300 },
                { "dst": "2001:db8:1::/48" }
            ]
        }))
        .unwrap();
        let route = |to: &str, gateway: Option<&str>| Route {
            to: prefix(to).unwrap(),
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
            priority: None,
            table: None,
        };
        let second =
            Route { priority: Some(7), table: Some(300), ..route("198.19.0.0/16", Some("198.18.0.253")) };
        let wanted = [route("0.0.0.0/0", Some("198.18.0.254")), second, route("2001:db8:1::/48", None)];
        assert_eq!(given.routes().unwrap(), wanted);
        assert_eq!(
            given.addresses().unwrap(),
            [prefix("198.18.0.64/24").unwrap(), prefix("2001:db8::64/64").unwrap()]
        );
        assert!(Given::read(&Value::Null).unwrap().ips.is_empty());
    }

    #[test]
    fn what_is_no_address_and_no_mac_is_refused() {
        for bad in ["198.18.0.64", "198.18.0.64/33", "2001:db8::/129", "x/24", "198.18.0.64/-1"] {
            assert!(prefix(bad).is_err(), "{bad}");
        }
        assert_eq!(mac("02:00:00:00:00:0a").unwrap(), [2, 0, 0, 0, 0, 10]);
        for bad in ["", "02:00:00:00:00", "03:00:00:00:00:01", "02:00:00:00:00:0g", "02:00:00:00:00:00:01"] {
            assert!(mac(bad).is_err(), "{bad}");
        }
    }
}
