//! `udp:etcd://HOST:PORT/NAME`: nodes that find each other by etcd. A program of its own, `linkbraid-etcd`, registers this node, watches who else
//! does, and writes all of them into a directory file ([`crate::directory`]); the fabric knows that file alone. So it works on, and starts
//! again, while etcd is away.

mod registrar;

pub use registrar::{Order, PROGRAM as ETCD, Registrar, Report};

use crate::{Join, limits::ETCD_NAME_MAX};
use std::{net::SocketAddr, path::PathBuf};

/// Where what etcd said last is kept.
const CACHE: &str = "/var/cache/linkbraid";

/// The part of an address from `etcd://` on, with the options that are about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etcd {
    /// `HOST:PORT` of one of etcd's servers. The others are learned from it.
    pub endpoint: String,
    /// What the nodes of this fabric have in common.
    pub name: String,
    /// The address of this node's first queue; none: that from which the server is reached.
    pub own: Option<SocketAddr>,
    /// Further servers, certificates, name and password: a TOML file.
    pub login: Option<PathBuf>,
    cache: Option<PathBuf>,
}

impl Etcd {
    /// Reads `HOST:PORT/NAME`. What is wrong otherwise.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let shape = || format!("'etcd://{text}' is not etcd://HOST:PORT/NAME");
        let (endpoint, name) = text.split_once('/').ok_or_else(shape)?;
        let (host, port) = endpoint.rsplit_once(':').ok_or_else(shape)?;
        let good = |host: &str| {
            host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]%".contains(&byte))
                && !host.is_empty()
        };
        if !good(host) || port.parse::<u16>().ok().is_none_or(|port| port == 0) {
            return Err(shape());
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if !(1..=ETCD_NAME_MAX).contains(&name.len()) || name.starts_with('.') || !name.bytes().all(is_name) {
            let allowed = "letters, digits, '.', '-' and '_', and no '.' first";
            return Err(format!("name '{name}' has something else than 1 to {ETCD_NAME_MAX} {allowed}"));
        }
        let (endpoint, name) = (endpoint.to_owned(), name.to_owned());
        Ok(Self { endpoint, name, own: None, login: None, cache: None })
    }

    /// Takes an option; none: it is not about etcd. What is wrong with its value otherwise.
    pub(crate) fn option(&mut self, name: &str, value: &str) -> Option<Result<(), String>> {
        let path = |value: &str| {
            let path = PathBuf::from(value);
            if path.is_absolute() { Ok(path) } else { Err(format!("'{value}' is not an absolute path")) }
        };
        let set = match name {
            "own" => match value.parse::<SocketAddr>() {
                Ok(own) if own.port() > 0 && !own.ip().is_unspecified() && !own.ip().is_multicast() => {
                    self.own = Some(own);
                    Ok(())
                }
                _ => Err(format!("own '{value}' is not the ADDRESS:PORT of one node")),
            },
            "login" => path(value).map(|path| self.login = Some(path)),
            "cache" => path(value).map(|path| self.cache = Some(path)),
            _ => return None,
        };
        Some(set)
    }

    /// The directory file of a node.
    #[must_use]
    pub fn file(&self, join: &Join) -> PathBuf {
        let usual = || PathBuf::from(CACHE).join(format!("{}-{}", self.name, join.node));
        self.cache.clone().unwrap_or_else(usual)
    }

    /// What the keys of its nodes begin with; their numbers follow.
    #[must_use]
    pub fn prefix(&self) -> String {
        format!("/linkbraid/{}/nodes/", self.name)
    }
}

#[cfg(test)]
mod tests;
