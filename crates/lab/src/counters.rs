//! Counters of a link: its NIC in the host, and its port in the switch.

use crate::port::PortCount;
use linkbraid_api::Error;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// One interface's line in `/proc/net/dev`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicCount {
    /// Bytes received, with Ethernet headers.
    pub rx_bytes: u64,
    /// Buffers received; a GSO buffer that crossed whole counts once.
    pub rx_packets: u64,
    /// Received and dropped.
    pub rx_dropped: u64,
    /// Bytes sent, with Ethernet headers.
    pub tx_bytes: u64,
    /// Buffers sent.
    pub tx_packets: u64,
    /// Not sent: dropped.
    pub tx_dropped: u64,
}

/// Everything counted about one link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCount {
    /// The host's NIC.
    pub nic: NicCount,
    /// The switch's port.
    pub port: PortCount,
    /// Frames that the port's output queue was too full for: what overload looks like.
    pub port_queue_drops: u64,
    /// Frames that the NIC's own queue was too full for.
    pub nic_queue_drops: u64,
}

/// The rate of one link between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// From the host, Mbit/s of frames.
    pub tx_mbit: f64,
    /// To the host, Mbit/s of frames.
    pub rx_mbit: f64,
}

/// Turns counters into rates.
#[derive(Debug, Clone)]
pub struct Meter {
    at: Instant,
    last: Vec<NicCount>,
}

impl Meter {
    /// Starts at counters read just now.
    pub fn start(counts: Vec<NicCount>) -> Self {
        Self { at: Instant::now(), last: counts }
    }

    /// The rates since the last look.
    pub fn rates(&mut self, counts: Vec<NicCount>) -> Vec<Rate> {
        let now = Instant::now();
        let rates = rates(&self.last, &counts, now - self.at);
        (self.at, self.last) = (now, counts);
        rates
    }
}

/// Rates from two readings of the same interfaces, `passed` apart.
pub fn rates(before: &[NicCount], after: &[NicCount], passed: Duration) -> Vec<Rate> {
    let mbit = |a: u64, b: u64| b.saturating_sub(a) as f64 * 8.0 / 1e6 / passed.as_secs_f64().max(1e-9);
    let pairs = before.iter().zip(after);
    pairs
        .map(|(a, b)| Rate { tx_mbit: mbit(a.tx_bytes, b.tx_bytes), rx_mbit: mbit(a.rx_bytes, b.rx_bytes) })
        .collect()
}

/// Finds an interface in the text of `/proc/net/dev`.
pub fn parse_dev(text: &str, interface: &str) -> Option<NicCount> {
    let line = text.lines().find_map(|l| l.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    let n: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Some(NicCount {
        rx_bytes: *n.first()?,
        rx_packets: *n.get(1)?,
        rx_dropped: *n.get(3)?,
        tx_bytes: *n.get(8)?,
        tx_packets: *n.get(9)?,
        tx_dropped: *n.get(11)?,
    })
}

/// Finds one value in the text of `/proc/net/snmp`: `protocol` as in its first column, `name` as in its heading.
pub fn parse_snmp(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|l| l.strip_prefix(protocol)?.strip_prefix(':'));
    let column = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(column)?.parse().ok()
}

/// Drops of the root queue, from `tc -s -j qdisc show dev IF`.
pub fn parse_qdisc_drops(json: &str) -> Result<u64, Error> {
    let bad = |e: serde_json::Error| Error::new("lab", "cannot read 'tc -s -j qdisc'", e.to_string());
    let list: Vec<serde_json::Value> = serde_json::from_str(json).map_err(bad)?;
    let root = |q: &&serde_json::Value| q["root"] == true;
    Ok(list.iter().filter(root).filter_map(|q| q["drops"].as_u64()).sum())
}

#[cfg(test)]
mod tests;
