//! `apply FILE` and `daemon --config FILE`: the machine becomes as the file says.
//!
//! What a user asks for is done whole or not at all; what is done at the start of the daemon is done as far as it can be
//! ([`start`](super::start)). Files have their turns, one after the other.

use super::{
    current::current,
    desired::{self, Change, Current, Step, diff},
    fabric, keys,
    operation::{By, Operation, located},
    start::{Start, remove_from},
};
use crate::world::World;
use linkbraid_api::{
    ActionRecord, Apply, ApplyRecord, ConfigFile, Error, LinkName, Records, Reply, Request,
    config::{Document, Part},
};
use linkbraid_link::Kind;
use linkbraid_proto::Time;
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use tokio::sync::oneshot;

/// Files that wait for their turn; further ones are refused.
const WAITING_MAX: usize = 16;
/// How long until a bond that somebody deleted is made again: who deleted it may want to do more before. Twice as long each time, so that
/// a program that deletes it whenever it sees it does not take members from the host for good; anew after so long without that.
const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(60);
const AGAIN_FORGET: Duration = Duration::from_secs(300);

/// Files that wait for their turn, and the one that the daemon was started with.
#[derive(Default)]
pub(super) struct Files {
    waiting: VecDeque<(Document, Mode)>,
    start: Option<Start>,
    /// What counts: those of the daemon's start, or the one that a user applied since; less the bonds that users removed.
    wanted: Option<Document>,
    /// The same before the last change that is undone unless it is confirmed.
    before: Option<Document>,
    /// Bonds that were made again: when that was due, and how long it had to wait.
    again: BTreeMap<LinkName, (Time, Duration)>,
}

enum Mode {
    /// A user waits for the answer.
    Asked { dry_run: bool, limit: Option<Duration>, answer: oneshot::Sender<Reply> },
    /// The daemon has started.
    Start,
}

impl Files {
    /// When there is something to do next.
    pub(super) fn wake(&self, now: Time) -> Option<Time> {
        match self.waiting.is_empty() {
            false => Some(now),
            true => self.start.as_ref().and_then(Start::wake),
        }
    }

    /// Those that the daemon is started with; `waits`: they are not gone through, because a change is to be confirmed or undone.
    pub(super) fn at_start(&mut self, now: Time, document: Option<Document>, waits: bool) {
        self.wanted.clone_from(&document);
        self.before.clone_from(&document);
        self.start = document.filter(|_| !waits).map(|document| Start::new(now, document));
    }

    /// What the daemon is still at since its start, if it is.
    pub(super) fn start(&self) -> Option<&Start> {
        self.start.as_ref()
    }

    /// A user has applied one. What the daemon was still at since its start is no longer what is wanted.
    pub(super) fn applied(&mut self, document: &Document) {
        (self.start, self.wanted) = (None, Some(document.clone()));
    }

    /// A change begins that is undone unless it is confirmed.
    pub(super) fn note(&mut self) {
        self.before.clone_from(&self.wanted);
    }

    /// It is undone.
    pub(super) fn undone(&mut self) {
        self.wanted.clone_from(&self.before);
    }

    /// A user asks for something, and it is begun.
    pub(super) fn follow_request(&mut self, request: &Request) {
        let parts = self.waiting.iter_mut().filter(|(_, mode)| matches!(mode, Mode::Start));
        parts.for_each(|(part, _)| remove_from(&mut part.config, request));
        if let Some(start) = &mut self.start {
            start.follow_request(request);
        }
        if let (Some(wanted), Request::BondDel(del)) = (&mut self.wanted, request) {
            wanted.config.bonds.remove(&del.name);
        }
    }

    /// Somebody deleted a bond's interface. If a file names it, it is made again after the time that is returned.
    pub(super) fn bond_gone(&mut self, bond: &LinkName, now: Time) -> Option<Duration> {
        let recent = self.again.get(bond).filter(|(due, _)| now.since(*due) < AGAIN_FORGET);
        let wait = recent.map_or(AGAIN_MIN, |(_, last)| (*last * 2).min(AGAIN_MAX));
        let at = now + wait;
        let is_wanted = match &mut self.start {
            Some(start) => start.bond_gone(bond, at),
            None => {
                self.start = self.wanted.as_ref().and_then(|wanted| Start::again(now, wanted, bond, at));
                self.start.is_some()
            }
        };
        is_wanted.then(|| {
            self.again.insert(bond.clone(), (at, wait));
            wait
        })
    }

    /// An interface is there.
    pub(super) fn link_came(&mut self, name: &str, now: Time) {
        if let Some(start) = &mut self.start {
            start.link_came(name, now);
        }
    }

    /// `apply FILE`: what cannot be right is refused now, the rest has its turn.
    /// With a limit, it is undone unless it is confirmed in that time.
    pub(super) fn ask(&mut self, request: Apply, limit: Option<Duration>, answer: oneshot::Sender<Reply>) {
        let files: Vec<ConfigFile> = std::iter::once(request.first).chain(request.more).collect();
        let read = Document::read(&files).and_then(|document| {
            if self.waiting.len() < WAITING_MAX {
                return Ok(document);
            }
            let cause = format!("{WAITING_MAX} files wait to be applied already");
            let names: Vec<&str> = files.iter().map(|file| file.file.as_str()).collect();
            Err(Error::new(document.name(), "cannot apply", cause)
                .hint(format!("linkbraid apply {}", names.join(" "))))
        });
        match read {
            Ok(document) => {
                let mode = Mode::Asked { dry_run: request.dry_run, limit, answer };
                self.waiting.push_back((document, mode));
            }
            // The client may have hung up.
            Err(error) => drop(answer.send(Reply::Error(error))),
        }
    }

    /// The next one, if there is one: what there is to do.
    pub(super) async fn next(&mut self, world: &mut World) -> Option<Operation> {
        let Some((document, mode)) = self.waiting.pop_front() else {
            let start = self.start.as_mut()?;
            let parts = start.advance(world).await;
            self.waiting.extend(parts.into_iter().map(|document| (document, Mode::Start)));
            if start.is_done() {
                self.start = None;
            }
            return None;
        };
        let removes = matches!(mode, Mode::Asked { .. });
        match (prepare(world, &document, removes).await, mode) {
            (Ok((_, steps)), Mode::Asked { dry_run: true, answer, .. }) => {
                // The client may have hung up.
                let _ = answer.send(applied(world, document, &steps, Vec::new(), true));
                None
            }
            (Ok((has, steps)), mode) => {
                let name = document.name();
                let (by, limit) = match mode {
                    Mode::Asked { answer, limit, .. } => (By::File(document, answer), limit),
                    Mode::Start => (By::Start(document), None),
                };
                let command = || format!("linkbraid apply {}", name.replace(", ", " "));
                Some(Operation::new(by, steps, has).tentative(limit, command))
            }
            (Err(error), Mode::Asked { answer, .. }) => {
                let _ = answer.send(Reply::Error(error));
                None
            }
            (Err(error), Mode::Start) => {
                self.ended(vec![error]);
                None
            }
        }
    }

    /// Whether some wait for their turn.
    pub(super) fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// One bond or fabric of the daemon's start has come to its end.
    pub(super) fn ended(&mut self, errors: Vec<Error>) {
        if let Some(start) = &mut self.start {
            start.ended(errors);
        }
    }
}

/// What there is, and the steps from there; or why they cannot be right, before anything is touched.
async fn prepare(
    world: &mut World,
    document: &Document,
    // A user waits for the answer.
    removes: bool,
) -> Result<(Current, Vec<Step>), Error> {
    let has = current(world).await;
    let steps = diff(&has.config, &desired::file::merge(&has, document, removes)?);
    for step in &steps {
        if removes {
            keys::check(step).map_err(|error| located(document, step, error))?;
        }
        match step {
            Step::Fabric(Change { from: None, to: Some(add), .. }) => {
                fabric::check_add(world, add).await.map_err(|error| located(document, step, error))?;
            }
            Step::Bond(Change { name, from: None, to: Some(add) }) => {
                for member in add.members.iter().filter(|member| !member.absent) {
                    check_member(world, document, name, &member.interface).await?;
                }
            }
            Step::Member { bond, member, .. } if member.joins() => {
                check_member(world, document, bond, &member.name).await?;
            }
            _ => {}
        }
    }
    Ok((has, steps))
}

/// Refuses a member that is not there, unless it is a fabric that comes first.
async fn check_member(
    world: &World,
    document: &Document,
    bond: &str,
    member: &LinkName,
) -> Result<(), Error> {
    let refuse = |cause: String| {
        let place = document.place(bond, &Part::Member(member.clone()));
        let what = format!("cannot add member '{member}'");
        Err(Error::new(format!("{place}: {bond}"), what, cause).hint("ip -br link"))
    };
    if document.config.fabrics.contains_key(member) {
        return Ok(());
    }
    match world.netlink.link(member).await {
        Err(error) if error.kind == Kind::NoDevice => refuse("no such interface".into()),
        // What else may be is said by the step itself.
        Err(_) => Ok(()),
        Ok(link) if link.name != **member => refuse(format!("its name is '{}'", link.name)),
        Ok(_) => Ok(()),
    }
}

/// What a file has come to, or would come to.
pub(super) fn applied(
    world: &World,
    document: Document,
    steps: &[Step],
    mut warnings: Vec<String>,
    dry_run: bool,
) -> Reply {
    if let Some((address, place)) = &document.metrics
        && world.metrics.as_ref() != Some(address)
    {
        warnings.push(match world.metrics.as_ref().filter(|_| world.metrics_by_option) {
            Some(option) => format!(
                "{place}: metrics: {address} has no effect; the option '--metrics {option}' of the daemon counts more"
            ),
            None => format!(
                "{place}: metrics: they are served at {address} when the daemon has started again; 'systemctl restart \
                 linkbraid' does that, and frames go on"
            ),
        });
    }
    let action = |step: &Step| {
        let (object, part) = step.target();
        let place = document.find(object, &part).cloned();
        let (file, line) = (place.as_ref().map(|place| place.file.clone()), place.map(|place| place.line));
        ActionRecord { object: object.to_owned(), command: step.request().command(), file, line }
    };
    let actions = steps.iter().map(action).collect();
    Reply::Records(Records::Applied(ApplyRecord { actions, file: document.name(), dry_run, warnings }))
}
