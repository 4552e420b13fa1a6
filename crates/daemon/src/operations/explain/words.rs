//! What the kernel and the data path say of a frame, as steps in words.

use super::frame::Ends;
use crate::{
    io::{group::Groups, state::SavedClass},
    world::{bond::Bond, driven::Driven},
};
use linkbraid_api::{ExplainRecord, Flow, FlowProtocol, Policy, REST, StepLaneRecord, StepRecord};
use linkbraid_dataplane::{Explained, LanesNow, Why};
use linkbraid_link::{NeighbourState, NextHop, RouteKind};
use linkbraid_proto::{
    arp_plus::Peer,
    host::{DEFAULT_CLASS, MacKind, Plan},
};
use linkbraid_wire::{Guest, MacAddr};

/// Who sends the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum From {
    /// This host.
    Host,
    /// A machine or container behind the bond.
    Guest(Guest),
}

/// All that is known of the frame.
pub(super) struct Told<'w> {
    pub bond: &'w Bond,
    pub flow: Flow,
    pub from: From,
    pub hop: NextHop,
    /// As it comes to the data path.
    pub ends: Ends,
    pub explained: Explained,
    /// How far the lanes of its plan are.
    pub now: LanesNow,
}

impl Told<'_> {
    pub(super) fn record(&self) -> ExplainRecord {
        let driven = self.bond.driven();
        let class = self.bond.class_name(self.explained.class);
        let plan = self.explained.plan.and_then(|number| driven.host.image().plans.get(&number));
        let member = self.explained.slot.map(|slot| driven.name_of(slot));
        let second =
            self.explained.second.and_then(|at| plan?.lanes.get(at)).map(|lane| driven.name_of(lane.slot));
        let [destination_mac, source_mac] = [0, 6].map(|at| mac_at(&self.explained.frame, at).to_string());
        let mut steps = vec![
            step("route", self.route()),
            step("neighbour", self.neighbour()),
            step("source", self.source()),
            step("class", self.class()),
            step("receiver", self.receiver(&driven)),
        ];
        if let Some(plan) = plan {
            let lanes = self.lanes(&driven, plan);
            steps.push(StepRecord { lanes, ..step("plan", self.plan(plan)) });
        }
        if let Some(member) = &member {
            steps.push(step("lane", self.lane(member, second.as_deref(), plan)));
            let ahead = self.ahead(&driven);
            let text = format!("leaves by {member}, from {source_mac} to {destination_mac}{ahead}");
            steps.push(step("frame", text));
        }
        let reason = self.explained.reason;
        let sent = reason.verdict == "sent";
        let verdict = if sent { "sent" } else { "dropped" };
        steps.push(step(verdict, format!("{} (counter {})", reason.sentence, reason.name)));
        ExplainRecord {
            bond: self.bond.saved.name.to_string(),
            flow: self.flow,
            sent,
            reason: reason.name.to_owned(),
            member,
            second_member: second,
            class: class.map(Into::into),
            source_mac,
            destination_mac,
            steps,
        }
    }

    fn route(&self) -> String {
        let (to, bond) = (self.flow.destination, &self.bond.saved.name);
        match (self.hop.kind, self.hop.gateway) {
            (RouteKind::Multicast, _) => format!("{to} is a group"),
            (RouteKind::Broadcast, _) => format!("{to} is every host of the network on {bond}"),
            _ if matches!(self.from, From::Guest(_)) => {
                format!("the guest's own routes are not known here; {to} is taken to be on its network")
            }
            (_, Some(gateway)) => format!("{to} is behind the router {gateway}, on the network of {bond}"),
            (_, None) => format!("{to} is on the network of {bond}"),
        }
    }

    fn neighbour(&self) -> String {
        let mac = self.ends.destination;
        let to = self.hop.gateway.unwrap_or(self.flow.destination);
        match self.hop.kind {
            RouteKind::Multicast => format!("the group's MAC is {mac}, by its address"),
            RouteKind::Broadcast => format!("every host's MAC is {mac}"),
            _ => match self.hop.state.map(state) {
                Some(state) => format!("{to} is at {mac}: the kernel's entry is {state}"),
                None => format!("{to} is at {mac}, as ARP+ says"),
            },
        }
    }

    fn source(&self) -> String {
        let mac = self.ends.source;
        match &self.from {
            From::Host => {
                format!("{} is this host: the frame comes from the bond's MAC {mac}", self.flow.source)
            }
            From::Guest(Guest { vlan: 0, .. }) => {
                format!("{} is a guest: the frame comes from its own MAC {mac}", self.flow.source)
            }
            From::Guest(Guest { vlan, .. }) => {
                format!(
                    "{} is a guest in VLAN {vlan}: the frame comes from its own MAC {mac}",
                    self.flow.source
                )
            }
        }
    }

    fn class(&self) -> String {
        let classes = &self.bond.saved.classes;
        if classes.is_empty() {
            return "the bond has no classes".to_owned();
        }
        // Rules are numbered as `class show` does.
        let order = self.bond.rules.in_order(classes);
        let found = self.explained.rule.and_then(|place| self.bond.rules.at(place));
        let at = found.and_then(|of| order.iter().position(|other| *other == of));
        let has_groups = order.iter().take(at.unwrap_or(order.len())).any(|(class, place)| match place {
            None => true,
            Some(place) => classes
                .iter()
                .find(|one| one.number == *class)
                .and_then(|one| one.rules.get(*place))
                .is_some_and(|rule| rule.cgroup.is_some()),
        });
        let words = match found.zip(at) {
            Some(((number, place), at)) => {
                let class = classes.iter().find(|class| class.number == number);
                let name = class.map_or(REST, |class| &class.name);
                let matches = match (class, place) {
                    (Some(class), Some(place)) => {
                        class.rules.get(place).map(ToString::to_string).unwrap_or_default()
                    }
                    (Some(class), None) => {
                        format!("cgroup={}", Groups::path(&self.bond.rules.group, &class.name))
                    }
                    (None, _) => String::new(),
                };
                format!("{name}: rule {} is the first one that matches, {matches}", at + 1)
            }
            None => format!("{REST}: no rule matches"),
        };
        match has_groups {
            true => words + "; rules by control group were tried with the daemon's own",
            false => words,
        }
    }

    /// Whether it leaves before others that wait in the member's queue.
    fn ahead(&self, driven: &Driven) -> String {
        let class = self.bond.saved.classes.iter().find(|class| class.number == self.explained.class);
        let member = driven.members.iter().find(|member| Some(member.slot) == self.explained.slot);
        let queue = member.and_then(|member| self.bond.queue(member.ifindex));
        match queue.filter(|queue| class.is_some_and(SavedClass::has_precedence) && queue.has_frames()) {
            Some(queue) if queue.is_ours() => "; ahead of others in its queue".to_owned(),
            Some(queue) => format!("; with priority 6, as its {} decides", queue.kind),
            None => String::new(),
        }
    }

    fn receiver(&self, driven: &Driven) -> String {
        let host = &driven.host;
        let mac = self.ends.destination;
        if mac.is_multicast() {
            return "many hosts".to_owned();
        }
        let named = |plan: u32| {
            host.arp_plus()
                .peers()
                .find(|peer| host.plan_of(&peer.key) == Some(plan))
                .map_or_else(|| "that is gone".to_owned(), peer_name)
        };
        match host.image().peer_macs.get(&mac) {
            Some(row) if row.kind == MacKind::Guest => {
                format!("{mac} is a guest behind the peer {}", named(row.plan))
            }
            Some(row) => format!("{mac} is the peer {}", named(row.plan)),
            None => format!("{mac} is a plain host: no peer has this MAC"),
        }
    }

    fn plan(&self, plan: &Plan) -> String {
        let lanes = match plan.lanes.len() {
            0 => "no lane".to_owned(),
            1 => "1 lane".to_owned(),
            n => format!("{n} lanes"),
        };
        let class = self.explained.class;
        let is_own = class != DEFAULT_CLASS && self.explained.plan != self.explained.base;
        let whose = match self.bond.class_name(class) {
            Some(name) if is_own => format!("of class {name}"),
            Some(name) => format!("of {REST}, because class {name} has none of its own here"),
            None if self.bond.saved.classes.is_empty() => String::new(),
            None => format!("of {REST}"),
        };
        format!("{lanes} {whose}").trim_end().to_owned() + &format!(", policy {}", plan.policy.word())
    }

    fn lanes(&self, driven: &Driven, plan: &Plan) -> Vec<StepLaneRecord> {
        let kbit = |at: usize| plan.rates.get(at).copied().unwrap_or(plan.lanes[at].weight);
        let own = |at: &usize| plan.lanes[*at].class == DEFAULT_CLASS;
        let sum: u64 = (0..plan.lanes.len()).filter(own).map(|at| u64::from(kbit(at))).sum();
        let taken = [self.explained.lane.map(|(at, _)| at), self.explained.second];
        let record = |at: usize| {
            let lane = &plan.lanes[at];
            let share = if own(&at) { u64::from(kbit(at)) * 1_000_000 / sum.max(1) } else { 0 };
            StepLaneRecord {
                member: driven.name_of(lane.slot),
                peer_mac: lane.peer_mac.map(|mac| mac.to_string()),
                kbit: kbit(at),
                share_ppm: u32::try_from(share).unwrap_or(u32::MAX),
                // Round robin counts frames.
                ahead_bytes: self.now.ahead.get(at).copied().filter(|_| plan.policy != Policy::RoundRobin),
                borrowed_from: self.bond.class_name(lane.class).map(Into::into),
                avoided: self.explained.avoided >> lane.slot & 1 == 1,
                taken: taken.contains(&Some(at)),
            }
        };
        (0..plan.lanes.len()).map(record).collect()
    }

    fn lane(&self, member: &str, second: Option<&str>, plan: Option<&Plan>) -> String {
        let policy = plan.map(|plan| plan.policy).unwrap_or_default();
        let stripes = self.flow.protocol == FlowProtocol::Tcp && policy != Policy::RoundRobin;
        let Some((_, why)) = self.explained.lane else {
            return match self.explained.reason.name {
                "tx_guest" => format!(
                    "{member}: it speaks for this guest, so that a switch has the guest's MAC on one port"
                ),
                "tx_report" => format!("{member}: the elected member reports groups"),
                _ => format!("{member}, and a copy by one member of each other segment"),
            };
        };
        match why {
            Why::Only => format!("{member}: the plan has no other lane"),
            Why::First => format!("{member}: the first lane whose member works carries everything"),
            Why::Flow if matches!(self.from, From::Host) => format!(
                "{member}: by the hash of addresses and ports; a socket of this host may have drawn another hash, and stays on that lane"
            ),
            Why::Flow => format!("{member}: by the hash of the flow, which stays there"),
            Why::Hash => format!("{member}: by what policy {} names of the frame", policy.word()),
            Why::Ack => {
                format!("{member}: by the hash of the flow; ACKs without data stay on one lane, in order")
            }
            Why::Latest if stripes => format!(
                "{member}: it is furthest behind in virtual time now; each stripe of the flow takes the lane that is"
            ),
            Why::Latest => {
                format!(
                    "{member}: it is furthest behind in virtual time now; each frame takes the lane that is"
                )
            }
            Why::Grows => format!("{member}: the last stripe of this flow is there, and still too short"),
            Why::Pair => match second {
                Some(second) => {
                    format!(
                        "{member} and {second}: the first lane that works, and the one that shares least with it"
                    )
                }
                None => format!("{member}: the first lane that works"),
            },
        }
    }
}

fn step(name: &str, text: String) -> StepRecord {
    StepRecord { name: name.to_owned(), text, lanes: Vec::new() }
}

fn mac_at(frame: &[u8], at: usize) -> MacAddr {
    MacAddr(frame.get(at..at + 6).and_then(|mac| mac.try_into().ok()).unwrap_or_default())
}

fn peer_name(peer: &Peer) -> String {
    peer.address().map_or_else(|| peer.mac().to_string(), |address| address.to_string())
}

/// As `ip neigh` has it.
const fn state(state: NeighbourState) -> &'static str {
    match state {
        NeighbourState::Incomplete => "incomplete",
        NeighbourState::Reachable => "reachable",
        NeighbourState::Stale => "stale",
        NeighbourState::Delay => "delay",
        NeighbourState::Probe => "probe",
        NeighbourState::Failed => "failed",
        NeighbourState::NoArp => "noarp",
        NeighbourState::Permanent => "permanent",
    }
}
