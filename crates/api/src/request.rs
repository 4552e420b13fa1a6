//! What the command can ask the daemon for.

use crate::LinkName;
use crate::bond::{BondAdd, BondDel, BondSet};
use crate::class::{ClassAdd, ClassDel, ClassSet, Run};
use crate::confirm::{Confirm, Tentative};
use crate::explain::Explain;
use crate::fabric::{FabricAdd, FabricDel, FabricSet};
use crate::member::{MemberAdd, MemberDel, MemberSet};
use serde::{Deserialize, Serialize};

/// A request of a client: a method of the interface [`varlink::INTERFACE`](crate::varlink::INTERFACE).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "method", content = "parameters", deny_unknown_fields)]
pub enum Request {
    /// `bond add`
    BondAdd(BondAdd),
    /// `bond set`
    BondSet(BondSet),
    /// `bond del`
    BondDel(BondDel),
    /// `member add`
    MemberAdd(MemberAdd),
    /// `member set`
    MemberSet(MemberSet),
    /// `member del`
    MemberDel(MemberDel),
    /// `class add`
    ClassAdd(ClassAdd),
    /// `class set`
    ClassSet(ClassSet),
    /// `class del`
    ClassDel(ClassDel),
    /// `class show [BOND]`
    ClassShow {
        /// One bond, or all.
        bond: Option<LinkName>,
    },
    /// `run --class NAME -- CMD`
    Run(Run),
    /// `fabric add`
    FabricAdd(FabricAdd),
    /// `fabric set`
    FabricSet(FabricSet),
    /// `fabric del`
    FabricDel(FabricDel),
    /// `fabric show [NAME]`
    FabricShow {
        /// One fabric, or all.
        name: Option<LinkName>,
    },
    /// `stats [NAME]`, of fabrics
    FabricStats {
        /// One fabric, or all.
        name: Option<LinkName>,
    },
    /// `apply FILE`
    Apply(Apply),
    /// `leave [BOND]`
    Leave {
        /// One bond, or all.
        bond: Option<LinkName>,
        /// Whether to join again instead.
        #[serde(default)]
        undo: bool,
    },
    /// A change with `--confirm TIME`
    Tentative(Tentative),
    /// `confirm`
    Confirm(Confirm),
    /// The change that waits to be confirmed, for `show`
    Changes {},
    /// `show [NAME]`: answered with bonds, or with one fabric where that has the name
    Show {
        /// One bond or fabric, or all bonds.
        name: Option<LinkName>,
    },
    /// `peers [BOND]`
    Peers {
        /// One bond, or all.
        bond: Option<LinkName>,
        /// Only the peer that has this address, MAC or host id.
        #[serde(default)]
        peer: Option<String>,
    },
    /// `lanes [BOND]`
    Lanes {
        /// One bond, or all.
        bond: Option<LinkName>,
        /// Only those to the peer that has this address, MAC or host id.
        #[serde(default)]
        peer: Option<String>,
    },
    /// `stats [NAME]`: as for `show`
    Stats {
        /// One bond or fabric, or all bonds.
        name: Option<LinkName>,
    },
    /// `stats --latency [NAME]`
    Latency {
        /// One bond, or all.
        name: Option<LinkName>,
    },
    /// `monitor [BOND]`, a call that takes more than one reply: the first one says from when on no event is missed, and each further
    /// one has an event, until the client hangs up.
    Monitor {
        /// One bond or fabric, or all.
        bond: Option<LinkName>,
    },
    /// `explain BOND FLOW`
    Explain(Explain),
    /// `check [IF...]`
    Check {
        /// Interfaces to look at; without any, the members of all bonds.
        interfaces: Vec<LinkName>,
    },
}

/// A configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfigFile {
    /// What the file is called, for messages.
    pub file: String,
    /// What is in it.
    pub text: String,
}

/// `apply FILE...`: the bonds and fabrics of this machine become as the file says ([`config`](crate::config)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// The first file.
    #[serde(flatten)]
    pub first: ConfigFile,
    /// Further files, in the order of their names. All are applied as one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<ConfigFile>,
    /// Whether the daemon only reports what it would do.
    #[serde(default)]
    pub dry_run: bool,
}
