//! Members that are wanted and not there: unplugged, their driver reloaded, moved to another network namespace. Each joins again
//! as soon as an interface of its name is there, whatever its index and its MAC are by then; until then, or until `member del`,
//! the bond's file keeps it ([`SavedBond::absent`]).
//!
//! [`SavedBond::absent`]: crate::io::state::SavedBond::absent

use super::{
    current::current,
    desired::diff,
    operation::{By, Operation},
};
use crate::world::{World, bond::Bond};
use linkbraid_api::Error;
use linkbraid_link::{Kind, LinkInfo};
use linkbraid_proto::Time;
use std::{collections::BTreeMap, time::Duration};

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
    /// It joins just now.
    under_way: bool,
}

impl Rejoins {
    /// An interface is there.
    pub(crate) fn link_came(&mut self, world: &World, link: &LinkInfo) {
        let is_wanted = |bond: &Bond| bond.saved.absent.iter().any(|absent| absent.name == link.name);
        if !world.bonds.values().any(is_wanted) {
            return;
        }
        let rejoin = self.0.entry(link.name.clone());
        let rejoin =
            rejoin.or_insert(Rejoin { ifindex: 0, at: Time::ZERO, delay: RETRY_MIN, under_way: false });
        if rejoin.ifindex != link.index {
            (rejoin.ifindex, rejoin.at, rejoin.delay) = (link.index, world.clock.now(), RETRY_MIN);
        }
    }

    /// An interface is gone: it is looked for at once, and what was said of it is forgotten.
    pub(crate) fn link_gone(&mut self, index: u32, now: Time) {
        self.0.values_mut().filter(|rejoin| rejoin.ifindex == index).for_each(|rejoin| rejoin.at = now);
    }

    /// Looks for all of them: the daemon has just started.
    pub(crate) async fn look(&mut self, world: &World) {
        match world.netlink.links().await {
            Ok(links) => links.iter().for_each(|link| self.link_came(world, link)),
            Err(error) => tracing::error!(%error, "cannot read the interfaces"),
        }
    }

    /// When there is something to do next.
    pub(crate) fn wake(&self) -> Option<Time> {
        self.0.values().filter(|rejoin| !rejoin.under_way).map(|rejoin| rejoin.at).min()
    }

    /// The next one that is to join now, if there is one.
    pub(super) async fn next(&mut self, world: &mut World) -> Option<Operation> {
        let now = world.clock.now();
        // Others are wanted no more, or a user has added them.
        let wants = |bond: &Bond, name: &str| bond.saved.absent.iter().any(|absent| absent.name == name);
        self.0.retain(|name, _| world.bonds.values().any(|bond| wants(bond, name)));
        for bond in world.bonds.values_mut() {
            let absent = &bond.saved.absent;
            bond.found.not_joined.retain(|name, _| absent.iter().any(|absent| absent.name == *name));
        }
        let is_due = |rejoin: &&mut Rejoin| !rejoin.under_way && rejoin.at <= now;
        let (name, rejoin) = self.0.iter_mut().find(|(_, rejoin)| is_due(rejoin))?;
        let name = name.clone();
        if world.jobs.busy(&name).is_some() {
            rejoin.at = now + RETRY_FABRIC;
            return None;
        }
        // It was given that name while another bond had it.
        if world.bonds.values().any(|bond| bond.member(&name).is_some()) {
            rejoin.at = now + RETRY_MAX;
            return None;
        }
        if matches!(world.netlink.link(&name).await, Err(error) if error.kind == Kind::NoDevice) {
            self.0.remove(&name);
            world.bonds.values_mut().for_each(|bond| drop(bond.found.not_joined.remove(&name)));
            return None;
        }
        let bond = world.bonds.values_mut().find(|bond| wants(bond, &name))?;
        let absent = bond.saved.absent.iter().find(|absent| absent.name == name)?;
        let (of, move_address) = (bond.saved.name.clone(), absent.move_address);
        if !bond.found.not_joined.contains_key(&name) {
            bond.report_member(&name, "returned", "it is there and joins");
        }
        rejoin.under_way = true;
        let has = current(world).await;
        let mut wanted = has.config.clone();
        let bond = wanted.bonds.get_mut(&of)?;
        bond.move_address = move_address;
        bond.members.iter_mut().filter(|one| *one.interface == *name).for_each(|one| one.absent = false);
        Some(Operation::new(By::Rejoin(name), diff(&has.config, &wanted), has))
    }

    /// One of them has joined, or could not.
    pub(super) fn ended(&mut self, world: &mut World, name: &str, error: Option<Error>) {
        let Some(error) = error else {
            self.0.remove(name);
            return;
        };
        if let Some(rejoin) = self.0.get_mut(name) {
            rejoin.under_way = false;
            rejoin.at = world.clock.now() + rejoin.delay;
            rejoin.delay = (rejoin.delay * 2).min(RETRY_MAX);
        }
        let waits = |bond: &&mut Bond| bond.saved.absent.iter().any(|absent| absent.name == name);
        let Some(bond) = world.bonds.values_mut().find(waits) else { return };
        let before = bond.found.not_joined.insert(name.to_owned(), error.clone());
        if before.as_ref() != Some(&error) {
            tracing::warn!("{error}; tried again");
        }
    }
}
