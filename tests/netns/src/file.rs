//! Configuration files, applied on a host.

use crate::Net;
use linkbraid_lab::Topology;
use std::fs;

impl Net {
    /// One host, `a`, with four links and no daemon yet.
    #[track_caller]
    pub fn alone() -> Self {
        Self::up(Topology::symmetric(1, 4, None))
    }

    /// Writes the configuration file, in which `SHM` stands for a place for shared memory; its name.
    #[track_caller]
    pub fn file(&self, text: &str) -> String {
        let (file, shm) = (self.lab().folder().join("config.toml"), self.lab().folder().join("shm"));
        fs::write(&file, text.replace("SHM", &shm.display().to_string())).expect("writes");
        file.display().to_string()
    }

    /// Applies a file that holds `text` on `a`; the commands that it took.
    #[track_caller]
    pub fn apply(&self, text: &str) -> Vec<String> {
        let file = self.file(text);
        self.ok("a", &format!("apply {file}")).lines().map(str::to_owned).collect()
    }
}
