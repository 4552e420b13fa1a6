//! Names that users give. One is checked when it is made of text, by whatever reads that text: the command line, a request, a
//! file. So whoever has one may make it part of a path or of a command.

use crate::{REST, limits};
use serde::{Deserialize, Deserializer, Serialize};
use std::{borrow::Borrow, fmt, ops::Deref, str::FromStr};

/// Makes a type of names; the function gives the reason why a text is none, or nothing.
macro_rules! name {
    ($(#[doc = $doc:literal])+ $Name:ident, $refusal:path) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(try_from = "String")]
        pub struct $Name(String);

        impl $Name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $Name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                match $refusal(&text) {
                    None => Ok(Self(text)),
                    Some(cause) => Err(cause),
                }
            }
        }

        impl FromStr for $Name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                text.to_owned().try_into()
            }
        }

        impl From<$Name> for String {
            fn from(name: $Name) -> Self {
                name.0
            }
        }

        impl From<&$Name> for String {
            fn from(name: &$Name) -> Self {
                name.0.clone()
            }
        }

        impl Deref for $Name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $Name {
            fn borrow(&self) -> &str {
                self
            }
        }

        impl PartialEq<str> for $Name {
            fn eq(&self, other: &str) -> bool {
                **self == *other
            }
        }

        impl PartialEq<&str> for $Name {
            fn eq(&self, other: &&str) -> bool {
                **self == **other
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.pad(self)
            }
        }
    };
}

name! {
    /// The name of an interface: a bond, a fabric, or a link that is a member. As the kernel takes it (`dev_valid_name` in
    /// net/core/dev.c), without `%`, which the kernel replaces by a number.
    LinkName, not_a_link
}

name! {
    /// The name of a class; not that of the default class.
    ClassName, not_a_class
}

impl LinkName {
    /// The name of an interface that is there, or was: the kernel has checked it.
    pub fn of_link(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Reads such a name, which the kernel may have taken though a user cannot give it here.
    ///
    /// # Errors
    /// It is no string.
    pub fn read_of_link<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self)
    }

    /// Names with commas between them, as options that take several are written.
    pub(crate) fn list(names: &[Self]) -> String {
        names.iter().map(Self::as_str).collect::<Vec<_>>().join(",")
    }
}

fn not_a_link(text: &str) -> Option<String> {
    let allowed = "a name has 1 to 15 bytes, no space, '/', ':' or '%'";
    let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | '%');
    let is_none = text.is_empty()
        || text.len() > limits::INTERFACE_NAME_MAX
        || text.contains(bad)
        || [".", ".."].contains(&text);
    is_none.then(|| format!("'{text}' cannot be an interface name; {allowed}"))
}

fn not_a_class(text: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let cause = if text == REST {
        "it is that of the default class".to_owned()
    } else if text.is_empty() || text.len() > limits::CLASS_NAME_MAX || !text.chars().all(allowed) {
        format!("1 to {} of a-z, 0-9, '-' and '_'", limits::CLASS_NAME_MAX)
    } else {
        return None;
    };
    Some(format!("'{text}' is not a name for a class; {cause}"))
}

#[cfg(test)]
mod tests;
