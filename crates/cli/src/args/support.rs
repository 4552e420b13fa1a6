//! Options of `support`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  linkbraid support
  linkbraid support /tmp/support.tar.gz
  tar -xzOf linkbraid-support-*.tar.gz linkbraid-support/README.txt

The file has what the daemon shows, what 'linkbraid check' finds, the
configuration, the log, and what ip, bridge, tc, ethtool and bpftool say. Its
README.txt lists all parts. Only its owner can read the file.

MAC addresses are replaced by mac-1, mac-2 and so on, IP addresses by ipv4-1 and
ipv6-1. The same address has the same name in all parts. Keys are never in it.
Names of interfaces, bonds, classes and files stay. No daemon has to run.";

/// `support`
#[derive(Debug, Args)]
pub struct SupportArgs {
    /// The file to write, which must not exist [default: linkbraid-support-TIME.tar.gz]
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// The same
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "file")]
    pub output: Option<PathBuf>,

    /// Leave addresses as they are
    #[arg(long)]
    pub no_redact: bool,
}
