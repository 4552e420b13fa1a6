//! The configuration of a network.

use crate::{
    call::identifier,
    failure::{Code, Failure},
};
use linkbraid_api::{ClassName, DEFAULT_SOCKET, LinkName};
use serde::Deserialize;
use serde_json::Value;
use std::{fmt::Display, path::PathBuf};

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

/// A network, as its file and the runtime have it. DEL has to work whatever ADD was refused for, so only what DEL needs is checked at once.
#[derive(Debug)]
pub struct Config {
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
    bond: Option<String>,
    pub fabric: Option<String>,
    class: Option<String>,
    /// Those that containers may ask for.
    #[serde(default)]
    classes: Vec<String>,
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
}

/// What the runtime asks for one container, from its annotations.
#[derive(Debug, Default, Deserialize)]
struct Args {
    #[serde(default)]
    cni: OfContainer,
}

/// `cni-args` of an element of the annotation `k8s.v1.cni.cncf.io/networks`, with Multus. Whoever makes a container writes it.
#[derive(Debug, Default, Deserialize)]
struct OfContainer {
    class: Option<String>,
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

/// What GC is to leave, by the name that libcni uses and by that of the first text of version 1.1.
const VALID: [&str; 2] = ["cni.dev/valid-attachments", "cni.dev/attachments"];

fn default_socket() -> PathBuf {
    PathBuf::from(DEFAULT_SOCKET)
}

fn wrong(cause: impl Display) -> Failure {
    Failure::new(Code::Configuration, "cannot use the network's configuration", cause)
}

impl Config {
    /// # Errors
    /// It is none, or the network has no name.
    pub fn read(raw: Value) -> Result<Self, Failure> {
        let mut words: Words = serde_json::from_value(raw.clone()).map_err(wrong)?;
        words.name = identifier("name", words.name)?;
        Ok(Self { words, raw })
    }

    /// Where containers are attached.
    ///
    /// # Errors
    /// The configuration does not name one place.
    pub fn place(&self) -> Result<Place, Failure> {
        let name = |text: &str| text.parse::<LinkName>().map_err(wrong);
        match (&self.words.bond, &self.words.fabric) {
            (Some(bond), None) => Ok(Place::Bond(name(bond)?)),
            (None, Some(fabric)) => Ok(Place::Fabric(name(fabric)?)),
            _ => Err(wrong("it names either a bond or a fabric")),
        }
    }

    /// The class of what the container sends: what it asks for, or what the network's file has.
    ///
    /// # Errors
    /// The file does not allow what it asks for, it is no class, or a fabric has none.
    pub fn class(&self) -> Result<Option<ClassName>, Failure> {
        let words = &self.words;
        let asked = words.args.cni.class.as_ref();
        let allowed = |class: &&String| words.class.as_ref() == Some(*class) || words.classes.contains(class);
        if let Some(class) = asked.filter(|class| !allowed(class)) {
            return Err(wrong(format!(
                "a container asks for the class '{class}', which 'classes' does not name"
            )));
        }
        let Some(class) = asked.or(words.class.as_ref()) else { return Ok(None) };
        if words.fabric.is_some() {
            return Err(wrong("a fabric has no classes"));
        }
        class.parse().map(Some).map_err(wrong)
    }

    /// What GC is to leave; none where nothing says that, and all is left.
    ///
    /// # Errors
    /// It is no list of attachments.
    pub fn valid(&self) -> Result<Option<Vec<Attachment>>, Failure> {
        let Some(said) = VALID.iter().find_map(|key| self.raw.get(key)) else { return Ok(None) };
        // A list without elements is null where it comes from Go.
        let said: Option<Vec<Attachment>> = Deserialize::deserialize(said).map_err(wrong)?;
        Ok(Some(said.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Place};
    use serde_json::{Value, json};

    fn read(changes: &Value) -> Config {
        let mut raw = json!({ "cniVersion": "1.1.0", "name": "net" });
        raw.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        Config::read(raw).unwrap()
    }

    fn refusal<T: std::fmt::Debug>(of: Result<T, crate::failure::Failure>) -> String {
        of.unwrap_err().json("1.1.0")["msg"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_network_is_a_bond_or_a_fabric() {
        assert_eq!(read(&json!({ "bond": "bond0" })).place().unwrap(), Place::Bond("bond0".parse().unwrap()));
        assert_eq!(
            read(&json!({ "fabric": "fab0" })).place().unwrap(),
            Place::Fabric("fab0".parse().unwrap())
        );
        for (wrong, why) in [
            (json!({}), "either a bond or a fabric"),
            (json!({ "bond": "bond0", "fabric": "fab0" }), "either a bond or a fabric"),
            (json!({ "bond": "a/b" }), "cannot be an interface name"),
        ] {
            let said = refusal(read(&wrong).place());
            assert!(said.contains(why), "{wrong}: {said}");
        }
        assert!(Config::read(json!({ "cniVersion": "1.1.0", "name": "../x" })).is_err());
    }

    #[test]
    fn a_container_gets_a_class_that_the_network_allows() {
        let asks = |class: &str| json!({ "cni": { "class": class } });
        for (words, class) in [
            (json!({ "bond": "bond0" }), None),
            (json!({ "bond": "bond0", "class": "bulk" }), Some("bulk")),
            (json!({ "bond": "bond0", "class": "bulk", "args": asks("bulk") }), Some("bulk")),
            (
                json!({ "bond": "bond0", "class": "bulk", "classes": ["voice"], "args": asks("voice") }),
                Some("voice"),
            ),
        ] {
            assert_eq!(read(&words).class().unwrap().as_deref(), class, "{words}");
        }
        for (wrong, why) in [
            (json!({ "fabric": "fab0", "class": "bulk" }), "no classes"),
            (json!({ "bond": "bond0", "class": "bulk", "args": asks("voice") }), "'voice'"),
            (json!({ "bond": "bond0", "classes": ["Bulk"], "args": asks("Bulk") }), "not a name for a class"),
        ] {
            let said = refusal(read(&wrong).class());
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }

    #[test]
    fn what_garbage_collection_leaves_is_said_by_one_of_two_names() {
        let one = json!([{ "containerID": "c1", "ifname": "net1" }]);
        for (key, value, count) in [
            ("cni.dev/valid-attachments", one.clone(), 1),
            ("cni.dev/attachments", one, 1),
            ("cni.dev/valid-attachments", Value::Null, 0),
        ] {
            assert_eq!(
                read(&json!({ key: value })).valid().unwrap().map(|all| all.len()),
                Some(count),
                "{key}"
            );
        }
        assert!(read(&json!({})).valid().unwrap().is_none(), "what nobody says is garbage is none");
    }
}
