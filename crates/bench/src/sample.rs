//! One measurement: some traffic in a lab, and all counters around it.

use crate::activity::Activity;
use crate::bed::Bed;
use crate::share::Share;
use crate::stats::{imbalance, shares};
use linkbraid_api::Error;
use linkbraid_lab::counters::{LinkCount, NicCount};
use linkbraid_lab::iperf::{self, Direction, Iperf, Load, Traffic};
use linkbraid_lab::{Host, Interrupt, wait_until};
use serde::Serialize;
use serde_json::Value;
use std::time::{Duration, Instant};

/// How often a running measurement looks for its end, and for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Which repeat it belongs to, from 0: ratios are made within a repeat.
    pub repeat: u32,
    /// What was typed on the client.
    pub command: String,
    /// Goodput of all directions at the receivers, Mbit/s of payload.
    pub mbit: f64,
    /// Of these, the way back, where there is one.
    pub mbit_back: Option<f64>,
    /// Goodput of the median second, Mbit/s: where it is much more than that of all, the machine stood still meanwhile.
    pub median_second_mbit: f64,
    /// Goodput of each second, Mbit/s.
    pub each_second: Vec<f64>,
    /// TCP segments sent by the sending hosts, unmeasured seconds and all; 0 for UDP.
    pub segments: u64,
    /// Of these, sent again.
    pub segments_again: u64,
    /// UDP datagrams sent.
    pub datagrams: u64,
    /// Of these, lost.
    pub datagrams_lost: u64,
    /// The share of what was sent that each of the sender's links took, by its NIC's counter of bytes.
    pub tx_shares: Vec<f64>,
    /// The same of the receiver's links.
    pub rx_shares: Vec<f64>,
    /// Bytes that the senders' NICs sent meanwhile.
    pub wire_bytes: u64,
    /// CPU seconds that the whole machine spent meanwhile.
    pub cpu_s: f64,
    /// The share of all its CPU time that this is.
    pub cpu_share: f64,
    /// Of the CPU time that was asked for, what others on the same physical machine had.
    pub stolen_share: f64,
    /// Frames that NICs' own queues were too full for.
    pub nic_queue_drops: u64,
    /// Frames that output queues of the switch were too full for.
    pub port_queue_drops: u64,
    /// Frames that the lab lost on purpose.
    pub frames_lost: u64,
    /// Packets that the lab marked CE on purpose.
    pub frames_marked: u64,
    /// Frames that the machine's own backlog was too full for: it is too slow for the case.
    pub backlog_drops: u64,
    /// Goodput of the competing flow, Mbit/s, where there is one.
    pub rival_mbit: Option<f64>,
    /// The share of periods in which the client's share of the CPU was used up, where it had a limit.
    #[serde(skip)]
    pub throttled_share: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Parameters {
    /// Members of the sending host's bond; 0 is a bare link without linkbraid.
    pub members: u32,
    /// The rate of each link in Mbit/s; empty where links are as fast as the machine.
    pub rate_mbit: Vec<u32>,
    /// The same of the receiving host's links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub far_rate_mbit: Vec<u32>,
    pub load: String,
    pub flows: u32,
    pub direction: String,
    /// Whether duplicate ACKs were damped; absent on a bare link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damping: Option<bool>,
    /// What else was done to the links, such as `loss 0.1 %`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
}

impl Sample {
    /// Segments sent again, of 10,000; only TCP has them.
    pub fn again_per_10k(&self) -> Option<f64> {
        (self.datagrams == 0 && self.segments > 0)
            .then(|| self.segments_again as f64 * 1e4 / self.segments as f64)
    }

    /// The share of UDP datagrams that were lost.
    pub fn lost_share(&self) -> Option<f64> {
        (self.datagrams > 0).then(|| self.datagrams_lost as f64 / self.datagrams as f64)
    }

    /// CPU seconds for each GB (10^9 bytes) on the senders' wires.
    pub fn cpu_s_per_gb(&self) -> Option<f64> {
        (self.wire_bytes > 0).then(|| self.cpu_s * 1e9 / self.wire_bytes as f64)
    }

    /// All numbers, those too that follow from others.
    pub fn numbers(&self, parameters: &Parameters) -> Value {
        let rates = &parameters.rate_mbit;
        let mut numbers = serde_json::to_value(self).unwrap_or_default();
        for (key, value) in [
            ("again_per_10k", self.again_per_10k()),
            ("lost_share", self.lost_share()),
            ("cpu_s_per_gb", self.cpu_s_per_gb()),
            ("tx_imbalance", imbalance(&self.tx_shares, rates)),
            ("rx_imbalance", imbalance(&self.rx_shares, rates)),
            ("of_limit", goodput_mbit(parameters).map(|limit| self.mbit / limit)),
        ] {
            if let Some(value) = value {
                numbers[key] = value.into();
            }
        }
        numbers
    }
}

/// A competing flow: what, from whom, to whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Rival {
    pub from: &'static str,
    pub to: &'static str,
    pub traffic: Traffic,
}

/// Runs some traffic from host `a` to host `b` of a lab, beside a flow that competes, its client with a share of the CPU
/// only.
pub fn take(
    bed: &Bed,
    traffic: &Traffic,
    (rival, share): (Option<&Rival>, Option<(&Share, Option<u32>)>),
    stop: &Interrupt,
) -> Result<Sample, Error> {
    let (a, b) = (bed.host("a")?, bed.host("b")?);
    let links = [a, b].map(counts);
    let [links_a, links_b] = links;
    let before = (links_a?, links_b?);
    let other = match rival {
        Some(rival) => Some(iperf::start(bed.host(rival.from)?, bed.host(rival.to)?, &rival.traffic)?),
        None => None,
    };
    let segments = [a.tcp_segments()?, b.tcp_segments()?];
    let nics = [a.nic_counts()?, b.nic_counts()?];
    let before_cpu = Activity::now()?;
    let mut run = iperf::start(a, b, traffic)?;
    if let Some((share, permille)) = share {
        share.limit(permille)?;
        share.add(run.client_id())?;
    }
    let periods = share.map(|(share, _)| share.periods());
    wait(&mut run, traffic, stop)?;
    let cpu = Activity::now()?.since(&before_cpu);
    let nics_after = [a.nic_counts()?, b.nic_counts()?];
    let segments_after = [a.tcp_segments()?, b.tcp_segments()?];
    let outcome = run.finish()?;
    let limited = share.filter(|(_, permille)| permille.is_some()).zip(periods);
    let throttled_share = limited.and_then(|((share, _), before)| share.periods().used_up_since(before));
    let rival_mbit = match other {
        Some(flow) => Some(flow.finish()?.mbit()),
        None => None,
    };
    let after = (counts(a)?, counts(b)?);

    // Which hosts send data, and which one receives it where there is only one way.
    let (senders, from, to): (&[usize], usize, usize) = match traffic.direction {
        Direction::Forward => (&[0], 0, 1),
        Direction::Reverse => (&[1], 1, 0),
        Direction::Both => (&[0, 1], 0, 1),
    };
    let tx = |host: usize| delta(&nics[host], &nics_after[host], |nic| nic.tx_bytes);
    let rx = |host: usize| delta(&nics[host], &nics_after[host], |nic| nic.rx_bytes);
    let sum = |pick: fn(&LinkCount) -> u64| {
        let total = |links: &[LinkCount]| links.iter().map(pick).sum::<u64>();
        (total(&after.0) + total(&after.1)).saturating_sub(total(&before.0) + total(&before.1))
    };
    let sent = |pick: fn(&(u64, u64)) -> u64| {
        senders.iter().map(|&host| pick(&segments_after[host]).saturating_sub(pick(&segments[host]))).sum()
    };
    let tcp = matches!(traffic.load, Load::Tcp(_));
    let back = outcome.back.unwrap_or_default();
    Ok(Sample {
        repeat: 0,
        mbit: outcome.mbit(),
        median_second_mbit: outcome.median_mbit(),
        mbit_back: outcome.back.map(|back| back.mbit),
        segments: if tcp { sent(|s| s.0) } else { 0 },
        segments_again: if tcp { sent(|s| s.1) } else { 0 },
        datagrams: if tcp { 0 } else { outcome.way.datagrams + back.datagrams },
        datagrams_lost: if tcp { 0 } else { outcome.way.lost + back.lost },
        tx_shares: shares(&tx(from)),
        rx_shares: shares(&rx(to)),
        wire_bytes: senders.iter().flat_map(|&host| tx(host)).sum(),
        cpu_s: cpu.busy_s,
        cpu_share: cpu.share,
        stolen_share: cpu.stolen_share,
        nic_queue_drops: sum(|link| link.nic_queue_drops),
        port_queue_drops: sum(|link| link.port_queue_drops),
        frames_lost: sum(|link| link.port.lost),
        frames_marked: sum(|link| link.port.marked),
        backlog_drops: sum(|link| link.port.backlog),
        each_second: outcome.each_second,
        command: outcome.command,
        rival_mbit,
        throttled_share,
    })
}

fn counts(host: Host<'_>) -> Result<Vec<LinkCount>, Error> {
    host.links()?.iter().map(|link| link.count()).collect()
}

/// What each NIC's counter has grown by.
pub(crate) fn delta(before: &[NicCount], after: &[NicCount], pick: fn(&NicCount) -> u64) -> Vec<u64> {
    before.iter().zip(after).map(|(b, a)| pick(a).saturating_sub(pick(b))).collect()
}

/// Waits for the client's end; [`Iperf::finish`] says what is wrong with one that never ends.
fn wait(run: &mut Iperf<'_>, traffic: &Traffic, stop: &Interrupt) -> Result<(), Error> {
    let limit = Duration::from_secs(u64::from(traffic.seconds + traffic.omit) + 10);
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        stop.check()?;
        if wait_until(LOOK, "the end of a measurement", || run.ended(), |ended| *ended).is_ok() {
            return Ok(());
        }
    }
    Ok(())
}

/// Bytes of a full-size frame, Ethernet header and all, as a token bucket counts them (no preamble, no FCS).
const FRAME: f64 = 1514.0;
/// Of these, a TCP segment's data: less the headers of Ethernet, IPv4 and TCP, and TCP's timestamps (RFC 7323).
const TCP: f64 = 1448.0;
/// The same for UDP over IPv4.
const UDP: f64 = 1472.0;

/// The goodput in Mbit/s that the links of sender and receiver allow, both directions where both are used; `None` where
/// links have no rate of their own.
fn goodput_mbit(parameters: &Parameters) -> Option<f64> {
    let near: u32 = parameters.rate_mbit.iter().sum();
    let far: u32 = parameters.far_rate_mbit.iter().sum();
    let rate = if far == 0 { near } else { near.min(far) };
    let payload = if parameters.load == "udp" { UDP } else { TCP };
    let ways = if parameters.direction == "both" { 2.0 } else { 1.0 };
    (rate > 0).then(|| f64::from(rate) * ways * payload / FRAME)
}

#[cfg(test)]
mod tests;
