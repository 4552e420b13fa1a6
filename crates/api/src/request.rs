//! What the command can ask the daemon for.

use crate::class::{BondClass, ClassAdd, ClassDel, ClassSet, Run};
use crate::fabric::{FabricAdd, FabricDel, FabricSet};
use serde::{Deserialize, Serialize};

/// One line from the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
        bond: Option<String>,
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
        name: Option<String>,
    },
    /// `stats [NAME]`, of fabrics
    FabricStats {
        /// One fabric, or all.
        name: Option<String>,
    },
    /// `apply FILE`
    Apply(Apply),
    /// `show [NAME]`: answered with bonds, or with one fabric where that has the name
    Show {
        /// One bond or fabric, or all bonds.
        name: Option<String>,
    },
    /// `peers [BOND]`
    Peers {
        /// One bond, or all.
        bond: Option<String>,
    },
    /// `lanes [BOND]`
    Lanes {
        /// One bond, or all.
        bond: Option<String>,
    },
    /// `stats [NAME]`: as for `show`
    Stats {
        /// One bond or fabric, or all bonds.
        name: Option<String>,
    },
    /// `stats --latency [NAME]`
    Latency {
        /// One bond, or all.
        name: Option<String>,
    },
    /// `monitor [BOND]`: answered with [`Reply::Done`](crate::Reply::Done), then with one
    /// [`Reply::Event`](crate::Reply::Event) for each event until the client hangs up.
    Monitor {
        /// One bond or fabric, or all.
        bond: Option<String>,
    },
    /// `check [IF...]`
    Check {
        /// Interfaces to look at; without any, the members of all bonds.
        interfaces: Vec<String>,
    },
}

/// How a class spreads over its lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Byte-fair weighted round robin over all lanes.
    #[default]
    Spread,
    /// One flow stays on one lane.
    Flow,
    /// The first live lane carries everything.
    ActiveBackup,
    /// Each frame leaves twice, over two lanes, and the peer passes on the first copy. Of classes only.
    Mirror,
}

/// How long a piece of one flow stays on a lane before the next lane takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stripe {
    /// From the members' rates: about 200 us of the slowest one.
    #[default]
    Auto,
    /// This many microseconds of the slowest member's rate.
    Us(u32),
    /// This many bytes.
    Bytes(u32),
}

/// A member's share of the traffic, in Mbit/s of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The link's own speed, re-read when it changes.
    #[default]
    Auto,
    /// A fixed number of Mbit/s.
    Mbit(u32),
}

/// `bond add NAME --member IF[,IF...] ...`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BondAdd {
    /// The bond's interface name.
    pub name: String,
    /// The interfaces that join, the first one gives the bond its MAC.
    pub members: Vec<String>,
    /// Addresses for the bond, `ADDRESS/PREFIX`, besides those that move from the members.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// How traffic spreads over the members.
    #[serde(default)]
    pub policy: Policy,
    /// The bond's MTU in bytes; without it all members must have the same one.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// The stripe length.
    #[serde(default)]
    pub stripe: Stripe,
    /// Whether duplicate ACKs of striped flows are damped.
    #[serde(default = "yes")]
    pub damping: bool,
    /// Allows a member that carries the default route; its addresses and routes move to the bond.
    #[serde(default)]
    pub move_address: bool,
    /// When links are probed and trusted.
    #[serde(default)]
    pub inspector: InspectorSet,
    /// Classes that come with the bond.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<BondClass>,
}

/// Settings of the inspector (docs/arp-plus.md, section 11): only what is given changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InspectorSet {
    /// Whether lanes are probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<bool>,
    /// Milliseconds between two proofs of a lane that carries data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_interval_ms: Option<u32>,
    /// A lane is lost after this many intervals without proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_multiplier: Option<u8>,
    /// Milliseconds that a member whose carrier is back waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_delay_ms: Option<u32>,
}

fn yes() -> bool {
    true
}

/// `bond set NAME ...`: only what is given changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BondSet {
    /// The bond.
    pub name: String,
    /// A new policy.
    #[serde(default)]
    pub policy: Option<Policy>,
    /// A new MTU in bytes, for the bond and all its members.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// A new stripe length (connections made from now on use it).
    #[serde(default)]
    pub stripe: Option<Stripe>,
    /// Damping on or off.
    #[serde(default)]
    pub damping: Option<bool>,
    /// When links are probed and trusted.
    #[serde(default)]
    pub inspector: InspectorSet,
    /// Whether it is measured where the time goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<bool>,
    /// Addresses, `ADDRESS/PREFIX`, in place of those that were given before; others that it has stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
}

/// `bond del NAME`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BondDel {
    /// The bond.
    pub name: String,
}

/// `member add BOND IF`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberAdd {
    /// The bond.
    pub bond: String,
    /// The interface that joins.
    pub interface: String,
    /// Its share.
    #[serde(default)]
    pub weight: Weight,
    /// Allows an interface that carries the default route.
    #[serde(default)]
    pub move_address: bool,
    /// Admits it though no peer answers through it.
    #[serde(default)]
    pub force: bool,
    /// The class whose member it becomes; absent: it carries all other traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}

/// `member set BOND IF --weight N|auto`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberSet {
    /// The bond.
    pub bond: String,
    /// The member.
    pub interface: String,
    /// Its new share.
    #[serde(default)]
    pub weight: Option<Weight>,
}

/// `member del BOND IF`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberDel {
    /// The bond.
    pub bond: String,
    /// The member that leaves.
    pub interface: String,
    /// Removes the last member, too: the bond stays without any.
    #[serde(default)]
    pub force: bool,
}

/// `apply FILE`: the bonds and fabrics of this machine become as the file says ([`config`](crate::config)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// What the file is called, for messages.
    pub file: String,
    /// What is in it.
    pub text: String,
    /// Whether it is only told what would be done.
    #[serde(default)]
    pub dry_run: bool,
}
