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
mod node;
mod record;
mod saved;
mod told;
mod trips;

pub(crate) use adopt::{addresses_changed, all as adopt_all, link_changed, link_gone, retry};
pub(crate) use record::{records, stats};
pub(crate) use told::Told;

use crate::{answers::forwards_ipv6, control::Control, error::About as _, history::History, state::boot_id};
use check::Wanted;
use linkbraid_api::{Error, FabricAdd, FabricSet};
use linkbraid_fabric::engine::derive_mac;
use linkbraid_link::{ArpPlusSender, TapConfig, TapError, TapOffloads};
use linkbraid_proto::{Time, session::Verdict};
use linkbraid_wire::MacAddr;
use node::Node;
use saved::SavedFabric;
use std::{net::IpAddr, time::Duration};

/// The MTU of a fabric unless told otherwise: that of other Ethernet interfaces, which it may be bridged with.
const MTU: u32 = 1500;
/// How long until a fabric that cannot join is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// One fabric.
pub(crate) struct Fabric {
    pub saved: SavedFabric,
    /// Addresses of the interface, `ADDRESS/PREFIX`.
    addresses: Vec<String>,
    history: History,
    state: State,
}

enum State {
    Runs(Node),
    /// It could not join.
    Waits {
        error: Error,
        /// When it is tried again.
        until: Time,
    },
}

impl Fabric {
    /// When it wants to be tried again.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match self.state {
            State::Runs(_) => None,
            State::Waits { until, .. } => Some(until),
        }
    }

    /// Ends its threads, after a last word to the other nodes. The kernel keeps its interface.
    pub(crate) fn stop(self) {
        if let State::Runs(node) = self.state {
            node.stop();
        }
    }

    /// What its threads tell.
    pub(crate) fn told(&mut self, now: Time, start: u64, told: Told, sender: &mut ArpPlusSender) {
        // What an earlier start of it still had to say is no longer true.
        if !matches!(&self.state, State::Runs(node) if node.start == start) {
            return;
        }
        self.history.tell(told.change(&self.saved.name));
        if told == Told::Fell {
            return self.fell(now);
        }
        if let Told::Link { new: Verdict::Up { .. }, .. } = told {
            self.announce(sender);
        }
    }

    /// One of its threads is no more, so none goes on: the interface loses its carrier, and the other nodes hear of it at once.
    fn fell(&mut self, now: Time) {
        let error = Error::new(&self.saved.name, "does not run", "a thread of it failed; it is started anew")
            .hint("journalctl -u linkbraid");
        let waits = State::Waits { error, until: now + RETRY };
        if let State::Runs(node) = std::mem::replace(&mut self.state, waits) {
            node.stop();
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
        mtu: saved.mtu,
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
pub(crate) async fn add(control: &mut Control, add: FabricAdd) -> Result<Vec<String>, Error> {
    let Wanted { address, mac } = check::add(control, &add).await?;
    let number = number_of(&add.name);
    let mut saved = SavedFabric {
        name: add.name.clone(),
        ifindex: 0,
        node: add.node,
        nodes: add.nodes,
        transport: add.transport.clone(),
        queues: add.queues.unwrap_or(1),
        mtu: add.mtu.unwrap_or(MTU),
        mac: mac.unwrap_or_else(|| derive_mac(number, add.node)),
        number,
        poll: add.poll,
        boot_id: boot_id(),
        namespace: saved::namespace(),
    };
    check::mac(control, &saved)?;
    let transports = node::join(&saved, &address)?;
    let tap = node::tap(&saved, &transports, true)?;
    saved.ifindex = tap.index();
    let node = Node::start(&saved, tap, transports, control.clock, control.events.clone())?;
    // From here on it stays, so it is on file before.
    let kept = control.state.write_fabric(&saved).and_then(|()| node.finish_add());
    if let Err(error) = kept {
        node.stop();
        let _ = control.state.remove_fabric(&saved.name);
        return Err(error);
    }
    let mut history = History::new(&saved.name, control.feed.clone());
    let text = format!("added as node {} of {} on {}", saved.node, saved.nodes, saved.transport);
    history.tell(told::fabric(&saved.name, "added", text));
    let fabric = Fabric { saved, addresses: Vec::new(), history, state: State::Runs(node) };
    control.fabrics.insert(add.name, fabric);
    Ok(Vec::new())
}

/// `fabric del`
pub(crate) async fn delete(control: &mut Control, name: &str) -> Result<Vec<String>, Error> {
    let ifindex = control.fabrics.get(name).ok_or_else(|| control.no_fabric(name))?.saved.ifindex;
    check::is_free(control, name, ifindex).await?;
    if let Some(fabric) = control.fabrics.remove(name) {
        end(control, fabric, "deleted", "deleted, and its interface with it").await;
    }
    Ok(Vec::new())
}

/// Ends a fabric for good; its interface goes, if it is still there.
async fn end(control: &Control, mut fabric: Fabric, reason: &'static str, text: &str) {
    let name = fabric.saved.name.clone();
    fabric.history.tell(told::fabric(&name, reason, text.to_owned()));
    match fabric.state {
        State::Runs(node) => node.end(),
        // The kernel keeps its interface.
        State::Waits { .. } => {
            if let Err(error) = control.netlink.delete_link(fabric.saved.ifindex).await {
                tracing::debug!(%error, "the interface is gone already");
            }
        }
    }
    if let Err(error) = control.state.remove_fabric(&name) {
        tracing::error!(%error, "the next daemon will try to bring it back");
    }
}

/// `fabric set`
pub(crate) async fn set(control: &mut Control, set: FabricSet) -> Result<Vec<String>, Error> {
    let fabric = control.fabrics.get(&set.name).ok_or_else(|| control.no_fabric(&set.name))?;
    check::set(&fabric.saved, &set)?;
    let (ifindex, old) = (fabric.saved.ifindex, fabric.saved.clone());
    if let Some(mtu) = set.mtu.filter(|mtu| *mtu != old.mtu) {
        check::is_free(control, &set.name, ifindex).await?;
        let what = format!("cannot set MTU {mtu}");
        control.netlink.set_mtu(ifindex, mtu).await.about(&set.name, what)?;
    }
    let Some(fabric) = control.fabrics.get_mut(&set.name) else { return Ok(Vec::new()) };
    fabric.saved.mtu = set.mtu.unwrap_or(old.mtu);
    fabric.saved.poll = set.poll.unwrap_or(old.poll);
    fabric.saved.nodes = set.nodes.unwrap_or(old.nodes);
    if fabric.saved.nodes != old.nodes {
        adopt::start_anew(control, &set.name, &old)?;
    } else if let State::Runs(node) = &fabric.state {
        node.set(&fabric.saved, control.clock.now())?;
    }
    match control.fabrics.get(&set.name) {
        Some(fabric) => control.state.write_fabric(&fabric.saved).map(|()| Vec::new()),
        None => Ok(Vec::new()),
    }
}

impl Control {
    pub(crate) fn no_fabric(&self, name: &str) -> Error {
        let names = self.fabrics.keys().cloned().collect::<Vec<_>>().join(", ");
        let cause = match (self.bonds.contains_key(name), self.fabrics.is_empty()) {
            (true, _) => "it is a bond".to_owned(),
            (false, true) => "there are no fabrics".to_owned(),
            (false, false) => format!("the fabrics are {names}"),
        };
        Error::new(name, "no such fabric", cause).hint("linkbraid fabric show")
    }
}

#[cfg(test)]
mod tests;
