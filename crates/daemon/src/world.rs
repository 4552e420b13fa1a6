//! What the daemon knows: the bonds and fabrics of its network namespace, and what it reaches the machine by.

pub(crate) mod bond;
pub(crate) mod driven;
pub(crate) mod driving;
pub(crate) mod fabric;
pub(crate) mod history;
pub(crate) mod keys;
pub(crate) mod member;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod rules;
mod stripe;
mod tables;

use crate::{
    io::{clock::Clock, state::StateDir},
    world::{
        bond::Bond,
        driving::Driving,
        fabric::{Fabric, Jobs},
        history::Feed,
        report::Event,
    },
};
use linkbraid_api::{Auth, Error, LinkName, MetricsAddress};
use linkbraid_dataplane::HookChoice;
use linkbraid_link::{ArpPlusSender, Netlink};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};
use tokio::sync::mpsc;

/// The bonds and the fabrics, and what they are made with.
pub(crate) struct World {
    pub netlink: Netlink,
    pub sender: ArpPlusSender,
    pub state: StateDir,
    /// The folder of this network namespace among those of the machine ([`SavedBond::place`](crate::io::state::SavedBond)).
    pub namespace: PathBuf,
    pub hook: HookChoice,
    /// Where metrics are served, if they are.
    pub metrics: Option<MetricsAddress>,
    /// Whether the command line says so, whatever files say.
    pub metrics_by_option: bool,
    pub clock: Clock,
    pub events: mpsc::Sender<Event>,
    /// The thread that drives the bonds.
    pub driving: Arc<Driving>,
    pub feed: Feed,
    pub bonds: BTreeMap<LinkName, Bond>,
    pub fabrics: BTreeMap<LinkName, Fabric>,
    /// What threads do for fabrics.
    pub jobs: Jobs,
}

impl World {
    pub(crate) fn no_bond(&self, name: &str) -> Error {
        let cause = match self.bonds.is_empty() {
            true => "there are no bonds".to_owned(),
            false => format!("the bonds are {}", self.bonds.keys().cloned().collect::<Vec<_>>().join(", ")),
        };
        Error::new(name, "no such bond", cause).hint("linkbraid show")
    }

    pub(crate) fn no_fabric(&self, name: &str) -> Error {
        let names = self.fabrics.keys().cloned().collect::<Vec<_>>().join(", ");
        let cause = match (self.jobs.busy(name), self.bonds.contains_key(name), self.fabrics.is_empty()) {
            (Some(words), _, _) => words.to_owned(),
            (None, true, _) => "it is a bond".to_owned(),
            (None, false, true) => "there are no fabrics".to_owned(),
            (None, false, false) => format!("the fabrics are {names}"),
        };
        Error::new(name, "no such fabric", cause).hint("linkbraid fabric show")
    }

    /// Changes a bond, which is not in the list meanwhile.
    ///
    /// # Errors
    /// There is no such bond, or what `change` says.
    pub(crate) async fn with_bond<T>(
        &mut self,
        name: &str,
        change: impl AsyncFnOnce(&mut Self, &mut Bond) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut bond = self.bonds.remove(name).ok_or_else(|| self.no_bond(name))?;
        let result = change(self, &mut bond).await;
        self.bonds.insert(bond.saved.name.clone(), bond);
        result
    }

    /// Whether it is a bond or a fabric.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.bonds.contains_key(name) || self.fabrics.contains_key(name)
    }

    /// Takes in what the threads of a fabric report.
    pub(crate) fn event(&mut self, Event { start, report }: Event) {
        let now = self.clock.now();
        for fabric in self.fabrics.values_mut() {
            fabric.report(now, start, report, &mut self.jobs, &mut self.sender);
        }
    }

    /// Whether there is anything to look at.
    pub(crate) fn has_to_look(&self) -> bool {
        let has_files = |fabric: &Fabric| {
            fabric.saved.settings.auth != Auth::Off
                || matches!(&fabric.state, fabric::State::Runs(node) if node.directory().is_some())
        };
        let bonds = |bond: &Bond| !self.fabrics.is_empty() || bond.has_to_look();
        self.bonds.values().any(bonds) || self.fabrics.values().any(has_files)
    }

    /// Looks at what the data path and fabrics are to know of this machine.
    pub(crate) fn look(&mut self) {
        let fabrics: Vec<u32> = self.fabrics.values().map(|fabric| fabric.saved.ifindex).collect();
        let clock = self.clock;
        for bond in self.bonds.values_mut() {
            // Control groups that rules name come and go with their services, and keys are exchanged.
            let looked = bond.hold(&fabrics).and_then(|()| bond.write_rules());
            if let Err(error) = looked.and_then(|()| bond.look_at_keys(clock)) {
                tracing::error!(%error, "the data path is not up to date");
            }
        }
        for fabric in self.fabrics.values_mut() {
            fabric.look_at_keys(clock.now());
            fabric.look_at_directory(clock.now(), &mut self.jobs);
        }
    }
}
