//! `apply`

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid apply /etc/linkbraid.toml --dry-run
  linkbraid apply /etc/linkbraid.toml

The file is TOML, with the options of the other words under the same names:

  [fabric.fab0]
  node = 0
  nodes = 2
  transport = \"shm:/dev/shm/fab0\"

  [bond.bond0]
  member = [\"eth1\", \"eth2\", { name = \"fab0\", weight = 5000 }]
  address = [\"198.18.0.1/24\"]
  policy = \"spread\"

  [bond.bond0.class.voice]
  member = [\"eth2\"]
  match = [\"dscp=ef\"]

A bond or fabric that the file names becomes as the file says: an option that
it leaves out gets its default, only an MTU and a MAC stay as they are. What
the file does not name stays if it was added by hand, and is removed if an
earlier file added it. Each step is printed as the command that does the same;
a second time there is nothing to do. All of it is done or, if a step fails,
nothing.";

/// `apply`
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Only tell what would be done
    #[arg(long)]
    pub dry_run: bool,
}
