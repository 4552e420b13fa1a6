//! What failures and changes under traffic came to.

use crate::stats::Spread;
use serde::{Deserialize, Serialize};

/// One kind of failure or change, under one kind of traffic, several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failover {
    /// Its name in this report.
    pub id: String,
    /// The lab it ran in.
    pub lab: String,
    /// What happens, such as `silent-out`.
    pub kind: String,
    /// `tcp cubic`, `tcp bbr` or `udp`, from host `a` to host `b`.
    pub load: String,
    /// Links of each host.
    pub links: u32,
    /// The rate of each, Mbit/s.
    pub rate_mbit: u32,
    /// Each time it happened.
    pub incidents: Vec<Incident>,
    /// The middle of that.
    pub medians: FailoverMedians,
    /// TCP connections that ended before they were to.
    pub connections_lost: Vec<String>,
    /// Datagrams a second, as sent; UDP only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams_per_s: Option<Spread>,
    /// What the machine did wrong meanwhile, in the flows of this case.
    pub machine: MachineLoss,
    /// Goodput around the incident whose gap is the median one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// One failure or change. Times are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// What it was done to: `HOST/NIC`, or the host.
    pub object: String,
    /// When, since the flow began.
    pub at_ms: f64,
    /// How long the flow was watched from then on; a gap that is as long did not end.
    pub watched_ms: f64,
    /// The longest time without new data in a window as long just before: the base.
    pub quiet_gap_ms: f64,
    /// The longest time without new data after it.
    pub gap_ms: f64,
    /// The longest time in which the sender itself sent nothing after it, because the machine had no time for it; UDP
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_gap_ms: Option<f64>,
    /// Until goodput was back at 80 % of what the remaining links can carry; TCP only. `watched_ms` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_ms: Option<f64>,
    /// Until the daemon of the host that sends the data knew; absent if it did not, or tells no events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected_ms: Option<f64>,
    /// The same of the host that receives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected_far_ms: Option<f64>,
    /// The reason that the first of them gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Datagrams sent from then on until the end was watched; UDP only, as are those below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Of these, lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Until the last of these was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_lost_ms: Option<f64>,
    /// Of these, arrived more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<u64>,
    /// Of these, arrived after one that was sent later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// How long the command took, for changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_ms: Option<f64>,
    /// What came after the link was mended, for failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Return>,
}

/// A link that is good again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Return {
    /// When it was mended, since the flow began.
    pub at_ms: f64,
    /// Until it carried data again; `watched_ms` if it did not.
    pub used_ms: f64,
    /// How long that was waited for at most.
    pub watched_ms: f64,
    /// The longest time without new data meanwhile, and a while on.
    pub gap_ms: f64,
    /// Datagrams lost meanwhile; UDP only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Datagrams that arrived more than once meanwhile; UDP only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<u64>,
}

/// Medians over the incidents, with the smallest and the largest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FailoverMedians {
    /// Of [`Incident::quiet_gap_ms`].
    pub quiet_gap_ms: Option<Spread>,
    /// Of [`Incident::gap_ms`].
    pub gap_ms: Option<Spread>,
    /// Of [`Incident::back_ms`].
    pub back_ms: Option<Spread>,
    /// Until the sender's daemon knew; one that did not counts with the time it was watched.
    pub detected_ms: Option<Spread>,
    /// Until the receiver's daemon knew, likewise. It does not send data, and probes such lanes less often.
    pub detected_far_ms: Option<Spread>,
    /// Of [`Incident::last_lost_ms`].
    pub last_lost_ms: Option<Spread>,
    /// Of [`Incident::lost`].
    pub lost: Option<Spread>,
    /// Of [`Incident::duplicated`].
    pub duplicated: Option<Spread>,
    /// Of [`Return::used_ms`].
    pub used_again_ms: Option<Spread>,
    /// Of [`Return::gap_ms`].
    pub return_gap_ms: Option<Spread>,
    /// Of [`Return::lost`].
    pub return_lost: Option<Spread>,
}

/// Losses and delays that are the machine's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineLoss {
    /// Frames that the machine's backlog was too full for.
    pub backlog_drops: u64,
    /// Frames that queues of NICs and of the switch were too full for; TCP fills them on purpose.
    pub queue_drops: u64,
    /// Datagrams that the receiver's socket had no room for.
    pub receiver_drops: u64,
    /// Datagrams that the sender's kernel did not take.
    pub refused: u64,
    /// Milliseconds that the sender was late, and did not make up for.
    pub slipped_ms: f64,
}

/// Goodput around one incident.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Which incident, from 0.
    pub incident: u32,
    /// When the first bin begins, in milliseconds after the incident (so it is negative).
    pub from_ms: f64,
    /// How long a bin is.
    pub bin_ms: f64,
    /// Goodput of each bin, Mbit/s of payload.
    pub mbit: Vec<f64>,
}

impl FailoverMedians {
    /// Of some incidents.
    pub fn of(incidents: &[Incident]) -> Self {
        let over = |value: &dyn Fn(&Incident) -> Option<f64>| Spread::of(incidents.iter().filter_map(value));
        let back = |value: &dyn Fn(&Return) -> Option<f64>| {
            Spread::of(incidents.iter().filter_map(|i| i.restored.as_ref()).filter_map(value))
        };
        // A daemon that tells no events at all has not failed to detect.
        let tells = incidents.iter().any(|i| i.detected_ms.is_some() || i.detected_far_ms.is_some());
        let known = |i: &Incident, at: Option<f64>| tells.then(|| at.unwrap_or(i.watched_ms));
        Self {
            quiet_gap_ms: over(&|i| Some(i.quiet_gap_ms)),
            gap_ms: over(&|i| Some(i.gap_ms)),
            back_ms: over(&|i| i.back_ms),
            detected_ms: over(&|i| known(i, i.detected_ms)),
            detected_far_ms: over(&|i| known(i, i.detected_far_ms)),
            last_lost_ms: over(&|i| i.last_lost_ms),
            lost: over(&|i| i.lost.map(|n| n as f64)),
            duplicated: over(&|i| i.duplicated.map(|n| n as f64)),
            used_again_ms: back(&|r| Some(r.used_ms)),
            return_gap_ms: back(&|r| Some(r.gap_ms)),
            return_lost: back(&|r| r.lost.map(|n| n as f64)),
        }
    }
}

#[cfg(test)]
mod tests;
