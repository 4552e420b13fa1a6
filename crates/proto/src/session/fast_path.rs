//! What the data path needs of the fast path, and reports of it (`docs/fabric.md`, section 7).

use super::{Phase, Session, link::LinkInput};
use crate::Time;
use linkbraid_wire::fabric::{FastPath, Tag};

/// How many UDP ports a fabric may use for its fast path where the user has chosen none.
pub const USUAL_PORTS: usize = 4;
/// The first of them, of the fabric with number 0: above those that Linux gives to sockets that ask for any.
const PORT_FROM: u16 = 64_000;
/// From one of them to the next: there are so many numbers of fabrics.
const PORT_STEP: u16 = 256;

/// The usual UDP ports of the fast path of the fabric with that number, the same on all nodes, best first.
#[must_use]
pub fn usual_ports(fabric: u8) -> [u16; USUAL_PORTS] {
    //= docs/fabric.md#7.8
    std::array::from_fn(|k| PORT_FROM + PORT_STEP * k as u16 + u16::from(fabric))
}

/// The port that a node should have that has `own` of these `ports`, when its peers have `announced` theirs: the first that is
/// free from the last of them on. None if it should keep what it has.
pub fn next_port(
    ports: &[u16],
    own: u16,
    announced: impl Iterator<Item = u16>,
    mut is_free: impl FnMut(u16) -> bool,
) -> Option<u16> {
    //= docs/fabric.md#7.8
    let at = |port: u16| ports.iter().position(|known| *known == port);
    let last = announced.filter_map(at).max().filter(|last| at(own).is_some_and(|own| own < *last))?;
    ports[last..].iter().copied().find(|port| is_free(*port))
}

impl Session {
    /// Says whether frames of a peer come over the fast path; the peer is informed at once if that is another answer than before.
    /// Actions and timeout as after [`Session::handle`].
    pub fn set_heard(&mut self, now: Time, node: u16, heard: bool) {
        if self.phase == Phase::Running {
            self.drive(now, node, LinkInput::Heard { heard });
        }
    }

    /// What frames of a peer must carry to be taken over the fast path; none while none may be.
    pub fn tag(&self, node: u16) -> Option<Tag> {
        self.peers.get(&node)?.link.tag()
    }

    /// Whether a peer is informed that its frames come over the fast path.
    pub fn hears(&self, node: u16) -> bool {
        self.peers.get(&node).is_some_and(|peer| peer.link.heard())
    }

    /// How a peer takes frames over the fast path; none while it is not up or takes none.
    pub fn fast_path(&self, node: u16) -> Option<FastPath> {
        self.peers.get(&node)?.link.peer()?.fast_path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/fabric.md#7.8 type=test
    #[test]
    fn a_fabric_has_four_ports_that_no_other_number_has() {
        assert_eq!(usual_ports(0), [64_000, 64_256, 64_512, 64_768]);
        assert_eq!(usual_ports(255), [64_255, 64_511, 64_767, 65_023]);
        let mut all: Vec<u16> = (0..=255).flat_map(usual_ports).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 256 * USUAL_PORTS);
    }

    //= docs/fabric.md#7.8 type=test
    #[test]
    fn a_node_follows_only_forward_and_only_to_ports_of_the_fabric() {
        let ports = usual_ports(7);
        let next = |own: usize, announced: &[u16], free: [bool; USUAL_PORTS]| {
            let is_free = |port| ports.iter().position(|known| *known == port).is_some_and(|at| free[at]);
            next_port(&ports, ports[own], announced.iter().copied(), is_free)
        };
        let all = [true; USUAL_PORTS];
        assert_eq!(next(0, &[ports[0], ports[2], ports[1]], all), Some(ports[2]));
        assert_eq!(next(0, &[ports[1]], [true, false, false, true]), Some(ports[3]), "the next that is free");
        assert_eq!(next(0, &[ports[1]], [true, false, false, false]), None, "better its own than none");
        assert_eq!(next(2, &[ports[0], ports[2]], all), None, "not back");
        assert_eq!(next(0, &[53, 4789, 64_008], all), None, "whatever a peer says");
        assert_eq!(next_port(&[4789], 4789, [ports[3]].into_iter(), |_| true), None, "the user's own choice");
    }

    //= docs/fabric.md#7.8 type=test
    #[test]
    fn nodes_meet_on_the_first_port_that_all_can_have() {
        let ports = usual_ports(9);
        // Every way in which the ports of three nodes may be free.
        for sets in 1..1_u32 << (3 * USUAL_PORTS) {
            let of = |node: usize| sets >> (node * USUAL_PORTS) & 15;
            let free = |node: usize, port| {
                ports.iter().position(|known| *known == port).is_some_and(|at| of(node) >> at & 1 == 1)
            };
            let begin = |node| ports.into_iter().find(|port| free(node, *port));
            let mut now: [Option<u16>; 3] = std::array::from_fn(begin);
            let mut moves = 0;
            // One after the other, whoever is first.
            while let Some((node, port)) = (0..3).find_map(|node| {
                let others = (0..3).filter(|other| *other != node).filter_map(|other| now[other]);
                Some((node, next_port(&ports, now[node]?, others, |port| free(node, port))?))
            }) {
                now[node] = Some(port);
                moves += 1;
                assert!(moves <= 3 * (USUAL_PORTS - 1), "{sets:03x}: they move for ever");
            }
            let common = ports.into_iter().find(|port| (0..3).all(|node| free(node, *port)));
            assert!(common.is_none() || now == [common; 3], "{sets:03x}: {now:?}");
        }
    }
}
