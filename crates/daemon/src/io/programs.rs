//! Programs that come with the one that runs, and those in the kernel.

use crate::io::error::About as _;
use linkbraid_api::Error;
use std::path::{Path, PathBuf};

/// From the folder of the command to the one that `make install` gives the other programs.
const INSTALLED: &str = "../libexec/linkbraid";

/// The program of this name: in the folder of the one that runs, or where `make install` puts it.
///
/// # Errors
/// Where it is not, in words.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().unwrap_or_else(|| Path::new("/"));
    let places = [folder.join(name), folder.join(INSTALLED).join(name)];
    places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let folder = folder.display();
        format!("it is neither in {folder} nor in {folder}/{INSTALLED}")
    })
}

/// Whether a later daemon with the rights of this one can take over what this one sets up.
///
/// # Errors
/// It could not find the programs in the kernel.
pub(crate) fn can_restart() -> Result<(), Error> {
    linkbraid_dataplane::can_find().about("daemon", "a later daemon cannot take the bonds over")
}
