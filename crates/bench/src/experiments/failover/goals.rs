//! What failures and changes may cost at most.

use super::DATAGRAMS;
use crate::report::{Bound, Goal, Report};

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

pub(super) fn of(report: &Report, id: &str) -> Vec<Goal> {
    let middle = |metric: &str| report.median(id, metric);
    let worst = |metric: &str| report.spread(id, metric).map(|spread| spread.max);
    let goal = |what: &str, bound, limit, value| Goal::new(id, what, bound, limit, value);
    let kind = report.word(id, "kind");
    let udp = report.word(id, "load") == "udp";
    let failure = report.measure(id, "restored.used_ms").is_some();
    let mut goals = Vec::new();
    if !udp {
        let limit = match kind {
            "carrier-ours" => OURS_GAP,
            "carrier-theirs" => THEIRS_GAP,
            _ => SILENT_GAP,
        };
        let gap = goal("ms without new data, TCP", Bound::AtMost, limit, middle("gap_ms"));
        goals.push(gap.unless(noisy(report, id, limit)));
        goals.push(goal("connections lost", Bound::AtMost, 0.0, report.sum(id, "connections_lost")));
    }
    if kind.starts_with("silent") {
        goals.push(goal("ms until the sender knew", Bound::AtMost, DETECTED, middle("detected_ms")));
    }
    if failure {
        let used = middle("restored.used_ms");
        goals.push(goal("ms until the mended link was used", Bound::AtMost, RESTORED, used));
    }
    if udp && failure {
        // The lane's share of what is sent while nobody knows.
        let links = report.parameter(id, "links").and_then(serde_json::Value::as_f64).unwrap_or(1.0);
        let window = f64::from(DATAGRAMS) / links * DETECTED / 1e3;
        goals.push(goal("datagrams lost with the link", Bound::AtMost, window, middle("lost")));
        let lost = goal("datagrams lost as it came back", Bound::AtMost, 0.0, worst("restored.lost"));
        goals.push(lost.unless(machine(report, id)));
    }
    if udp && !failure {
        let lost = goal("datagrams lost", Bound::AtMost, 0.0, worst("lost"));
        goals.push(lost.unless(machine(report, id)));
        goals.push(goal("datagrams twice", Bound::AtMost, 0.0, worst("duplicated")));
    }
    goals
}

/// Why a long gap says little.
fn noisy(report: &Report, id: &str, limit: f64) -> Option<String> {
    let quiet = report.median(id, "quiet_gap_ms")?;
    (quiet > limit * NOISY_SHARE)
        .then(|| format!("with no failure the flow stood still for {quiet:.0} ms as well"))
}

/// Why a lost datagram may be the machine's fault.
fn machine(report: &Report, id: &str) -> Option<String> {
    let drops = |what: &str| report.sum(id, &format!("machine.{what}")).unwrap_or(0.0);
    let drops = drops("backlog_drops") + drops("receiver_drops");
    (drops > 0.0).then(|| format!("the machine itself dropped {drops} frames"))
}
