//! Requests that take a while: the loop goes on meanwhile, and the answer comes when they are done.

use super::{
    member,
    wait::{Decision, Pending},
};
use crate::world::World;
use linkbraid_api::{Error, Reply};
use linkbraid_proto::Time;
use tokio::sync::oneshot;

/// All requests under way.
#[derive(Debug, Default)]
pub(crate) struct Queue(Vec<(Pending, oneshot::Sender<Reply>)>);

impl Queue {
    pub(crate) fn push(&mut self, pending: Pending, answer: oneshot::Sender<Reply>) {
        self.0.push((pending, answer));
    }

    /// When the next one wants to be looked at.
    pub(crate) fn wake(&self, now: Time) -> Option<Time> {
        self.0.iter().map(|(pending, _)| pending.wake(now)).min()
    }
}

/// Looks at every request under way and ends those that are done.
pub(crate) async fn advance(queue: &mut Queue, world: &mut World) {
    let mut rest = Vec::new();
    for (mut pending, answer) in std::mem::take(&mut queue.0) {
        match look(world, &mut pending).await {
            None => rest.push((pending, answer)),
            Some(result) => {
                let reply = result.map_or_else(Reply::Error, |warnings| Reply::Done { warnings });
                // The client may have gone; what it asked for is done all the same.
                let _ = answer.send(reply);
            }
        }
    }
    queue.0 = rest;
}

/// One request: its end, if this is it.
async fn look(world: &mut World, pending: &mut Pending) -> Option<Result<Vec<String>, Error>> {
    let decision = pending.decide(world.clock.now(), world.bonds.get(&pending.bond));
    let (bond, ifindex) = (&pending.bond, pending.ifindex);
    match decision {
        Decision::Wait => None,
        Decision::End(result) => Some(result),
        Decision::Admit(lines) => Some(member::admit(world, bond, ifindex).await.map(|()| lines)),
        Decision::Withdraw(error) => Some(member::withdraw(world, bond, ifindex).await.and(Err(error))),
        Decision::Detach => Some(member::detach(world, bond, ifindex).await.map(|()| Vec::new())),
    }
}
