//! What of a fabric may take long: a place on a transport is taken (memory is reserved, locks are waited for), or given up
//! (memory is freed, the interface goes). A thread that lives no longer does each, and other requests are served
//! meanwhile.

use super::{
    fast_path::FastPath,
    node::{self, Node, Transports},
    refusal::of_transport,
    saved::SavedFabric,
};
use linkbraid_api::Error;
use linkbraid_dataplane::HookChoice;
use linkbraid_fabric::Address;
use linkbraid_link::Tap;
use nix::net::if_::if_nametoindex;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread::Builder,
};
use tokio::sync::{mpsc, oneshot};

/// Name of the threads, at most 15 bytes.
const THREAD_NAME: &str = "lb-fabric";

/// Which piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// A node's place: all that its threads need.
pub(crate) struct Place {
    /// As it was asked for, with the index of the interface.
    pub saved: SavedFabric,
    pub transports: Transports,
    pub tap: Tap,
    pub fast_path: Option<FastPath>,
}

/// What a thread has come to.
pub(crate) enum Output {
    /// It took a place, or why it could not. `refused` says why it is not the one asked for first.
    Joined { place: Result<Box<Place>, Error>, refused: Option<Error> },
    /// It gave one up.
    Ended,
    /// Neither is known.
    Panicked,
}

impl Output {
    /// What it joined, if that was its work.
    pub(crate) fn joined(self, name: &str) -> (Result<Box<Place>, Error>, Option<Error>) {
        match self {
            Self::Joined { place, refused } => (place, refused),
            Self::Ended | Self::Panicked => (Err(Error::new(name, "cannot join", "a thread failed")), None),
        }
    }
}

/// News of a thread.
pub(crate) struct Done {
    pub(crate) ticket: Ticket,
    pub(crate) output: Output,
}

/// Why a fabric that is known joins.
pub(crate) enum Why {
    /// A daemon before this one had it.
    Adopt,
    /// It could not before.
    Retry,
    /// What it shared with the other nodes was taken from it.
    Lost,
    /// It has another address.
    Moved,
    /// `fabric set` wants it; as it was before.
    Changed(Box<SavedFabric>),
}

/// What a piece of work is for.
pub(crate) enum Work {
    /// A new fabric.
    Add,
    /// A fabric that is known: the one that waits for this ticket.
    Join(Why),
    /// Whatever it joins is given up again.
    Cancelled,
    /// What the answer is when all has been given up.
    End(Result<(), Error>),
}

/// A piece of work under way.
pub(crate) struct Job {
    ticket: Ticket,
    /// Its name, its number and its MAC are not free.
    pub saved: SavedFabric,
    pub work: Work,
    answer: Option<Answer>,
}

/// Who waits for the end of something.
pub(crate) type Answer = oneshot::Sender<Ended>;

/// How it ended: with lines for the user, or why not.
pub(crate) type Ended = Result<Vec<String>, Error>;

impl Job {
    /// Takes the one who waits for it, if somebody does.
    pub(crate) fn take_answer(&mut self) -> Option<Answer> {
        self.answer.take()
    }

    /// Answers the one who waits for it, if somebody does; it may have hung up.
    pub(crate) fn reply(self, result: Result<(), Error>) {
        self.warn(result, Vec::new());
    }

    /// The same, with what is not as it was wished.
    pub(crate) fn warn(self, result: Result<(), Error>, warnings: Vec<String>) {
        if let Some(answer) = self.answer {
            let _ = answer.send(result.map(|()| warnings));
        }
    }
}

/// All that is under way.
pub(crate) struct Jobs {
    next: u64,
    sender: mpsc::UnboundedSender<Done>,
    list: Vec<Job>,
    /// Where programs are put.
    hook: HookChoice,
}

impl Jobs {
    /// None yet, and where they will report what they came to. No thread waits for that to be heard.
    pub(crate) fn new(hook: HookChoice) -> (Self, mpsc::UnboundedReceiver<Done>) {
        let (sender, done) = mpsc::unbounded_channel();
        (Self { next: 0, sender, list: Vec::new(), hook }, done)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Those whose fabric is not in the list of fabrics, but has what others cannot have.
    fn unlisted(&self) -> impl Iterator<Item = &Job> {
        self.list.iter().filter(|job| !matches!(job.work, Work::Join(_)))
    }

    /// Their fabrics.
    pub(crate) fn saved(&self) -> impl Iterator<Item = &SavedFabric> {
        self.unlisted().map(|job| &job.saved)
    }

    /// What is under way with one of them that has this name, as half a sentence.
    pub(crate) fn busy(&self, name: &str) -> Option<&'static str> {
        let job = self.unlisted().find(|job| job.saved.name == name)?;
        Some(if matches!(job.work, Work::Add) { "it is being added" } else { "it is being deleted" })
    }

    /// Whether one that is known joins: one at a time is tried again.
    pub(crate) fn tries(&self) -> bool {
        self.list.iter().any(|job| matches!(job.work, Work::Join(_)))
    }

    /// Waits for the end of this.
    pub(crate) fn wait(&mut self, ticket: Ticket) -> Option<oneshot::Receiver<Ended>> {
        let job = self.list.iter_mut().find(|job| job.ticket == ticket)?;
        let (answer, end) = oneshot::channel();
        job.answer = Some(answer);
        Some(end)
    }

    /// What it joins is not wanted any more: its fabric was deleted.
    pub(crate) fn cancel(&mut self, ticket: Ticket) {
        if let Some(job) = self.list.iter_mut().find(|job| job.ticket == ticket) {
            job.work = Work::Cancelled;
            if let Some(answer) = job.answer.take() {
                let error =
                    Error::new(&job.saved.name, "cannot change the fabric", "it was deleted meanwhile");
                let _ = answer.send(Err(error.hint("linkbraid fabric show")));
            }
        }
    }

    /// Nothing that they join is wanted any more: the daemon stops.
    pub(crate) fn cancel_all(&mut self) {
        for job in self.list.iter_mut().filter(|job| matches!(job.work, Work::Add | Work::Join(_))) {
            job.work = Work::Cancelled;
            job.answer = None;
        }
    }

    /// Takes out what is done.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<Job> {
        let at = self.list.iter().position(|job| job.ticket == ticket)?;
        Some(self.list.swap_remove(at))
    }

    /// Takes a place, of a new fabric or of one whose interface the kernel has.
    ///
    /// # Errors
    /// There can be no more threads.
    pub(crate) fn join(
        &mut self,
        saved: &SavedFabric,
        work: Work,
        old: Option<Node>,
    ) -> Result<Ticket, Error> {
        let new = matches!(work, Work::Add);
        let before = match &work {
            Work::Join(Why::Changed(before)) => Some((**before).clone()),
            _ => None,
        };
        let wanted = saved.clone();
        let hook = self.hook;
        let joined = move || {
            // Its place is that of the one before it.
            if let Some(node) = old {
                node.stop();
            }
            match (take_place(wanted, new, hook), before) {
                (Err(refused), Some(before)) => Output::Joined {
                    place: take_place(before, new, hook).map(Box::new),
                    refused: Some(refused),
                },
                (place, _) => Output::Joined { place: place.map(Box::new), refused: None },
            }
        };
        let (ticket, begun) = self.spawn(&saved.name, joined);
        begun?;
        self.list.push(Job { ticket, saved: saved.clone(), work, answer: None });
        Ok(ticket)
    }

    /// Gives something up; `reply` is for the one who waits for it, if somebody does.
    pub(crate) fn end(
        &mut self,
        saved: &SavedFabric,
        reply: Result<(), Error>,
        answer: Option<Answer>,
        give_up: impl FnOnce() + Send + 'static,
    ) -> Ticket {
        let ended = move || {
            give_up();
            Output::Ended
        };
        let (ticket, begun) = self.spawn(&saved.name, ended);
        if let Err(error) = begun {
            // It was given up here and now, with the work that no thread took.
            tracing::warn!(%error, "the loop had to wait for the end of a fabric");
            let _ = self.sender.send(Done { ticket, output: Output::Ended });
        }
        self.list.push(Job { ticket, saved: saved.clone(), work: Work::End(reply), answer });
        ticket
    }

    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Output + Send + 'static,
    ) -> (Ticket, Result<(), Error>) {
        let ticket = Ticket(self.next);
        self.next += 1;
        let sender = self.sender.clone();
        let run = move || {
            let output = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Output::Panicked);
            // After the end of the loop nobody wants it: it is given up here.
            let _ = sender.send(Done { ticket, output });
        };
        let begun = Builder::new().name(THREAD_NAME.to_owned()).spawn(run);
        let failed = |error: std::io::Error| Error::new(name, "cannot start a thread", error.to_string());
        (ticket, begun.map(drop).map_err(failed))
    }
}

/// Takes a node's place on the transport, and makes its interface or takes over the one that the kernel kept.
fn take_place(mut saved: SavedFabric, new: bool, hook: HookChoice) -> Result<Place, Error> {
    let address = saved.transport.parse::<Address>();
    let address = address.map_err(|error| of_transport(error, &saved.name, saved.node, saved.nodes))?;
    let transports = node::join(&saved, &address)?;
    if new {
        let tap = node::tap(&saved, &transports, true)?;
        saved.ifindex = tap.index();
        let fast_path = fast_path(&saved, &address, &transports, (tap.index(), hook));
        return Ok(Place { saved, transports, tap, fast_path });
    }
    // By its name, which may be that of another one by now, or of none: the kernel would make one.
    let is_named = |index| index == saved.ifindex;
    let renamed = || {
        Error::new(&saved.name, "cannot take over its interface", "it was renamed or deleted just now")
            .hint("linkbraid fabric show")
    };
    if !if_nametoindex(saved.name.as_str()).is_ok_and(is_named) {
        return Err(renamed());
    }
    let tap = node::tap(&saved, &transports, false)?;
    if !is_named(tap.index()) {
        return Err(renamed());
    }
    let fast_path = fast_path(&saved, &address, &transports, (tap.index(), hook));
    Ok(Place { saved, transports, tap, fast_path })
}

/// What the kernel is to carry, where it knows the nodes by their addresses.
fn fast_path(
    saved: &SavedFabric,
    address: &Address,
    transports: &Transports,
    (tap, hook): (u32, HookChoice),
) -> Option<FastPath> {
    FastPath::make(saved, (address, transports.directory()?), tap, hook)
}

#[cfg(test)]
mod tests;
