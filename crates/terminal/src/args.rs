//! The global options, and those of `lab` and `bench`. `linkbraid` needs the latter for its help, and the programs
//! `linkbraid-lab` and `linkbraid-bench` carry them out.

pub mod bench;
pub mod lab;

use clap::{Args, Parser, Subcommand, ValueHint};
use std::path::PathBuf;

/// The environment variable that `--socket` defaults to.
pub const SOCKET_ENV: &str = "LINKBRAID_SOCKET";

/// The environment variable that `daemon --state` defaults to.
pub const STATE_ENV: &str = "LINKBRAID_STATE";

/// The command line of `linkbraid` for a program that carries out some of its words.
#[derive(Debug, Parser)]
#[command(
    name = "linkbraid",
    bin_name = "linkbraid",
    version,
    disable_help_subcommand = true,
    subcommand_required = true
)]
pub struct Words<W: Subcommand> {
    /// The global options.
    #[command(flatten)]
    pub anywhere: Anywhere,

    /// A word that the program knows.
    #[command(subcommand)]
    pub word: W,
}

/// The heading of the global options in the help.
const ANYWHERE: &str = "Global options";

/// The global options.
#[derive(Debug, Args)]
pub struct Anywhere {
    /// The daemon's socket
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = SOCKET_ENV,
        default_value = linkbraid_api::DEFAULT_SOCKET,
        value_hint = ValueHint::FilePath,
        hide_env_values = true,
        help_heading = ANYWHERE
    )]
    pub socket: PathBuf,

    /// Print JSON instead of text
    #[arg(long, global = true, help_heading = ANYWHERE)]
    pub json: bool,
}
