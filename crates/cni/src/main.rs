//! `linkbraid-cni`: attaches containers to a bond, as guests of it, or to a fabric. A plugin of the Container Network Interface,
//! version 1.1 (<https://www.cni.dev/docs/spec/>): a container runtime starts it for each operation, with the operation in the
//! environment and the network's configuration on its standard input.
//!
//! Addresses are given by another plugin, as the configuration says. Nothing of the bond itself is changed.

mod call;
mod config;
mod failure;
mod ipam;
mod links;
mod mark;
mod network;
mod object;

use call::{Call, Operation};
use config::Config;
use failure::{Code, Failure};
use serde_json::{Value, json};
use std::{
    io::{self, Write},
    process::ExitCode,
};

/// The versions of the interface that are spoken. What they differ in here: 1.1 has STATUS and GC, 0.4 CHECK.
const VERSIONS: [&str; 5] = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];
/// The newest of them, and the one that a plugin for addresses is told that does not know that.
const NEWEST: &str = "1.1.0";
const BEFORE: &str = "1.0.0";

fn main() -> ExitCode {
    // What is said to an unreadable configuration is in a version that every runtime reads.
    let mut version = BEFORE.to_owned();
    let (said, code) = match run(&mut version) {
        Ok(said) => (said, ExitCode::SUCCESS),
        Err(failure) => (Some(failure.json(&version)), ExitCode::FAILURE),
    };
    // Written at once: a reader that ends with the line that it sought has all of it, and one that is gone is no panic.
    let answer = said.map_or_else(String::new, |said| format!("{said:#}\n"));
    if let Err(error) = io::stdout().write_all(answer.as_bytes()) {
        eprintln!("linkbraid-cni: the answer cannot be written: {error}");
        return ExitCode::FAILURE;
    }
    code
}

fn run(version: &mut String) -> Result<Option<Value>, Failure> {
    let operation = Operation::from_environment()?;
    let text = io::read_to_string(io::stdin())
        .map_err(|error| Failure::new(Code::Io, "cannot read the configuration", error))?;
    let raw: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(Code::Decoding, "cannot read the configuration", error))?;
    if let Some(said) = raw["cniVersion"].as_str() {
        said.clone_into(version);
    }
    if operation == Operation::Version {
        return Ok(Some(json!({ "cniVersion": version, "supportedVersions": VERSIONS })));
    }
    if !VERSIONS.contains(&version.as_str()) {
        let cause = format!("'{version}'; it is one of {}", VERSIONS.join(", "));
        return Err(Failure::new(Code::Version, "unknown version of the interface", cause));
    }
    let config = Config::read(raw)?;
    match Call::of(operation)? {
        Call::Add(container) => network::add(&config, &container).map(Some),
        Call::Del(container) => network::del(&config, &container).map(|()| None),
        Call::Check(container) => network::check(&config, &container).map(|()| None),
        Call::Gc => network::gc(&config).map(|()| None),
        Call::Status => network::status(&config).map(|()| None),
    }
}
