//! What becomes of a request: it is carried out at once, by a thread, or step by step while the loop goes on, and answered
//! when that is done.

pub(crate) mod adopt;
mod apply;
mod check;
mod class;
pub(crate) mod fabric;
pub(crate) mod follow;
mod member;
mod outcome;
mod pending;
mod rejoin;
mod settle;
mod setup;
mod wait;

use crate::world::{World, bond::Bond, fabric::Fabric, record};
use apply::Applies;
use linkbraid_api::{BondSet, Error, Records, Reply, Request};
use linkbraid_link::LinkInfo;
use linkbraid_proto::Time;
use outcome::Outcome;
use rejoin::Rejoins;
use std::path::Path;
use tokio::sync::oneshot;

/// All requests under way.
#[derive(Default)]
pub(crate) struct Operations {
    pending: pending::Queue,
    applies: Applies,
    rejoins: Rejoins,
}

impl Operations {
    /// Begins with members that came back while no daemon ran, and with the file that the daemon was started with.
    pub(crate) async fn at_start(&mut self, world: &World, path: Option<&Path>) {
        self.rejoins.look(world).await;
        apply::at_start(&mut self.applies, world, path);
    }

    /// Whether that file, if there is one, was gone through once.
    pub(crate) fn has_begun(&self) -> bool {
        self.applies.has_begun()
    }

    /// When there is something to do next.
    pub(crate) fn wake(&self, now: Time) -> Option<Time> {
        [self.pending.wake(now), self.rejoins.wake(), self.applies.wake(now)].into_iter().flatten().min()
    }

    /// An interface is there.
    pub(crate) fn link_came(&mut self, world: &World, link: &LinkInfo) {
        self.rejoins.link_came(world, link);
        self.applies.link_came(&link.name, world.clock.now());
    }

    /// Takes one step of each that is under way.
    pub(crate) async fn advance(&mut self, world: &mut World) {
        pending::advance(&mut self.pending, world).await;
        // Before the file, which may want the same.
        if let Some((request, answer)) = self.rejoins.next(world).await {
            self.begin(world, request, None, answer).await;
        }
        if let Some((request, answer)) = self.applies.next(world).await {
            self.begin(world, request, None, answer).await;
            // Most are answered at once, and then nothing else wakes the loop.
            self.applies.look(world).await;
        }
    }

    /// Carries out what a user asks for.
    pub(crate) async fn ask(
        &mut self,
        world: &mut World,
        request: Request,
        pid: Option<i32>,
        answer: oneshot::Sender<Reply>,
    ) {
        self.applies.heed(&request);
        self.begin(world, request, pid, answer).await;
    }

    /// Carries a request out, and answers at once or when that is done.
    async fn begin(
        &mut self,
        world: &mut World,
        request: Request,
        pid: Option<i32>,
        answer: oneshot::Sender<Reply>,
    ) {
        let done = match request {
            Request::BondAdd(request) => setup::add(world, request).await.map(Outcome::Done),
            Request::BondSet(request) => bond_set(world, request).await.map(Outcome::Done),
            Request::BondDel(request) => setup::delete(world, &request.name).await.map(Outcome::Done),
            Request::FabricAdd(request) => fabric::add(world, request).await,
            Request::FabricSet(request) => fabric::set(world, request).await,
            Request::FabricDel(request) => fabric::delete(world, &request.name).await,
            Request::MemberAdd(request) => member::add(world, request).await.map(Outcome::Waits),
            Request::MemberSet(request) => member::set(world, &request).await.map(Outcome::Done),
            Request::MemberDel(request) => member::delete(world, &request).await,
            Request::ClassAdd(request) => class::add(world, request).await.map(Outcome::Done),
            Request::ClassSet(request) => class::set(world, request).await.map(Outcome::Done),
            Request::ClassDel(request) => class::delete(world, request).await.map(Outcome::Done),
            Request::Apply(request) => return self.applies.ask(request, answer),
            Request::Run(request) => class::run(world, &request, pid).map(Outcome::Done),
            Request::Monitor { bond: Some(name) } if !world.is_known(&name) => Err(world.no_bond(&name)),
            Request::Monitor { .. } => Ok(Outcome::Done(Vec::new())),
            Request::FabricShow { name } => {
                return reply(answer, of_fabrics(world, name, crate::world::fabric::record::records));
            }
            Request::FabricStats { name } => {
                return reply(answer, of_fabrics(world, name, crate::world::fabric::record::stats));
            }
            Request::Show { name: Some(name) } if world.fabrics.contains_key(&name) => {
                return reply(answer, of_fabrics(world, Some(name), crate::world::fabric::record::records));
            }
            Request::Stats { name: Some(name) } if world.fabrics.contains_key(&name) => {
                return reply(answer, of_fabrics(world, Some(name), crate::world::fabric::record::stats));
            }
            Request::Show { name } => return reply(answer, records(world, name, record::bonds)),
            Request::Peers { bond } => return reply(answer, records(world, bond, record::peers)),
            Request::Lanes { bond } => return reply(answer, records(world, bond, record::lanes)),
            Request::ClassShow { bond } => return reply(answer, records(world, bond, record::classes)),
            Request::Latency { name } => return reply(answer, records(world, name, record::latency)),
            Request::Stats { name } => return reply(answer, records(world, name, record::stats)),
            Request::Check { interfaces } => {
                let found = check::run(world, interfaces).await;
                let found = found.map_or_else(Reply::Error, |found| Reply::Records(Records::Findings(found)));
                return reply(answer, found);
            }
        };
        match done {
            Ok(Outcome::Waits(pending)) => self.pending.push(pending, answer),
            Ok(Outcome::Fabric(ticket)) => world.jobs.answer(ticket, answer),
            Ok(Outcome::Done(warnings)) => reply(answer, Reply::Done { warnings }),
            Err(error) => reply(answer, Reply::Error(error)),
        }
    }
}

fn records(
    world: &World,
    name: Option<String>,
    make: impl Fn(&[&Bond], Time) -> Result<Records, Error>,
) -> Reply {
    let bonds: Vec<&Bond> = match &name {
        Some(name) => match world.bonds.get(name) {
            Some(bond) => vec![bond],
            None => return Reply::Error(world.no_bond(name)),
        },
        None => world.bonds.values().collect(),
    };
    make(&bonds, world.clock.now()).map_or_else(Reply::Error, Reply::Records)
}

fn of_fabrics(world: &World, name: Option<String>, make: impl Fn(&[&Fabric], Time) -> Records) -> Reply {
    let fabrics: Vec<&Fabric> = match &name {
        Some(name) => match world.fabrics.get(name) {
            Some(fabric) => vec![fabric],
            None => return Reply::Error(world.no_fabric(name)),
        },
        None => world.fabrics.values().collect(),
    };
    Reply::Records(make(&fabrics, world.clock.now()))
}

async fn bond_set(world: &mut World, set: BondSet) -> Result<Vec<String>, Error> {
    let Some(bond) = world.bonds.get_mut(&set.name) else { return Err(world.no_bond(&set.name)) };
    // What the kernel may refuse comes first.
    let measured = bond.latency.is_some();
    if let Some(addresses) = &set.addresses {
        setup::set_addresses(&world.netlink, bond, addresses).await?;
    }
    if let Some(on) = set.options.latency {
        bond.measure_latency(on)?;
    }
    if let Some(mtu) = set.options.mtu
        && let Err(error) = member::set_mtu(&world.netlink, bond, mtu.0).await
    {
        if let Err(error) = bond.measure_latency(measured) {
            tracing::error!(%error, "latency is measured otherwise than before");
        }
        return Err(error);
    }
    bond.saved.settings = bond.saved.settings.with(&set.options);
    bond.read_addresses(&world.netlink, world.clock).await?;
    bond.write_tables(world.clock)?;
    bond.write_stripe(&world.netlink).await?;
    world.state.write(&bond.saved)?;
    Ok(Vec::new())
}

/// The client may have hung up.
fn reply(answer: oneshot::Sender<Reply>, reply: Reply) {
    let _ = answer.send(reply);
}
