//! What the daemon knows: the bonds and fabrics of its network namespace, and what it reaches the machine by.

pub(crate) mod bond;
pub(crate) mod event;
pub(crate) mod fabric;
pub(crate) mod history;
pub(crate) mod record;
mod stripe;
mod tables;
pub(crate) mod told;

use crate::{
    io::{clock::Clock, state::StateDir},
    world::{
        bond::Bond,
        event::Event,
        fabric::{Fabric, Jobs},
        history::Feed,
    },
};
use linkbraid_api::Error;
use linkbraid_dataplane::HookChoice;
use linkbraid_link::{ArpPlusSender, Netlink};
use linkbraid_proto::Time;
use std::{collections::BTreeMap, path::PathBuf};
use tokio::sync::mpsc;

/// The bonds and the fabrics, and what they are made with.
pub(crate) struct World {
    pub netlink: Netlink,
    pub sender: ArpPlusSender,
    pub state: StateDir,
    /// Where this namespace's bonds are pinned.
    pub pins: PathBuf,
    pub hook: HookChoice,
    pub clock: Clock,
    pub events: mpsc::Sender<Event>,
    pub feed: Feed,
    pub bonds: BTreeMap<String, Bond>,
    pub fabrics: BTreeMap<String, Fabric>,
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

    /// Whether it is a bond or a fabric.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.bonds.contains_key(name) || self.fabrics.contains_key(name)
    }

    /// Takes in what a task or a thread has to tell.
    pub(crate) fn event(&mut self, event: Event) {
        let now = self.clock.now();
        match event {
            Event::Frame { ifindex, slot, frame } => {
                if let Some(bond) = self.bonds.values_mut().find(|bond| bond.ifindex == ifindex) {
                    bond.frame(now, slot, &frame);
                }
            }
            Event::Carrier { ifindex, carrier } => self.carrier(ifindex, carrier),
            Event::Fabric { start, told } => {
                for fabric in self.fabrics.values_mut() {
                    fabric.told(now, start, told, &mut self.jobs, &mut self.sender);
                }
            }
            Event::Neighbours { ifindex, list } => {
                for bond in self.bonds.values_mut().filter(|bond| bond.ifindex == ifindex) {
                    if let Err(error) = bond.take_neighbours(list.clone(), self.clock) {
                        tracing::error!(%error, "plain hosts are not known");
                    }
                }
            }
        }
    }

    /// The poll has seen a member's carrier come or go.
    pub(crate) fn carrier(&mut self, ifindex: u32, carrier: bool) {
        for bond in self.bonds.values_mut() {
            let member = bond.members.iter_mut().find(|member| member.ifindex == ifindex);
            if let Some(member) = member.filter(|member| member.polled != Some(carrier)) {
                member.polled = Some(carrier);
                bond.tell_members(self.clock);
            }
        }
    }

    /// Carries out what the protocols want.
    pub(crate) fn act(&mut self) {
        for bond in self.bonds.values_mut() {
            bond.act(&mut self.sender);
        }
    }

    /// Lets the protocols know what time it is.
    pub(crate) fn timeout(&mut self, now: Time) {
        for bond in self.bonds.values_mut() {
            bond.timeout(now);
        }
    }

    /// Looks at what the data path counts, and at what it is to know of this machine.
    pub(crate) fn look(&mut self) {
        let fabrics: Vec<u32> = self.fabrics.values().map(|fabric| fabric.saved.ifindex).collect();
        for bond in self.bonds.values_mut() {
            let looked = bond.look_at_counters(self.clock).and_then(|()| bond.hold(&fabrics));
            // Control groups that rules name come and go with their services.
            if let Err(error) = looked.and_then(|()| bond.write_rules()) {
                tracing::error!(%error, "what the data path does is not known");
            }
        }
    }

    /// Forgets the peers of an earlier daemon that have not spoken.
    pub(crate) fn drop_inherited(&mut self) {
        for bond in self.bonds.values_mut() {
            bond.drop_inherited(self.clock);
        }
    }
}
