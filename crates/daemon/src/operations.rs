//! What becomes of a request. One that asks is answered at once. One that changes something is merged with what there is
//! ([`desired`]); the steps from there are an [`Operation`], which is answered when it has come to its end. So are files, and
//! members that are plugged in again.

mod absent;
pub(crate) mod adopt;
mod apply;
mod check;
mod class;
mod confirm;
mod current;
mod desired;
mod drain;
mod explain;
pub(crate) mod fabric;
pub(crate) mod follow;
mod keys;
mod member;
mod operation;
mod rejoin;
mod resize;
mod settle;
mod setup;
pub(crate) mod snapshot;
mod start;
pub(crate) mod upkeep;
mod wait;

use crate::world::{
    World,
    bond::Bond,
    fabric::{Fabric, record as fabrics},
    record,
};
use apply::Files;
pub(crate) use check::{trial, without_daemon as check};
use confirm::Unconfirmed;
use desired::{Change, Current, Step, diff, merge::merge};
use linkbraid_api::{
    BondDel, BondSet, ClassAdd, ClassDel, ClassSet, Error, FabricDel, FabricSet, LinkName, MemberAdd,
    MemberDel, MemberSet, MetricsAddress, Records, Reply, Request, Tentative,
};
use linkbraid_link::LinkInfo;
use linkbraid_proto::Time;
use operation::{By, Operation};
use rejoin::Rejoins;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use tokio::sync::oneshot;
use upkeep::ByHand;

/// All that is under way, and what will be.
#[derive(Default)]
pub(crate) struct Operations {
    running: Vec<Operation>,
    files: Files,
    rejoins: Rejoins,
    unconfirmed: Unconfirmed,
    /// What those files say of metrics.
    metrics: Option<MetricsAddress>,
}

impl Operations {
    /// Begins with members that came back while no daemon ran, and with the files that the daemon was started with.
    pub(crate) async fn at_start(&mut self, world: &World, files: &[PathBuf]) {
        self.rejoins.look(world).await;
        let document = start::read(files);
        self.metrics = document.as_ref().and_then(|read| Some(read.metrics.as_ref()?.0.clone()));
        // What an earlier daemon made of them waits to be confirmed, or is undone.
        let waits = self.unconfirmed.at_start(world);
        self.files.at_start(world.clock.now(), document, waits);
    }

    /// Where metrics are to be served, by the files that the daemon was started with.
    pub(crate) fn metrics(&self) -> Option<MetricsAddress> {
        self.metrics.clone()
    }

    /// Whether what is in those files, if there are any, is done as far as it can be without links that come late.
    pub(crate) fn has_begun(&self) -> bool {
        self.files.start().is_none_or(start::Start::has_begun)
    }

    /// What is still done before that, in words.
    pub(crate) fn begins_with(&self) -> String {
        self.files.start().map(start::Start::doing).unwrap_or_default()
    }

    /// Members of bonds that those files are yet to make, with their bonds.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = (&LinkName, &LinkName)> {
        self.files.start().into_iter().flat_map(start::Start::awaited)
    }

    /// When there is something to do next.
    pub(crate) fn wake(&self, now: Time) -> Option<Time> {
        let running = self.running.iter().filter_map(|operation| operation.wake(now)).min();
        let files = if self.keeps_files() { None } else { self.files.wake(now) };
        let undo = if self.keeps_files() { None } else { self.unconfirmed.wake() };
        [running, self.rejoins.wake(), files, undo].into_iter().flatten().min()
    }

    /// An interface is there.
    pub(crate) fn link_came(&mut self, world: &World, link: &LinkInfo) {
        self.rejoins.link_came(world, link);
        self.files.link_came(&link.name, world.clock.now());
    }

    /// One is gone.
    pub(crate) fn link_gone(&mut self, world: &World, index: u32) {
        self.rejoins.link_gone(index, world.clock.now());
    }

    /// Somebody deleted a bond's interface, and its members are put back. If it is made again, the time until then.
    pub(crate) fn bond_gone(&mut self, world: &World, bond: &LinkName) -> Option<Duration> {
        self.files.bond_gone(bond, world.clock.now())
    }

    /// Takes one step of each that is under way, and begins others.
    pub(crate) async fn advance(&mut self, world: &mut World) {
        upkeep::advance(world).await;
        for operation in std::mem::take(&mut self.running) {
            self.go_on(world, operation).await;
        }
        while let Some(hand) = upkeep::by_hand(world) {
            let has = current::current(world).await;
            let mut wanted = has.config.clone();
            wanted.bonds.entry(hand.bond.clone()).and_modify(|bond| bond.mtu = Some(hand.to));
            let operation = Operation::new(By::Hand(hand), diff(&has.config, &wanted), has);
            self.go_on(world, operation).await;
        }
        // Before the file, which may want the same.
        if let Some(operation) = self.rejoins.next(world).await {
            self.go_on(world, operation).await;
        }
        if !self.keeps_files()
            && let Some(operation) = self.unconfirmed.next(world).await
        {
            self.go_on(world, operation).await;
        }
        if !self.keeps_files()
            && let Some(operation) = self.files.next(world).await
            && let Some(operation) = self.begin(world, operation).await
        {
            self.go_on(world, operation).await;
        }
    }

    /// Why a change cannot be made now, if it cannot. To undo one must undo no other one.
    fn refuses(&self, is_tentative: bool) -> Option<Error> {
        self.unconfirmed.refuses().or_else(|| {
            let others = is_tentative && (self.keeps_files() || self.files.wait());
            others.then(|| {
                Error::new(
                    "daemon",
                    "cannot make a change that is to be confirmed",
                    "another one is under way",
                )
                .hint("linkbraid show")
            })
        })
    }

    /// Whether files have to wait: another one is under way, or what a user asked for, such as a member that joins and may yet be
    /// withdrawn.
    fn keeps_files(&self) -> bool {
        self.running.iter().any(|operation| !matches!(operation.by, By::Rejoin(_)))
    }

    /// Notes what there is before a change that is undone unless it is confirmed.
    async fn begin(&mut self, world: &World, operation: Operation) -> Option<Operation> {
        let Some(tentative) = &operation.tentative else { return Some(operation) };
        let noted = self.unconfirmed.begin(world, &operation.before, tentative.clone()).await;
        let Err(error) = noted else {
            self.files.note();
            return Some(operation);
        };
        // Nobody else makes such a change.
        if let By::User(answer) | By::File(_, answer) = operation.by {
            reply(answer, Reply::Error(error));
        }
        None
    }

    async fn go_on(&mut self, world: &mut World, mut operation: Operation) {
        if !operation.advance(world).await {
            return self.running.push(operation);
        }
        operation.settle(world);
        let is_tentative = operation.tentative.is_some();
        let (by, done, mut warnings, mut errors) = operation.result();
        if is_tentative && errors.is_empty() {
            warnings.extend(self.unconfirmed.made(world));
        } else if is_tentative && let Err(error) = self.unconfirmed.end(world) {
            tracing::error!(%error, "the next daemon will look for what to undo");
        }
        match (by, errors.pop()) {
            (By::User(answer), None) => reply(answer, Reply::Done { warnings }),
            (By::User(answer) | By::File(_, answer), Some(error)) => reply(answer, Reply::Error(error)),
            (By::File(document, answer), None) => {
                self.files.applied(&document);
                reply(answer, apply::applied(world, document, &done, warnings, false));
            }
            (By::Start(_), error) => {
                errors.extend(error);
                self.files.ended(errors);
                // A link may have come since it was looked for.
                self.rejoins.look(world).await;
            }
            (By::Hand(ByHand { bond, from, to }), error) => {
                upkeep::mtu_followed(world, &bond, (from, to), error).await;
            }
            (By::Undo, error) => {
                errors.extend(error);
                self.files.undone();
                self.unconfirmed.undone(world, errors).await;
            }
            (By::Rejoin(name), error) => self.rejoins.ended(world, &name, error),
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
        let (request, limit) = match request {
            Request::Tentative(Tentative { request, confirm_ms }) => (*request, Some(confirm_ms.duration())),
            request => (request, None),
        };
        if request.is_change()
            && let Some(error) = self.refuses(limit.is_some())
        {
            return reply(answer, Reply::Error(error));
        }
        let answered = match request {
            Request::Apply(request) => return self.files.ask(request, limit, answer),
            Request::Confirm(confirm) => return self.unconfirmed.confirm(world, confirm.undo, answer),
            Request::Changes {} => {
                Reply::Records(Records::Changes(self.unconfirmed.records(world.clock.now())))
            }
            Request::Run(request) => done(class::run(world, &request, pid)),
            Request::Leave { bond, undo } => done(leave(world, bond, undo)),
            Request::Monitor { bond: Some(name) } if !world.is_known(&name) => {
                Reply::Error(world.no_bond(&name))
            }
            Request::Monitor { .. } => done(Ok(Vec::new())),
            Request::FabricShow { name } => of_fabrics(world, name, fabrics::records),
            Request::FabricStats { name } => of_fabrics(world, name, fabrics::stats),
            Request::Show { name: Some(name) } if world.fabrics.contains_key(&name) => {
                of_fabrics(world, Some(name), fabrics::records)
            }
            Request::Stats { name: Some(name) } if world.fabrics.contains_key(&name) => {
                of_fabrics(world, Some(name), fabrics::stats)
            }
            Request::Show { name } => {
                upkeep::default_routes(world).await;
                upkeep::forward_chains(world).await;
                records(world, name, record::bonds)
            }
            Request::Peers { bond, peer } => {
                records(world, bond, |bonds, now| record::peers(bonds, now, peer.as_deref()))
            }
            Request::Lanes { bond, peer } => {
                records(world, bond, |bonds, now| record::lanes(bonds, now, peer.as_deref()))
            }
            Request::ClassShow { bond } => {
                upkeep::queues(world).await;
                records(world, bond, record::classes)
            }
            Request::Latency { name } => records(world, name, record::latency),
            Request::Stats { name } => records(world, name, record::stats),
            Request::Explain(request) => {
                upkeep::queues(world).await;
                let told = explain::run(world, &request).await;
                told.map_or_else(Reply::Error, |told| Reply::Records(Records::Explained(Box::new(told))))
            }
            Request::Check { interfaces } => {
                upkeep::forward_chains(world).await;
                let found = check::run(world, interfaces).await;
                found.map_or_else(Reply::Error, |found| Reply::Records(Records::Findings(found)))
            }
            request => match steps(world, &request).await {
                Ok((steps, before)) => {
                    let operation = Operation::new(By::User(answer), steps, before);
                    let operation = operation.tentative(limit, || request.command());
                    if let Some(operation) = self.begin(world, operation).await {
                        self.files.follow_request(&request);
                        self.go_on(world, operation).await;
                    }
                    return;
                }
                Err(error) => Reply::Error(error),
            },
        };
        reply(answer, answered);
    }
}

/// The steps that a request takes, and what there is before them.
async fn steps(world: &mut World, request: &Request) -> Result<(Vec<Step>, Current), Error> {
    match request {
        // An earlier attempt may have left something of it.
        Request::BondDel(BondDel { name }) if !world.bonds.contains_key(name) => {
            let nothing = Change { name: name.clone(), from: None, to: None };
            return Ok((vec![Step::Bond(nothing)], Current::default()));
        }
        Request::BondSet(BondSet { name, .. })
        | Request::MemberAdd(MemberAdd { bond: name, .. })
        | Request::MemberSet(MemberSet { bond: name, .. })
        | Request::MemberDel(MemberDel { bond: name, .. })
        | Request::ClassAdd(ClassAdd { bond: name, .. })
        | Request::ClassSet(ClassSet { bond: name, .. })
        | Request::ClassDel(ClassDel { bond: name, .. })
            if !world.bonds.contains_key(name) =>
        {
            return Err(world.no_bond(name));
        }
        Request::FabricSet(FabricSet { name, .. }) | Request::FabricDel(FabricDel { name })
            if !world.fabrics.contains_key(name) =>
        {
            return Err(world.no_fabric(name));
        }
        _ => {}
    }
    let mut has = current::current(world).await;
    // What a user names is set, though the bond may have been given it before: somebody may have changed the machine since.
    if let Request::BondSet(BondSet { name, options, addresses }) = request
        && let (Some(bond), Some(of)) = (world.bonds.get(name), has.config.bonds.get_mut(name))
    {
        of.mtu = of.mtu.filter(|_| options.mtu.is_none());
        if addresses.is_some() {
            of.addresses.clone_from(&bond.saved.addresses);
        }
    }
    let wanted = merge(&has, request)?;
    let steps = diff(&has.config, &wanted);
    steps.iter().try_for_each(keys::check)?;
    Ok((steps, has))
}

fn done(result: Result<Vec<String>, Error>) -> Reply {
    result.map_or_else(Reply::Error, |warnings| Reply::Done { warnings })
}

/// `leave`
fn leave(world: &mut World, name: Option<LinkName>, undo: bool) -> Result<Vec<String>, Error> {
    let bonds = named(&world.bonds, name, |name| world.no_bond(name))?;
    for bond in bonds {
        match undo {
            // It joins when it is set up.
            true if record::findings::is_down(bond) => {}
            true => {
                bond.driven().start(world.clock.now());
                bond.report(None, "joins", "joins its peers again");
            }
            false => {
                bond.driven().stop(&mut world.sender, world.clock.now());
                bond.report(None, "leaves", "its peers were told that this host leaves");
            }
        }
    }
    Ok(Vec::new())
}

/// The one of that name, or all.
fn named<T>(
    all: &BTreeMap<LinkName, T>,
    name: Option<LinkName>,
    unknown: impl Fn(&str) -> Error,
) -> Result<Vec<&T>, Error> {
    let Some(name) = name else { return Ok(all.values().collect()) };
    all.get(&name).map(|one| vec![one]).ok_or_else(|| unknown(&name))
}

fn records(
    world: &World,
    name: Option<LinkName>,
    make: impl Fn(&[&Bond], Time) -> Result<Records, Error>,
) -> Reply {
    let bonds = named(&world.bonds, name, |name| world.no_bond(name));
    let made = bonds.and_then(|bonds| make(&bonds, world.clock.now()));
    made.map_or_else(Reply::Error, Reply::Records)
}

fn of_fabrics(world: &World, name: Option<LinkName>, make: impl Fn(&[&Fabric], Time) -> Records) -> Reply {
    let fabrics = named(&world.fabrics, name, |name| world.no_fabric(name));
    let made = fabrics.map(|fabrics| make(&fabrics, world.clock.now()));
    made.map_or_else(Reply::Error, Reply::Records)
}

/// The client may have hung up.
fn reply(answer: oneshot::Sender<Reply>, reply: Reply) {
    let _ = answer.send(reply);
}
