//! The operation and the container, from the environment. All of it is checked before it is used for anything.

use crate::failure::{Code, Failure};
use linkbraid_api::LinkName;
use std::{env, path::PathBuf};

/// `CNI_COMMAND`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Add,
    Del,
    Check,
    Gc,
    Status,
    Version,
}

impl Operation {
    /// # Errors
    /// It is none of the interface's.
    pub fn from_environment() -> Result<Self, Failure> {
        Ok(match variable("CNI_COMMAND")?.as_str() {
            "ADD" => Self::Add,
            "DEL" => Self::Del,
            "CHECK" => Self::Check,
            "GC" => Self::Gc,
            "STATUS" => Self::Status,
            "VERSION" => Self::Version,
            other => return Err(wrong("CNI_COMMAND", format!("'{other}' is no operation"))),
        })
    }
}

/// A container, and what its interface is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    pub id: String,
    /// Where its network namespace is; none where that is gone.
    pub namespace: Option<PathBuf>,
    pub nic: LinkName,
}

/// What is to be done.
#[derive(Debug)]
pub enum Call {
    Add(Container),
    Del(Container),
    Check(Container),
    Gc,
    Status,
}

impl Call {
    /// # Errors
    /// What the operation needs is not in the environment.
    pub fn of(operation: Operation) -> Result<Self, Failure> {
        let made = |is_there: bool| {
            let namespace = env::var_os("CNI_NETNS").filter(|path| !path.is_empty()).map(PathBuf::from);
            if is_there && namespace.is_none() {
                return Err(wrong("CNI_NETNS", "it is not set"));
            }
            let nic = variable("CNI_IFNAME")?.parse().map_err(|cause| wrong("CNI_IFNAME", cause))?;
            Ok(Container { id: identifier("CNI_CONTAINERID", variable("CNI_CONTAINERID")?)?, namespace, nic })
        };
        Ok(match operation {
            Operation::Add => Self::Add(made(true)?),
            Operation::Check => Self::Check(made(true)?),
            Operation::Del => Self::Del(made(false)?),
            Operation::Gc => Self::Gc,
            Operation::Status | Operation::Version => Self::Status,
        })
    }
}

fn wrong(name: &str, cause: impl std::fmt::Display) -> Failure {
    Failure::new(Code::Environment, name, cause)
}

fn variable(name: &str) -> Result<String, Failure> {
    env::var(name).map_err(|_| wrong(name, "it is not set"))
}

/// A name that the interface allows, for a container or a network, of at most 200 bytes.
///
/// # Errors
/// It is none.
pub fn identifier(what: &str, text: String) -> Result<String, Failure> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && text.len() <= 200 && text.chars().all(allowed) {
        return Ok(text);
    }
    Err(wrong(
        what,
        format!("'{text}' is none: 1 to 200 of a-z, A-Z, 0-9, '_', '.' and '-', the first a letter or digit"),
    ))
}

#[cfg(test)]
mod tests {
    use super::identifier;

    #[test]
    fn identifiers_are_those_of_the_interface() {
        for good in ["bond0", "0a.b-c_D", &"a".repeat(200)] {
            assert!(identifier("name", good.to_owned()).is_ok(), "{good}");
        }
        for bad in ["", ".hidden", "-x", "a/b", "a b", "a\n", "ä", &"a".repeat(201)] {
            assert!(identifier("name", bad.to_owned()).is_err(), "{bad}");
        }
    }
}
