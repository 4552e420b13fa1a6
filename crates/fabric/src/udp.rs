//! `udp:FILE`: nodes on whatever network, each frame in one datagram or cut into several.
//!
//! `FILE` says who is where ([`crate::directory`]), and may change; only datagrams from those addresses are taken. Nothing longer than the
//! path to a peer takes is sent; a path that shrinks is noticed when the kernel refuses. There is no flow control
//! beyond the own socket: a frame may be lost, but none comes twice, and none comes in part. Frames may be encrypted, each
//! datagram by itself ([`cipher`]).

mod assembly;
mod cipher;
mod fast_path;
mod outbox;
mod piece;
mod port;
mod socket;
#[cfg(test)]
mod tests;

pub use assembly::{Assembly, Outcome};
pub use piece::{HEAD as PIECE_HEAD, Piece, head as piece_head};

pub use fast_path::FastPath;

use crate::{Error, Etcd, Join, Live, Result, Transport};
use std::{path::PathBuf, sync::Arc};

/// The parts of an address that begins with `udp:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    source: Source,
    /// Longest IP packet, where the path takes less than the kernel can know.
    mtu: Option<usize>,
    vxlan: Vxlan,
}

/// Where it is written who is where.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    /// In a file that is written as etcd says.
    Etcd(Etcd),
}

/// Whether the kernel's VXLAN is to carry frames, and on which UDP port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vxlan {
    /// Where it can, on one of the fabric's usual ports.
    Usual,
    /// On this port.
    Port(u16),
    Off,
}

/// Shortest and longest IP packet that can be asked for.
const MTU: std::ops::RangeInclusive<usize> = 576..=65_535;

impl Place {
    /// Reads `FILE[,mtu=N][,vxlan=PORT|off]`.
    pub(crate) fn parse(address: &str, rest: &str) -> Result<Self> {
        let refuse = |cause: String| {
            Err(Error::new(address, "cannot use this transport", cause)
                .hint("--transport udp:/etc/linkbraid/NAME"))
        };
        let mut parts = rest.split(',');
        let first = parts.next().unwrap_or_default();
        let source = match first.strip_prefix("etcd://") {
            Some(text) => match Etcd::parse(text) {
                Ok(etcd) => Source::Etcd(etcd),
                Err(cause) => return refuse(cause),
            },
            None => Source::File(PathBuf::from(first)),
        };
        if let Source::File(file) = &source
            && !file.is_absolute()
        {
            return refuse(format!("'{}' is not an absolute path", file.display()));
        }
        let mut place = Self { source, mtu: None, vxlan: Vxlan::Usual };
        for option in parts {
            if let Source::Etcd(etcd) = &mut place.source
                && let Some((name, value)) = option.split_once('=')
                && let Some(taken) = etcd.option(name, value)
            {
                match taken {
                    Ok(()) => continue,
                    Err(cause) => return refuse(cause),
                }
            }
            match option.split_once('=') {
                Some(("mtu", text)) => match text.parse().ok().filter(|mtu| MTU.contains(mtu)) {
                    Some(mtu) => place.mtu = Some(mtu),
                    None => return refuse(format!("mtu '{text}' is outside the allowed range 576 to 65535")),
                },
                Some(("vxlan", "off")) => place.vxlan = Vxlan::Off,
                Some(("vxlan", text)) => match text.parse().ok().filter(|port| *port != 0) {
                    Some(port) => place.vxlan = Vxlan::Port(port),
                    None => {
                        let range = "is outside the allowed range 1 to 65535, and not 'off'";
                        return refuse(format!("vxlan '{text}' {range}"));
                    }
                },
                _ => {
                    let allowed = match place.source {
                        Source::File(_) => "allowed are mtu=BYTES, vxlan=PORT and vxlan=off",
                        Source::Etcd(_) => {
                            "allowed are own=ADDRESS:PORT, login=FILE, cache=FILE, mtu=BYTES, vxlan=PORT and vxlan=off"
                        }
                    };
                    let cause = format!("no such option '{option}'; {allowed}");
                    return refuse(cause);
                }
            }
        }
        Ok(place)
    }

    /// How nodes find each other by etcd, if they do.
    pub(crate) fn etcd(&self) -> Option<&Etcd> {
        match &self.source {
            Source::Etcd(etcd) => Some(etcd),
            Source::File(_) => None,
        }
    }

    /// Why frames cannot be encrypted, if they cannot.
    pub(crate) fn refuses_encryption(&self) -> Option<String> {
        match self.vxlan {
            Vxlan::Port(port) => {
                Some(format!("vxlan={port} asks for VXLAN, which carries frames as they are"))
            }
            Vxlan::Usual | Vxlan::Off => None,
        }
    }

    /// Opens every queue.
    pub(crate) fn open(&self, address: &str, join: &Join) -> Result<Vec<Box<dyn Transport>>> {
        let file = match &self.source {
            Source::File(file) => file.clone(),
            Source::Etcd(etcd) => etcd.file(join),
        };
        let directory = Live::open(&file, join)?;
        if let Vxlan::Port(port) = self.vxlan {
            FastPath::new(address, &directory, join, port, self.mtu)?;
        }
        (0..join.queues).map(|queue| port::open(&directory, address, join, queue, self.mtu)).collect()
    }

    /// What the kernel needs to carry frames itself, if it is to; on one of the `usual` ports where none was given.
    pub(crate) fn fast_path(
        &self,
        address: &str,
        directory: &Arc<Live>,
        join: &Join,
        usual: &[u16],
    ) -> Result<Option<FastPath>> {
        match self.vxlan {
            Vxlan::Off => Ok(None),
            Vxlan::Port(port) => FastPath::new(address, directory, join, port, self.mtu).map(Some),
            Vxlan::Usual => FastPath::usual(address, directory, join, usual, self.mtu).map(Some),
        }
    }
}
