//! `linkbraid lab` and `linkbraid bench` are programs of their own: a daemon carries nothing of them.

use linkbraid_api::Error;
use linkbraid_terminal::{Failed, report::plain};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Becomes the program that does what `word` says; it takes the same command line. Returns only where that fails.
pub fn become_program(word: &str) -> Failed {
    let name = format!("linkbraid-{word}");
    let cause = match linkbraid_daemon::program(&name) {
        Ok(program) => plain(&Command::new(program).args(std::env::args_os().skip(1)).exec()),
        Err(cause) => cause,
    };
    // The Debian package has these programs in another one.
    let is_packaged = std::env::current_exe().is_ok_and(|own| own.starts_with("/usr/bin"));
    let hint = if is_packaged { "apt install ./linkbraid-bench_*.deb" } else { "make install" };
    Failed::refused(Error::new(word, format!("cannot run '{name}'"), cause).hint(hint))
}
