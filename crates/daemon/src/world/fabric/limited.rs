//! How much is reported of each node: one that misbehaves must not push out what is to be known of the others.

use linkbraid_fabric::engine::Bucket;
use linkbraid_proto::Time;
use std::time::Duration;

/// Events of one node that are reported in a second...
const RATE: u32 = 5;
/// ...and at once after a silence.
const BURST: u32 = 50;
/// How often it is reported how many were not.
const AGAIN: Duration = Duration::from_secs(1);

/// What is reported of one node.
#[derive(Clone)]
struct Node {
    bucket: Bucket,
    suppressed: u64,
}

/// What is reported of each node; this node's own is for what concerns the fabric.
pub(super) struct Limited {
    nodes: Vec<Node>,
    /// When to report how much was not reported; none while all was.
    at: Option<Time>,
}

impl Limited {
    pub(super) fn new(nodes: u16) -> Self {
        let node = Node { bucket: Bucket::new(RATE, BURST), suppressed: 0 };
        Self { nodes: vec![node; nodes.into()], at: None }
    }

    /// Whether one more event of a node is to be reported; it is counted if not.
    pub(super) fn passes(&mut self, node: u16, now: Time) -> bool {
        let Some(node) = self.nodes.get_mut(usize::from(node)) else { return false };
        let passes = node.bucket.take(now.0);
        if !passes {
            node.suppressed += 1;
            self.at.get_or_insert(now + AGAIN);
        }
        passes
    }

    /// Whose events were not reported, and how many, once a second.
    pub(super) fn suppressed(&mut self, now: Time) -> Vec<(u16, u64)> {
        if self.at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.at = None;
        let counts = self.nodes.iter_mut().map(|node| std::mem::take(&mut node.suppressed));
        (0..).zip(counts).filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_floods_is_cut_off_counted_and_alone() {
        let mut limited = Limited::new(3);
        // As many as the engine takes of one node in a second, each in another epoch.
        let passed = (0..2000u64).filter(|number| limited.passes(1, Time(number * 500_000))).count();
        assert!((BURST as usize..=(BURST + RATE) as usize).contains(&passed), "{passed}");
        let now = Time::from_millis(999);
        assert!(limited.passes(2, now), "others are reported");
        assert!(limited.suppressed(now).is_empty(), "not yet");
        let now = Time::from_millis(2000);
        assert_eq!(limited.suppressed(now), [(1, 2000 - passed as u64)]);
        assert!(limited.suppressed(now + AGAIN).is_empty(), "once");
        assert!(limited.passes(1, now + AGAIN), "and reported again when it is quiet");
        assert!(!limited.passes(3, now), "there is no such node");
    }
}
