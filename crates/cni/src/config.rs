//! The configuration of a network.

use crate::{
    call::identifier,
    failure::{Code, Failure},
};
use linkbraid_api::{ClassName, DEFAULT_SOCKET, LinkName};
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// Where containers are attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Bond(LinkName),
    Fabric(LinkName),
}

impl Place {
    pub fn name(&self) -> &LinkName {
        match self {
            Self::Bond(name) | Self::Fabric(name) => name,
        }
    }
}

/// A network, as its file and the runtime have it.
#[derive(Debug)]
pub struct Config {
    pub place: Place,
    /// The class of what the container sends.
    pub class: Option<ClassName>,
    pub words: Words,
    /// All of it, for the plugin that gives addresses.
    pub raw: Value,
}

/// What is read of it. Keys that are not known are other plugins'.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Words {
    /// The network's name.
    pub name: String,
    /// The version of the interface that the runtime speaks.
    pub cni_version: String,
    bond: Option<LinkName>,
    fabric: Option<LinkName>,
    class: Option<ClassName>,
    /// The MTU of containers' interfaces, in bytes; that of the bond or fabric where it is not there.
    pub mtu: Option<u32>,
    /// Where the daemon listens.
    #[serde(default = "default_socket")]
    pub socket: PathBuf,
    #[serde(default)]
    args: Args,
    #[serde(default)]
    pub runtime_config: RuntimeConfig,
    /// What ADD answered, for DEL and CHECK.
    pub prev_result: Option<Value>,
    /// What GC is to leave.
    #[serde(default, rename = "cni.dev/valid-attachments")]
    pub valid: Vec<Attachment>,
}

/// What the runtime asks for one container, from its annotations.
#[derive(Debug, Default, Deserialize)]
struct Args {
    #[serde(default)]
    cni: OfContainer,
}

/// `cni-args` of an element of the annotation `k8s.v1.cni.cncf.io/networks`, with Multus.
#[derive(Debug, Default, Deserialize)]
struct OfContainer {
    class: Option<ClassName>,
}

/// What the runtime fills in for the capabilities that the network's file names.
#[derive(Debug, Default, Deserialize)]
pub struct RuntimeConfig {
    /// The MAC that the container's interface gets.
    pub mac: Option<String>,
}

/// A container's interface that is in use.
#[derive(Debug, Deserialize)]
pub struct Attachment {
    #[serde(rename = "containerID")]
    pub container: String,
    #[serde(rename = "ifname")]
    pub nic: String,
}

fn default_socket() -> PathBuf {
    PathBuf::from(DEFAULT_SOCKET)
}

impl Config {
    /// # Errors
    /// Something in it cannot be used.
    pub fn read(raw: Value) -> Result<Self, Failure> {
        let wrong = |cause: &dyn std::fmt::Display| {
            Failure::new(Code::Configuration, "cannot use the network's configuration", cause)
        };
        let mut words: Words = serde_json::from_value(raw.clone()).map_err(|error| wrong(&error))?;
        words.name = identifier("name", words.name)?;
        let place = match (words.bond.take(), words.fabric.take()) {
            (Some(bond), None) => Place::Bond(bond),
            (None, Some(fabric)) => Place::Fabric(fabric),
            _ => return Err(wrong(&"it names either a bond or a fabric")),
        };
        let class = words.args.cni.class.take().or_else(|| words.class.take());
        if class.is_some() && matches!(place, Place::Fabric(_)) {
            return Err(wrong(&"a fabric has no classes"));
        }
        Ok(Self { place, class, words, raw })
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Place};
    use serde_json::{Value, json};

    fn read(changes: Value) -> Result<Config, String> {
        let mut raw = json!({ "cniVersion": "1.1.0", "name": "net" });
        raw.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        Config::read(raw).map_err(|failure| failure.json("1.1.0")["msg"].as_str().unwrap().to_owned())
    }

    #[test]
    fn a_network_is_a_bond_or_a_fabric_and_a_container_may_choose_its_class() {
        let config = read(json!({ "bond": "bond0", "class": "bulk" })).unwrap();
        assert_eq!(
            (config.place, config.class.as_deref()),
            (Place::Bond("bond0".parse().unwrap()), Some("bulk"))
        );
        let config =
            read(json!({ "bond": "bond0", "class": "bulk", "args": { "cni": { "class": "voice" } } }));
        assert_eq!(config.unwrap().class.as_deref(), Some("voice"));
        let config = read(json!({ "fabric": "fab0" })).unwrap();
        assert_eq!((config.place, config.class), (Place::Fabric("fab0".parse().unwrap()), None));
        for (wrong, why) in [
            (json!({}), "either a bond or a fabric"),
            (json!({ "bond": "bond0", "fabric": "fab0" }), "either a bond or a fabric"),
            (json!({ "fabric": "fab0", "class": "bulk" }), "no classes"),
            (json!({ "bond": "a/b" }), "cannot be an interface name"),
            (json!({ "bond": "bond0", "args": { "cni": { "class": "Bulk" } } }), "not a name for a class"),
            (json!({ "bond": "bond0", "name": "../x" }), "1 to 200"),
        ] {
            let said = read(wrong.clone()).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }
}
