//! Labs that stay after the process that brought them up.

use crate::lab::{FOLDER, Lab};
use crate::spec::Topology;
use linkbraid_api::Error;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is needed to find a lab again.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub topology: Topology,
    /// The maps of each switch's ports: settings, counters.
    pub maps: Vec<(u32, u32)>,
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(FOLDER).join(format!("{name}.json"))
}

pub(crate) fn save(lab: &Lab) -> Result<(), Error> {
    let maps = lab.ports.iter().map(crate::port::Ports::ids).collect::<Result<_, _>>()?;
    let saved = Saved { topology: lab.topology().clone(), maps };
    let path = path(lab.id());
    let fail = |e: String| Error::new(path.display().to_string(), "cannot write the lab's state", e);
    let text = serde_json::to_string_pretty(&saved).map_err(|e| fail(e.to_string()))?;
    std::fs::write(&path, text).map_err(|e| fail(e.to_string()))
}

pub(crate) fn load(name: &str) -> Result<Saved, Error> {
    let path = path(name);
    let text = std::fs::read_to_string(&path).map_err(|e| {
        Error::new(format!("lab {name}"), "cannot use it", format!("it is not up: {e}"))
            .hint("linkbraid lab up")
    })?;
    serde_json::from_str(&text).map_err(|e| {
        Error::new(path.display().to_string(), "cannot read the lab's state", e.to_string())
            .hint(format!("linkbraid lab down {name}"))
    })
}

pub(crate) fn exists(name: &str) -> bool {
    path(name).exists()
}

pub(crate) fn forget(name: &str) {
    // Only labs that stay have a file.
    let _ = std::fs::remove_file(path(name));
}
