//! The plugin that gives addresses, which the network's configuration names: `"ipam": { "type": "host-local", ... }`.

use crate::{
    BEFORE, NEWEST,
    config::Config,
    failure::{Code, Failure},
};
use serde_json::{Value, json};
use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A plugin for addresses.
#[derive(Debug)]
pub struct Ipam<'c> {
    name: &'c str,
    program: PathBuf,
    config: &'c Config,
}

impl<'c> Ipam<'c> {
    /// The one that the network's configuration names; none where it names none, and containers see to their addresses themselves.
    ///
    /// # Errors
    /// It is in none of the folders of `CNI_PATH`.
    pub fn of(config: &'c Config) -> Result<Option<Self>, Failure> {
        let name = config.raw["ipam"]["type"].as_str().unwrap_or_default();
        if name.is_empty() {
            return Ok(None);
        }
        let folders = env::var_os("CNI_PATH").unwrap_or_default();
        let found =
            env::split_paths(&folders).map(|folder| folder.join(name)).find(|program| program.is_file());
        match found {
            Some(program) if Path::new(name).components().count() == 1 => {
                Ok(Some(Self { name, program, config }))
            }
            _ => {
                let cause = format!("there is no such plugin in {}", folders.display());
                Err(Failure::new(Code::Configuration, name, cause))
            }
        }
    }

    /// Has it do something, with the environment that this program has; what it prints.
    ///
    /// # Errors
    /// It refuses, or cannot be run.
    pub fn does(&self, operation: &str) -> Result<Value, Failure> {
        let mut words = self.config.raw.clone();
        if words["cniVersion"] == NEWEST && !self.knows(NEWEST) {
            words["cniVersion"] = json!(BEFORE);
            if let Some(before) = words.get_mut("prevResult").filter(|before| before.is_object()) {
                before["cniVersion"] = json!(BEFORE);
            }
        }
        self.run(operation, &words)
    }

    /// Whether it knows this version of the interface.
    pub fn knows(&self, version: &str) -> bool {
        let said = self.run("VERSION", &json!({ "cniVersion": BEFORE })).unwrap_or_default();
        said["supportedVersions"].as_array().is_some_and(|all| all.iter().any(|one| one == version))
    }

    fn run(&self, operation: &str, words: &Value) -> Result<Value, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::new(Code::Io, self.name, error);
        let mut command = Command::new(&self.program);
        command.env("CNI_COMMAND", operation).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut plugin = command.spawn().map_err(|error| failed(&error))?;
        // Who does not read all of it says why.
        _ = plugin.stdin.take().map(|mut input| input.write_all(words.to_string().as_bytes()));
        let done = plugin.wait_with_output().map_err(|error| failed(&error))?;
        if !done.status.success() {
            return Err(Failure::of_plugin(self.name, &done.stdout));
        }
        if !matches!(operation, "ADD" | "VERSION") {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&done.stdout).map_err(|error| failed(&error))
    }
}
