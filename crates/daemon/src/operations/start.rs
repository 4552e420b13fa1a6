//! The file that the daemon is started with. It brings back what a boot has ended, changes what is otherwise, and removes
//! nothing: a file that is empty for no good reason takes no host off its network.
//!
//! Not everything may be there yet. A bond is made of the members that are, after [`GRACE`] has passed in which the others may
//! come, and waits for those as for any member that is gone. What fails is tried again, and the daemon goes on meanwhile.

use super::{
    current::current,
    desired::{self, diff},
};
use crate::{io::config::config_files, world::World};
use linkbraid_api::{
    Error, FabricAdd, LinkName, Request,
    config::{BondConfig, Config, Document},
};
use linkbraid_proto::Time;
use std::{collections::BTreeSet, io, path::PathBuf, time::Duration};

/// How long a bond waits for all its members: udev finds and names NICs within a few seconds.
const GRACE: Duration = Duration::from_secs(5);
/// How long the daemon is not ready while a bond has no member at all: whatever waits for the network would find none.
const FIRST_GRACE: Duration = Duration::from_secs(30);
/// How long until what failed is tried again: at first, and at most.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// A file that is not yet all done.
pub(super) struct Start {
    document: Document,
    /// Bonds and fabrics that are not yet as the file says.
    open: BTreeSet<LinkName>,
    grace_until: Time,
    first_until: Time,
    stage: Stage,
    /// When the files were gone through last.
    begun_at: Time,
    /// All that can be done is done: links that may come have had their time, or none is missing.
    begun: bool,
    /// When it is gone through again; none while it only waits for the first interface of a bond.
    next: Option<Time>,
    delay: Duration,
    /// Something could not be done this time, or ever.
    failed: bool,
    ever_failed: bool,
    /// Members of open bonds that were not there when they were looked for last.
    absent: BTreeSet<LinkName>,
    /// What was said already.
    said: BTreeSet<String>,
}

/// Fabrics first: bonds are made of what has come of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Idle,
    Fabrics,
    Bonds,
}

/// Reads the files that the daemon was started with. Where one is bad, or none is there, nothing is changed.
pub(super) fn read(paths: &[PathBuf]) -> Option<Document> {
    if paths.is_empty() {
        return None;
    }
    let mut files = Vec::new();
    for path in paths {
        match config_files(path) {
            Ok(found) => files.extend(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => {
                let error = Error::new(path.display().to_string(), "cannot read", cause.to_string());
                tracing::error!(%error, "all stays as it is");
                return None;
            }
        }
    }
    if files.is_empty() {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        tracing::info!("nothing to apply: there is no file {}", paths.join(", "));
        return None;
    }
    Document::read(&files).inspect_err(|error| tracing::error!(%error, "all stays as it is")).ok()
}

impl Start {
    /// All that files say is still to be done.
    pub(super) fn new(now: Time, document: Document) -> Self {
        let names = document.config.fabrics.keys().chain(document.config.bonds.keys());
        let open = names.cloned().collect();
        Self::of(now, document, open)
    }

    /// What a file names is wanted for as long as the daemon lives. For a bond of this one whose interface somebody deleted;
    /// `None`: it does not name it.
    pub(super) fn again(now: Time, document: &Document, bond: &LinkName, at: Time) -> Option<Self> {
        let mut start = Self { begun: true, ..Self::of(now, document.clone(), BTreeSet::new()) };
        start.bond_gone(bond, at).then_some(start)
    }

    fn of(now: Time, document: Document, open: BTreeSet<LinkName>) -> Self {
        Self {
            open,
            grace_until: now + GRACE,
            first_until: now + FIRST_GRACE,
            stage: Stage::Idle,
            begun_at: now,
            begun: false,
            next: Some(now),
            delay: RETRY_MIN,
            failed: false,
            ever_failed: false,
            absent: BTreeSet::new(),
            said: BTreeSet::new(),
            document,
        }
    }

    /// Somebody deleted a bond's interface; it is made again at that time. Whether it is wanted.
    pub(super) fn bond_gone(&mut self, bond: &LinkName, at: Time) -> bool {
        let is_wanted = self.document.config.bonds.contains_key(bond);
        if is_wanted {
            self.open.insert(bond.clone());
            (self.next, self.delay) = (Some(at), RETRY_MIN);
        }
        is_wanted
    }

    /// Goes through the file if it is time: those parts that have their turn now. What is wrong with one bond or fabric does not
    /// keep another one back.
    pub(super) async fn advance(&mut self, world: &mut World) -> Vec<Document> {
        let now = world.clock.now();
        let configs: Vec<Config> = match self.stage {
            Stage::Idle if self.next.is_some_and(|next| next <= now) => {
                (self.stage, self.begun_at) = (Stage::Fabrics, now);
                (self.failed, self.next) = (false, None);
                let open = self.document.config.fabrics.iter().filter(|(name, _)| self.open.contains(*name));
                let one = |(name, fabric): (&LinkName, &FabricAdd)| [(name.clone(), fabric.clone())].into();
                open.map(|one_of| Config { fabrics: one(one_of), ..Config::default() }).collect()
            }
            Stage::Fabrics => {
                self.stage = Stage::Bonds;
                let present = present(world, self, now).await.into_iter();
                present.map(|bond| Config { bonds: [bond].into(), ..Config::default() }).collect()
            }
            Stage::Bonds => {
                self.stage = Stage::Idle;
                look(world, self, now).await;
                let waits = !self.failed && self.open.iter().any(|name| self.waits(world, name));
                let until = if waits { self.first_until } else { self.grace_until };
                self.begun |= self.open.is_empty() || self.begun_at >= until;
                if self.open.is_empty() {
                    tracing::info!(file = %self.document.name(), "all is as the file says");
                }
                Vec::new()
            }
            Stage::Idle => Vec::new(),
        };
        configs.into_iter().map(|config| self.document.clone().saying(config)).collect()
    }

    /// Whether nothing is left to do.
    pub(super) fn is_done(&self) -> bool {
        self.begun && self.stage == Stage::Idle && self.open.is_empty()
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// The members of bonds that are still to be made, with their bonds. None where something failed: what has no bond is to be
    /// reached as without one.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (&LinkName, &LinkName)> {
        let bonds = self.document.config.bonds.iter();
        let open = bonds.filter(|(name, _)| !self.ever_failed && self.open.contains(*name));
        open.flat_map(|(name, bond)| bond.members.iter().map(move |member| (&member.interface, name)))
    }

    /// Whether a bond of the file waits for its first member.
    fn waits(&self, world: &World, name: &LinkName) -> bool {
        self.document.config.bonds.contains_key(name) && !world.bonds.contains_key(name)
    }

    /// What it does, in words.
    pub(super) fn doing(&self) -> String {
        let absent: Vec<&str> = self.absent.iter().map(LinkName::as_str).collect();
        match absent.is_empty() {
            true => format!("applying {}", self.document.name()),
            false => format!("waiting for {}, at most {} s", absent.join(", "), FIRST_GRACE.as_secs()),
        }
    }

    pub(super) fn wake(&self) -> Option<Time> {
        match self.stage {
            Stage::Idle => self.next,
            Stage::Fabrics | Stage::Bonds => Some(Time::ZERO),
        }
    }

    /// An interface is there. One that was there before, or that a fabric of the file makes, is no reason to go through the file
    /// again: what fails changes those, too.
    pub(super) fn link_came(&mut self, name: &str, now: Time) {
        let bonds = self.document.config.bonds.iter().filter(|(bond, _)| self.open.contains(*bond));
        let is_wanted = bonds.into_iter().any(|(_, bond)| bond.member(name).is_some());
        let is_made = self.document.config.fabrics.contains_key(name);
        if is_wanted && !is_made && self.absent.remove(name) {
            tracing::info!(file = %self.document.name(), "'{name}' is there now");
            (self.next, self.delay) = (Some(now), RETRY_MIN);
        }
    }

    /// What a user removes is no longer wanted, whatever the file says.
    pub(super) fn follow_request(&mut self, request: &Request) {
        remove_from(&mut self.document.config, request);
        let Config { bonds, fabrics } = &self.document.config;
        self.open.retain(|name| bonds.contains_key(name) || fabrics.contains_key(name));
    }

    /// One of them has come to its end.
    pub(super) fn ended(&mut self, errors: Vec<Error>) {
        self.failed |= !errors.is_empty();
        self.ever_failed |= self.failed;
        errors.into_iter().for_each(|error| self.say(format!("{error}; tried again")));
    }

    /// Says something once.
    fn say(&mut self, text: String) {
        if self.said.insert(text.clone()) {
            tracing::warn!(file = %self.document.name(), "{text}");
        }
    }
}

/// Takes from what is wanted what a user removes.
pub(super) fn remove_from(wanted: &mut Config, request: &Request) {
    let Config { bonds, fabrics } = wanted;
    match request {
        Request::MemberDel(del) => {
            let members = bonds.get_mut(&del.bond).map(|bond| &mut bond.members);
            members.into_iter().for_each(|all| all.retain(|member| member.interface != del.interface));
        }
        Request::BondDel(del) => drop(bonds.remove(&del.name)),
        Request::FabricDel(del) => drop(fabrics.remove(&del.name)),
        _ => {}
    }
}

/// The bonds that can be made or changed now: of each, some member is there.
async fn present(world: &mut World, start: &mut Start, now: Time) -> Vec<(LinkName, BondConfig)> {
    let links = match world.netlink.links().await {
        Ok(links) => links,
        Err(error) => {
            tracing::error!(%error, "cannot read the interfaces");
            start.failed = true;
            return Vec::new();
        }
    };
    let mut bonds = start.document.config.bonds.clone();
    bonds.retain(|name, _| start.open.contains(name));
    start.absent.clear();
    for (name, bond) in &mut bonds {
        for member in &mut bond.members {
            // Those that come later join as they would have with a new bond.
            member.force = true;
            member.absent = links.iter().all(|link| *link.name != *member.interface);
            if member.absent {
                start.absent.insert(member.interface.clone());
                start.say(format!("{name}: '{}' is not there; it is added when it comes", member.interface));
            }
        }
    }
    let is_ready = |name: &LinkName, bond: &BondConfig| {
        let waits = now < start.grace_until && !world.bonds.contains_key(name);
        let absent = bond.members.iter().filter(|member| member.absent).count();
        absent < bond.members.len() && !(waits && absent > 0)
    };
    bonds.into_iter().filter(|(name, bond)| is_ready(name, bond)).collect()
}

/// Finds out what is still to be done.
async fn look(world: &mut World, start: &mut Start, now: Time) {
    let has = current(world).await;
    let differs = |name: &str| {
        let mut document = start.document.clone();
        document.config.bonds.retain(|other, _| *other == *name);
        document.config.fabrics.retain(|other, _| *other == *name);
        // What cannot be changed stays open, too: it is said, and may be removed by hand.
        let wanted = desired::file::merge(&has, &document, false);
        wanted.map_or(true, |wanted| !diff(&has.config, &wanted).is_empty())
    };
    start.open.retain(|name| differs(name));
    if start.next.is_some() {
        // An interface has come meanwhile.
    } else if start.failed || !start.open.iter().all(|name| start.waits(world, name)) {
        start.next = Some(now + start.delay);
        start.delay = (start.delay * 2).min(RETRY_MAX);
    } else if now < start.grace_until {
        start.next = Some(start.grace_until);
    } else if now < start.first_until {
        start.next = Some(start.first_until);
    }
}
