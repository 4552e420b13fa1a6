//! Whether filters of IP keep what a bridge forwards: with `br_netfilter`, bridged packets pass the forward hook of nf_tables, whose
//! chains are those of `nft` and of today's `iptables`.

use crate::{
    Netlink,
    error::{Error, Kind, Result},
    netlink::Refusal,
    rtnl::{Raw, attribute, attributes, text},
};
use nix::errno::Errno;
use rtnetlink::sys::protocols::NETLINK_NETFILTER;

/// `NFNL_SUBSYS_NFTABLES` (linux/netfilter/nfnetlink.h), which is the upper byte of a message's type.
const NFTABLES: u16 = 10 << 8;
/// `NFT_MSG_GETCHAIN` and `NFT_MSG_GETRULE` (linux/netfilter/nf_tables.h).
const GET_CHAINS: u16 = NFTABLES | 4;
const GET_RULES: u16 = NFTABLES | 7;
/// Length of `struct nfgenmsg`, which starts a message. Its first byte is the family; 0 asks for all.
const HEADER: usize = 4;
/// Families (`NFPROTO_*`).
const INET: u8 = 1;
const IPV4: u8 = 2;
const IPV6: u8 = 10;
/// `NF_INET_FORWARD`, `NF_DROP`, `NF_ACCEPT` and `NFT_REG_VERDICT`.
const FORWARD: u32 = 2;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;
const VERDICT: u32 = 0;
/// Others can make these lists long.
const CHAINS_MAX: usize = 4096;
const RULES_MAX: usize = 65_536;

/// `NFTA_*` (linux/netfilter/nf_tables.h).
mod kind {
    pub const CHAIN_TABLE: u16 = 1;
    pub const CHAIN_NAME: u16 = 3;
    pub const CHAIN_HOOK: u16 = 4;
    pub const CHAIN_POLICY: u16 = 5;
    pub const HOOK_NUMBER: u16 = 1;
    pub const RULE_TABLE: u16 = 1;
    pub const RULE_CHAIN: u16 = 2;
    pub const RULE_EXPRESSIONS: u16 = 4;
    pub const EXPRESSION_NAME: u16 = 1;
    pub const EXPRESSION_DATA: u16 = 2;
    pub const META_KEY: u16 = 2;
    pub const CMP_OPERATION: u16 = 2;
    pub const CMP_DATA: u16 = 3;
    pub const IMMEDIATE_REGISTER: u16 = 1;
    pub const IMMEDIATE_DATA: u16 = 2;
    pub const DATA_VALUE: u16 = 1;
    pub const DATA_VERDICT: u16 = 2;
    pub const VERDICT_CODE: u16 = 1;
}
/// `NFT_META_IIFNAME`, `NFT_META_OIFNAME` and `NFT_CMP_EQ`.
const NAMES: [u32; 2] = [6, 7];
const EQUAL: u32 = 0;

/// A chain of the forward hook that drops what no rule admits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardChain {
    /// Its family, as `nft` calls it: `ip`, `ip6`, `inet`.
    pub family: &'static str,
    /// The table that it is in.
    pub table: String,
    /// Its name.
    pub name: String,
}

impl ForwardChain {
    /// Whether packets of IPv4, or of IPv6, pass it.
    #[must_use]
    pub fn has(&self, ipv6: bool) -> bool {
        self.family == "inet" || (self.family == "ip6") == ipv6
    }
}

/// The chains that drop packets between ports of this bridge, unless a rule admits some of them: those whose policy is to drop, or that
/// end so, and that have no rule which admits all packets between two ports. Nothing where the kernel has no nf_tables.
///
/// # Errors
/// As the kernel says.
pub async fn forward_drops(bridge: &str) -> Result<Vec<ForwardChain>> {
    let about = |refusal: Refusal| refusal.about("nf_tables", "cannot list its chains");
    let netlink = match Netlink::of(NETLINK_NETFILTER) {
        Err(Error { kind: Kind::Other(Errno::EPROTONOSUPPORT), .. }) => return Ok(Vec::new()),
        netlink => netlink?,
    };
    let all = match netlink.dump_some(GET_CHAINS, vec![0; HEADER], CHAINS_MAX).await {
        Err(refusal) if matches!(refusal.kind, Kind::BadValue | Kind::Unsupported) => return Ok(Vec::new()),
        chains => chains.map_err(about)?,
    };
    let chains: Vec<Chain<'_>> = all.iter().filter_map(Chain::read).collect();
    if !chains.iter().any(|chain| chain.hook == Some(FORWARD)) {
        return Ok(Vec::new());
    }
    let rules = netlink.dump_some(GET_RULES, vec![0; HEADER], RULES_MAX).await.map_err(about)?;
    let rules: Vec<Rule<'_>> = rules.iter().filter_map(Rule::read).collect();
    Ok(chains.iter().filter(|chain| chain.drops(&chains, &rules, bridge)).filter_map(Chain::named).collect())
}

struct Chain<'a> {
    family: u8,
    table: &'a [u8],
    name: &'a [u8],
    /// None for one that others jump to.
    hook: Option<u32>,
    policy: u32,
}

impl<'a> Chain<'a> {
    fn read(raw: &'a Raw) -> Option<Self> {
        let of = |kind| attribute(&raw.payload, HEADER, kind);
        let hook = of(kind::CHAIN_HOOK).and_then(|hook| attribute(hook, 0, kind::HOOK_NUMBER)).and_then(big);
        Some(Self {
            family: *raw.payload.first()?,
            table: of(kind::CHAIN_TABLE)?,
            name: of(kind::CHAIN_NAME)?,
            hook,
            policy: of(kind::CHAIN_POLICY).and_then(big).unwrap_or(ACCEPT),
        })
    }

    fn drops(&self, chains: &[Self], rules: &[Rule<'_>], bridge: &str) -> bool {
        let is_here = |family, table| (family, table) == (self.family, self.table);
        // Rules of what it may jump to count as its own, those of other hooks do not.
        let is_of_others = |rule: &Rule<'_>| {
            let chain =
                chains.iter().find(|chain| is_here(chain.family, chain.table) && chain.name == rule.chain);
            rule.chain != self.name && chain.is_none_or(|chain| chain.hook.is_some())
        };
        let here = || rules.iter().filter(|rule| is_here(rule.family, rule.table));
        let ends = || here().any(|rule| rule.chain == self.name && rule.ends_by_drop());
        self.hook == Some(FORWARD)
            && matches!(self.family, INET | IPV4 | IPV6)
            && (self.policy == DROP || ends())
            && !here().filter(|rule| !is_of_others(rule)).any(|rule| rule.admits(bridge))
    }

    fn named(&self) -> Option<ForwardChain> {
        let family = match self.family {
            INET => "inet",
            IPV4 => "ip",
            IPV6 => "ip6",
            _ => return None,
        };
        Some(ForwardChain { family, table: text(self.table), name: text(self.name) })
    }
}

struct Rule<'a> {
    family: u8,
    table: &'a [u8],
    chain: &'a [u8],
    expressions: Vec<Expression<'a>>,
}

impl<'a> Rule<'a> {
    fn read(raw: &'a Raw) -> Option<Self> {
        let of = |kind| attribute(&raw.payload, HEADER, kind);
        let expressions = of(kind::RULE_EXPRESSIONS).unwrap_or_default();
        Some(Self {
            family: *raw.payload.first()?,
            table: of(kind::RULE_TABLE)?,
            chain: of(kind::RULE_CHAIN)?,
            expressions: attributes(expressions, 0).map(|(_, data)| Expression::read(data)).collect(),
        })
    }

    /// All packets between ports of that bridge, and maybe others, are accepted.
    fn admits(&self, bridge: &str) -> bool {
        let mut is_name = false;
        let passes = self.expressions.iter().all(|expression| match *expression {
            Expression::Name => {
                is_name = true;
                true
            }
            Expression::Is(value) => std::mem::take(&mut is_name) && text(value) == bridge,
            Expression::Verdict(verdict) => verdict == ACCEPT,
            Expression::Aside => true,
            Expression::Reject | Expression::Other => false,
        });
        passes && self.expressions.iter().any(|of| matches!(of, Expression::Verdict(ACCEPT)))
    }

    /// All packets that come here are dropped, or refused.
    fn ends_by_drop(&self) -> bool {
        use Expression::{Aside, Reject, Verdict};
        self.expressions.iter().all(|of| matches!(of, Aside | Reject | Verdict(DROP)))
            && self.expressions.iter().any(|of| matches!(of, Reject | Verdict(DROP)))
    }
}

/// A part of a rule.
enum Expression<'a> {
    /// Takes the name of the interface that the packet comes by, or leaves by: that of the bridge, for all its ports.
    Name,
    /// What was taken before is this.
    Is(&'a [u8]),
    Verdict(u32),
    Reject,
    /// Lets all packets go on.
    Aside,
    Other,
}

impl<'a> Expression<'a> {
    fn read(expression: &'a [u8]) -> Self {
        let data = attribute(expression, 0, kind::EXPRESSION_DATA).unwrap_or_default();
        let number = |kind| attribute(data, 0, kind).and_then(big);
        let inner = |outer, kind| attribute(data, 0, outer).and_then(|value| attribute(value, 0, kind));
        match attribute(expression, 0, kind::EXPRESSION_NAME).map(text).as_deref() {
            Some("meta") if number(kind::META_KEY).is_some_and(|key| NAMES.contains(&key)) => Self::Name,
            Some("cmp") if number(kind::CMP_OPERATION) == Some(EQUAL) => {
                inner(kind::CMP_DATA, kind::DATA_VALUE).map_or(Self::Other, Self::Is)
            }
            Some("immediate") if number(kind::IMMEDIATE_REGISTER) == Some(VERDICT) => {
                let verdict = inner(kind::IMMEDIATE_DATA, kind::DATA_VERDICT);
                let code =
                    verdict.and_then(|verdict| attribute(verdict, 0, kind::VERDICT_CODE)).and_then(big);
                code.map_or(Self::Other, Self::Verdict)
            }
            Some("reject") => Self::Reject,
            Some("counter" | "log") => Self::Aside,
            _ => Self::Other,
        }
    }
}

/// A number of nf_tables, which is in network order.
fn big(value: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(value.get(..4)?.try_into().ok()?))
}
