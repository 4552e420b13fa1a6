//! The MTU of a bond changes. Many drivers reset their link for that, and are silent for seconds: so the members get it one
//! after the other, each only when the one before carries traffic again, and peers hear before that nothing is to be sent
//! there. If a member refuses, or does not come back, those before it are put back in the same way.
//!
//! So that the bond never promises what its members cannot carry, its own interface is the last one that grows and the
//! first one that shrinks.

use crate::{
    io::{error::About as _, undo::not_undone},
    operations::{
        desired::Change,
        drain::{DRAIN_LOOK, Drain},
        setup, upkeep,
    },
    world::{World, bond::Bond, fabric::job::Ended, member::Member},
};
use linkbraid_api::{Error, config::BondConfig};
use linkbraid_proto::{Time, inspector::Timing};
use std::time::Duration;

/// How long a link may take to have a carrier again: three times what the slowest drivers take to negotiate.
const RETURN_TIMEOUT: Duration = Duration::from_secs(10);
/// Intervals between probes that go by besides those of the admission: the peers have to hear of the member first.
const PROBES_MORE: u32 = 2;
/// How often it is looked whether it does.
const RETURN_LOOK: Duration = Duration::from_millis(10);

/// What is to follow from the change of a bond's MTU, as far as it has come.
pub(super) struct Resize {
    change: Change<BondConfig>,
    /// What all interfaces have at the end...
    to: u32,
    /// ...and had before.
    from: u32,
    stage: Stage,
    /// Members that were given it, or refused.
    tried: Vec<u32>,
    /// Why what was done is being put back.
    failed: Option<Error>,
    /// The bond's own interface could not be put back.
    stuck: bool,
}

/// What a member can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It carries nothing.
    No,
    /// It carries traffic, and nobody answers probes through it.
    Live,
    Proven,
}

/// A member whose turn it is, and what it could do before.
#[derive(Debug, Clone)]
struct Turn {
    member: Member,
    before: Fit,
}

enum Stage {
    /// Another change of this bond's MTU is under way.
    Waits,
    /// The next interface is to get it.
    Next,
    /// Peers know that they are not to send to this member.
    Drains(Turn, Drain),
    /// This member is to carry traffic again until then; it has refused the MTU for this reason.
    Returns(Turn, Time, Option<Error>),
}

impl Resize {
    pub(super) fn new(change: Change<BondConfig>, mtu: u32) -> Self {
        Self {
            change,
            to: mtu,
            from: mtu,
            stage: Stage::Waits,
            tried: Vec::new(),
            failed: None,
            stuck: false,
        }
    }

    /// When it wants to be looked at.
    pub(super) fn wake(&self, now: Time) -> Time {
        match self.stage {
            Stage::Next => now,
            Stage::Drains(..) => now + DRAIN_LOOK,
            Stage::Waits | Stage::Returns(..) => now + RETURN_LOOK,
        }
    }

    /// Goes on as far as it can; its end, if it has come to it.
    pub(super) async fn advance(&mut self, world: &mut World) -> Option<Ended> {
        loop {
            let now = world.clock.now();
            let gone =
                || Error::new(&self.change.name, "cannot change its MTU", "the bond was removed meanwhile");
            let Some(bond) = world.bonds.get_mut(&self.change.name) else { return Some(Err(gone())) };
            let is_begun = bond.mtu_meanwhile.is_some();
            match std::mem::replace(&mut self.stage, Stage::Next) {
                Stage::Waits if is_begun => {
                    self.stage = Stage::Waits;
                    return None;
                }
                Stage::Waits => {
                    // Before anything is touched: a disk that takes no file takes none of what follows either.
                    if let Err(error) = world.state.write(&bond.saved) {
                        return Some(Err(error));
                    }
                    self.from = bond.saved.mtu;
                    self.begin(bond);
                    if let Err(error) = self.check(world).await {
                        self.fail(error);
                    }
                }
                // Another one of this name.
                _ if !is_begun => return Some(Err(gone())),
                Stage::Next => {
                    if !self.go_on(world).await
                        && let Some(end) = self.end(world).await
                    {
                        return Some(end);
                    }
                }
                Stage::Drains(turn, mut drain) => {
                    if !drain.is_over(now, bond, turn.member.slot) {
                        self.stage = Stage::Drains(turn, drain);
                        return None;
                    }
                    self.set(world, turn).await;
                }
                Stage::Returns(turn, until, refused) => {
                    let is_there = bond.driven().announced(turn.member.ifindex).is_some();
                    let is_back = fit(bond, turn.member.slot) >= turn.before || !is_there;
                    if !is_back && now < until {
                        self.stage = Stage::Returns(turn, until, refused);
                        return None;
                    }
                    let late = || {
                        let what = format!("cannot set MTU {}", self.to);
                        let limit = return_timeout(&bond.saved.timing());
                        let cause = format!("it carries no traffic {} s later", limit.as_secs());
                        let hint = format!("linkbraid show {}", self.change.name);
                        Error::new(&turn.member.name, what, cause).hint(hint)
                    };
                    // What is put back is as good as it gets.
                    if let Some(error) = refused.or_else(|| (!is_back && self.failed.is_none()).then(late)) {
                        self.fail(error);
                    }
                }
            }
        }
    }

    fn begin(&self, bond: &mut Bond) {
        let least = self.from.min(self.to);
        bond.mtu_meanwhile = Some(least);
        // Members that have shrunk already, or not yet grown, carry traffic meanwhile.
        bond.driven().want_mtu(least);
    }

    /// Refuses what a driver says that it does not take, before any link is reset.
    async fn check(&self, world: &World) -> Result<(), Error> {
        let Some(bond) = world.bonds.get(&self.change.name) else { return Ok(()) };
        for member in bond.members().iter().filter(|member| member.ours && !member.leaving) {
            let link = world.netlink.link_by_index(member.ifindex).await;
            let most = link.ok().and_then(|link| link.max_mtu);
            if let Some(most) = most.filter(|most| *most < self.to) {
                let cause = format!("its driver takes {most} at most");
                let hint = format!("linkbraid bond set {} --mtu {most}", bond.saved.name);
                return Err(Error::new(&member.name, format!("cannot set MTU {}", self.to), cause).hint(hint));
            }
        }
        Ok(())
    }

    /// Goes on with the next interface, if there is one left; whether there was.
    async fn go_on(&mut self, world: &mut World) -> bool {
        let is_putting_back = self.failed.is_some();
        match self.next(world).await {
            Ok(is_left) => is_left,
            Err(error) => {
                // Only the bond's own interface is set there.
                self.stuck = is_putting_back;
                self.fail(error);
                true
            }
        }
    }

    /// Begins with the next interface, or sets that of the bond; whether there was one that had not the MTU yet.
    async fn next(&mut self, world: &mut World) -> Result<bool, Error> {
        let Some(bond) = world.bonds.get_mut(&self.change.name) else { return Ok(false) };
        let (name, index, to) = (bond.saved.name.clone(), bond.ifindex, self.to);
        let what = format!("cannot set MTU {to}");
        let now = match self.stuck {
            true => to,
            false => world.netlink.link_by_index(index).await.about(&name, what.clone())?.mtu,
        };
        if now > to {
            return world.netlink.set_mtu(index, to).await.about(&name, what).map(|()| true);
        }
        let is_left = |member: &Member| {
            member.ours && !member.leaving && member.mtu != to && !self.tried.contains(&member.ifindex)
        };
        let Some(member) = bond.members().into_iter().find(is_left) else {
            if now == to {
                return Ok(false);
            }
            return world.netlink.set_mtu(index, to).await.about(&name, what).map(|()| true);
        };
        let before = fit(bond, member.slot);
        // The last one is not withdrawn: until its driver resets it, it carries all there is.
        let withdraws = before > Fit::No && others_carry(bond, member.slot);
        bond.driven().reset_link(world.clock.now(), member.ifindex, withdraws);
        let turn = Turn { member, before };
        match withdraws {
            true => self.stage = Stage::Drains(turn, Drain::new(world.clock.now())),
            false => self.set(world, turn).await,
        }
        Ok(true)
    }

    /// Gives a member the MTU.
    async fn set(&mut self, world: &mut World, turn: Turn) {
        let World { bonds, netlink, clock, .. } = world;
        let Some(bond) = bonds.get_mut(&self.change.name) else { return };
        let index = turn.member.ifindex;
        self.tried.push(index);
        let done = netlink.set_mtu(index, self.to).await;
        bond.read_member(netlink, index, *clock).await;
        bond.driven().returned(clock.now(), index);
        let what = format!("cannot set MTU {}", self.to);
        let refused = done.about(&turn.member.name, what).err();
        self.stage = Stage::Returns(turn, clock.now() + return_timeout(&bond.saved.timing()), refused);
    }

    /// Something failed: what was done is put back.
    fn fail(&mut self, error: Error) {
        self.stage = Stage::Next;
        match self.failed.take() {
            None => {
                self.failed = Some(error);
                std::mem::swap(&mut self.from, &mut self.to);
                self.tried.clear();
            }
            // An interface that cannot be put back is tried no more.
            Some(first) => self.failed = Some(not_undone(first, [error])),
        }
    }

    /// All have the MTU: the bond is what it is to be, or what it was. None: what was done has to be put back.
    async fn end(&mut self, world: &mut World) -> Option<Ended> {
        let bond = world.bonds.get_mut(&self.change.name)?;
        bond.mtu_meanwhile = None;
        let end = match self.failed.take() {
            Some(error) => {
                bond.follow_saved();
                bond.driven().report_members(world.clock.now());
                Err(error)
            }
            None => match setup::set(world, &self.change, Some(self.to)).await {
                Ok(lines) => Ok(lines),
                Err(error) => {
                    let bond = world.bonds.get_mut(&self.change.name)?;
                    self.begin(bond);
                    self.fail(error);
                    return None;
                }
            },
        };
        // What others have done meanwhile.
        upkeep::all(world, &self.change.name).await;
        Some(end)
    }
}

/// How long a member may take to carry traffic again: until its carrier is back, the up-delay, and its probes.
fn return_timeout(timing: &Timing) -> Duration {
    RETURN_TIMEOUT + timing.up_delay + timing.interval * (u32::from(timing.admit) + PROBES_MORE)
}

fn fit(bond: &Bond, slot: u8) -> Fit {
    let driven = bond.driven();
    let is_live = driven.host.member(slot).is_some_and(|known| known.live());
    match (is_live, driven.host.is_proven(slot)) {
        (false, _) => Fit::No,
        (true, false) => Fit::Live,
        (true, true) => Fit::Proven,
    }
}

fn others_carry(bond: &Bond, slot: u8) -> bool {
    bond.driven().host.members().iter().any(|other| other.slot != slot && other.live() && other.sound)
}
