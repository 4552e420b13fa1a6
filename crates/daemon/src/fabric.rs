//! Fabrics: an Ethernet interface each, whose frames threads of this daemon carry to the other nodes.
//!
//! The interface is a TAP device that the kernel keeps while no daemon runs: without a carrier, but with its addresses, its
//! routes and its place in a bridge or a bond. So a daemon that comes back takes it over ([`adopt`]) and only what was on
//! the way is lost. Threads of its own ([`node`]) move the frames and speak with the other nodes; the loop of the daemon
//! hears what they have to tell ([`told`]).

mod adopt;
mod beat;
mod check;
mod cpu;
mod done;
mod ends;
mod follow;
mod job;
mod limited;
mod node;
mod record;
mod saved;
mod short_cut;
mod slice;
mod told;
mod trips;

pub(crate) use adopt::{addresses_changed, all as adopt_all, link_gone, next_try, read_addresses, retry};
pub(crate) use check::add as check_add;
pub(crate) use done::{done, stop_all};
pub(crate) use follow::link_changed;
pub(crate) use job::{Jobs, Ticket};
pub(crate) use record::{records, stats};
pub(crate) use told::Told;

use crate::{
    drive::forwards_ipv6, error::About as _, history::History, pending::Outcome, setup::replace_addresses,
    state::boot_id, world::World,
};
use ends::Ends;
use job::{Why, Work};
use linkbraid_api::{Error, FabricAdd, FabricSet};
use linkbraid_fabric::{Loss, engine::derive_mac};
use linkbraid_link::{ArpPlusSender, TapConfig, TapError, TapOffloads};
use linkbraid_proto::{Time, session::Verdict};
use linkbraid_wire::MacAddr;
use node::Node;
use saved::SavedFabric;
use std::{net::IpAddr, time::Duration};

/// How long until a fabric that cannot join is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// One fabric.
pub(crate) struct Fabric {
    pub saved: SavedFabric,
    /// Addresses of the interface, `ADDRESS/PREFIX`.
    pub addresses: Vec<String>,
    history: History,
    state: State,
    /// How often it ended against its will.
    ends: Ends,
}

enum State {
    Runs(Node),
    /// A thread takes its place.
    Joins {
        ticket: Ticket,
        /// Why it has none yet.
        error: Error,
    },
    /// It could not join.
    Waits {
        error: Error,
        /// When it is tried again.
        until: Time,
    },
}

impl State {
    fn waits_for(&self, ticket: Ticket) -> bool {
        matches!(self, Self::Joins { ticket: mine, .. } if *mine == ticket)
    }
}

impl Fabric {
    /// What its threads tell.
    pub(crate) fn told(
        &mut self,
        now: Time,
        start: u64,
        told: Told,
        jobs: &mut Jobs,
        sender: &mut ArpPlusSender,
    ) {
        // What an earlier start of it still had to say is no longer true.
        if !matches!(&self.state, State::Runs(node) if node.start == start) {
            return;
        }
        self.history.tell(told.change(&self.saved.name));
        match told {
            Told::Fell => self.fell(now),
            Told::Memory(loss) => self.lost(now, loss, jobs),
            Told::Link { new: Verdict::Up { .. }, .. } => self.announce(sender),
            _ => {}
        }
    }

    /// One of its threads is no more, so none goes on: the interface loses its carrier, and the other nodes hear of it at once.
    fn fell(&mut self, now: Time) {
        self.ends.failed += 1;
        let error = Error::new(&self.saved.name, "does not run", "a thread of it failed; it is started anew")
            .hint("journalctl -u linkbraid");
        let waits = State::Waits { error, until: now + RETRY };
        if let State::Runs(node) = std::mem::replace(&mut self.state, waits) {
            node.stop();
        }
    }

    /// The memory that it shared is gone, or another one has its name. Those who share it end likewise, each when it finds out, and
    /// meet again in the memory that the first of them to come finds or makes.
    fn lost(&mut self, now: Time, loss: Loss, jobs: &mut Jobs) {
        self.ends.lost(loss);
        let error = Error::new(&self.saved.name, "does not run", format!("{loss}; it is started anew"))
            .hint(format!("linkbraid fabric show {}", self.saved.name));
        let waits = State::Waits { error: error.clone(), until: now + RETRY };
        if let State::Runs(node) = std::mem::replace(&mut self.state, waits)
            && let Ok(ticket) = jobs.join(&self.saved, Work::Join(Why::Lost), Some(node))
        {
            self.state = State::Joins { ticket, error };
        }
    }

    /// Tells who has just come where our addresses are: if he asked while nobody answered, he would ask again only after a
    /// second (RETRANS_TIMER of RFC 4861, and of Linux for ARP).
    fn announce(&self, sender: &mut ArpPlusSender) {
        let addresses = self.addresses.iter().filter_map(|text| text.split_once('/')?.0.parse().ok());
        let addresses: Vec<IpAddr> = addresses.collect();
        let router = forwards_ipv6(&self.saved.name);
        for frame in linkbraid_link::announcements(MacAddr(self.saved.mac), &addresses, router) {
            if let Err(error) = sender.send(self.saved.ifindex, &frame) {
                tracing::debug!(fabric = %self.saved.name, %error, "not announced");
            }
        }
    }
}

/// What the kernel is to make for a fabric.
fn tap_config(saved: &SavedFabric) -> TapConfig {
    TapConfig {
        name: saved.name.clone(),
        queues: saved.queues.into(),
        mac: MacAddr(saved.mac),
        mtu: saved.settings.mtu.0,
        offloads: TapOffloads::ALL,
        queue_len: linkbraid_link::TAP_QUEUE_LEN,
    }
}

fn of_tap(error: &TapError) -> Error {
    let told = Error::new(&error.name, &error.what, error.cause.to_string());
    match error.hint() {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

/// A number for the addresses of a fabric, the same on all nodes that give it the same name: names that differ in the last
/// byte alone have different ones (FNV-1a).
fn number_of(name: &str) -> u8 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.to_le_bytes()[0]
}

/// `fabric add`: everything done, or everything as it was.
pub(crate) async fn add(world: &mut World, add: FabricAdd) -> Result<Outcome, Error> {
    let mac = check::add(world, &add).await?;
    let addresses = check::addresses(&add.name, &add.addresses)?;
    let (number, settings) = (number_of(&add.name), add.settings());
    let saved = SavedFabric {
        name: add.name,
        ifindex: 0,
        node: add.node,
        nodes: add.nodes,
        transport: add.transport,
        queues: add.queues.unwrap_or(1),
        mac: mac.unwrap_or_else(|| derive_mac(number, add.node)),
        number,
        settings,
        boot_id: boot_id(),
        namespace: saved::namespace(),
        applied: false,
        addresses,
        applied_addresses: Vec::new(),
    };
    check::mac(world, &saved)?;
    world.jobs.join(&saved, Work::Add, None).map(Outcome::Fabric)
}

/// `fabric del`
pub(crate) async fn delete(world: &mut World, name: &str) -> Result<Outcome, Error> {
    let ifindex = world.fabrics.get(name).ok_or_else(|| world.no_fabric(name))?.saved.ifindex;
    check::is_free(world, name, ifindex).await?;
    let Some(fabric) = world.fabrics.remove(name) else { return Ok(Outcome::Done(Vec::new())) };
    let ticket = end(world, fabric, "deleted", "deleted, and its interface with it").await;
    Ok(ticket.map_or_else(|| Outcome::Done(Vec::new()), Outcome::Fabric))
}

/// Ends a fabric for good; its interface goes, if it is still there. What of that is still under way.
async fn end(world: &mut World, mut fabric: Fabric, reason: &'static str, text: &str) -> Option<Ticket> {
    let name = fabric.saved.name.clone();
    fabric.history.tell(told::fabric(&name, reason, text.to_owned()));
    let ticket = match fabric.state {
        State::Runs(node) => {
            node.let_go();
            Some(world.jobs.end(&fabric.saved, Ok(()), None, move || node.stop()))
        }
        // The kernel keeps its interface.
        State::Joins { .. } | State::Waits { .. } => {
            if let Err(error) = world.netlink.delete_link(fabric.saved.ifindex).await {
                tracing::debug!(%error, "the interface is gone already");
            }
            match fabric.state {
                State::Joins { ticket, .. } => {
                    world.jobs.cancel(ticket);
                    Some(ticket)
                }
                _ => None,
            }
        }
    };
    if let Err(error) = world.state.remove_fabric(&name) {
        tracing::error!(%error, "the next daemon will try to bring it back");
    }
    ticket
}

/// `fabric set`
pub(crate) async fn set(world: &mut World, set: FabricSet) -> Result<Outcome, Error> {
    let fabric = world.fabrics.get(&set.name).ok_or_else(|| world.no_fabric(&set.name))?;
    check::set(&fabric.saved, &set)?;
    let (ifindex, old) = (fabric.saved.ifindex, fabric.saved.clone());
    let nodes = set.nodes.filter(|nodes| *nodes != old.nodes);
    if nodes.is_some() && matches!(fabric.state, State::Joins { .. }) {
        let cause = "it is taking its place on the transport just now";
        return Err(Error::new(&set.name, "cannot change the fabric", cause)
            .hint(format!("linkbraid fabric show {}", set.name)));
    }
    let settings = old.settings.with(&set.options);
    let mtu = settings.mtu.0;
    let resized = settings.mtu != old.settings.mtu;
    if resized {
        check::is_free(world, &set.name, ifindex).await?;
        let what = format!("cannot set MTU {mtu}");
        if let State::Runs(node) = &fabric.state {
            node::fits(node.room, mtu).map_err(|(cause, mtu)| {
                let hint = format!("linkbraid fabric set {} --mtu {mtu}", set.name);
                Error::new(&set.name, &what, cause).hint(hint)
            })?;
        }
        world.netlink.set_mtu(ifindex, mtu).await.about(&set.name, what)?;
    }
    let addresses = match set_addresses(world, &set, &old).await {
        Ok(addresses) => addresses,
        Err(error) => {
            if resized {
                let _ = world.netlink.set_mtu(ifindex, old.settings.mtu.0).await;
            }
            return Err(error);
        }
    };
    let Some(fabric) = world.fabrics.get_mut(&set.name) else { return Ok(Outcome::Done(Vec::new())) };
    fabric.saved.applied_addresses.retain(|address| addresses.contains(address));
    fabric.saved.addresses = addresses;
    fabric.saved.settings = settings;
    if let Some(nodes) = nodes {
        return start_anew(world, &set.name, nodes, old).map(Outcome::Fabric);
    }
    if let State::Runs(node) = &fabric.state {
        node.set(&fabric.saved, world.clock.now())?;
    }
    world.state.write_fabric(&fabric.saved).map(|()| Outcome::Done(Vec::new()))
}

/// Changes the addresses that a fabric was given, if that is asked for. Those that it has been given then.
async fn set_addresses(world: &World, set: &FabricSet, old: &SavedFabric) -> Result<Vec<String>, Error> {
    let Some(wanted) = &set.addresses else { return Ok(old.addresses.clone()) };
    check::is_free(world, &set.name, old.ifindex).await?;
    let interface = (set.name.as_str(), old.ifindex);
    replace_addresses(&world.netlink, interface, &old.addresses, wanted, |_| false).await
}

/// Ends this start of a node and begins another one with so many nodes; if that fails, one as it was before.
fn start_anew(world: &mut World, name: &str, nodes: u16, old: SavedFabric) -> Result<Ticket, Error> {
    let Some(fabric) = world.fabrics.get_mut(name) else { return Err(world.no_fabric(name)) };
    let error = Error::new(name, "not ready", "it is started anew");
    let now = world.clock.now();
    let before = std::mem::replace(&mut fabric.state, State::Waits { error: error.clone(), until: now });
    let node = match before {
        State::Runs(node) => Some(node),
        State::Joins { .. } | State::Waits { .. } => None,
    };
    let wanted = SavedFabric { nodes, ..fabric.saved.clone() };
    let ticket = world.jobs.join(&wanted, Work::Join(Why::Anew(Box::new(old))), node)?;
    fabric.state = State::Joins { ticket, error };
    Ok(ticket)
}

impl World {
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
}

#[cfg(test)]
mod tests;
