//! The interface that cuts buffers of UDP datagrams before they are spread (`cut.bpf.h`).

use crate::io::error::About as _;
use linkbraid_api::{Error, LinkName};
use linkbraid_dataplane::DataPath;
use linkbraid_link::{LinkInfo, Netlink};

/// Whether a bond has one.
#[derive(Default, PartialEq, Eq)]
pub(super) enum Cutter {
    #[default]
    NotYet,
    /// Its index.
    Made(u32),
    /// Refused, or deleted by somebody: this daemon does not try again.
    Without,
}

/// Whether that interface works as it should. (The kernel announces no change of the number of segments.)
const fn cuts(link: &LinkInfo) -> bool {
    link.up && link.gso_max_segs == 1
}

/// What having none means.
const WITHOUT: &str = "QUIC that hands over several packets at once may be slow";

/// The one that an earlier daemon made above the bond `lower`, where that is as it should be, or a new one.
async fn find(netlink: &Netlink, lower: u32) -> linkbraid_link::Result<u32> {
    let links = netlink.links().await?;
    match links.iter().find(|link| linkbraid_link::cuts_for(link, lower)) {
        Some(link) if cuts(link) => return Ok(link.index),
        Some(link) => netlink.delete_link(link.index).await?,
        None => {}
    }
    netlink.create_cutter(lower).await
}

impl Cutter {
    /// Makes it above the bond `name` that has several members and spreads some traffic, and removes it when they are no longer
    /// several; a change of policy that is taken back leaves it as it was. Where that fails all goes on without, so it is told
    /// once and not tried again.
    pub(super) async fn want(
        &mut self,
        (has_several, spreads): (bool, bool),
        netlink: &Netlink,
        path: &DataPath,
        (name, lower): (&LinkName, u32),
    ) {
        let changed = match *self {
            Self::NotYet if has_several && spreads => Self::make(netlink, path, (name, lower)).await,
            Self::Made(index) if !has_several => {
                let removed = netlink.delete_link(index).await;
                removed.map(|()| Self::NotYet).about(name, "cannot remove the interface that cuts")
            }
            _ => return,
        };
        *self = changed.unwrap_or_else(|error| {
            tracing::warn!(%error, "{WITHOUT}");
            Self::Without
        });
    }

    async fn make(
        netlink: &Netlink,
        path: &DataPath,
        (name, lower): (&LinkName, u32),
    ) -> Result<Self, Error> {
        let index = find(netlink, lower).await.about(name, "cannot make the interface that cuts")?;
        path.set_cutter(index).about(name, "cannot write the data path's tables")?;
        Ok(Self::Made(index))
    }

    /// Something about an interface changed. Whether it is this one and has to be put right. One that somebody deleted is not made
    /// again: it may have stood in the way of something else.
    pub(super) async fn follow(&mut self, netlink: &Netlink, index: u32) -> bool {
        if *self != Self::Made(index) {
            return false;
        }
        // An interface is also said to be down before it is said to be gone.
        match netlink.link_by_index(index).await {
            Ok(link) if cuts(&link) => return false,
            Ok(_) => *self = Self::NotYet,
            Err(error) => {
                tracing::warn!(%error, "somebody deleted the interface that cuts; {WITHOUT}");
                *self = Self::Without;
            }
        }
        *self == Self::NotYet
    }
}
