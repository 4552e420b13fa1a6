//! Members that are wanted and not there: unplugged, their driver reloaded, moved to another network namespace. Each joins again
//! as soon as an interface of its name is there, whatever its index and its MAC are by then; until then, or until `member del`,
//! the bond's file keeps it ([`SavedBond::absent`]).
//!
//! [`SavedBond::absent`]: crate::io::state::SavedBond::absent

use crate::{
    io::state::SavedAbsent,
    world::{World, bond::Bond},
};
use linkbraid_api::{Error, MemberAdd, MemberSettings, Reply, Request};
use linkbraid_link::{Kind, LinkInfo};
use linkbraid_proto::Time;
use std::{collections::BTreeMap, time::Duration};
use tokio::sync::oneshot::{self, error::TryRecvError};

/// How long until what failed is tried again: at first, and at most.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// The same while a fabric of that name is being made, whose interface is there before it can be used.
const RETRY_FABRIC: Duration = Duration::from_millis(50);

/// Interfaces that are there and are to join again, by their names.
#[derive(Default)]
pub(crate) struct Rejoins(BTreeMap<String, Rejoin>);

struct Rejoin {
    /// The interface that was there when it was looked at last; another one is tried at once.
    ifindex: u32,
    at: Time,
    delay: Duration,
    /// The request under way.
    under_way: Option<oneshot::Receiver<Reply>>,
    /// What was said already.
    said: Option<Error>,
}

impl Rejoins {
    /// An interface is there.
    pub(crate) fn link_came(&mut self, world: &World, link: &LinkInfo) {
        let is_wanted = |bond: &Bond| bond.saved.absent.iter().any(|absent| absent.name == link.name);
        if !world.bonds.values().any(is_wanted) {
            return;
        }
        let rejoin = self.0.entry(link.name.clone());
        let rejoin = rejoin.or_insert(Rejoin {
            ifindex: 0,
            at: Time::ZERO,
            delay: RETRY_MIN,
            under_way: None,
            said: None,
        });
        if rejoin.ifindex != link.index {
            (rejoin.ifindex, rejoin.at, rejoin.delay) = (link.index, world.clock.now(), RETRY_MIN);
        }
    }

    /// Looks for all of them: the daemon has just started.
    pub(crate) async fn look(&mut self, world: &World) {
        match world.netlink.links().await {
            Ok(links) => links.iter().for_each(|link| self.link_came(world, link)),
            Err(error) => tracing::error!(%error, "cannot read the interfaces"),
        }
    }

    /// When there is something to do next. A request under way wakes the loop by itself.
    pub(crate) fn wake(&self) -> Option<Time> {
        self.0.values().filter(|rejoin| rejoin.under_way.is_none()).map(|rejoin| rejoin.at).min()
    }

    /// The next request that is to be carried out now, if there is one.
    pub(crate) async fn next(&mut self, world: &mut World) -> Option<(Request, oneshot::Sender<Reply>)> {
        let now = world.clock.now();
        self.0.retain(|name, rejoin| rejoin.goes_on(world, name, now));
        let is_due = |rejoin: &&mut Rejoin| rejoin.under_way.is_none() && rejoin.at <= now;
        let (name, rejoin) = self.0.iter_mut().find(|(_, rejoin)| is_due(rejoin))?;
        let name = name.clone();
        if world.jobs.busy(&name).is_some() {
            rejoin.at = now + RETRY_FABRIC;
            return None;
        }
        if matches!(world.netlink.link(&name).await, Err(error) if error.kind == Kind::NoDevice) {
            self.0.remove(&name);
            return None;
        }
        let wants = |bond: &&mut Bond| bond.saved.absent.iter().any(|absent| absent.name == name);
        let bond = world.bonds.values_mut().find(wants)?;
        let absent = bond.saved.absent.iter().find(|absent| absent.name == name)?;
        let request = Request::MemberAdd(MemberAdd {
            bond: bond.saved.name.clone(),
            interface: name.clone(),
            options: absent.settings.besides(&MemberSettings::default()),
            move_address: absent.move_address,
            // It was in the bond before, whoever answers through it now.
            force: true,
            class: bond.class_name(absent.class),
        });
        if rejoin.said.is_none() {
            bond.tell_of(&name, "returned", "it is there again and joins");
        }
        let (sender, answer) = oneshot::channel();
        rejoin.under_way = Some(answer);
        Some((request, sender))
    }
}

impl Rejoin {
    /// Sees what has become of the request under way; whether there is more to do.
    fn goes_on(&mut self, world: &World, name: &str, now: Time) -> bool {
        // It is wanted no more, or a user has added it.
        let wants = |bond: &Bond| bond.saved.absent.iter().any(|absent| absent.name == name);
        if !world.bonds.values().any(wants) {
            return false;
        }
        let Some(answer) = &mut self.under_way else { return true };
        let error = match answer.try_recv() {
            Err(TryRecvError::Empty) => return true,
            Ok(Reply::Error(error)) => error,
            Ok(_) | Err(TryRecvError::Closed) => return false,
        };
        self.under_way = None;
        self.at = now + self.delay;
        self.delay = (self.delay * 2).min(RETRY_MAX);
        if self.said.as_ref() != Some(&error) {
            tracing::warn!("{error}; tried again");
            self.said = Some(error);
        }
        true
    }
}

/// A member's interface is gone: unless it was about to leave, or had not yet joined, the bond wants it back.
pub(crate) fn lost(bond: &mut Bond, name: &str, ifindex: u32) {
    let saved = &bond.saved;
    let member = saved.members.iter().find(|member| member.before.link.index == ifindex);
    if let Some(member) = member.filter(|member| member.stays()) {
        let absent = SavedAbsent::of(member, name);
        bond.saved.absent.push(absent);
    }
}

/// A user wants a member no more that is not there; whether it was one.
///
/// # Errors
/// The bond's file cannot be written.
pub(crate) fn give_up(world: &mut World, bond: &str, name: &str) -> Result<bool, Error> {
    let Some(bond) = world.bonds.get_mut(bond) else { return Ok(false) };
    let before = bond.saved.absent.len();
    bond.saved.absent.retain(|absent| absent.name != name);
    if bond.saved.absent.len() == before {
        return Ok(false);
    }
    if bond.member(name).is_none() {
        bond.tell_of(name, "removed", "removed; it was not there");
    }
    world.state.write(&bond.saved)?;
    Ok(true)
}
