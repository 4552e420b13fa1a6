//! The file that the daemon is started with. It brings back what a boot has ended, changes what is otherwise, and removes
//! nothing: a file that is empty for no good reason takes no host off its network.
//!
//! Not everything may be there yet. A bond is made of the members that are, after [`GRACE`] has passed in which the others may
//! come; those that come later are added then. What fails is tried again, and the daemon goes on meanwhile.

use super::{Applies, Job, Mode, current::current, plan::plan, wanted::wanted};
use crate::world::World;
use linkbraid_api::{
    Error, Request,
    config::{BondConfig, Config, Document},
};
use linkbraid_proto::Time;
use std::{collections::BTreeSet, fs, io, path::Path, time::Duration};

/// How long a bond waits for all its members: udev finds and names NICs within a few seconds.
const GRACE: Duration = Duration::from_secs(5);
/// How long until what failed is tried again: at first, and at most.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// A file that is not yet all done.
pub(super) struct Start {
    document: Document,
    /// Bonds and fabrics that are not yet as the file says.
    open: BTreeSet<String>,
    /// Interfaces that are not there.
    absent: BTreeSet<String>,
    grace_until: Time,
    stage: Stage,
    /// It was gone through once.
    begun: bool,
    /// When it is gone through again; none while only interfaces are waited for.
    next: Option<Time>,
    delay: Duration,
    /// An interface came since it was last looked which are there.
    came: bool,
    /// Something could not be done this time.
    failed: bool,
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

impl Start {
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    pub(super) fn wake(&self) -> Option<Time> {
        match self.stage {
            Stage::Idle => self.next,
            Stage::Fabrics | Stage::Bonds => Some(Time::ZERO),
        }
    }

    pub(super) fn link_came(&mut self, name: &str, now: Time) {
        if self.absent.remove(name) {
            tracing::info!(file = %self.document.file, "'{name}' is there now");
            self.next = Some(now);
            self.came = true;
            self.delay = RETRY_MIN;
        }
    }

    /// What a user removes is no longer wanted, whatever the file says.
    pub(super) fn heed(&mut self, request: &Request) {
        let Config { bonds, fabrics } = &mut self.document.config;
        match request {
            Request::MemberDel(del) => {
                let members = bonds.get_mut(&del.bond).map(|bond| &mut bond.members);
                members.into_iter().for_each(|all| all.retain(|member| member.interface != del.interface));
            }
            Request::BondDel(del) => drop(bonds.remove(&del.name)),
            Request::FabricDel(del) => drop(fabrics.remove(&del.name)),
            _ => return,
        }
        self.open.retain(|name| bonds.contains_key(name) || fabrics.contains_key(name));
    }

    /// Says something once.
    fn say(&mut self, text: String) {
        if self.said.insert(text.clone()) {
            tracing::warn!(file = %self.document.file, "{text}");
        }
    }
}

/// Reads the file that the daemon was started with. One that is bad or missing changes nothing.
pub(crate) fn at_start(applies: &mut Applies, world: &World, path: Option<&Path>) {
    let Some(path) = path else { return };
    let file = path.display().to_string();
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return tracing::info!(%file, "there is no such file, nothing to apply");
        }
        Err(error) => return tracing::error!(%file, %error, "cannot read it; all stays as it is"),
    };
    let document = match Document::read(&file, &text) {
        Ok(document) => document,
        Err(error) => return tracing::error!(%error, "not applied; all stays as it is"),
    };
    let now = world.clock.now();
    let names = document.config.fabrics.keys().chain(document.config.bonds.keys());
    applies.start = Some(Start {
        open: names.cloned().collect(),
        absent: BTreeSet::new(),
        grace_until: now + GRACE,
        stage: Stage::Idle,
        begun: false,
        next: Some(now),
        delay: RETRY_MIN,
        came: false,
        failed: false,
        said: BTreeSet::new(),
        document,
    });
}

/// Goes through the file if it is time.
pub(super) async fn advance(applies: &mut Applies, world: &mut World) {
    let now = world.clock.now();
    let Some(mut start) = applies.start.take() else { return };
    match start.stage {
        Stage::Idle if start.next.is_some_and(|next| next <= now) => {
            start.stage = Stage::Fabrics;
            start.failed = false;
            for (name, fabric) in &start.document.config.fabrics {
                if start.open.contains(name) {
                    let fabrics = [(name.clone(), fabric.clone())].into();
                    push(applies, &start, Config { fabrics, ..Config::default() });
                }
            }
        }
        Stage::Fabrics => {
            start.stage = Stage::Bonds;
            for (name, bond) in present(world, &mut start, now).await {
                push(applies, &start, Config { bonds: [(name, bond)].into(), ..Config::default() });
            }
        }
        Stage::Bonds => {
            start.stage = Stage::Idle;
            start.begun = true;
            look(world, &mut start, now).await;
            if start.open.is_empty() {
                tracing::info!(file = %start.document.file, "all is as the file says");
                return;
            }
        }
        Stage::Idle => {}
    }
    // A user may have applied a file meanwhile only if this one had ended.
    applies.start = Some(start);
}

/// One bond or fabric has its turn: what is wrong with another one does not keep it back.
fn push(applies: &mut Applies, start: &Start, config: Config) {
    let document = start.document.clone().saying(config);
    applies.waiting.push_back(Job { document, mode: Mode::Start });
}

/// One of them has come to its end.
pub(super) fn done(applies: &mut Applies, errors: Vec<Error>) {
    if let Some(start) = &mut applies.start {
        start.failed |= !errors.is_empty();
        errors.into_iter().for_each(|error| start.say(format!("{error}; tried again")));
    }
}

/// The bonds that can be made or changed now, of the members that are there.
async fn present(world: &mut World, start: &mut Start, now: Time) -> Vec<(String, BondConfig)> {
    start.absent.clear();
    start.came = false;
    let links = match world.netlink.links().await {
        Ok(links) => links,
        Err(error) => {
            tracing::error!(%error, "cannot read the interfaces");
            return Vec::new();
        }
    };
    let mut bonds = Vec::new();
    let open: Vec<String> = start.open.iter().cloned().collect();
    for name in open {
        let Some(bond) = start.document.config.bonds.get(&name) else { continue };
        let is_there = |member: &str| links.iter().any(|link| link.name == member);
        let mut absent: Vec<String> = bond.members.iter().map(|member| member.interface.clone()).collect();
        absent.retain(|member| !is_there(member));
        let bond = without(bond, &absent);
        let waits = !absent.is_empty() && !world.bonds.contains_key(&name) && now < start.grace_until;
        if !waits && !bond.members.is_empty() {
            bonds.push((name.clone(), bond));
        }
        for member in absent {
            start.say(format!("{name}: '{member}' is not there; it is added when it comes"));
            start.absent.insert(member);
        }
    }
    bonds
}

/// A bond as it can be without these members. Those that come join as they would have with a new bond.
fn without(bond: &BondConfig, absent: &[String]) -> BondConfig {
    let mut bond = bond.clone();
    bond.members.retain(|member| !absent.contains(&member.interface));
    bond.members.iter_mut().for_each(|member| member.force = true);
    bond
}

/// Finds out what is still to be done.
async fn look(world: &mut World, start: &mut Start, now: Time) {
    let Ok(has) = current(world).await else {
        start.next = Some(now + RETRY_MAX);
        return;
    };
    let differs = |name: &str| {
        let mut document = start.document.clone();
        document.config.bonds.retain(|other, _| other == name);
        document.config.fabrics.retain(|other, _| other == name);
        // What cannot be changed stays open, too: it is said, and may be removed by hand.
        wanted(&has, &document, false).map_or(true, |wanted| !plan(&has.config, &wanted).is_empty())
    };
    start.open.retain(|name| differs(name));
    let waits_only = |name: &String| {
        let bond = start.document.config.bonds.get(name);
        bond.is_some_and(|bond| bond.members.iter().any(|member| start.absent.contains(&member.interface)))
    };
    start.next = match !start.failed && start.open.iter().all(waits_only) {
        _ if start.came => Some(now),
        true if now < start.grace_until => Some(start.grace_until),
        true => None,
        false => {
            let next = now + start.delay;
            start.delay = (start.delay * 2).min(RETRY_MAX);
            Some(next)
        }
    };
}
