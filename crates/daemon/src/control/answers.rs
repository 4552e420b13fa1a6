//! Answers to the requests of clients.

use super::Control;
use crate::{
    apply,
    bond::Bond,
    check, class,
    fabric::{self, Fabric},
    member,
    pending::Outcome,
    record,
    setup::{self, check_inspector, check_policy},
};
use linkbraid_api::{BondSet, Error, Records, Reply, Request};
use linkbraid_proto::Time;
use tokio::sync::oneshot;

impl Control {
    /// Carries a request out, and answers at once or when that is done.
    pub(crate) async fn answer(
        &mut self,
        request: Request,
        pid: Option<i32>,
        answer: oneshot::Sender<Reply>,
    ) {
        let done = match request {
            Request::BondAdd(request) => setup::add(self, request).await.map(Outcome::Done),
            Request::BondSet(request) => self.bond_set(request).await.map(Outcome::Done),
            Request::BondDel(request) => setup::delete(self, &request.name).await.map(Outcome::Done),
            Request::FabricAdd(request) => fabric::add(self, request).await,
            Request::FabricSet(request) => fabric::set(self, request).await,
            Request::FabricDel(request) => fabric::delete(self, &request.name).await,
            Request::MemberAdd(request) => member::add(self, request).await.map(Outcome::Waits),
            Request::MemberSet(request) => member::set(self, &request).await.map(Outcome::Done),
            Request::MemberDel(request) => member::delete(self, &request).await.map(Outcome::Waits),
            Request::ClassAdd(request) => class::add(self, request).await.map(Outcome::Done),
            Request::ClassSet(request) => class::set(self, request).await.map(Outcome::Done),
            Request::ClassDel(request) => class::delete(self, request).await.map(Outcome::Done),
            Request::Apply(request) => return apply::ask(self, request, answer),
            Request::Run(request) => class::run(self, &request, pid).map(Outcome::Done),
            Request::Monitor { bond: Some(name) } if !self.is_known(&name) => Err(self.no_bond(&name)),
            Request::Monitor { .. } => Ok(Outcome::Done(Vec::new())),
            Request::FabricShow { name } => return reply(answer, self.of_fabrics(name, fabric::records)),
            Request::FabricStats { name } => return reply(answer, self.of_fabrics(name, fabric::stats)),
            Request::Show { name: Some(name) } if self.fabrics.contains_key(&name) => {
                return reply(answer, self.of_fabrics(Some(name), fabric::records));
            }
            Request::Stats { name: Some(name) } if self.fabrics.contains_key(&name) => {
                return reply(answer, self.of_fabrics(Some(name), fabric::stats));
            }
            Request::Show { name } => return reply(answer, self.records(name, record::bonds)),
            Request::Peers { bond } => return reply(answer, self.records(bond, record::peers)),
            Request::Lanes { bond } => return reply(answer, self.records(bond, record::lanes)),
            Request::ClassShow { bond } => return reply(answer, self.records(bond, record::classes)),
            Request::Latency { name } => return reply(answer, self.records(name, record::latency)),
            Request::Stats { name } => return reply(answer, self.records(name, record::stats)),
            Request::Check { interfaces } => {
                let found = check::run(self, interfaces).await;
                let found = found.map_or_else(Reply::Error, |found| Reply::Records(Records::Findings(found)));
                return reply(answer, found);
            }
        };
        match done {
            Ok(Outcome::Waits(pending)) => self.pending.push(pending, answer),
            Ok(Outcome::Fabric(ticket)) => self.jobs.answer(ticket, answer),
            Ok(Outcome::Done(warnings)) => reply(answer, Reply::Done { warnings }),
            Err(error) => reply(answer, Reply::Error(error)),
        }
    }

    fn records(
        &self,
        name: Option<String>,
        make: impl Fn(&[&Bond], Time) -> Result<Records, Error>,
    ) -> Reply {
        let bonds: Vec<&Bond> = match &name {
            Some(name) => match self.bonds.get(name) {
                Some(bond) => vec![bond],
                None => return Reply::Error(self.no_bond(name)),
            },
            None => self.bonds.values().collect(),
        };
        make(&bonds, self.clock.now()).map_or_else(Reply::Error, Reply::Records)
    }

    fn of_fabrics(&self, name: Option<String>, make: impl Fn(&[&Fabric], Time) -> Records) -> Reply {
        let fabrics: Vec<&Fabric> = match &name {
            Some(name) => match self.fabrics.get(name) {
                Some(fabric) => vec![fabric],
                None => return Reply::Error(self.no_fabric(name)),
            },
            None => self.fabrics.values().collect(),
        };
        Reply::Records(make(&fabrics, self.clock.now()))
    }

    /// Whether it is a bond or a fabric.
    fn is_known(&self, name: &str) -> bool {
        self.bonds.contains_key(name) || self.fabrics.contains_key(name)
    }

    async fn bond_set(&mut self, set: BondSet) -> Result<Vec<String>, Error> {
        let Some(bond) = self.bonds.get_mut(&set.name) else { return Err(self.no_bond(&set.name)) };
        check_inspector(&set.name, &set.inspector)?;
        check_policy(&set.name, set.policy)?;
        // What the kernel may refuse comes first.
        let measured = bond.latency.is_some();
        if let Some(addresses) = &set.addresses {
            setup::set_addresses(&self.netlink, bond, addresses).await?;
        }
        if let Some(on) = set.latency {
            bond.measure_latency(on)?;
        }
        if let Some(mtu) = set.mtu
            && let Err(error) = member::set_mtu(&self.netlink, bond, mtu).await
        {
            if let Err(error) = bond.measure_latency(measured) {
                tracing::error!(%error, "latency is measured otherwise than before");
            }
            return Err(error);
        }
        bond.saved.latency = set.latency.unwrap_or(bond.saved.latency);
        bond.saved.policy = set.policy.unwrap_or(bond.saved.policy);
        bond.saved.stripe = set.stripe.unwrap_or(bond.saved.stripe);
        bond.saved.damping = set.damping.unwrap_or(bond.saved.damping);
        bond.saved.set_inspector(set.inspector);
        bond.read_addresses(&self.netlink, self.clock).await?;
        bond.tell_timing(self.clock);
        bond.write_tables(self.clock)?;
        bond.write_stripe(&self.netlink).await?;
        self.state.write(&bond.saved)?;
        Ok(Vec::new())
    }
}

/// The client may have hung up.
fn reply(answer: oneshot::Sender<Reply>, reply: Reply) {
    let _ = answer.send(reply);
}
