//! `apply FILE` and `daemon --config FILE`: the machine becomes as the file says, by the requests that a user would make,
//! one after the other, while the loop goes on.
//!
//! [`wanted`] tells what is to be there, [`plan`] which requests lead there; both are pure. What is asked for by a user is
//! done whole or not at all ([`Mode::Asked`]); what is done at the start of the daemon is done as far as it can be ([`start`]).

mod current;
mod plan;
mod simulate;
mod start;
mod wanted;

pub(crate) use start::at_start;

use crate::{operations::fabric, world::World};
use current::{current, mark};
use linkbraid_api::{
    ActionRecord, Apply, ApplyRecord, Error, Records, Reply, Request,
    config::{Config, Document, Part},
};
use linkbraid_link::Kind;
use linkbraid_proto::Time;
use plan::plan;
use start::Start;
use std::collections::{BTreeSet, VecDeque};
use tokio::sync::oneshot;
use wanted::{Current, Held};

/// Files that wait for their turn; further ones are refused.
const WAITING_MAX: usize = 16;

/// All that is applied, or waits for it.
#[derive(Default)]
pub(crate) struct Applies {
    waiting: VecDeque<Job>,
    running: Option<Run>,
    start: Option<Start>,
}

struct Job {
    document: Document,
    mode: Mode,
}

enum Mode {
    /// A user waits for the answer.
    Asked { dry_run: bool, answer: oneshot::Sender<Reply> },
    /// The daemon has started.
    Start,
}

/// One file under way.
struct Run {
    job: Job,
    /// What there was at the beginning.
    before: Config,
    /// The addresses of its interfaces then, whoever gave them.
    held: Held,
    /// What there is after the steps so far.
    now: Config,
    steps: VecDeque<Request>,
    done: Vec<Request>,
    warnings: Vec<String>,
    under_way: Option<(Request, oneshot::Receiver<Reply>)>,
    /// Why what was done is being undone.
    failed: Option<Error>,
    /// What could not be done; of undoing, where that is what is done.
    errors: Vec<Error>,
}

impl Applies {
    /// Whether the file of the daemon's start, if there is one, was gone through once.
    pub(crate) fn has_begun(&self) -> bool {
        self.start.as_ref().is_none_or(Start::has_begun)
    }

    /// When there is something to do next.
    pub(crate) fn wake(&self, now: Time) -> Option<Time> {
        match &self.running {
            // The request under way wakes the loop by itself.
            Some(run) => run.under_way.is_none().then_some(now),
            None if !self.waiting.is_empty() => Some(now),
            None => self.start.as_ref().and_then(Start::wake),
        }
    }

    /// A user asks for something.
    pub(crate) fn heed(&mut self, request: &Request) {
        if let Some(start) = &mut self.start {
            start.heed(request);
        }
    }

    /// An interface is there.
    pub(crate) fn link_came(&mut self, name: &str, now: Time) {
        if let Some(start) = &mut self.start {
            start.link_came(name, now);
        }
    }

    /// `apply FILE`: what cannot be right is refused now, the rest has its turn.
    pub(crate) fn ask(&mut self, request: Apply, answer: oneshot::Sender<Reply>) {
        let read = Document::read(&request.file, &request.text).and_then(|document| {
            if self.waiting.len() < WAITING_MAX {
                return Ok(document);
            }
            let cause = format!("{WAITING_MAX} files wait to be applied already");
            Err(Error::new(&request.file, "cannot apply", cause)
                .hint(format!("linkbraid apply {}", request.file)))
        });
        match read {
            Ok(document) => {
                let mode = Mode::Asked { dry_run: request.dry_run, answer };
                self.waiting.push_back(Job { document, mode });
            }
            // The client may have hung up.
            Err(error) => drop(answer.send(Reply::Error(error))),
        }
    }

    /// Takes one step of what is under way, or begins the next; the request that is to be carried out now, if there is one.
    pub(crate) async fn next(&mut self, world: &mut World) -> Option<(Request, oneshot::Sender<Reply>)> {
        let Some(run) = &mut self.running else {
            match self.waiting.pop_front() {
                Some(job) => self.begin(world, job).await,
                None => start::advance(self, world).await,
            }
            return None;
        };
        if run.under_way.is_some() {
            run.look(world).await;
            return None;
        }
        let Some(request) = run.steps.pop_front() else {
            if let Some(run) = self.running.take() {
                run.finish(self);
            }
            return None;
        };
        tracing::info!(file = %run.job.document.file, "{}", request.command());
        let (sender, answer) = oneshot::channel();
        run.under_way = Some((request.clone(), answer));
        Some((request, sender))
    }

    /// Looks whether the request under way has come to its end.
    pub(crate) async fn look(&mut self, world: &mut World) {
        if let Some(run) = &mut self.running {
            run.look(world).await;
        }
    }

    /// Finds out what there is to do.
    async fn begin(&mut self, world: &mut World, job: Job) {
        let Job { document, mode } = job;
        let removes = matches!(mode, Mode::Asked { .. });
        let planned = match prepare(world, &document, removes).await {
            Ok(planned) => planned,
            Err(error) => return self.refuse(mode, error),
        };
        let (Current { config: before, held, .. }, steps) = planned;
        match mode {
            Mode::Asked { dry_run: true, answer } => {
                let record = ApplyRecord {
                    actions: steps.iter().map(|step| action(&document, step)).collect(),
                    file: document.file,
                    dry_run: true,
                    warnings: Vec::new(),
                };
                // The client may have hung up.
                let _ = answer.send(Reply::Records(Records::Applied(record)));
            }
            mode => {
                self.running = Some(Run {
                    now: before.clone(),
                    before,
                    held,
                    steps: steps.into(),
                    done: Vec::new(),
                    warnings: Vec::new(),
                    under_way: None,
                    failed: None,
                    errors: Vec::new(),
                    job: Job { document, mode },
                });
            }
        }
    }

    fn refuse(&mut self, mode: Mode, error: Error) {
        match mode {
            Mode::Asked { answer, .. } => drop(answer.send(Reply::Error(error))),
            Mode::Start => start::done(self, vec![error]),
        }
    }
}

/// What there is, and the steps from there; or why they cannot be right, before anything is touched.
async fn prepare(
    world: &mut World,
    document: &Document,
    removes: bool,
) -> Result<(Current, Vec<Request>), Error> {
    let has = current(world).await?;
    let steps = plan(&has.config, &wanted::wanted(&has, document, removes)?);
    for step in &steps {
        match step {
            Request::FabricAdd(add) => {
                fabric::check_add(world, add).await.map_err(|error| at(document, step, error))?;
            }
            Request::BondAdd(add) => {
                for member in &add.members {
                    check_member(world, document, &add.name, member).await?;
                }
            }
            Request::MemberAdd(add) => {
                check_member(world, document, &add.bond, &add.interface).await?;
            }
            _ => {}
        }
    }
    Ok((has, steps))
}

/// Refuses a member that is not there, unless it is a fabric that comes first.
async fn check_member(world: &World, document: &Document, bond: &str, member: &str) -> Result<(), Error> {
    let refuse = |cause: String| {
        let place = document.place(bond, &Part::Member(member.to_owned()));
        let what = format!("cannot add member '{member}'");
        Err(Error::new(format!("{place}: {bond}"), what, cause).hint("ip -br link"))
    };
    if document.config.fabrics.contains_key(member) {
        return Ok(());
    }
    match world.netlink.link(member).await {
        Err(error) if error.kind == Kind::NoDevice => refuse("no such interface".into()),
        // What else may be is said by the request itself.
        Err(_) => Ok(()),
        Ok(link) if link.name != member => refuse(format!("its name is '{}'", link.name)),
        Ok(_) => Ok(()),
    }
}

/// An error with the place in the file that led to it.
fn at(document: &Document, request: &Request, error: Error) -> Error {
    let (object, part) = target(request);
    let place = document.place(object, &part);
    Error { object: format!("{place}: {}", error.object), ..error }
}

/// What a request is about.
fn target(request: &Request) -> (&str, Part) {
    match request {
        Request::FabricAdd(add) => (&add.name, Part::Whole),
        Request::FabricSet(set) => (&set.name, Part::Whole),
        Request::FabricDel(del) => (&del.name, Part::Whole),
        Request::BondAdd(add) => (&add.name, Part::Whole),
        Request::BondSet(set) => (&set.name, Part::Whole),
        Request::BondDel(del) => (&del.name, Part::Whole),
        Request::MemberAdd(add) => (&add.bond, Part::Member(add.interface.clone())),
        Request::MemberSet(set) => (&set.bond, Part::Member(set.interface.clone())),
        Request::MemberDel(del) => (&del.bond, Part::Member(del.interface.clone())),
        Request::ClassAdd(add) => (&add.bond, Part::Class(add.name.clone())),
        Request::ClassSet(set) => (&set.bond, Part::Class(set.name.clone())),
        Request::ClassDel(del) => (&del.bond, Part::Class(del.name.clone())),
        // A plan has no others.
        _ => ("", Part::Whole),
    }
}

fn action(document: &Document, request: &Request) -> ActionRecord {
    let (object, part) = target(request);
    ActionRecord { object: object.to_owned(), command: request.command(), line: document.line(object, &part) }
}

/// An address that the file gave and that was there before, from somebody else, is not taken away with the rest.
fn keep_held(before: &mut Config, now: &Config, held: &Held) {
    let keep = |name: &String, addresses: &mut Vec<String>, now: Option<&Vec<String>>| {
        let was_there = |address: &&String| held.get(name).is_some_and(|held| held.contains(address));
        let more: Vec<String> = now.into_iter().flatten().filter(was_there).cloned().collect();
        addresses.extend(more);
        addresses.sort();
        addresses.dedup();
    };
    for (name, bond) in &mut before.bonds {
        keep(name, &mut bond.addresses, now.bonds.get(name).map(|bond| &bond.addresses));
    }
    for (name, fabric) in &mut before.fabrics {
        keep(name, &mut fabric.addresses, now.fabrics.get(name).map(|fabric| &fabric.addresses));
    }
}

impl Run {
    /// Looks whether the step under way has come to its end.
    async fn look(&mut self, world: &mut World) {
        let Some((request, mut answer)) = self.under_way.take() else { return };
        let outcome = match answer.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => {
                self.under_way = Some((request, answer));
                return;
            }
            Err(oneshot::error::TryRecvError::Closed) => {
                Err(Error::new(target(&request).0, "not done", "nobody answered"))
            }
            Ok(Reply::Error(error)) => Err(error),
            Ok(Reply::Done { warnings }) => Ok(warnings),
            Ok(_) => Ok(Vec::new()),
        };
        self.end(world, request, outcome).await;
    }

    /// One step has come to its end.
    async fn end(&mut self, world: &mut World, request: Request, outcome: Result<Vec<String>, Error>) {
        match outcome {
            Ok(warnings) => {
                mark(world, &request, &self.now, &self.held);
                simulate::simulate(&mut self.now, &request);
                if self.failed.is_none() {
                    self.warnings.extend(warnings);
                    self.done.push(request);
                }
            }
            Err(error) => {
                tracing::warn!(file = %self.job.document.file, %error, "not done: {}", request.command());
                let is_undoing = self.failed.is_some();
                let error = if is_undoing { error } else { at(&self.job.document, &request, error) };
                match self.job.mode {
                    Mode::Asked { .. } if !is_undoing => {
                        self.failed = Some(error);
                        self.undo(world).await;
                    }
                    _ => {
                        // What comes to nothing has no parts that could come to something.
                        if matches!(request, Request::BondAdd(_)) {
                            let (gone, _) = target(&request);
                            self.steps.retain(|step| target(step).0 != gone);
                        }
                        self.errors.push(error);
                    }
                }
            }
        }
    }

    /// Goes back to what there was, of all that was touched.
    async fn undo(&mut self, world: &mut World) {
        let touched: BTreeSet<&str> = self.done.iter().map(|step| target(step).0).collect();
        let of = |config: &Config| {
            let mut config = config.clone();
            config.fabrics.retain(|name, _| touched.contains(name.as_str()));
            config.bonds.retain(|name, _| touched.contains(name.as_str()));
            config
        };
        match current(world).await {
            Ok(now) => {
                let mut before = of(&self.before);
                keep_held(&mut before, &now.config, &self.held);
                self.steps = plan(&of(&now.config), &before).into();
            }
            Err(error) => {
                self.steps.clear();
                self.errors.push(error);
            }
        }
    }

    fn finish(self, applies: &mut Applies) {
        let Job { document, mode } = self.job;
        let Mode::Asked { answer, .. } = mode else { return start::done(applies, self.errors) };
        let reply = match self.failed {
            None => {
                // What the daemon was still at since its start is no longer what is wanted.
                applies.start = None;
                Reply::Records(Records::Applied(ApplyRecord {
                    actions: self.done.iter().map(|step| action(&document, step)).collect(),
                    file: document.file,
                    dry_run: false,
                    warnings: self.warnings,
                }))
            }
            Some(mut error) => {
                for other in &self.errors {
                    error.cause.push_str(&format!("; what was done before could not be undone: {other}"));
                }
                Reply::Error(error)
            }
        };
        // The client may have hung up.
        let _ = answer.send(reply);
    }
}
