//! Fabrics: an Ethernet interface each, whose frames threads of this daemon carry to the other nodes.
//!
//! The interface is a TAP device that the kernel keeps while no daemon runs: without a carrier, but with its addresses, its
//! routes and its place in a bridge or a bond. So a daemon that comes back takes it over and only what was on
//! the way is lost. Threads of its own ([`node`]) move the frames and speak with the other nodes; the loop of the daemon
//! hears what they report ([`Report`]).

mod cpu;
pub(crate) mod ends;
mod fast_path;
pub(crate) mod job;
mod limited;
pub(crate) mod node;
pub(crate) mod record;
pub(crate) mod refusal;
pub(crate) mod saved;
mod trips;
mod worker;

pub(crate) use fast_path::sweep;
pub(crate) use job::{Jobs, Ticket};

use crate::io::keys::Object;
use crate::world::{
    history::{Change, History},
    keys::Keys,
    report::{self, Report, failure},
};
use ends::Ends;
use job::{Why, Work};
use linkbraid_api::Error;
use linkbraid_fabric::{Look, Loss};
use linkbraid_link::{ArpPlusSender, Netlink};
use linkbraid_proto::{Time, auth, session::Verdict};
use linkbraid_wire::MacAddr;
use node::Node;
use saved::SavedFabric;
use std::{net::IpAddr, process::ExitStatus, time::Duration};

/// How long until a fabric that cannot join is tried again.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// One fabric.
pub(crate) struct Fabric {
    pub saved: SavedFabric,
    /// Addresses of the interface, `ADDRESS/PREFIX`.
    pub addresses: Vec<String>,
    /// The keys of its nodes.
    pub keys: Keys,
    pub history: History,
    pub state: State,
    /// How often it ended against its will.
    pub ends: Ends,
    /// Whether it was said that others may not find this node.
    unregistered: bool,
}

pub(crate) enum State {
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
    pub(crate) fn waits_for(&self, ticket: Ticket) -> bool {
        matches!(self, Self::Joins { ticket: mine, .. } if *mine == ticket)
    }
}

impl Fabric {
    /// One whose addresses and keys have not been read yet.
    pub(crate) fn new(saved: SavedFabric, history: History, state: State) -> Self {
        let (addresses, keys, ends) = (Vec::new(), Keys::default(), Ends::default());
        Self { saved, addresses, keys, history, state, ends, unregistered: false }
    }

    /// What its threads report.
    pub(crate) fn report(
        &mut self,
        now: Time,
        start: u64,
        report: Report,
        jobs: &mut Jobs,
        sender: &mut ArpPlusSender,
    ) {
        // What an earlier start of it still had to say is no longer true.
        if !matches!(&self.state, State::Runs(node) if node.start == start) {
            return;
        }
        self.history.add(report.change(&self.saved.name));
        match report {
            Report::Failed(how) => self.failed(now, how),
            Report::Memory(loss) => self.lost(now, loss, jobs),
            Report::Link { new: Verdict::Up { .. }, .. } => self.announce(sender),
            _ => {}
        }
    }

    /// One of its threads, or the program that carries its frames, is no more, so none goes on: the interface loses its carrier, and the other nodes hear of it at once.
    fn failed(&mut self, now: Time, how: Option<ExitStatus>) {
        self.ends.failed += 1;
        let error =
            Error::new(&self.saved.name, "does not run", failure(how)).hint("journalctl -u linkbraid");
        let waits = State::Waits { error, until: now + RETRY };
        if let State::Runs(node) = std::mem::replace(&mut self.state, waits) {
            node.stop();
        }
    }

    /// The memory that it shared is gone, or another one has its name. Those who share it end likewise, each when it finds out, and
    /// meet again in the memory that the first of them to come finds or makes.
    fn lost(&mut self, now: Time, loss: Loss, jobs: &mut Jobs) {
        self.ends.lost(loss);
        self.restart(now, loss.to_string(), Why::Lost, jobs);
    }

    /// Gives its place up, and takes one again.
    fn restart(&mut self, now: Time, cause: String, why: Why, jobs: &mut Jobs) {
        let error = Error::new(&self.saved.name, "does not run", format!("{cause}; it is restarted"))
            .hint(format!("linkbraid fabric show {}", self.saved.name));
        let waits = State::Waits { error: error.clone(), until: now + RETRY };
        if let State::Runs(node) = std::mem::replace(&mut self.state, waits)
            && let Ok(ticket) = jobs.join(&self.saved, Work::Join(why), Some(node))
        {
            self.state = State::Joins { ticket, error };
        }
    }

    /// Follows its directory, where that is another one than before.
    pub(crate) fn look_at_directory(&mut self, now: Time, jobs: &mut Jobs) {
        let State::Runs(node) = &self.state else { return };
        let name = &self.saved.name;
        let unregistered = node.unregistered();
        // What is wrong with each server in turn is in `fabric show`.
        if unregistered.is_some() != self.unregistered {
            let (reason, text) = match &unregistered {
                Some(cause) => ("etcd_lost", format!("{cause}; the addresses stay as they are")),
                None => ("etcd", "this node is registered in etcd".to_owned()),
            };
            self.history.add(Change::fabric(name, reason, text));
            self.unregistered = unregistered.is_some();
        }
        match node.look_at_directory() {
            Look::Same => {}
            Look::Changed(nodes) => {
                self.history.add(Change::fabric(name, "directory", report::moved(&nodes)));
            }
            Look::Refused(error) => {
                let text = format!("{error}; the addresses stay as they are");
                self.history.add(Change::fabric(name, "directory_refused", text));
            }
            Look::Moved(address) => {
                let cause = format!("its directory has another address for this node, {address}");
                self.history.add(Change::fabric(name, "moved", format!("{cause}; it is restarted")));
                self.restart(now, cause, Why::Moved, jobs);
            }
        }
    }

    fn follow_keys(&mut self) -> bool {
        let settings = &self.saved.settings;
        self.keys.follow(Object::Fabric(&self.saved.name), settings.auth, &settings.key)
    }

    /// The keys to start with, as its file has them now.
    pub(crate) fn fresh_keys(&mut self) -> auth::Settings {
        self.follow_keys();
        self.keys.settings()
    }

    /// Takes over the keys of its file, where that is another one than before.
    pub(crate) fn look_at_keys(&mut self, now: Time) {
        if !self.follow_keys() {
            return;
        }
        let name = &self.saved.name;
        match (&self.keys.error, self.keys.in_words()) {
            (Some(error), _) => self.history.add(Change::fabric(name, "keys_refused", error.to_string())),
            (None, Some(keys)) => {
                self.history.add(Change::fabric(name, "keys", format!("its keys are {keys} now")));
            }
            (None, None) => {}
        }
        if let State::Runs(node) = &self.state {
            node.set_auth(self.keys.settings(), now);
        }
    }

    /// Announces to who has just come where our addresses are: if he asked while nobody answered, he would ask again only after a
    /// second (RETRANS_TIMER of RFC 4861, and of Linux for ARP).
    fn announce(&self, sender: &mut ArpPlusSender) {
        let addresses = self.addresses.iter().filter_map(|text| text.split_once('/')?.0.parse().ok());
        let addresses: Vec<IpAddr> = addresses.collect();
        let router = linkbraid_link::forwards_ipv6(&self.saved.name);
        for frame in linkbraid_link::announcements(MacAddr(self.saved.mac), &addresses, router) {
            if let Err(error) = sender.send(self.saved.ifindex, &frame) {
                tracing::debug!(fabric = %self.saved.name, %error, "not announced");
            }
        }
    }
}

/// A number for the addresses of a fabric, the same on all nodes that give it the same name: names that differ in the last
/// byte alone have different ones (FNV-1a).
pub(crate) fn number_of(name: &str) -> u8 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.to_le_bytes()[0]
}

/// Reads the addresses of the interface.
pub(crate) async fn read_addresses(netlink: &Netlink, fabric: &mut Fabric) {
    match netlink.addresses(fabric.saved.ifindex).await {
        Ok(found) => {
            fabric.addresses = found.iter().map(|found| format!("{}/{}", found.ip, found.prefix)).collect();
        }
        Err(error) => tracing::debug!(%error, "addresses not read"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
