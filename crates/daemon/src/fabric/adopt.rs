//! Fabrics of an earlier daemon, and what others do to their interfaces.

use super::{
    Fabric, RETRY, State,
    check::of_transport,
    end,
    node::{self, Node},
    saved::{SavedFabric, namespace},
    told,
};
use crate::{control::Control, history::History};
use linkbraid_api::Error;
use linkbraid_fabric::Address;
use linkbraid_link::{Kind, LinkInfo};

/// Brings back every fabric on file. Before the bonds: it takes milliseconds, and a bond may have one as a member.
pub(crate) async fn all(control: &mut Control) {
    for mut saved in control.state.read_fabrics() {
        let name = saved.name.clone();
        if saved.namespace != namespace() {
            tracing::warn!(fabric = %name, "belongs to another network namespace, left alone");
            continue;
        }
        let link = match control.netlink.link_by_index(saved.ifindex).await {
            Ok(link) => link,
            Err(error) if error.kind == Kind::NoDevice => {
                tracing::warn!(fabric = %name, "its interface is gone, forgotten");
                let _ = control.state.remove_fabric(&name);
                continue;
            }
            Err(error) => {
                tracing::error!(fabric = %name, %error, "cannot find its interface; it stays as it is");
                continue;
            }
        };
        if link.kind.as_deref() != Some("tun") {
            tracing::warn!(fabric = %name, "its interface is another one now, forgotten");
            let _ = control.state.remove_fabric(&name);
            continue;
        }
        follow(&mut saved, &link);
        let mut history = History::new(&saved.name, control.feed.clone());
        let state = match bring_back(control, &saved) {
            Ok(node) => {
                let text = "taken over from an earlier daemon, with its interface".to_owned();
                history.tell(told::fabric(&saved.name, "adopted", text));
                State::Runs(node)
            }
            Err(error) => waits(control, &saved, &mut history, error),
        };
        if saved.name != name {
            let _ = control.state.remove_fabric(&name);
        }
        if let Err(error) = control.state.write_fabric(&saved) {
            tracing::error!(%error, "the next daemon will not know");
        }
        let mut fabric = Fabric { saved, addresses: Vec::new(), history, state };
        read_addresses(control, &mut fabric).await;
        control.fabrics.insert(fabric.saved.name.clone(), fabric);
    }
}

/// What somebody changed of the interface is how it is.
fn follow(saved: &mut SavedFabric, link: &LinkInfo) {
    saved.name.clone_from(&link.name);
    saved.mtu = link.mtu;
    saved.mac = link.mac.0;
}

/// Starts a node on the interface that the kernel kept.
fn bring_back(control: &Control, saved: &SavedFabric) -> Result<Node, Error> {
    let address = saved.transport.parse::<Address>();
    let address = address.map_err(|error| of_transport(error, &saved.name, saved.node, saved.nodes))?;
    let transports = node::join(saved, &address)?;
    let tap = node::tap(saved, &transports, false)?;
    Node::start(saved, tap, transports, control.clock, control.events.clone())
}

fn waits(control: &Control, saved: &SavedFabric, history: &mut History, error: Error) -> State {
    history.tell(told::fabric(&saved.name, "failed", format!("{error}; tried again every second")));
    State::Waits { error, until: control.clock.now() + RETRY }
}

/// Tries those again that could not join.
pub(crate) async fn retry(control: &mut Control) {
    let now = control.clock.now();
    let due =
        control.fabrics.values().filter(|fabric| fabric.poll_timeout().is_some_and(|until| until <= now));
    for name in due.map(|fabric| fabric.saved.name.clone()).collect::<Vec<_>>() {
        let Some(fabric) = control.fabrics.get(&name) else { continue };
        let tried = bring_back(control, &fabric.saved);
        let Some(fabric) = control.fabrics.get_mut(&name) else { continue };
        fabric.state = match tried {
            Ok(node) => {
                let text = "it could join".to_owned();
                fabric.history.tell(told::fabric(&name, "adopted", text));
                State::Runs(node)
            }
            // Said once, not every second.
            Err(error) => State::Waits { error, until: now + RETRY },
        };
    }
}

/// Ends this start of a node and begins another one as it is saved now; if that fails, as it was before.
pub(super) fn start_anew(control: &mut Control, name: &str, old: &SavedFabric) -> Result<(), Error> {
    let Some(mut fabric) = control.fabrics.remove(name) else { return Ok(()) };
    if let State::Runs(node) = fabric.state {
        node.stop();
    }
    let begun = bring_back(control, &fabric.saved);
    let (state, refused) = match begun {
        Ok(node) => {
            let text = format!("started anew as node {} of {}", fabric.saved.node, fabric.saved.nodes);
            fabric.history.tell(told::fabric(name, "anew", text));
            (State::Runs(node), None)
        }
        Err(error) => {
            fabric.saved = old.clone();
            let state = match bring_back(control, &fabric.saved) {
                Ok(node) => State::Runs(node),
                Err(error) => waits(control, &fabric.saved, &mut fabric.history, error),
            };
            (state, Some(error))
        }
    };
    fabric.state = state;
    control.fabrics.insert(name.to_owned(), fabric);
    refused.map_or(Ok(()), Err)
}

/// Somebody renamed the interface, or gave it another MTU or MAC.
pub(crate) async fn link_changed(control: &mut Control, index: u32) {
    let found = control.fabrics.values().find(|fabric| fabric.saved.ifindex == index);
    let Some(name) = found.map(|fabric| fabric.saved.name.clone()) else { return };
    // What an event says may be over: it waited while the loop did something else.
    let Ok(link) = control.netlink.link_by_index(index).await else { return };
    let Some(mut fabric) = control.fabrics.remove(&name) else { return };
    let before = fabric.saved.clone();
    follow(&mut fabric.saved, &link);
    if fabric.saved.name != name {
        let text = format!("its interface was called '{name}', and so was the fabric");
        fabric.history = History::new(&link.name, control.feed.clone());
        fabric.history.tell(told::fabric(&link.name, "renamed", text));
        let _ = control.state.remove_fabric(&name);
    }
    if fabric.saved != before {
        if let State::Runs(node) = &fabric.state
            && let Err(error) = node.set(&fabric.saved, control.clock.now())
        {
            tracing::warn!(%error, "the fabric does not follow its interface");
        }
        if let Err(error) = control.state.write_fabric(&fabric.saved) {
            tracing::error!(%error, "the next daemon will not know");
        }
    }
    control.fabrics.insert(fabric.saved.name.clone(), fabric);
}

/// Somebody deleted the interface, or moved it to another network namespace.
pub(crate) async fn link_gone(control: &mut Control, index: u32) {
    let found = control.fabrics.values().find(|fabric| fabric.saved.ifindex == index);
    let Some(name) = found.map(|fabric| fabric.saved.name.clone()) else { return };
    if let Some(fabric) = control.fabrics.remove(&name) {
        let text = "its interface was deleted, or moved to another network namespace, by somebody else";
        end(control, fabric, "gone", text).await;
    }
}

/// Somebody gave the interface another address.
pub(crate) async fn addresses_changed(control: &mut Control, index: u32) {
    let found = control.fabrics.iter().find(|(_, fabric)| fabric.saved.ifindex == index);
    let Some(name) = found.map(|(name, _)| name.clone()) else { return };
    if let Some(mut fabric) = control.fabrics.remove(&name) {
        read_addresses(control, &mut fabric).await;
        control.fabrics.insert(name, fabric);
    }
}

/// Reads the addresses of the interface.
async fn read_addresses(control: &Control, fabric: &mut Fabric) {
    match control.netlink.addresses(fabric.saved.ifindex).await {
        Ok(found) => {
            fabric.addresses = found.iter().map(|found| format!("{}/{}", found.ip, found.prefix)).collect();
        }
        Err(error) => tracing::debug!(%error, "addresses not read"),
    }
}
