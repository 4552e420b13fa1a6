//! Requests that take a while: the loop goes on meanwhile, and the answer comes when they are done.

use crate::{
    bond::{Bond, Member},
    fabric::Ticket,
    member,
    state::SavedBond,
    world::World,
};
use linkbraid_api::{Error, Reply};
use linkbraid_proto::{Time, inspector::Timing};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a new member may take until a peer answers through it, counted from its carrier, where probes are sent often:
/// the up-delay, ARP+'s announcement of it (once more if that was lost) and the probes of its admission. As long as that
/// it may take until it has a carrier.
const JOIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The same where probes are rare, counted from the request: its client waits for 30 s.
const JOIN_TIMEOUT_MAX: Duration = Duration::from_secs(27);
/// Intervals between probes that go by besides those of the admission: the peers have to hear of the member first.
const JOIN_INTERVALS_MORE: u32 = 2;
/// A member that leaves goes when nothing has come in for this long...
const QUIET: Duration = Duration::from_millis(20);
/// ...or after this long: plain hosts and lost announcements must not keep it.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// How often its counters are read.
const DRAIN_LOOK: Duration = Duration::from_millis(5);

/// What is waited for.
#[derive(Debug)]
enum Wait {
    /// A member has joined and is to prove itself.
    Join {
        /// Admit it at the end of the time even so.
        force: bool,
        warnings: Vec<String>,
        /// There was nobody to try it with when it joined.
        alone: bool,
        /// Since when it has a carrier.
        carrier_since: Option<Time>,
    },
    /// A member is to leave when nothing comes in over it any more.
    Leave { rx_frames: u64, quiet_since: Time },
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Pending {
    bond: String,
    ifindex: u32,
    slot: u8,
    name: String,
    started: Time,
    /// When it ends in any case.
    until: Time,
    wait: Wait,
}

impl Pending {
    /// `member add`, once the member is in the bond.
    pub(crate) fn join(bond: &Bond, member: &Member, now: Time, force: bool) -> Self {
        let alone = !bond.host.has_witness(member.slot);
        let wait = Wait::Join { force, warnings: Vec::new(), alone, carrier_since: None };
        Self::new(bond, member, now, JOIN_TIMEOUT, wait)
    }

    /// `member del`, once everyone was told.
    pub(crate) fn leave(bond: &Bond, member: &Member, now: Time) -> Self {
        let wait = Wait::Leave { rx_frames: u64::MAX, quiet_since: now };
        Self::new(bond, member, now, DRAIN_TIMEOUT, wait)
    }

    fn new(bond: &Bond, member: &Member, now: Time, limit: Duration, wait: Wait) -> Self {
        let (ifindex, slot, name) = (member.ifindex, member.slot, member.name.clone());
        let (bond, until) = (bond.saved.name.clone(), now + limit);
        Self { bond, ifindex, slot, name, started: now, until, wait }
    }

    /// The same, with lines for the user at its end.
    #[must_use]
    pub(crate) fn warn(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        if let Wait::Join { warnings, .. } = &mut self.wait {
            warnings.extend(lines);
        }
        self
    }

    /// A member that joins has a carrier, or has none: when its time is over then.
    fn follow_carrier(&mut self, now: Time, carrier: bool, patience: Duration) {
        let Wait::Join { carrier_since, .. } = &mut self.wait else { return };
        *carrier_since = if carrier { carrier_since.or(Some(now)) } else { None };
        let until = carrier_since.map_or(self.started + JOIN_TIMEOUT, |since| since + patience);
        self.until = until.min(self.started + JOIN_TIMEOUT_MAX);
    }
}

/// How long a member needs from its carrier on until it is proven, if it ever is.
fn patience(timing: &Timing) -> Duration {
    let intervals = u32::from(timing.admit) + JOIN_INTERVALS_MORE;
    JOIN_TIMEOUT.max(timing.up_delay + timing.interval * intervals)
}

/// What has come of a request.
pub(crate) enum Outcome {
    /// It is done, with these lines for the user.
    Done(Vec<String>),
    /// It goes on.
    Waits(Pending),
    /// A thread does the rest.
    Fabric(Ticket),
}

/// Why a good link may not have been proven within [`JOIN_TIMEOUT_MAX`].
fn too_slow(saved: &SavedBond) -> String {
    format!(
        "no peer has answered through it within {} s, but probes {} ms apart after an up-delay of {} ms take longer",
        JOIN_TIMEOUT_MAX.as_secs(),
        saved.settings.inspector.probe_interval.0,
        saved.settings.inspector.up_delay.0
    )
}

/// All requests under way.
#[derive(Debug, Default)]
pub(crate) struct Queue(Vec<(Pending, oneshot::Sender<Reply>)>);

impl Queue {
    pub(crate) fn push(&mut self, pending: Pending, answer: oneshot::Sender<Reply>) {
        self.0.push((pending, answer));
    }

    /// When the next one wants to be looked at.
    pub(crate) fn wake(&self, now: Time) -> Option<Time> {
        let soon = |pending: &Pending| match pending.wait {
            Wait::Join { .. } => pending.until,
            Wait::Leave { .. } => now + DRAIN_LOOK,
        };
        self.0.iter().map(|(pending, _)| soon(pending)).min()
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
    let now = world.clock.now();
    let failed = match pending.wait {
        Wait::Join { .. } => format!("cannot add member '{}'", pending.name),
        Wait::Leave { .. } => format!("cannot remove member '{}'", pending.name),
    };
    let bond = world.bonds.get(&pending.bond);
    let member = bond.and_then(|bond| bond.members.iter().find(|member| member.ifindex == pending.ifindex));
    let (Some(bond), Some(member)) = (bond, member) else {
        return Some(match pending.wait {
            Wait::Join { .. } => Err(Error::new(&pending.bond, failed, "it was taken away meanwhile")),
            Wait::Leave { .. } => Ok(Vec::new()),
        });
    };
    let carrier = member.has_carrier() && member.admin_up;
    let patience = patience(&bond.saved.timing());
    pending.follow_carrier(now, carrier, patience);
    let over = now >= pending.until;
    match &mut pending.wait {
        Wait::Join { .. } if member.leaving => {
            Some(Err(Error::new(&pending.bond, failed, "it was removed meanwhile")))
        }
        Wait::Join { force, warnings, alone, .. } => {
            let mut lines = std::mem::take(warnings);
            // Whoever was there at the beginning may be gone for no other reason than that another member left.
            let alone = *alone && !bond.host.has_witness(pending.slot);
            if bond.host.is_proven(pending.slot)
                || (bond.host.member(pending.slot).is_some_and(|known| known.alive) && alone)
            {
                // Nobody to try it with: plain hosts are all there is, or nobody at all.
                return Some(member::admit(world, &pending.bond, pending.ifindex).await.map(|()| lines));
            }
            if !over {
                *warnings = lines;
                return None;
            }
            if !carrier {
                lines.push(format!(
                    "{}: '{}' has no carrier yet and carries no traffic",
                    pending.bond, pending.name
                ));
                return Some(member::admit(world, &pending.bond, pending.ifindex).await.map(|()| lines));
            }
            if *force {
                lines.push(format!(
                    "{}: no peer answers through '{}', which was added all the same; plain hosts that only it reaches are reached, and others are not through it",
                    pending.bond, pending.name
                ));
                return Some(member::admit(world, &pending.bond, pending.ifindex).await.map(|()| lines));
            }
            let is_cut_short = pending.until == pending.started + JOIN_TIMEOUT_MAX;
            let cause = match is_cut_short && patience > JOIN_TIMEOUT {
                true => too_slow(&bond.saved),
                false => "no peer answers through it".to_owned(),
            };
            let error = Error::new(&pending.bond, failed, cause)
                .hint(format!("linkbraid member add {} {} --force", pending.bond, pending.name));
            if let Err(error) = member::withdraw(world, &pending.bond, pending.ifindex).await {
                return Some(Err(error));
            }
            Some(Err(error))
        }
        Wait::Leave { rx_frames, quiet_since } => {
            let frames = bond.path.member_counts(pending.slot).map_or(0, |counts| counts.rx.frames);
            if frames != *rx_frames {
                (*rx_frames, *quiet_since) = (frames, now);
            }
            if now.since(*quiet_since) < QUIET && !over {
                return None;
            }
            Some(member::detach(world, &pending.bond, pending.ifindex).await.map(|()| Vec::new()))
        }
    }
}

#[cfg(test)]
mod tests;
