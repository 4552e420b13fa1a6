//! TCP over all lanes together.

use super::{Case, Code, Direction, FlowTest, LaneTest, REACHED, Side, flow, mbit};
use crate::limits;
use crate::load::Load;
use crate::side::Member;
use linkbraid_api::{FindingRecord, Policy};

/// A processor is the limit from this part of its time on.
const BUSY: f64 = 0.85;
/// A buffer is the limit where the flow waits for it for this part of its time.
const WAITS: f64 = 0.3;
/// A window is full where what a flow has in a round trip takes at least this part of the buffer: half of it is for bookkeeping
/// (tcp_adv_win_scale of tcp(7)). Below, the kernel had not opened the window yet.
const FILLS: f64 = 0.25;
/// From this part on of what links carry, several flows have all of it: no lane keeps them back.
const ALL: f64 = 0.95;
/// Segments sent again, of all: more than full queues cost.
const AGAIN: f64 = 0.02;
/// A share is wrong if it is so many times what the lane carries of all, or the reverse.
const MISJUDGED: f64 = 1.5;
/// Frames that take so much longer by one lane, in microseconds, keep those of the others waiting.
const LATE_US: i128 = 10_000;
/// A lane that loses more of the frames that it carries alone loses too many.
const LOST: f64 = 0.01;

impl Case<'_> {
    /// What TCP has of all lanes together. One cause a direction: the first that explains it.
    pub(super) fn flow(&mut self, way: Direction, links: f64) {
        let Some(one) = flow(self.all, way, true) else { return };
        let missing = (links - one.mbit).max(0.0);
        let at_least = self.all.lanes.iter().any(|lane| lane.is_at_least(way));
        if one.mbit >= links * REACHED && !at_least {
            return;
        }
        let (from, to) = match way {
            Direction::Up => (&self.all.own, &self.all.other),
            Direction::Down => (&self.all.other, &self.all.own),
        };
        let names = match way {
            Direction::Up => ["this host", "the other host"],
            Direction::Down => ["the other host", "this host"],
        };
        let waited = |us: u64| us as f64 / one.sender.busy_us.max(1) as f64;
        let again = one.sender.again as f64 / one.sender.segments.max(1) as f64;
        let many = flow(self.all, way, false).map_or(0.0, |flow| flow.mbit);
        let of = if at_least { "links that carry more than one processor sends" } else { &mbit(links) };
        let head = format!("one flow {} has {} of {of}", way.word(), mbit(one.mbit));
        let (code, text, hint) = if !from.policy.spreads() {
            let hint = format!("linkbraid bond set {} --policy spread", from.bond);
            (
                Code::Policy,
                format!("{head}: the policy {} of {} keeps it on one link", from.policy.word(), names[0]),
                hint,
            )
        } else if let Some((name, text)) = self.misjudged(from, way) {
            let hint = format!("linkbraid member set {} {name} --weight-fixed off", from.bond);
            (Code::Weights, format!("{head}: {text}"), hint)
        } else if waited(one.sender.window_us) > WAITS && fills(one, to.receive_buffer) {
            let text = format!(
                "{head}: the receive buffer of {} is full, {} at most",
                names[1],
                bytes(to.receive_buffer)
            );
            (Code::ReceiveBuffer, text, "sysctl -w net.ipv4.tcp_rmem='4096 131072 16777216'".to_owned())
        } else if waited(one.sender.buffer_us) > WAITS {
            let text = format!(
                "{head}: the send buffer of {} is full, {} at most",
                names[0],
                bytes(from.send_buffer)
            );
            (Code::SendBuffer, text, "sysctl -w net.ipv4.tcp_wmem='4096 65536 16777216'".to_owned())
        } else if (at_least || one.load[1].busy > BUSY) && one.load[1].busy >= one.load[0].busy {
            let known = [("offloads", Code::Offloads), ("interrupts", Code::Interrupts)];
            processor(&head, (to, names[1]), &one.load[1], &known, Code::ReceivingProcessor)
        } else if at_least || one.load[0].busy > BUSY {
            let known = [("offloads", Code::Offloads)];
            processor(&head, (from, names[0]), &one.load[0], &known, Code::SendingProcessor)
        } else if let Some((name, found)) = shares([(from, names[0]), (to, names[1])]) {
            let text = format!("{head}: '{}' of {name}: {}", found.object, found.text);
            (Code::SharedBus, text, found.hint.clone().unwrap_or_default())
        } else if let Some(text) = self.lost(way) {
            (Code::Loss, format!("{head}: {text}"), format!("ip -s -s link show dev {}", from.bond))
        } else if many < links * ALL && self.blame_lanes(way, missing) {
            return;
        } else if let Some(text) = self.late(way) {
            (Code::Delay, format!("{head}: {text}"), format!("linkbraid lanes {}", from.bond))
        } else if again > AGAIN {
            let why = match from.damping && from.policy == Policy::Spread {
                true => "frames are lost where links meet",
                false => "without damping segments arrive in another order, and TCP takes them for lost",
            };
            let text = format!("{head}: {:.1} % of its segments are sent again: {why}", again * 100.0);
            congested(text, (from, names[0]))
        } else if many >= links * REACHED || many > one.mbit * 1.2 {
            let text = format!(
                "{head}, and {} flows have {}: its congestion control ({}) holds it back",
                limits::FLOWS,
                mbit(many),
                from.congestion
            );
            (Code::OneFlow, text, "sysctl -w net.ipv4.tcp_congestion_control=cubic".to_owned())
        } else {
            let text = format!(
                "{head}, and {} flows have {}, while links, processors and buffers of both hosts are free: is there a shaper or a filter on the bond?",
                limits::FLOWS,
                mbit(many)
            );
            (Code::Between, text, format!("tc qdisc show dev {}", from.bond))
        };
        self.add_way(way, code, missing, text, hint);
    }

    /// Whether a lane that is slow this way, or carries nothing at all one way, explains what is missing. It costs as much, then.
    fn blame_lanes(&mut self, way: Direction, missing: f64) -> bool {
        let is_dead = |lane: &LaneTest| lane.heard.iter().any(|heard| heard.frames == 0);
        if !self.all.lanes.iter().any(|lane| is_dead(lane) || self.is_slow(lane, way)) {
            return false;
        }
        let is_of_lanes = |code| {
            matches!(code, Code::SlowLink | Code::Short | Code::Silent | Code::NoLane | Code::Competing)
        };
        let causes = self.causes.iter_mut().filter(|cause| is_of_lanes(cause.code));
        let worst = causes.max_by(|one, other| one.costs_mbit.total_cmp(&other.costs_mbit));
        worst.is_some_and(|worst| {
            worst.costs_mbit = worst.costs_mbit.max(missing);
            true
        })
    }

    /// Whether a lane loses frames though it carries nothing else. One that is slower than what sends into it must.
    fn lost(&self, way: Direction) -> Option<String> {
        let lost = |sent: u64, heard: u64| sent.saturating_sub(heard) as f64 / sent.max(1) as f64;
        let all = self
            .all
            .lanes
            .iter()
            .filter(|lane| !self.is_slow(lane, way))
            .map(|lane| (lane, lost(lane.sent[way as usize].frames, lane.heard[way as usize].frames)));
        let (lane, part) =
            all.filter(|(_, part)| *part < 1.0).max_by(|one, other| one.1.total_cmp(&other.1))?;
        (part > LOST).then(|| {
            format!(
                "{:.1} % of the frames between '{}' and the other host's '{}' are lost",
                part * 100.0,
                lane.member,
                lane.peer_member
            )
        })
    }

    /// Whether frames over one lane take longer than over the others. Both hosts' clocks may differ: on all lanes by the same time.
    fn late(&self, way: Direction) -> Option<String> {
        let took = |lane: &LaneTest| {
            let (sent, heard) = (lane.sent[way as usize].first_us?, lane.heard[way as usize].first_us?);
            Some(i128::from(heard) - i128::from(sent))
        };
        let all = || self.all.lanes.iter().filter_map(|lane| Some((lane, took(lane)?)));
        let (least, (lane, most)) =
            (all().map(|(_, took)| took).min()?, all().max_by_key(|(_, took)| *took)?);
        (most - least > LATE_US).then(|| {
            format!(
                "frames between '{}' and the other host's '{}' take {} ms longer than by another lane",
                lane.member,
                lane.peer_member,
                (most - least) / 1000
            )
        })
    }

    /// Whether the user's weights send more over a lane than it carries of all.
    fn misjudged(&self, from: &Side, way: Direction) -> Option<(String, String)> {
        let rates: f64 = self.all.lanes.iter().map(|lane| lane.mbit(way)).sum();
        let fixed: Vec<_> = self
            .all
            .lanes
            .iter()
            .filter_map(|lane| {
                let name = match way {
                    Direction::Up => &lane.member,
                    Direction::Down => &lane.peer_member,
                };
                let fixed = from.members.iter().find(|member| member.name == *name)?.fixed_mbit?;
                Some((name, f64::from(fixed), lane.mbit(way)))
            })
            .collect();
        let weights: f64 = fixed.iter().map(|(_, weight, _)| weight).sum();
        // Weights of which some are measured say nothing about each other.
        if fixed.len() < self.all.lanes.len() || rates <= 0.0 {
            return None;
        }
        let (name, share, carries) = fixed
            .iter()
            .map(|(name, weight, rate)| (name, weight / weights, rate / rates))
            .max_by(|one, other| (one.1 / one.2.max(1e-9)).total_cmp(&(other.1 / other.2.max(1e-9))))?;
        (share > carries * MISJUDGED).then(|| {
            let text = format!(
                "by its fixed weight '{name}' has {:.0} % of the traffic, and it carries {:.0} % of what all links do",
                share * 100.0,
                carries * 100.0
            );
            ((*name).clone(), text)
        })
    }
}

/// A processor that is the limit, and what `check` knows of why.
fn processor(
    head: &str,
    (side, host): (&Side, &str),
    load: &Load,
    known: &[(&str, Code)],
    otherwise: Code,
) -> (Code, String, String) {
    let text = format!("{head}: {}", busy(host, load));
    let found = known.iter().find_map(|(name, code)| Some((side.finding(name)?, *code)));
    match found {
        Some((found, code)) => {
            let hint = found.hint.clone().unwrap_or_default();
            (code, format!("{text}, and '{}': {}", found.object, found.text), hint)
        }
        None => (otherwise, text, "grep -E 'CPU|NET_RX' /proc/softirqs".to_owned()),
    }
}

/// Segments are sent again. A NIC of the sender that does not heed the switch fills its queues.
fn congested(text: String, (from, host): (&Side, &str)) -> (Code, String, String) {
    match from.default_members().find(|member| member.heeds_pause == Some(false)) {
        Some(Member { name, .. }) => {
            let text = format!("{text}; without flow control the switch cannot make '{name}' of {host} wait");
            (Code::Loss, text, format!("ethtool -A {name} rx on"))
        }
        None => (Code::Loss, text, format!("linkbraid stats {}", from.bond)),
    }
}

/// Whether what a flow has in a round trip fills that buffer.
fn fills(flow: &FlowTest, buffer: u64) -> bool {
    let bytes = flow.mbit / 8.0 * flow.sender.round_trip_us as f64;
    bytes >= buffer as f64 * FILLS
}

/// The host whose members share a bus that is too slow for them.
fn shares<'s>(hosts: [(&'s Side, &'static str); 2]) -> Option<(&'static str, &'s FindingRecord)> {
    hosts.into_iter().find_map(|(side, name)| Some((name, side.finding("shared_bus")?)))
}

fn busy(host: &str, load: &Load) -> String {
    let with = if load.softirq > 0.5 { ", with interrupts of the network most of the time" } else { "" };
    format!(
        "processor {} of {host} is busy in the kernel for {:.0} % of the time{with}",
        load.processor,
        load.busy * 100.0
    )
}

fn bytes(number: u64) -> String {
    match number {
        0..1024 => format!("{number} B"),
        1024..1_048_576 => format!("{} KiB", number >> 10),
        _ => format!("{} MiB", number >> 20),
    }
}
