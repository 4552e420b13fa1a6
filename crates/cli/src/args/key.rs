//! `key new`, `key add`, `key use`, `key del`, `key show`.

use clap::{Subcommand, ValueHint};
use linkbraid_api::KeyId;
use std::path::PathBuf;

/// Shown below the help of the object.
pub const EXAMPLES: &str = "\
Examples:
  linkbraid key new /etc/linkbraid/bond0.key
  linkbraid bond set bond0 --key /etc/linkbraid/bond0.key --auth permit
  linkbraid bond set bond0 --auth require                when all hosts have it
  linkbraid key show /etc/linkbraid/bond0.key

Copy the file to all hosts by a way that nobody else can read, such as scp.
Exchange a key under traffic in three steps, each on all hosts before the next:
  linkbraid key add /etc/linkbraid/bond0.key /root/next.key
  linkbraid key use /etc/linkbraid/bond0.key 7f3a01c2     the next key
  linkbraid key del /etc/linkbraid/bond0.key 01c27f3a     the former key

A running daemon takes over what is in the file within a second.";

/// The subcommands of `key`.
#[derive(Debug, Subcommand)]
pub enum KeyVerb {
    /// Make a key file with a new key
    #[command(after_help = "\
Example:
  linkbraid key new /etc/linkbraid/bond0.key

Only root can read the file.")]
    New {
        /// The file, which is not there yet
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },

    /// Add the key that signs in another key file; it is believed from then on, and does not sign yet
    #[command(after_help = "\
Example:
  linkbraid key add /etc/linkbraid/bond0.key /root/next.key")]
    Add {
        /// The key file of the bond
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The key file that has the key
        #[arg(value_hint = ValueHint::FilePath)]
        from: PathBuf,
    },

    /// Sign with one of the keys of a file
    #[command(after_help = "\
Example:
  linkbraid key use /etc/linkbraid/bond0.key 7f3a01c2")]
    Use {
        /// The key file
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The id of the key, as 'key show' shows it
        #[arg(value_parser = KeyId::read)]
        id: KeyId,
    },

    /// Remove a key that does not sign from a file
    #[command(after_help = "\
Example:
  linkbraid key del /etc/linkbraid/bond0.key 7f3a01c2")]
    Del {
        /// The key file
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The id of the key, as 'key show' shows it
        #[arg(value_parser = KeyId::read)]
        id: KeyId,
    },

    /// Show the ids of the keys of a file, and which one signs
    #[command(after_help = "\
Example:
  linkbraid key show /etc/linkbraid/bond0.key

The keys themselves are never shown.")]
    Show {
        /// The key file
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}
