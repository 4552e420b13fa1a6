//! Classes: kinds of traffic that a host keeps apart, as it announces them to its peers.

use crate::Refusal;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// Most classes of a host, and their highest number; 0 is the number of what is in none.
pub const CLASSES_MAX: usize = 7;

/// Longest name of a class in bytes.
pub const CLASS_NAME_MAX: usize = 15;

/// What all traffic is called that is in no class; no class has this name.
pub const REST: &str = "rest";

/// Feature bit: the sender takes in mirrored frames and passes the first copy on.
pub const FEATURE_MIRROR: u32 = 1;

/// One class of a host. Hosts number theirs as they like; what two hosts call alike is one class.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Class {
    /// The sender's own number of it, 1 to [`CLASSES_MAX`]; [`crate::Member::class`] refers to it.
    pub number: u8,
    /// Whether other traffic may use its members while it needs them not.
    pub may_borrow: bool,
    /// Its name: see [`is_class_name`].
    pub name: String,
}

/// Whether a class may be called that: 1 to [`CLASS_NAME_MAX`] of `a-z`, `0-9`, `-` and `_`, and not [`REST`].
pub fn is_class_name(name: &str) -> bool {
    let known = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    (1..=CLASS_NAME_MAX).contains(&name.len()) && name.bytes().all(known) && name != REST
}

/// The rules for the classes of one message.
pub(crate) fn check(classes: &[Class]) -> Result<(), Refusal> {
    //= docs/arp-plus.md#3.9
    if classes.iter().any(|class| !(1..=CLASSES_MAX).contains(&usize::from(class.number))) {
        return Err(Refusal::ClassNumber);
    }
    if classes.iter().any(|class| !is_class_name(&class.name)) {
        return Err(Refusal::ClassName);
    }
    let twice = |(at, class): (usize, &Class)| {
        classes[..at].iter().any(|other| other.number == class.number || other.name == class.name)
    };
    if classes.iter().enumerate().any(twice) {
        return Err(Refusal::ClassTwice);
    }
    Ok(())
}
