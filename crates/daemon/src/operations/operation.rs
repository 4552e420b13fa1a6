//! An operation: steps that are taken one after the other, for whoever wants them. Some steps wait, for peers or for a thread,
//! and the loop goes on meanwhile. If one fails, those before it are taken back.

use super::{
    absent, class,
    current::{mark, mark_as_before},
    desired::{Change, Current, Step},
    fabric, member,
    resize::Resize,
    setup,
    upkeep::ByHand,
    wait::{Decision, Outcome, Wait},
};
use crate::{
    io::undo::not_undone,
    world::{World, fabric::job::Ended},
};
use linkbraid_api::{Error, Reply, config::Document};
use linkbraid_proto::Time;
use std::{collections::VecDeque, time::Duration};
use tokio::sync::oneshot::{self, error::TryRecvError};

/// Who wants it.
pub(super) enum By {
    /// A user, by a request.
    User(oneshot::Sender<Reply>),
    /// A user, by a file.
    File(Document, oneshot::Sender<Reply>),
    /// The daemon, by the file that it was started with. Nothing is taken back: what can be done is done.
    Start(Document),
    /// An interface of this name has come back.
    Rejoin(String),
    /// Somebody has given the interface of this bond another MTU.
    Hand(ByHand),
    /// A change was not confirmed. As at the start, what can be done is done.
    Undo,
}

impl By {
    fn document(&self) -> Option<&Document> {
        match self {
            Self::File(document, _) | Self::Start(document) => Some(document),
            Self::User(_) | Self::Rejoin(_) | Self::Hand(_) | Self::Undo => None,
        }
    }
}

/// The end of what is waited for, if this is it.
async fn look(world: &mut World, under_way: &mut UnderWay) -> Option<Ended> {
    let wait = match under_way {
        UnderWay::Wait(wait) => wait,
        UnderWay::Mtu(resize) => return resize.advance(world).await,
    };
    let pending = match wait {
        Wait::Member(pending) => pending,
        Wait::Fabric(result) => {
            return match result.try_recv() {
                Ok(result) => Some(result),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Closed) => Some(Err(Error::new("daemon", "not done", "it is stopping"))),
            };
        }
    };
    let decision = pending.decide(world.clock.now(), world.bonds.get(&pending.bond));
    let (bond, ifindex) = (&pending.bond, pending.ifindex);
    match decision {
        Decision::Wait => None,
        Decision::End(result) => Some(result),
        Decision::Admit(lines) => Some(member::admit(world, bond, ifindex).await.map(|()| lines)),
        Decision::Withdraw(error) => {
            Some(Err(not_undone(error, member::withdraw(world, bond, ifindex).await.err())))
        }
        Decision::Detach => Some(member::detach(world, bond, ifindex).await.map(|()| Vec::new())),
    }
}

/// A step that has begun.
enum UnderWay {
    Wait(Wait),
    /// Members get another MTU.
    Mtu(Box<Resize>),
}

/// What has come of a step when it is begun.
enum Begun {
    /// It is done, with these lines for the user.
    Done(Vec<String>),
    /// It goes on.
    Goes(UnderWay),
}

impl From<Outcome> for Begun {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done(lines) => Self::Done(lines),
            Outcome::Waits(wait) => Self::Goes(UnderWay::Wait(wait)),
        }
    }
}

/// Steps under way.
pub(super) struct Operation {
    pub by: By,
    /// Where it is undone unless it is confirmed: in what time, and by which command it was asked for.
    pub tentative: Option<(Duration, String)>,
    steps: VecDeque<Step>,
    under_way: Option<(Step, UnderWay)>,
    /// What there was at the beginning.
    pub before: Current,
    /// What was done, unless it is being taken back.
    pub done: Vec<Step>,
    pub warnings: Vec<String>,
    /// Why what was done is being taken back.
    failed: Option<Error>,
    /// What could not be done; of taking back, where that is what is done.
    errors: Vec<Error>,
}

impl Operation {
    pub(super) fn new(by: By, steps: Vec<Step>, before: Current) -> Self {
        let (done, warnings, errors) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            by,
            tentative: None,
            steps: steps.into(),
            under_way: None,
            before,
            done,
            warnings,
            failed: None,
            errors,
        }
    }

    /// The same, undone unless it is confirmed, if that is wanted and there is anything to do.
    #[must_use]
    pub(super) fn tentative(self, limit: Option<Duration>, command: impl FnOnce() -> String) -> Self {
        let limit = limit.filter(|_| !self.steps.is_empty());
        Self { tentative: limit.map(|limit| (limit, command())), ..self }
    }

    /// When it wants to be looked at. A thread wakes the loop by itself.
    pub(super) fn wake(&self, now: Time) -> Option<Time> {
        match &self.under_way {
            None => Some(now),
            Some((_, UnderWay::Wait(Wait::Member(pending)))) => Some(pending.wake(now)),
            Some((_, UnderWay::Mtu(resize))) => Some(resize.wake(now)),
            Some((_, UnderWay::Wait(Wait::Fabric(_)))) => None,
        }
    }

    /// Takes the next step, or looks whether the one under way has come to its end; whether there are no more.
    pub(super) async fn advance(&mut self, world: &mut World) -> bool {
        let begun = match self.under_way.take() {
            Some((step, mut under_way)) => match look(world, &mut under_way).await {
                Some(result) => (step, result.map(Begun::Done)),
                None => (step, Ok(Begun::Goes(under_way))),
            },
            None => {
                let Some(step) = self.steps.pop_front() else { return true };
                if matches!(self.by, By::Undo) {
                    tracing::info!("undoing: {}", step.request().command());
                } else if let Some(document) = self.by.document() {
                    tracing::info!(file = %document.name(), "{}", step.request().command());
                }
                let begun = take(world, &step, self.trust()).await;
                (step, begun)
            }
        };
        match begun {
            (step, Ok(Begun::Goes(under_way))) => self.under_way = Some((step, under_way)),
            (step, Ok(Begun::Done(lines))) => self.end(world, step, lines),
            (step, Err(error)) => self.fail(&step, error),
        }
        self.under_way.is_none() && self.steps.is_empty()
    }

    fn trust(&self) -> Trust {
        match (&self.by, &self.failed) {
            (_, Some(_)) | (By::Undo, None) => Trust::Back,
            (By::User(_), None) => Trust::Asked,
            (By::File(..) | By::Start(_) | By::Rejoin(_) | By::Hand(_), None) => Trust::Planned,
        }
    }

    fn end(&mut self, world: &mut World, step: Step, lines: Vec<String>) {
        if self.failed.is_none() {
            if self.by.document().is_some() {
                mark(world, &step, &self.before);
            }
            self.warnings.extend(lines);
            self.done.push(step);
        }
    }

    fn fail(&mut self, step: &Step, error: Error) {
        if let Some(document) = self.by.document() {
            tracing::warn!(file = %document.name(), %error, "not done: {}", step.request().command());
        }
        match (&self.by, &self.failed) {
            (_, Some(_)) | (By::Undo, None) => self.errors.push(error),
            (By::Start(document), None) => {
                // What comes to nothing has no parts that could come to something.
                if matches!(step, Step::Bond(Change { from: None, .. })) {
                    self.steps.retain(|other| other.target().0 != step.target().0);
                }
                self.errors.push(located(document, step, error));
            }
            (by, None) => {
                let error = match by.document() {
                    Some(document) => located(document, step, error),
                    None => error,
                };
                let done = std::mem::take(&mut self.done);
                self.steps = done.into_iter().rev().map(|step| step.inverse(&self.before.held)).collect();
                self.failed = Some(error);
            }
        }
    }

    /// Nothing of it can fail any more: links that it has given to one bond are not waited for by others. If it was taken back,
    /// what files have made is what it was.
    pub(super) fn settle(&self, world: &mut World) {
        if self.failed.is_some() {
            if self.by.document().is_some() {
                mark_as_before(world, &self.before);
            }
            return;
        }
        for step in &self.done {
            match step {
                Step::Bond(Change { name, from: None, to: Some(to) }) => {
                    to.members.iter().for_each(|member| absent::taken(world, name, &member.interface));
                }
                Step::Member { bond, member, .. } if member.joins() => {
                    absent::taken(world, bond, &member.name)
                }
                _ => {}
            }
        }
    }

    /// What it has come to: who wanted it, what was done, with lines for the user, and what could not be done.
    pub(super) fn result(self) -> (By, Vec<Step>, Vec<String>, Vec<Error>) {
        let errors = match self.failed {
            None => self.errors,
            Some(error) => vec![not_undone(error, self.errors)],
        };
        (self.by, self.done, self.warnings, errors)
    }
}

/// An error with the place in the file that led to it.
pub(super) fn located(document: &Document, step: &Step, error: Error) -> Error {
    let (object, part) = step.target();
    let place = document.place(object, &part);
    Error { object: format!("{place}: {}", error.object), ..error }
}

/// How much of a step was looked at just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// All that depends on what the daemon holds: a user asks for it, and nothing has changed since.
    Asked,
    /// It is one of several, and what it depends on may have changed since they were planned.
    Planned,
    /// It takes another one back.
    Back,
}

/// Takes one step: all of it, now or when what it waits for has come, or nothing.
async fn take(world: &mut World, step: &Step, trust: Trust) -> Result<Begun, Error> {
    // The MTU of a bond comes before the rest of the step.
    if let Step::Bond(change @ Change { from: Some(_), to: Some(_), .. }) = step
        && let Some(mtu) = change.options().mtu
    {
        return Ok(Begun::Goes(UnderWay::Mtu(Box::new(Resize::new(change.clone(), mtu.0)))));
    }
    take_at_once(world, step, trust).await.map(Begun::from)
}

async fn take_at_once(world: &mut World, step: &Step, trust: Trust) -> Result<Outcome, Error> {
    match step {
        Step::Fabric(Change { name, from, to }) => match (from, to) {
            (_, None) => fabric::delete(world, name).await,
            (None, Some(to)) => fabric::add(world, to).await,
            (Some(from), Some(to)) => fabric::set(world, from, to).await,
        },
        Step::Bond(change) => match (&change.from, &change.to) {
            (_, None) => setup::delete(world, &change.name).await.map(Outcome::Done),
            (None, Some(to)) => setup::add(world, &change.name, to).await.map(Outcome::Done),
            (Some(_), Some(_)) => setup::set(world, change, None).await.map(Outcome::Done),
        },
        Step::Member { bond, member, move_address, force } => match &member.to {
            Some(to) if to.absent && member.from.is_none() => {
                absent::wait_for(world, bond, to, *move_address).map(|()| Outcome::Done(Vec::new()))
            }
            Some(to) if member.joins() => member::add(world, bond, to, *move_address).await,
            Some(to) if !member.leaves() => member::set(world, bond, to).await.map(Outcome::Done),
            _ => member::delete(world, bond, &member.name, *force || trust != Trust::Planned).await,
        },
        Step::Class { bond, class } => {
            class::change(world, bond, class, trust == Trust::Back).await.map(Outcome::Done)
        }
    }
}
