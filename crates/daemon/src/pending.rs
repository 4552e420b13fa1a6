//! Requests that take a while: the loop goes on meanwhile, and the answer comes when they are done.

use crate::{bond::Bond, control::Control, member};
use linkbraid_api::{Error, Reply};
use linkbraid_proto::Time;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a new member may take until a peer answers through it: the up-delay, ARP+'s announcement of it (once more
/// if that was lost) and three probes.
const JOIN_TIMEOUT: Duration = Duration::from_secs(5);
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
    wait: Wait,
}

impl Pending {
    /// `member add`, once the member is in the bond.
    pub(crate) fn join(bond: &Bond, member: &crate::bond::Member, now: Time, force: bool) -> Self {
        Self::new(bond, member, now, Wait::Join { force, warnings: Vec::new() })
    }

    /// `member del`, once everyone was told.
    pub(crate) fn leave(bond: &Bond, member: &crate::bond::Member, now: Time) -> Self {
        Self::new(bond, member, now, Wait::Leave { rx_frames: u64::MAX, quiet_since: now })
    }

    fn new(bond: &Bond, member: &crate::bond::Member, now: Time, wait: Wait) -> Self {
        let (ifindex, slot, name) = (member.ifindex, member.slot, member.name.clone());
        Self { bond: bond.saved.name.clone(), ifindex, slot, name, started: now, wait }
    }

    /// The same, with lines for the user at its end.
    #[must_use]
    pub(crate) fn warn(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        if let Wait::Join { warnings, .. } = &mut self.wait {
            warnings.extend(lines);
        }
        self
    }

    /// When it wants to be looked at, though nothing happens.
    fn wake(&self) -> Time {
        self.started
            + JOIN_TIMEOUT.min(match self.wait {
                Wait::Join { .. } => JOIN_TIMEOUT,
                Wait::Leave { .. } => DRAIN_TIMEOUT,
            })
    }
}

/// What has come of a request.
pub(crate) enum Outcome {
    /// It is done, with these lines for the user.
    Done(Vec<String>),
    /// It goes on.
    Waits(Pending),
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
            Wait::Join { .. } => pending.wake(),
            Wait::Leave { .. } => now + DRAIN_LOOK,
        };
        self.0.iter().map(|(pending, _)| soon(pending)).min()
    }
}

/// Looks at every request under way and ends those that are done.
pub(crate) async fn advance(control: &mut Control) {
    let mut rest = Vec::new();
    for (mut pending, answer) in std::mem::take(&mut control.pending.0) {
        match look(control, &mut pending).await {
            None => rest.push((pending, answer)),
            Some(result) => {
                let reply = result.map_or_else(Reply::Error, |warnings| Reply::Done { warnings });
                // The client may have gone; what it asked for is done all the same.
                let _ = answer.send(reply);
            }
        }
    }
    control.pending.0.append(&mut rest);
}

/// One request: its end, if this is it.
async fn look(control: &mut Control, pending: &mut Pending) -> Option<Result<Vec<String>, Error>> {
    let now = control.clock.now();
    let failed = match pending.wait {
        Wait::Join { .. } => format!("cannot add member '{}'", pending.name),
        Wait::Leave { .. } => format!("cannot remove member '{}'", pending.name),
    };
    let bond = control.bonds.get(&pending.bond);
    let member = bond.and_then(|bond| bond.members.iter().find(|member| member.ifindex == pending.ifindex));
    let (Some(bond), Some(member)) = (bond, member) else {
        return Some(match pending.wait {
            Wait::Join { .. } => Err(Error::new(&pending.bond, failed, "it was taken away meanwhile")),
            Wait::Leave { .. } => Ok(Vec::new()),
        });
    };
    let over = now >= pending.wake();
    match &mut pending.wait {
        Wait::Join { .. } if member.leaving => {
            Some(Err(Error::new(&pending.bond, failed, "it was removed meanwhile")))
        }
        Wait::Join { force, warnings } => {
            let mut lines = std::mem::take(warnings);
            let carrier = member.polled.unwrap_or(member.carrier) && member.admin_up;
            let alone = !bond.has_witness(pending.slot);
            if bond.is_proven(pending.slot) || (member.alive && alone) {
                // Nobody to try it with: plain hosts are all there is, or nobody at all.
                return Some(member::admit(control, &pending.bond, pending.ifindex).await.map(|()| lines));
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
                return Some(member::admit(control, &pending.bond, pending.ifindex).await.map(|()| lines));
            }
            if *force {
                lines.push(format!(
                    "{}: no peer answers through '{}', which was added all the same; plain hosts that only it reaches are reached, and others are not through it",
                    pending.bond, pending.name
                ));
                return Some(member::admit(control, &pending.bond, pending.ifindex).await.map(|()| lines));
            }
            let error = Error::new(&pending.bond, failed, "no peer answers through it")
                .hint(format!("linkbraid member add {} {} --force", pending.bond, pending.name));
            if let Err(error) = member::withdraw(control, &pending.bond, pending.ifindex).await {
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
            Some(member::detach(control, &pending.bond, pending.ifindex).await.map(|()| Vec::new()))
        }
    }
}
