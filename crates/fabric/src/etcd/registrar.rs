//! The program that speaks with etcd, as the daemon sees it. It is told what to do by the first line of its standard input, and that
//! the node leaves by a second one; the end of the input is the end of the daemon, which may come back. It reports a line at a time.

use crate::{Address, Error, Join, Result, error::words};
use nix::errno::Errno;
use serde::{Deserialize, Serialize};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{Builder, JoinHandle},
    time::Duration,
};

/// How long the program may take to write the directory.
const READY_MAX: Duration = Duration::from_secs(5);
/// How long it may take to take this node out of etcd.
const LEAVE_MAX: Duration = Duration::from_secs(2);
/// Bytes of a report, and characters of what is wrong: some of it comes from servers that are not ours.
const LINE_MAX: u64 = 4096;
const CAUSE_MAX: usize = 300;
/// Between two programs, if the first one ended.
const AGAIN: Duration = Duration::from_secs(1);

/// What the program is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Register this node of the fabric at this address.
    Register {
        /// A transport, with `etcd://` in it.
        address: String,
        /// The number of the node.
        node: u16,
        /// How many there may be.
        nodes: u16,
        /// How many queues each has.
        queues: u16,
    },
    /// The node leaves for good.
    Leave,
}

/// What the program reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The directory is there.
    Ready,
    /// It cannot be: why.
    Refused(String),
    /// etcd knows this node.
    Registered,
    /// It does not, or what it says makes no sense: why.
    Trouble(String),
}

/// Keeps a node registered, until it is dropped.
#[derive(Debug)]
pub struct Registrar {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    over: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    running: Option<(Child, Option<ChildStdin>)>,
    ready: bool,
    trouble: Option<String>,
    refused: Option<String>,
}

impl Registrar {
    /// Starts the program, and waits until the directory is there.
    ///
    /// # Errors
    /// The program cannot be started; or what it says.
    pub fn start(program: &Path, address: &Address, join: &Join) -> Result<Self> {
        let name = address.to_string();
        let Join { node, nodes, queues } = *join;
        let order = Order::Register { address: name.clone(), node, nodes, queues };
        let shared = Arc::new(Shared::default());
        let failed = |cause: String| Error::new(&name, format!("cannot run '{}'", program.display()), cause);
        shared.spawn(program, &order).map_err(failed)?;
        let (work, path) = (shared.clone(), program.to_owned());
        let thread = Builder::new().name("lb-etcd".into()).spawn(move || work.keep(&path, &order));
        let thread = thread.map_err(|error| failed(error.to_string()))?;
        let registrar = Self { shared, thread: Some(thread) };
        let waits = |state: &mut State| !state.ready && state.refused.is_none();
        let state = registrar.shared.state();
        let (state, _) = registrar
            .shared
            .changed
            .wait_timeout_while(state, READY_MAX, waits)
            .unwrap_or_else(PoisonError::into_inner);
        match (&state.refused, state.ready) {
            (_, true) => {}
            (Some(cause), _) => return Err(Error::new(&name, "cannot register this node", cause)),
            (None, _) => return Err(failed("it says nothing".into())),
        }
        drop(state);
        Ok(registrar)
    }

    /// Why etcd does not know this node, or not all of what it says is used.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.state().trouble.clone()
    }

    /// The id of its process, while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.shared.state().running.as_ref().map(|(child, _)| child.id())
    }

    /// Has this node taken out of etcd, and the directory removed, when this is dropped.
    pub fn leave(&self) {
        self.shared.say(&Order::Leave);
    }
}

impl Drop for Registrar {
    fn drop(&mut self) {
        self.shared.over.store(true, Relaxed);
        if let Some((_, input)) = &mut self.shared.state().running {
            drop(input.take());
        }
        let state = self.shared.state();
        let waits = |state: &mut State| state.running.is_some();
        let waited = self.shared.changed.wait_timeout_while(state, LEAVE_MAX, waits);
        if let Some((child, _)) = &mut waited.unwrap_or_else(PoisonError::into_inner).0.running {
            // Refused only if it has ended.
            let _ = child.kill();
        }
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the program and tells it what to do.
    fn spawn(&self, program: &Path, order: &Order) -> Result<(), String> {
        let mut command = Command::new(program);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| match error.raw_os_error() {
            Some(errno) => words(Errno::from_raw(errno)),
            None => error.to_string(),
        })?;
        let input = child.stdin.take();
        self.state().running = Some((child, input));
        self.say(order);
        Ok(())
    }

    fn say(&self, order: &Order) {
        let Ok(mut line) = serde_json::to_vec(order) else { return };
        line.push(b'\n');
        if let Some((_, Some(input))) = &mut self.state().running {
            // One that has ended is started again.
            let _ = input.write_all(&line);
        }
    }

    /// Listens to the program, and starts another one when it ends.
    fn keep(&self, program: &Path, order: &Order) {
        loop {
            let output = self.state().running.as_mut().and_then(|(child, _)| child.stdout.take());
            if let Some(output) = output {
                let mut output = BufReader::new(output);
                let mut line = Vec::new();
                while (&mut output).take(LINE_MAX).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                    if let Ok(report) = serde_json::from_slice(&line) {
                        self.take(report);
                    }
                    line.clear();
                }
            }
            let ended = self.state().running.take();
            let status = ended.map(|(mut child, input)| {
                drop(input);
                child.wait()
            });
            self.changed.notify_all();
            loop {
                if self.over.load(Relaxed) {
                    return;
                }
                if let Some(Ok(status)) = status {
                    self.take(Report::Trouble(format!("its program ended ({status})")));
                }
                std::thread::park_timeout(AGAIN);
                if self.over.load(Relaxed) {
                    return;
                }
                match self.spawn(program, order) {
                    Ok(()) => break,
                    Err(cause) => self.take(Report::Trouble(format!("cannot run its program: {cause}"))),
                }
            }
        }
    }

    fn take(&self, report: Report) {
        let mut state = self.state();
        match report {
            Report::Ready => state.ready = true,
            Report::Refused(cause) if state.ready => state.trouble = Some(plain(&cause)),
            Report::Refused(cause) => state.refused = Some(plain(&cause)),
            Report::Registered => state.trouble = None,
            Report::Trouble(cause) => state.trouble = Some(plain(&cause)),
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// Words that a terminal shows as they are.
fn plain(cause: &str) -> String {
    cause.chars().take(CAUSE_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Where the program is looked for: beside the daemon's others.
pub const PROGRAM: &str = "linkbraid-etcd";
