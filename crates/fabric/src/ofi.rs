//! `ofi:PROVIDER,FILE`: nodes on whatever fabric libfabric has a provider for, with reliable messages.
//!
//! libfabric is found when it is first needed ([`library`]); its structures are declared in [`abi`]. `PROVIDER` is a
//! name that `fi_info` prints, such as `tcp`, `net` or `verbs;ofi_rxm`; any but `shm` that has reliable messages in order
//! will do. `FILE` says who is where, as for `udp:`; providers that have addresses of their own look theirs up by it.
//!
//! A message ([`message`]) holds as many frames as were sent before a flush. How many a peer has room for it says itself
//! ([`talk`]), so a slow one fills its own queue and nobody else's memory, and what a provider cannot take now waits. A
//! peer that restarts has a new life, and so have both sides after an error; nothing of an earlier one is taken.
//!
//! Where a provider's wait object sleeps and wakes ([`waits`]), so does this; elsewhere it naps. What wants registered
//! memory gets it; that, and providers whose addresses are not those of IP, have not been tried on hardware.
//!
//! Whoever can reach an endpoint can claim to be any node: the network that it is on must be trusted, as it must be with
//! every such fabric.

mod abi;
mod endpoint;
mod library;
mod message;
mod offer;
mod pool;
mod port;
mod talk;
#[cfg(test)]
mod tests;
mod waits;

use crate::{Error, Join, Result, Shape, Transport, directory::Directory, limits::FRAME_MAX};
use endpoint::{Endpoint, Failure};
use library::Library;
use message::MESSAGE_MAX;
use offer::Offer;
use std::{net::SocketAddr, path::PathBuf};

/// A provider that is refused. Its queues lie in shared memory behind a lock that a writer spins on, so a process that is
/// killed while it holds one makes the next send of every other never return (libfabric 1.17, `docs/fabric-transports.md`).
const TAKES_ALONG: &str = "shm";

/// Variables of the environment that libfabric reads when it is loaded, and what they should be unless somebody has set them.
///
/// A peer may have 8 messages on their way to a queue ([`talk`]), and where peers have more together than there are buffers, the
/// transport below holds them back (seen with TCP). So the 1,024 buffers of 17 KiB that `ofi_rxm` makes for each queue, touching
/// them all, only take memory and time.
pub const ENVIRONMENT: [(&str, &str); 1] = [("FI_OFI_RXM_MSG_RX_SIZE", "64")];

/// What stands behind `ofi:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    provider: String,
    file: PathBuf,
}

/// An endpoint with the peers that it knows: node, address as the provider writes it, and what it calls it.
struct Opening {
    endpoint: Endpoint,
    peers: Vec<(u16, Vec<u8>, Option<u64>)>,
    by_name: bool,
    waits: bool,
}

impl Place {
    /// Reads `PROVIDER,FILE`.
    pub(crate) fn parse(address: &str, rest: &str) -> Result<Self> {
        let refuse = |cause: String| {
            Err(Error::new(address, "cannot use this transport", cause)
                .hint("--transport ofi:tcp,/etc/linkbraid/NAME"))
        };
        let Some((provider, file)) = rest.split_once(',') else {
            return refuse("it is not ofi:PROVIDER,FILE".into());
        };
        if provider.is_empty() {
            return refuse("it names no provider".into());
        }
        if provider == TAKES_ALONG {
            let cause =
                format!("libfabric's own '{TAKES_ALONG}' lets a process that dies take the others with it");
            return Err(
                Error::new(address, "cannot use this transport", cause).hint("--transport shm:/dev/shm/NAME")
            );
        }
        let file = PathBuf::from(file);
        if !file.is_absolute() {
            return refuse(format!("'{}' is not an absolute path", file.display()));
        }
        Ok(Self { provider: provider.to_owned(), file })
    }

    /// Opens every queue.
    pub(crate) fn open(&self, address: &str, join: &Join) -> Result<Vec<Box<dyn Transport>>> {
        let library = Library::get(address)?;
        let directory = Directory::read(&self.file, join)?;
        let open = |queue| self.open_queue(library, address, join, &directory, queue);
        (0..join.queues).map(open).collect()
    }

    fn open_queue(
        &self,
        library: &'static Library,
        name: &str,
        join: &Join,
        directory: &Directory,
        queue: u16,
    ) -> Result<Box<dyn Transport>> {
        let at = |node: u16| {
            let first = directory.0[usize::from(node)];
            SocketAddr::new(first.ip(), first.port() + queue)
        };
        let own = at(join.node);
        let what = format!("cannot open {own}");
        let sizes = port::sizes(usize::from(join.nodes) - 1);
        let offer = Offer::find(library, name, &self.provider, own, sizes.long + sizes.short)?;
        if offer.message_max() < MESSAGE_MAX {
            let cause = format!("the provider's messages have {} bytes at most", offer.message_max());
            return Err(Error::new(name, what, format!("{cause}; {MESSAGE_MAX} are needed")));
        }
        let failed = |failure: Failure| {
            let cause = format!("{}: {}", failure.what, library.words(failure.error));
            Error::new(name, &what, cause).hint("fi_info -t FI_EP_RDM")
        };
        let nodes: Vec<_> = (0..join.nodes).filter(|node| *node != join.node).collect();
        let waits = waits::work(library, &self.provider, own.ip());
        let mut endpoint = Endpoint::open(&offer, sizes, nodes.len(), waits).map_err(failed)?;
        let mut peers = Vec::with_capacity(nodes.len());
        for node in nodes {
            let peer = offer.address_of(at(node)).map_err(|cause| {
                Error::new(name, format!("cannot reach node {node} at {}", at(node)), cause)
            })?;
            // A provider may know an address only once somebody has it.
            let known = endpoint.insert(&peer).ok();
            peers.push((node, peer, known));
        }
        let life = getrandom::u32()
            .map_err(|error| Error::new(name, "cannot draw a random number", error.to_string()))?;
        let shape = Shape { node: join.node, nodes: join.nodes, queue, frame_max: FRAME_MAX, lossy: false };
        let opening = Opening { endpoint, peers, by_name: offer.by_name(), waits };
        Ok(Box::new(port::Port::new(opening, shape, life)))
    }
}
