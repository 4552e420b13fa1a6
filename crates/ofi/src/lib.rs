//! The transport `ofi:PROVIDER,FILE`: nodes on whatever fabric libfabric has a provider for, with reliable messages.
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
#[cfg(test)]
mod children;
mod devices;
mod endpoint;
mod library;
mod limits;
mod message;
mod offer;
mod pool;
mod port;
mod talk;
#[cfg(test)]
mod tests;
mod waits;

use endpoint::{Endpoint, Failure};
use library::Library;
use linkbraid_fabric::{Address, Directory, Error, Join, Ofi, Result, Shape, Transport, limits::FRAME_MAX};
use message::MESSAGE_MAX;
use offer::Offer;
use std::net::SocketAddr;

/// Variables of the environment that libfabric reads when it is loaded, and what they should be unless somebody has set them.
///
/// A peer may have 8 messages on their way to a queue ([`talk`]), and where peers have more together than there are buffers, the
/// transport below holds them back (seen with TCP). So the 1,024 buffers of 17 KiB that `ofi_rxm` makes for each queue, touching
/// them all, only take memory and time.
///
/// All peers share these buffers, with `verbs` as with TCP. Otherwise `ofi_rxm` posts each to the connection of one peer, and when
/// that is closed, receives into it again (seen with 1.17; ofiwg/libfabric issue 11828): the program ends by SIGSEGV.
///
/// `ofi_rxm` makes a completion queue for so many peers with 128 messages sent and 64 received each. Its usual 256 peers are more
/// than soft RoCE has room for (32,767 completions). 64 suffice for all 511 peers with what they may have under way.
pub const ENVIRONMENT: [(&str, &str); 3] =
    [("FI_OFI_RXM_MSG_RX_SIZE", "64"), ("FI_OFI_RXM_USE_SRX", "1"), ("FI_UNIVERSE_SIZE", "64")];

/// As [`open`], for a program that does nothing else: it ends when a device is taken away that libfabric has opened meanwhile.
///
/// # Errors
/// As [`open`]; or the devices cannot be watched.
pub fn open_watched(address: &Address, join: &Join) -> Result<Vec<Box<dyn Transport>>> {
    let opened = open(address, join)?;
    devices::end_without()?;
    Ok(opened)
}

/// An endpoint with the peers that it knows: node, address as the provider writes it, and what it calls it.
struct Opening {
    endpoint: Endpoint,
    peers: Vec<(u16, Vec<u8>, Option<u64>)>,
    by_name: bool,
    waits: bool,
}

/// Joins the fabric at this address as one of its nodes, as [`Address::open`] does for others.
///
/// # Errors
/// It is no `ofi:` address; or as [`Address::open`].
pub fn open(address: &Address, join: &Join) -> Result<Vec<Box<dyn Transport>>> {
    let name = address.to_string();
    join.check(&name)?;
    let place = address.ofi().ok_or_else(|| Error::new(&name, "cannot join", "it is none of libfabric's"))?;
    let library = Library::get(&name)?;
    let directory = Directory::read(&place.file, join)?.complete(&place.file)?;
    (0..join.queues).map(|queue| open_queue(place, library, &name, join, &directory, queue)).collect()
}

fn open_queue(
    place: &Ofi,
    library: &'static Library,
    name: &str,
    join: &Join,
    directory: &[SocketAddr],
    queue: u16,
) -> Result<Box<dyn Transport>> {
    let at = |node: u16| {
        let first = directory[usize::from(node)];
        SocketAddr::new(first.ip(), first.port() + queue)
    };
    let own = at(join.node);
    let what = format!("cannot open {own}");
    let sizes = port::sizes(usize::from(join.nodes) - 1);
    let offer = Offer::find(library, name, &place.provider, own, sizes.long + sizes.short)?;
    if offer.message_max() < MESSAGE_MAX {
        let cause = format!("the provider's messages have {} bytes at most", offer.message_max());
        return Err(Error::new(name, what, format!("{cause}; {MESSAGE_MAX} are needed")));
    }
    let failed = |failure: Failure| {
        let cause = format!("{}: {}", failure.what, library.words(failure.error));
        Error::new(name, &what, cause).hint("fi_info -t FI_EP_RDM")
    };
    let nodes: Vec<_> = (0..join.nodes).filter(|node| *node != join.node).collect();
    let waits = waits::work(library, &place.provider, own.ip());
    let mut endpoint = Endpoint::open(&offer, sizes, nodes.len(), waits).map_err(failed)?;
    let mut peers = Vec::with_capacity(nodes.len());
    for node in nodes {
        let peer = offer
            .address_of(at(node))
            .map_err(|cause| Error::new(name, format!("cannot reach node {node} at {}", at(node)), cause))?;
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
