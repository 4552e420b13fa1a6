//! What failures and changes may cost at most.

use super::DATAGRAMS;
use crate::report::{Bound, Failover, Goal};
use crate::stats::Spread;

/// The longest time without new data of one TCP flow, milliseconds.
const OURS_GAP: f64 = 50.0;
const THEIRS_GAP: f64 = 100.0;
const SILENT_GAP: f64 = 250.0;
/// Three probe intervals of 50 ms.
const DETECTED: f64 = 150.0;
/// A mended link is used again, milliseconds.
const RESTORED: f64 = 1000.0;
/// A machine whose flow stands still for as long with no failure at all says little about failures.
const NOISY_SHARE: f64 = 0.5;

/// The goals of one case.
pub(super) fn of(failover: &Failover) -> Vec<Goal> {
    let medians = &failover.medians;
    let middle = |spread: Option<Spread>| spread.map(|spread| spread.median);
    let worst = |spread: Option<Spread>| spread.map(|spread| spread.max);
    let goal = |what: &str, bound, limit, value| Goal::new(&failover.id, what, bound, limit, value);
    let silent = failover.kind.starts_with("silent");
    let failure = failover.incidents.iter().any(|incident| incident.restored.is_some());
    let mut goals = Vec::new();
    if failover.load != "udp" {
        let limit = match failover.kind.as_str() {
            "carrier-ours" => OURS_GAP,
            "carrier-theirs" => THEIRS_GAP,
            _ => SILENT_GAP,
        };
        let gap = goal("ms without new data, TCP", Bound::AtMost, limit, middle(medians.gap_ms));
        goals.push(gap.unless(noisy(failover, limit)));
        let lost = failover.connections_lost.len() as f64;
        goals.push(goal("connections lost", Bound::AtMost, 0.0, Some(lost)));
    }
    if silent {
        goals.push(goal("ms until the sender knew", Bound::AtMost, DETECTED, middle(medians.detected_ms)));
    }
    if failure {
        let used = middle(medians.used_again_ms);
        goals.push(goal("ms until the mended link was used", Bound::AtMost, RESTORED, used));
    }
    if failover.load == "udp" && failure {
        // The lane's share of what is sent while nobody knows.
        let window = f64::from(DATAGRAMS) / f64::from(failover.links) * DETECTED / 1e3;
        goals.push(goal("datagrams lost with the link", Bound::AtMost, window, middle(medians.lost)));
        let lost = worst(medians.return_lost);
        goals
            .push(goal("datagrams lost as it came back", Bound::AtMost, 0.0, lost).unless(machine(failover)));
    }
    if failover.load == "udp" && !failure {
        let lost = goal("datagrams lost", Bound::AtMost, 0.0, worst(medians.lost));
        goals.push(lost.unless(machine(failover)));
        goals.push(goal("datagrams twice", Bound::AtMost, 0.0, worst(medians.duplicated)));
    }
    goals
}

/// Why a long gap says little.
fn noisy(failover: &Failover, limit: f64) -> Option<String> {
    let quiet = failover.medians.quiet_gap_ms?.median;
    (quiet > limit * NOISY_SHARE)
        .then(|| format!("with no failure the flow stood still for {quiet:.0} ms as well"))
}

/// Why a lost datagram may be the machine's fault.
fn machine(failover: &Failover) -> Option<String> {
    let drops = failover.machine.backlog_drops + failover.machine.receiver_drops;
    (drops > 0).then(|| format!("the machine itself dropped {drops} frames"))
}
