//! Whether the kernel takes what a bond is made of: tried with a bond in a network namespace of its own.

use super::machine::Missing;
use crate::io::{error::About as _, helper};
use linkbraid_api::Error;
use linkbraid_dataplane::{DataPath, Hook, HookChoice};
use linkbraid_link::{Kind, MacAddr, Netlink};
use nix::{errno::Errno, sched::CloneFlags};
use std::{io, thread};
use tokio::{runtime, sync::oneshot};

/// What may be missing ([`Missing::name`]); the last one where it could not be found out.
const NAMES: [&str; 5] = ["bridge", "veth", "bpf", "hook", UNKNOWN];
const UNKNOWN: &str = "trial";
const BRIDGE: &str = "trial0";
const BRIDGE_MAC: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0x01]);
const BRIDGE_MTU: u32 = 1500;

/// What works where a bond does.
pub(super) fn works(hook: Option<Hook>) -> String {
    hook.map_or_else(|| "bridge and eBPF".to_owned(), |hook| format!("bridge, eBPF and the {hook} hook"))
}

/// Makes a bond and takes it away again; what works, in words, or what is missing. Nothing of it is seen outside its namespace.
pub(super) async fn run(choice: HookChoice) -> Result<String, Missing> {
    let (sender, result) = oneshot::channel();
    // A thread of its own takes its network namespace along when it ends.
    let started = thread::Builder::new().name("lb-trial".into()).spawn(move || {
        let _ = sender.send(match helper::trial() {
            Some(told) => told.map_or_else(|error| Err(unknown(&error.to_string())), |words| read(&words)),
            None => attempt(choice),
        });
    });
    match started {
        Ok(_) => result.await.unwrap_or_else(|_| Err(unknown("it ended without an answer"))),
        Err(error) => Err(unknown(&error.to_string().to_lowercase())),
    }
}

/// The same for the daemon's helper, in words: a network namespace takes a right that the daemon does not keep.
pub(crate) fn in_words(choice: HookChoice) -> String {
    serde_json::to_string(&attempt(choice).map_err(|missing| (missing.name, missing.text, missing.hint)))
        .unwrap_or_default()
}

fn read(words: &str) -> Result<String, Missing> {
    type Told = Result<String, (String, String, Option<String>)>;
    let told = serde_json::from_str::<Told>(words).map_err(|error| unknown(&error.to_string()))?;
    told.map_err(|(name, text, hint)| {
        let name = NAMES.into_iter().find(|known| *known == name).unwrap_or(UNKNOWN);
        Missing { name, text, hint }
    })
}

fn attempt(choice: HookChoice) -> Result<String, Missing> {
    match nix::sched::unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => {}
        // A service may have no namespaces. Nothing is made in the one that it shares with others, but programs are no part of it.
        Err(Errno::EPERM) => return programs(choice).map(|()| "eBPF".to_owned()),
        Err(errno) => return Err(unknown(&errno.desc().to_lowercase())),
    }
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error: io::Error| unknown(&error.to_string().to_lowercase()))?;
    let (bond, port) = runtime.block_on(async {
        let netlink = Netlink::new().map_err(|error| unknown(&error.cause()))?;
        let bond =
            netlink.create_bridge(BRIDGE, BRIDGE_MAC, BRIDGE_MTU).await.map_err(|error| {
                match error.kind {
                    Kind::Unsupported => Missing {
                        name: "bridge",
                        text: "this kernel has no bridge support".into(),
                        hint: Some("modprobe bridge".into()),
                    },
                    _ => Missing {
                        name: "bridge",
                        text: format!("no bridge can be made: {}", error.cause()),
                        hint: None,
                    },
                }
            })?;
        let (port, _) = netlink.internal_port(bond).await.map_err(|error| Missing {
            name: "veth",
            text: format!("no veth can be made: {}", error.cause()),
            hint: Some("modprobe veth".into()),
        })?;
        Ok((bond, port))
    })?;
    let missing = |name| move |error: Error| Missing { name, text: error.cause, hint: error.hint };
    let mut path = DataPath::load(choice).about("trial", "load").map_err(missing("bpf"))?;
    let hook = path.attach_port(port).and_then(|()| path.attach_member(bond));
    let hook = hook.map(|()| path.hook());
    let unloaded = path.unload();
    let hook = hook.about("trial", "attach").map_err(missing("hook"))?;
    unloaded.about("trial", "unload").map_err(missing("hook"))?;
    Ok(works(hook))
}

/// Loads the programs, and puts them nowhere.
fn programs(choice: HookChoice) -> Result<(), Missing> {
    let loaded = DataPath::load(choice).and_then(DataPath::unload).about("trial", "load");
    loaded.map_err(|error| Missing { name: "bpf", text: error.cause, hint: error.hint })
}

/// It could not be found out.
fn unknown(cause: &str) -> Missing {
    let text = format!("whether bridge and eBPF work could not be tried: {cause}");
    Missing { name: UNKNOWN, text, hint: None }
}

#[cfg(test)]
mod tests;
