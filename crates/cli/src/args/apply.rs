//! `apply`

use super::Within;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid apply --dry-run
  linkbraid apply
  linkbraid apply --confirm 60s
  linkbraid apply /etc/linkbraid.toml /etc/linkbraid

A file is TOML, with the options of the other commands under the same names:

  [fabric.fab0]
  node = 0
  nodes = 2
  transport = \"shm:/run/linkbraid/fab0\"

  [bond.bond0]
  member = [\"eth1\", \"eth2\", { name = \"fab0\", weight = 5000 }]
  address = [\"198.18.0.1/24\"]
  policy = \"spread\"

  [bond.bond0.class.voice]
  member = [\"eth2\"]
  match = [\"dscp=ef\"]

A bond or fabric that a file names becomes as the file says. An option that
it leaves out gets its default, except that MTU and MAC stay as they are. What
no file names stays if it was added by hand, and is removed if an earlier file
added it: so name all files at once. Each step is printed as the command that
does the same. If a step fails, the steps before it are undone. A second run
has nothing to do.";

/// `apply`
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// Files, or folders of files whose names end in .toml, applied as one [default: /etc/linkbraid.toml and /etc/linkbraid,
    /// as far as they are there]
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// Only print what would be done
    #[arg(long, visible_alias = "diff")]
    pub dry_run: bool,

    /// Whether it is to be confirmed.
    #[command(flatten)]
    pub within: Within,
}
