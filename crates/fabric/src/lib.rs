//! The fabric: Ethernet frames between the nodes of a cluster over whatever the nodes share.
//!
//! A [`Transport`] carries frames between one queue of this node and the same queue of every other node. It knows peers
//! by number and frames by length; what the bytes mean, which epoch they belong to and who is alive is decided above it.
//! Whatever a peer writes is hostile: lengths are read once and checked, and what a frame's [`Bytes`] hold may change
//! until they are copied.

#[cfg(not(loom))]
mod address;
mod bytes;
#[cfg(not(loom))]
mod confine;
#[cfg(not(loom))]
mod directory;
#[cfg(not(loom))]
pub mod engine;
mod error;
#[cfg(not(loom))]
mod etcd;
mod keys;
pub mod limits;
#[cfg(not(loom))]
pub mod line;
#[cfg(not(loom))]
mod ofi;
#[cfg(not(loom))]
mod remote;
pub mod ring;
#[cfg(not(loom))]
mod shm;
#[cfg(not(loom))]
mod slice;
mod transport;
#[cfg(not(loom))]
mod udp;

#[cfg(not(loom))]
pub use address::{Address, Join, Memory};
pub use bytes::Bytes;
#[cfg(not(loom))]
pub use confine::confine;
#[cfg(not(loom))]
pub use directory::{Directory, Live, Look};
pub use error::{Error, Result};
#[cfg(not(loom))]
pub use etcd::{ETCD, Etcd, Order as EtcdOrder, Registrar, Report as EtcdReport};
pub use keys::{FrameKey, FrameKeys, KEYS_MAX};
#[cfg(not(loom))]
pub use ofi::Ofi;
#[cfg(not(loom))]
pub use remote::{Program, Remote, serve};
#[cfg(not(loom))]
pub use shm::Layout;
#[cfg(not(loom))]
pub use slice::shorten_slices;
pub use transport::{Armed, Loss, Refused, Shape, Stats, Taken, Transport};
#[cfg(not(loom))]
pub use udp::{Assembly, FastPath, Outcome, PIECE_HEAD, Piece, piece_head};
