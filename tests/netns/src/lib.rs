//! What the tests of the whole system share: labs with daemons on their hosts ([`Net`]), what a user's command said
//! ([`Said`]), flows of numbered datagrams ([`flow`]), real servers and downloads from them ([`server`]), a browser ([`browser`]), files of the guides ([`guide`]),
//! frames as they are on the wire ([`packet`]), the kernel's network lock ([`HeldRtnl`]), and a machine's state to compare
//! ([`machine`]).
//!
//! Every test needs root and a built `linkbraid` (see [`linkbraid_lab::daemon::binary`]). All it makes lies in
//! namespaces with names of its own, so tests run beside each other and beside those of another checkout.

pub mod browser;
pub mod build;
mod file;
pub mod flow;
mod guest;
pub mod guide;
pub mod machine;
mod net;
pub use linkbraid_lab::packet;
mod rtnl;
mod said;
pub mod server;
pub mod traffic;

pub use guest::GUEST_NIC;
pub use net::{BOND, Net, View};
pub use rtnl::HeldRtnl;
pub use said::{Said, check_hint};

use linkbraid_lab::{Host, wait_until};
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long to wait for what takes at most a few seconds on an idle machine.
pub const SOON: Duration = Duration::from_secs(20);

/// Says that something is over when it is dropped, also by a panic: a scope waits for its threads, and one that waits for this would
/// go on for ever.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs a command line on a host; its standard output.
///
/// # Panics
/// When it fails.
#[track_caller]
pub fn sh(host: Host<'_>, line: &str) -> String {
    host.sh(line).unwrap_or_else(|e| panic!("{e}"))
}

/// Waits [`SOON`] until `look` sees what is `good`, and gives it.
///
/// # Panics
/// When it does not come.
#[track_caller]
pub fn until<T: Debug>(what: &str, look: impl FnMut() -> T, good: impl FnMut(&T) -> bool) -> T {
    wait_until(SOON, what, look, good).unwrap_or_else(|e| panic!("{e}"))
}
