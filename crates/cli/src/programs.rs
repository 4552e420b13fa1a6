//! The programs that come with this one. `linkbraid lab` and `linkbraid bench` are such: a daemon carries nothing of them.

use linkbraid_api::Error;
use linkbraid_terminal::{Failed, report::plain};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// From the folder of the command to the one that `make install` gives the other programs.
const INSTALLED: &str = "../libexec/linkbraid";

/// Becomes the program that does what `word` says; it takes the same command line. Returns only where that fails.
pub fn become_program(word: &str) -> Failed {
    let name = format!("linkbraid-{word}");
    let what = format!("cannot run '{name}'");
    let failed = |cause: String| Failed::refused(Error::new(word, &what, cause).hint("make install"));
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return failed(plain(&error)),
    };
    let folder = own.parent().unwrap_or_else(|| Path::new("/"));
    let Some(program) = find(folder, &name) else {
        let folder = folder.display();
        return failed(format!("it is neither in {folder} nor in {folder}/{INSTALLED}"));
    };
    failed(plain(&Command::new(program).args(std::env::args_os().skip(1)).exec()))
}

/// The program in the same folder, or where `make install` puts it.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    [folder.join(name), folder.join(INSTALLED).join(name)].into_iter().find(|path| path.is_file())
}
