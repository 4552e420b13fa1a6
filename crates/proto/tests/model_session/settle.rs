//! From any state: when everything that is under way is lost, nobody ends any more and nothing new is lost, all that live
//! connect within a few rounds.

use super::world::{Fabric, Message, World};
use linkbraid_proto::session::{Mismatch, Side, Verdict, link::LinkInput};

/// Rounds of timers that it may take: a HELLO each way, a doubt, a death, and what follows.
const ROUNDS: usize = 4;

/// Messages of one round before something is wrong.
const MESSAGES_MAX: usize = 1000;

impl World {
    /// Every live pair, and nobody else, is up.
    pub fn all_up(&self) -> bool {
        self.live.iter().all(|node| {
            node.ends.iter().all(|end| {
                let mut peers = self.live.iter().filter(|other| other.number == end.peer);
                let up = end.link.peer().map(|peer| peer.epoch);
                match peers.next() {
                    Some(peer) => up == Some(peer.own.epoch),
                    None => up.is_none(),
                }
            })
        })
    }

    /// Of two with one number, one is up with all, and the other knows that it is refused.
    fn twins_told(&self) -> bool {
        let (twins, others): (Vec<_>, Vec<_>) = self.live.iter().partition(|node| node.number == 0);
        others.iter().all(|node| {
            let Some(end) = node.ends.iter().find(|end| end.peer == 0) else { return false };
            let Some(chosen) = end.link.peer().map(|peer| peer.epoch) else { return false };
            twins.iter().all(|twin| {
                let verdict =
                    twin.ends.iter().find(|end| end.peer == node.number).map(|end| end.link.verdict());
                let taken = Verdict::Refused { by: Side::Peer, why: Mismatch::Taken };
                let expected = match twin.own.epoch == chosen {
                    true => Verdict::Up { epoch: node.own.epoch },
                    false => taken,
                };
                verdict == Some(expected)
            })
        })
    }

    pub fn settles(&self, fabric: &Fabric) -> bool {
        let mut world = self.clone();
        world.network.clear();
        (0..ROUNDS).any(|_| {
            world.round(fabric);
            if fabric.twins { world.twins_told() } else { world.all_up() && world.tags_told() }
        })
    }

    /// Everybody knows the tag that the other one takes, if it takes any.
    fn tags_told(&self) -> bool {
        let tag_of = |number: u16, peer: u16| {
            let node = self.live.iter().find(|node| node.number == number)?;
            node.ends.iter().find(|end| end.peer == peer)?.link.tag()
        };
        self.live.iter().all(|node| {
            node.ends.iter().all(|end| {
                let told = end.link.peer().and_then(|peer| peer.fast_path).map(|cut| cut.tag);
                told == tag_of(end.peer, node.number)
            })
        })
    }

    /// Everybody says what is due, everything arrives, and then what was not proven runs out.
    fn round(&mut self, fabric: &Fabric) {
        for (place, at) in self.links() {
            self.live[place].ends[at].proven = false;
            self.drive(fabric.twins, place, at, LinkInput::Resend);
        }
        self.network.extend(fabric.forged());
        let mut delivered = 0;
        while let Some(message) = self.network.pop_first() {
            delivered += 1;
            assert!(delivered < MESSAGES_MAX, "messages breed messages");
            let Message::Control { from, to, .. } = message else { continue };
            for (place, at) in self.links() {
                let node = &self.live[place];
                if node.number == to.0 && node.ends[at].peer == from.0 {
                    self.deliver(fabric.twins, place, at, &message);
                }
            }
        }
        for (place, at) in self.links() {
            let end = &self.live[place].ends[at];
            if end.link.rival().is_some() {
                self.drive(fabric.twins, place, at, LinkInput::Doubted);
            } else if end.link.peer().is_some() && !end.proven {
                self.drive(fabric.twins, place, at, LinkInput::Expired);
            }
        }
    }
}
