//! How requests and replies look on the socket: Varlink (<https://varlink.org>), JSON objects with a zero byte behind each. A call
//! has the name of a method and its parameters:
//!
//! ```text
//! {"method":"org.linkbraid.Daemon.Peers","parameters":{"bond":"bond0"}}
//! {"parameters":{"peers":[...]}}
//! ```
//!
//! The file with the description is made from the types of this crate by a test of this module.

use crate::{Error, Request};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[cfg(test)]
mod tests;

/// The interface: each [`Request`] is a method of it.
pub const INTERFACE: &str = "org.linkbraid.Daemon";

/// What comes before the name of a method.
const PREFIX: &str = "org.linkbraid.Daemon.";

/// The description of the interface, with every record.
pub const DESCRIPTION: &str = include_str!("../../../docs/reference/org.linkbraid.Daemon.varlink");

/// A call, without what the library reads of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// The interface, a dot, and the name.
    pub method: String,
    /// What is given to it; nothing is the same as no fields.
    #[serde(default)]
    pub parameters: Option<Value>,
}

/// The error of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "error", content = "parameters")]
pub enum Refusal {
    /// What was asked for is refused, or failed; nothing was changed.
    #[serde(rename = "org.linkbraid.Daemon.Refused")]
    Refused(Error),
}

impl TryFrom<Method> for Request {
    type Error = serde_json::Error;

    fn try_from(call: Method) -> Result<Self, Self::Error> {
        let name = call.method.strip_prefix(PREFIX).unwrap_or(&call.method);
        let parameters = call.parameters.unwrap_or_else(|| json!({}));
        serde_json::from_value(json!({"method": name, "parameters": parameters}))
    }
}

impl TryFrom<&Request> for Method {
    type Error = serde_json::Error;

    fn try_from(request: &Request) -> Result<Self, Self::Error> {
        let call: Self = serde_json::from_value(serde_json::to_value(request)?)?;
        Ok(Self { method: format!("{PREFIX}{}", call.method), ..call })
    }
}

impl Request {
    /// Whether it only shows something that the daemon knows already: whoever may read may ask it. What is not named here, he may not.
    pub fn only_shows(&self) -> bool {
        matches!(
            self,
            Self::Show { .. }
                | Self::Peers { .. }
                | Self::Lanes { .. }
                | Self::Stats { .. }
                | Self::Latency { .. }
                | Self::ClassShow { .. }
                | Self::FabricShow { .. }
                | Self::FabricStats { .. }
                | Self::Changes {}
                | Self::Monitor { .. }
        )
    }
}
