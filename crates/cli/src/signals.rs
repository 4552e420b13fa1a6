//! Signals that end a command which goes on until somebody ends it.

use linkbraid_api::Error;
use linkbraid_terminal::report::Failed;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use std::thread;

/// Has a thread call `end` when one of `signals` comes, so that this works whatever the others wait for.
///
/// To be called before any other thread exists, which would take the signals with their usual effect.
pub fn on_end(
    word: &str,
    signals: impl IntoIterator<Item = Signal>,
    end: impl FnOnce() + Send + 'static,
) -> Result<(), Failed> {
    let failed =
        |errno: Errno| Failed::refused(Error::new(word, "cannot catch signals", errno.desc().to_lowercase()));
    let signals = SigSet::from_iter(signals);
    signals.thread_block().map_err(failed)?;
    thread::spawn(move || {
        if signals.wait().is_ok() {
            end();
        }
    });
    Ok(())
}
