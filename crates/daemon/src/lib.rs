//! The daemon: what joins the protocols to the machine.
//!
//! Two threads. The control thread ([`control::run`]) takes requests from the socket, changes of interfaces from netlink, and
//! signals, and may wait for the kernel. The other one drives the bonds: frames from the data path, deadlines, links. Metrics are
//! served by a thread of their own, if they are. The daemon
//! writes the tables that the data path follows and never touches a frame of the user's; what it sets up goes on without it.

// Four layers, the lowest one first: I/O with the kernel and with files; what is known (bonds, fabrics, and what has happened to
// them); operations (what becomes of requests, and of what the kernel reports); the loop, and the socket.
mod control;
mod io;
mod operations;
mod world;

pub use io::{
    config::config_files,
    keys::{new_key, read_key_file, write_key_file},
    programs::program,
};
pub use linkbraid_dataplane::{Hook, HookChoice};

use linkbraid_api::{Error, FindingRecord, LinkName, MetricsAddress};
use std::path::{Path, PathBuf};

/// How to run the daemon.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen.
    pub socket: PathBuf,
    /// Where to keep what must survive a restart; `SOCKET.state` without it.
    pub state_dir: Option<PathBuf>,
    /// Which hook the programs go on.
    pub hook: HookChoice,
    /// The configuration files to apply at the start, as far as they are there; a folder stands for the files in it.
    pub config: Vec<PathBuf>,
    /// Where to serve metrics, whatever these files say; without it, where they say.
    pub metrics: Option<MetricsAddress>,
}

/// Gives up all rights of this process that the daemon does not need, for good. For the little that needs more there is a process
/// beside it from then on. To be called while there is one thread. Who is not root has none to give up, and is refused by [`run`].
///
/// # Errors
/// The kernel refuses.
pub fn confine(hook: HookChoice) -> Result<(), Error> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let trial = Box::new(move || operations::trial(hook));
    io::helper::start(io::helper::Does { trial, groups: io::group::Groups::keep_top })
        .map_err(|error| Error::new("daemon", "cannot give up its rights", error.to_string()))
}

/// Runs the daemon in the network namespace of this thread until SIGTERM or SIGINT. The bonds stay as they are:
/// the data path goes on without the daemon.
///
/// # Errors
/// Not root, another daemon on the socket, or a kernel that lacks something.
pub fn run(options: Options) -> Result<(), Error> {
    block_on("daemon", control::run(options))
}

/// What `linkbraid check` finds in the network namespace of this thread while no daemon runs on `socket`: the same as a daemon
/// finds ([`Request::Check`](linkbraid_api::Request::Check)), and a warning whose hint is `start`, the command that starts
/// one. Of bonds that an earlier daemon left, what its state says is known; that lies in `state_dir`, or where [`Options`] say.
///
/// # Errors
/// More interfaces than it looks at in one go, or a kernel that does not list them.
pub fn check(
    socket: &Path,
    state_dir: Option<PathBuf>,
    start: String,
    interfaces: Vec<LinkName>,
) -> Result<Vec<FindingRecord>, Error> {
    let state = state_dir.unwrap_or_else(|| io::state::beside(socket));
    block_on("check", operations::check(&state, start, interfaces))
}

fn block_on<T>(object: &str, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    linkbraid_dataplane::on_message(|line| tracing::debug!("{line}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| Error::new(object, "cannot start", cause.to_string()))?;
    tokio::task::LocalSet::new().block_on(&runtime, work)
}
