//! From figures to causes: which one costs most, and what would change it.

use crate::burst::{Heard, Sent};
use crate::flow::Sender;
use crate::load::Load;
use crate::side::{Member, Side};
use serde::{Deserialize, Serialize};
use std::time::Duration;

mod flows;
mod lanes;
#[cfg(test)]
mod tests;

/// TCP reaches what its links carry, from this part on: what a flow needs to find its rate is in a test of two seconds.
const REACHED: f64 = 0.85;
/// Who sends and works for more of the time does not wait for the link.
const WORKS: f64 = 0.6;
/// TCP's and IP's headers with timestamps.
const HEADERS: f64 = 52.0;
/// Ethernet's.
const ETHERNET: f64 = 14.0;

/// Which way traffic goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the host that asks.
    Up,
    /// To it.
    Down,
}

impl Direction {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// `up` or `down`
    pub const fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// One lane alone, both ways.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneTest {
    /// The member of the host that asks.
    pub member: String,
    /// The other host's.
    pub peer_member: String,
    /// What left, up and down.
    pub sent: [Sent; 2],
    /// What arrived of them.
    pub heard: [Heard; 2],
}

impl LaneTest {
    /// Whether it may carry more: the processor that sent was the limit.
    pub fn is_at_least(&self, way: Direction) -> bool {
        self.sent[way as usize].busy > WORKS
    }

    /// What it carries, in Mbit/s.
    pub fn mbit(&self, way: Direction) -> f64 {
        self.heard[way as usize].mbit()
    }
}

/// TCP over the whole bond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowTest {
    /// Which way.
    pub way: Direction,
    /// How many flows at a time.
    pub flows: u8,
    /// What arrived, in Mbit/s.
    pub mbit: f64,
    /// What the senders were kept back by.
    pub sender: Sender,
    /// How busy the sending host was, and the receiving one.
    pub load: [Load; 2],
}

/// What members carried before anything was sent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Watched {
    /// Members of the host that asks, with Mbit/s of both directions together,
    pub own: Vec<(String, f64)>,
    /// and of the other one.
    pub other: Vec<(String, f64)>,
}

impl Watched {
    /// From two looks at both hosts.
    pub fn between(before: &[Side; 2], after: &[&Side; 2], passed: Duration) -> Self {
        let of = |host: usize| {
            let grown = |member: &Member| {
                let was = before[host].members.iter().find(|was| was.name == member.name)?.bytes;
                Some((
                    member.name.clone(),
                    member.bytes.saturating_sub(was) as f64 * 8e-6 / passed.as_secs_f64(),
                ))
            };
            after[host].members.iter().filter_map(grown).collect()
        };
        Self { own: of(0), other: of(1) }
    }
}

/// All that was found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examination {
    /// The host that asks.
    pub own: Side,
    /// The other one.
    pub other: Side,
    /// What their links carried before.
    pub watched: Watched,
    /// Lanes alone.
    pub lanes: Vec<LaneTest>,
    /// TCP over all of them.
    pub flows: Vec<FlowTest>,
}

/// A cause, as a word that is never renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// A member carries no traffic.
    MemberDown,
    /// One host has fewer members.
    FewerMembers,
    /// A class has a member for itself.
    Reserved,
    /// No lane leads from a member to any of the other host's.
    NoLane,
    /// Frames over a lane do not arrive.
    Silent,
    /// Frames as long as the MTU do not arrive.
    Short,
    /// Others use the link.
    Competing,
    /// A lane carries less than the others.
    SlowLink,
    /// The policy keeps a flow on one link.
    Policy,
    /// The user's weights are not what links carry.
    Weights,
    /// The receiver's socket buffer.
    ReceiveBuffer,
    /// The sender's socket buffer.
    SendBuffer,
    /// The sending host's processor.
    SendingProcessor,
    /// The receiving host's processor.
    ReceivingProcessor,
    /// A processor handles frame by frame, because an offload is off.
    Offloads,
    /// One processor takes the interrupts of all links.
    Interrupts,
    /// Members share a bus that carries less than their links.
    SharedBus,
    /// Frames are lost, or arrive in another order.
    Loss,
    /// Frames over a lane take longer than over the others.
    Delay,
    /// One flow is slower than several are together.
    OneFlow,
    /// Something between TCP and the links: a shaper, or a filter.
    Between,
}

/// What keeps the bond below what it could carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// Which.
    pub code: Code,
    /// Which way; none: both.
    pub way: Option<Direction>,
    /// In words.
    pub text: String,
    /// What it costs, in Mbit/s of TCP, as far as one can tell.
    pub costs_mbit: f64,
    /// A command that helps, or shows more.
    pub hint: Option<String>,
}

/// What is said of an examination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// What TCP can have of the lanes that were tested, up and down, in Mbit/s.
    pub links_mbit: [f64; 2],
    /// What one flow of TCP had.
    pub one_flow_mbit: [f64; 2],
    /// Causes; the first costs most and is the bottleneck. None: the links are full.
    pub causes: Vec<Cause>,
    /// Lanes alone, and TCP over all of them.
    pub examination: Examination,
}

/// Which lanes are tested: each member of both hosts once, as far as a lane leads there, those first that carry most. By name.
pub(crate) fn pairs(own: &Side, other: &Side) -> Vec<(String, String)> {
    let mut lanes: Vec<_> = own.lanes.iter().collect();
    // In use, then up, then all others: what is silent is tested, too.
    lanes.sort_by_key(|lane| (std::cmp::Reverse(lane.share_ppm), lane.state != "up", lane.state == "cut"));
    let mut pairs: Vec<(String, String)> = Vec::new();
    for lane in lanes {
        let name =
            other.default_members().find(|member| member.mac == lane.peer_mac).map(|member| &member.name);
        let Some(name) = name.filter(|_| own.default_members().any(|member| member.name == lane.member))
        else {
            continue;
        };
        if lane.state != "cut" && !pairs.iter().any(|(one, another)| *one == lane.member || another == name) {
            pairs.push((lane.member.clone(), name.clone()));
        }
    }
    pairs.sort();
    pairs
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn mbit(rate: f64) -> String {
    if rate < 9.95 { format!("{rate:.1} Mbit/s") } else { format!("{rate:.0} Mbit/s") }
}

struct Case<'e> {
    all: &'e Examination,
    /// The part of an Ethernet frame that TCP has for itself.
    payload: f64,
    /// What a lane usually carries, of TCP.
    usual: f64,
    causes: Vec<Cause>,
}

/// What the figures say.
pub fn diagnose(examination: Examination) -> Diagnosis {
    let mtu = f64::from(examination.own.mtu.min(examination.other.mtu));
    let payload = (mtu - HEADERS) / (mtu + ETHERNET);
    let rates = |way| examination.lanes.iter().map(|lane| lane.mbit(way) * payload).collect::<Vec<_>>();
    let links_mbit = Direction::BOTH.map(|way| rates(way).iter().sum());
    let working = Direction::BOTH.iter().flat_map(|way| rates(*way)).filter(|rate| *rate > 0.0).collect();
    let one_flow_mbit =
        Direction::BOTH.map(|way| flow(&examination, way, true).map_or(0.0, |flow| flow.mbit));
    let mut case = Case { all: &examination, payload, usual: middle(working), causes: Vec::new() };
    case.members();
    case.lanes();
    for way in Direction::BOTH {
        case.flow(way, links_mbit[way as usize]);
    }
    let mut causes = case.causes;
    causes.sort_by(|one, other| other.costs_mbit.total_cmp(&one.costs_mbit));
    Diagnosis { links_mbit, one_flow_mbit, causes, examination }
}

fn flow(all: &Examination, way: Direction, one: bool) -> Option<&FlowTest> {
    all.flows.iter().find(|flow| flow.way == way && (flow.flows == 1) == one)
}

impl<'e> Case<'e> {
    fn add(&mut self, code: Code, costs_mbit: f64, text: String, hint: impl Into<Option<String>>) {
        self.causes.push(Cause { code, way: None, text, costs_mbit, hint: hint.into() });
    }

    fn add_way(&mut self, way: Direction, code: Code, costs_mbit: f64, text: String, hint: String) {
        self.causes.push(Cause { code, way: Some(way), text, costs_mbit, hint: Some(hint) });
    }

    fn hosts(&self) -> [(&'static str, &'e Side); 2] {
        [("this host", &self.all.own), ("the other host", &self.all.other)]
    }
}
