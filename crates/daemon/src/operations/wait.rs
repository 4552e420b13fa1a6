//! What steps wait for; of members that join and leave, what follows from what there is.

use crate::{
    io::state::SavedBond,
    operations::drain::{DRAIN_LOOK, DRAIN_TIMEOUT, Drain},
    world::{bond::Bond, fabric::job::Ended, member::Member},
};
use linkbraid_api::{Error, LinkName};
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

/// What has come of a step when it is begun.
pub(crate) enum Outcome {
    /// It is done, with these lines for the user.
    Done(Vec<String>),
    /// It goes on.
    Waits(Wait),
}

/// What a step waits for.
pub(crate) enum Wait {
    /// A member that joins or leaves.
    Member(Pending),
    /// A thread that joins or ends a fabric.
    Fabric(oneshot::Receiver<Ended>),
}

/// What a member does.
#[derive(Debug)]
enum Moves {
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
    Leave(Drain),
}

/// A member under way.
#[derive(Debug)]
pub(crate) struct Pending {
    pub bond: LinkName,
    pub ifindex: u32,
    slot: u8,
    name: String,
    started: Time,
    /// When it ends in any case.
    until: Time,
    moves: Moves,
}

/// What is to be done now.
pub(super) enum Decision {
    /// Nothing yet.
    Wait,
    /// The request is over.
    End(Result<Vec<String>, Error>),
    /// The member carries traffic from now on; lines for the user.
    Admit(Vec<String>),
    /// The member cannot join, for this reason.
    Withdraw(Error),
    /// The member leaves the bond.
    Detach,
}

impl Pending {
    /// `member add`, once the member is in the bond.
    pub(crate) fn join(bond: &Bond, member: &Member, now: Time, force: bool) -> Self {
        let alone = !bond.driven().host.other_member_is_proven(member.slot);
        let moves = Moves::Join { force, warnings: Vec::new(), alone, carrier_since: None };
        Self::new(bond, member, now, JOIN_TIMEOUT, moves)
    }

    /// `member del`, once everyone knows.
    pub(crate) fn leave(bond: &Bond, member: &Member, now: Time) -> Self {
        Self::new(bond, member, now, DRAIN_TIMEOUT, Moves::Leave(Drain::new(now)))
    }

    fn new(bond: &Bond, member: &Member, now: Time, limit: Duration, moves: Moves) -> Self {
        let (ifindex, slot, name) = (member.ifindex, member.slot, member.name.clone());
        let (bond, until) = (bond.saved.name.clone(), now + limit);
        Self { bond, ifindex, slot, name, started: now, until, moves }
    }

    /// The same, with lines for the user at its end.
    #[must_use]
    pub(crate) fn warn(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        if let Moves::Join { warnings, .. } = &mut self.moves {
            warnings.extend(lines);
        }
        self
    }

    /// A member that joins has a carrier, or has none: when its time is over then.
    fn follow_carrier(&mut self, now: Time, carrier: bool, join_timeout: Duration) {
        let Moves::Join { carrier_since, .. } = &mut self.moves else { return };
        *carrier_since = if carrier { carrier_since.or(Some(now)) } else { None };
        let until = carrier_since.map_or(self.started + JOIN_TIMEOUT, |since| since + join_timeout);
        self.until = until.min(self.started + JOIN_TIMEOUT_MAX);
    }

    /// When it wants to be looked at.
    pub(super) fn wake(&self, now: Time) -> Time {
        match self.moves {
            Moves::Join { .. } => self.until,
            Moves::Leave(_) => now + DRAIN_LOOK,
        }
    }

    /// What is to be done, with the bond as it is now.
    pub(super) fn decide(&mut self, now: Time, bond: Option<&Bond>) -> Decision {
        let found = bond.and_then(|bond| {
            let member = bond.members().into_iter().find(|member| member.ifindex == self.ifindex)?;
            Some((bond, member))
        });
        let joins = matches!(self.moves, Moves::Join { .. });
        match found {
            Some((bond, member)) if joins => self.decide_join(now, bond, &member),
            Some((bond, _)) => self.decide_leave(now, bond),
            None if joins => Decision::End(Err(self.cannot_add("its interface was removed meanwhile"))),
            None => Decision::End(Ok(Vec::new())),
        }
    }

    fn cannot_add(&self, cause: impl Into<String>) -> Error {
        Error::new(&self.bond, format!("cannot add member '{}'", self.name), cause)
    }

    fn decide_join(&mut self, now: Time, bond: &Bond, member: &Member) -> Decision {
        if member.leaving {
            return Decision::End(Err(self.cannot_add("it was removed meanwhile")));
        }
        let carrier = member.has_carrier() && member.admin_up;
        let join_timeout = join_timeout(&bond.saved.timing());
        self.follow_carrier(now, carrier, join_timeout);
        let (name, is_over) = (&self.name, now >= self.until);
        let Moves::Join { force, warnings, alone, .. } = &mut self.moves else { return Decision::Wait };
        // Whoever was there at the beginning may be gone for no other reason than that another member left.
        let driven = bond.driven();
        let host = &driven.host;
        let alone = *alone && !host.other_member_is_proven(self.slot);
        // Nobody to try it with: plain hosts are all there is, or nobody at all.
        let is_alive = || host.member(self.slot).is_some_and(|known| known.alive);
        let is_fit = host.is_proven(self.slot) || (alone && is_alive());
        if !is_fit {
            if !is_over {
                return Decision::Wait;
            }
            if !carrier {
                warnings.push(format!("{}: '{name}' has no carrier yet and carries no traffic", self.bond));
            } else if *force {
                warnings.push(format!(
                    "{}: no peer answers through '{name}', which was added nevertheless; it carries traffic only to plain hosts that no other member reaches",
                    self.bond
                ));
            } else {
                let is_cut_short = self.until == self.started + JOIN_TIMEOUT_MAX;
                let cause = match is_cut_short && join_timeout > JOIN_TIMEOUT {
                    true => too_slow(&bond.saved),
                    false => "no peer answers through it".to_owned(),
                };
                let hint = format!("linkbraid member add {} {name} --force", self.bond);
                return Decision::Withdraw(self.cannot_add(cause).hint(hint));
            }
        }
        Decision::Admit(std::mem::take(warnings))
    }

    fn decide_leave(&mut self, now: Time, bond: &Bond) -> Decision {
        let Moves::Leave(drain) = &mut self.moves else { return Decision::Wait };
        if drain.is_over(now, bond, self.slot) { Decision::Detach } else { Decision::Wait }
    }
}

/// How long a member needs from its carrier on until it is proven, if it ever is.
fn join_timeout(timing: &Timing) -> Duration {
    let intervals = u32::from(timing.admit) + JOIN_INTERVALS_MORE;
    JOIN_TIMEOUT.max(timing.up_delay + timing.interval * intervals)
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

#[cfg(test)]
mod tests;
