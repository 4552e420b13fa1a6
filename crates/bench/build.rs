//! Tells the program which commit it is built from: a result without it can't be repeated.

use std::path::Path;
use std::process::Command;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // A tree without git, such as a release's, has no commit to tell.
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|files| !files.is_empty());
    println!("cargo::rustc-env=LINKBRAID_COMMIT={commit}{}", if changed { "+" } else { "" });
    println!("cargo::rerun-if-changed=build.rs");
    // Each commit, checkout or rebase adds a line to it.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|path| Path::new(path).exists())
    {
        println!("cargo::rerun-if-changed={log}");
    }
}
