//! The published numbers of the one-way queues between two nodes.

use serde::{Deserialize, Serialize};

/// The two queues of a node towards one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Queues {
    /// The one that the node writes and the peer reads.
    pub send: u32,
    /// The one that the peer writes and the node reads.
    pub receive: u32,
}

impl Queues {
    /// The queues of `local` towards `peer` in a fabric of `nodes`, numbered as published.
    pub const fn of(nodes: u16, local: u16, peer: u16) -> Queues {
        let (nodes, local, peer) = (nodes as u32, local as u32, peer as u32);
        //= docs/fabric.md#1.3
        Queues { send: nodes * local + peer, receive: nodes * peer + local }
    }
}

#[cfg(test)]
mod tests {
    use super::Queues;
    use linkbraid_wire::fabric::NODES_MAX;
    use std::collections::BTreeSet;

    //= docs/fabric.md#1.3 type=test
    #[test]
    fn what_one_sends_is_what_the_other_receives_and_nobody_else() {
        for nodes in [2, 3, 16, 61, NODES_MAX] {
            let mut seen = BTreeSet::new();
            for local in 0..nodes {
                for peer in (0..nodes).filter(|peer| *peer != local) {
                    let (here, there) = (Queues::of(nodes, local, peer), Queues::of(nodes, peer, local));
                    assert_eq!((here.send, here.receive), (there.receive, there.send));
                    assert!(seen.insert(here.send), "one writer and one reader each");
                }
            }
            assert_eq!(seen.len(), usize::from(nodes) * usize::from(nodes - 1));
        }
    }
}
