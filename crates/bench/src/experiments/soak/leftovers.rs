//! What hosts have: to see that bonds that came and went have left nothing, and taken nothing.

use crate::experiments::prelude::*;
use linkbraid_lab::tool;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A line for each thing that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leftovers(BTreeSet<String>);

impl Leftovers {
    /// Looks at all hosts: interfaces with MAC, MTU, master, flags and addresses; queues and filters; routes; files.
    pub fn look(bed: &Bed) -> Result<Self, Error> {
        let mut lines = BTreeSet::new();
        for host in bed.lab().hosts() {
            interfaces(host, &mut lines)?;
            for family in ["-4", "-6"] {
                let routes = ip(host, &[family, "route", "show", "table", "all"])?;
                lines.extend(
                    routes.iter().map(|route| format!("{}: route {}", host.name(), route_line(route))),
                );
            }
            files(&host.state_dir(), &format!("{}: state", host.name()), &mut lines);
        }
        Ok(Self(lines))
    }

    /// What is there now and was not, and what is there no more.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let new = now.0.difference(&self.0).map(|line| format!("new: {line}"));
        new.chain(self.0.difference(&now.0).map(|line| format!("gone: {line}"))).collect()
    }
}

fn ip(host: Host<'_>, words: &[&str]) -> Result<Vec<Value>, Error> {
    let text = tool::run(Command::new("ip").args(["-n", host.netns().name(), "-j", "-d"]).args(words))?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(&text).map_err(|e| Error::new("ip -j", "cannot read its output", e.to_string()))
}

fn interfaces(host: Host<'_>, lines: &mut BTreeSet<String>) -> Result<(), Error> {
    let name = host.name();
    for link in ip(host, &["address", "show"])? {
        let nic = link["ifname"].as_str().unwrap_or("?");
        let mut flags: Vec<&str> =
            link["flags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        flags.sort_unstable();
        lines.insert(format!(
            "{name}: {nic} MAC {} MTU {} master {} promiscuity {} gso {} flags {}",
            link["address"],
            link["mtu"],
            link["master"],
            link["promiscuity"],
            link["gso_max_size"],
            flags.join(",")
        ));
        for address in link["addr_info"].as_array().into_iter().flatten() {
            lines.insert(format!(
                "{name}: {} address {}/{} {}",
                holder(nic, address["scope"] == "global"),
                address["local"],
                address["prefixlen"],
                address["scope"]
            ));
        }
        for kind in ["qdisc", "filter"] {
            for hook in if kind == "filter" { &["ingress", "egress"][..] } else { &[""] } {
                let mut tc = Command::new("tc");
                tc.args(["-n", host.netns().name(), kind, "show", "dev", nic]);
                tc.args([*hook].iter().filter(|word| !word.is_empty()));
                // Without a clsact qdisc there is no such hook, and tc says so.
                let text = tool::run(&mut tc).unwrap_or_default();
                lines
                    .extend(text.lines().map(|line| format!("{name}: {nic} {kind} {hook} {}", stable(line))));
            }
        }
    }
    Ok(())
}

/// A line of `tc` without handles, which differ each time.
fn stable(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().filter(|word| !word.ends_with(':')).collect();
    words.join(" ")
}

fn route_line(route: &Value) -> String {
    let word = |key: &str| format!("{key} {}", route[key]);
    let words = ["type", "dst", "gateway", "table", "prefsrc", "metric"].map(word).join(" ");
    let link = route["dst"].as_str().is_some_and(|dst| dst.starts_with("fe80") || dst.starts_with("ff00"));
    format!("{words} dev {}", holder(route["dev"].as_str().unwrap_or("?"), !link))
}

/// Who has an address or a route. Those that a bond took over go back to the member that brought them, or to another
/// one if that one left the bond meanwhile: any member will do.
fn holder(nic: &str, moves: bool) -> &str {
    if moves && nic.starts_with("eth") { "a member" } else { nic }
}

/// Everything in a folder that is not one itself; a folder that is not there has nothing.
fn files(folder: &Path, what: &str, lines: &mut BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, what, lines);
        } else {
            lines.insert(format!("{what} {}", entry.file_name().to_string_lossy()));
        }
    }
}

#[cfg(test)]
mod tests;
