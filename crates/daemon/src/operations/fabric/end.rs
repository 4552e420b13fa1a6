//! The end of a fabric.

use crate::world::{
    World,
    fabric::{Fabric, State, Ticket, saved::SavedFabric, sweep},
    history::Change,
};

/// Ends a fabric for good; its interface goes, if it is still there. What of that is still under way.
pub(super) async fn end(
    world: &mut World,
    mut fabric: Fabric,
    reason: &'static str,
    text: &str,
) -> Option<Ticket> {
    let name = fabric.saved.name.clone();
    fabric.history.add(Change::fabric(&name, reason, text));
    let ticket = match fabric.state {
        State::Runs(node) => {
            node.release_interface();
            node.unregister();
            Some(world.jobs.end(&fabric.saved, Ok(()), None, move || node.stop()))
        }
        // The kernel keeps its interface.
        State::Joins { .. } | State::Waits { .. } => {
            if let Err(error) = world.netlink.delete_link(fabric.saved.ifindex).await {
                tracing::debug!(%error, "the interface is gone already");
            }
            // A killed daemon may have left its VXLAN device.
            sweep(&world.netlink, None).await;
            match fabric.state {
                State::Joins { ticket, .. } => {
                    world.jobs.cancel(ticket);
                    Some(ticket)
                }
                _ => None,
            }
        }
    };
    if let Err(error) = world.state.remove::<SavedFabric>(&name) {
        tracing::error!(%error, "the next daemon will try to bring it back");
    }
    ticket
}
