//! Where a fabric is: an address such as `shm:/run/linkbraid/fabric0` says which transport and where.

use crate::{
    Error, Etcd, Live, Result, Transport,
    limits::{NODES_MAX, QUEUES_MAX},
    ofi::Ofi,
    shm,
    udp::{self, FastPath},
};
use std::{str::FromStr, sync::Arc};

/// Which place in a fabric to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Join {
    /// The number of this node, from 0.
    pub node: u16,
    /// How many nodes there are, 2 to [`NODES_MAX`]; the same on all of them.
    pub nodes: u16,
    /// How many queues every node has, 1 to [`QUEUES_MAX`]; the same on all of them.
    pub queues: u16,
}

/// The address of a fabric: `TRANSPORT:PLACE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    text: String,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Shm(shm::Place),
    Udp(udp::Place),
    Ofi(Ofi),
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (transport, place) = text.split_once(':').unwrap_or((text, ""));
        let place = match transport {
            "shm" => Place::Shm(shm::Place::parse(text, place)?),
            "udp" => Place::Udp(udp::Place::parse(text, place)?),
            "ofi" => Place::Ofi(Ofi::parse(text, place)?),
            other => {
                let cause = format!("no such transport '{other}'; allowed are shm, udp and ofi");
                let error = Error::new(text, "cannot use this transport", cause);
                return Err(error.hint("--transport shm:/run/linkbraid/NAME"));
            }
        };
        Ok(Self { text: text.to_owned(), place })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Bytes of shared memory that a fabric takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// For each node: `queues x (nodes - 1) x (ring + 256)`, the second addend rounded up to a page for all together.
    pub node: u64,
    /// For all nodes, with the header.
    pub total: u64,
}

impl Address {
    /// The shared memory that it takes, or will take; none where none is shared, or where a number is out of range.
    #[must_use]
    pub fn memory(&self, join: &Join) -> Option<Memory> {
        let Place::Shm(place) = &self.place else { return None };
        let layout = place.layout(join)?;
        Some(Memory { node: layout.node_bytes(), total: layout.total_bytes() })
    }

    /// What stands behind `ofi:`, if this is such an address.
    #[must_use]
    pub fn ofi(&self) -> Option<&Ofi> {
        match &self.place {
            Place::Ofi(ofi) => Some(ofi),
            Place::Shm(_) | Place::Udp(_) => None,
        }
    }

    /// How nodes find each other by etcd, if they do.
    #[must_use]
    pub fn etcd(&self) -> Option<&Etcd> {
        match &self.place {
            Place::Udp(place) => place.etcd(),
            Place::Shm(_) | Place::Ofi(_) => None,
        }
    }

    /// Why frames cannot be encrypted over it, if they cannot.
    #[must_use]
    pub fn refuses_encryption(&self) -> Option<String> {
        match &self.place {
            Place::Udp(place) => place.refuses_encryption(),
            Place::Shm(_) => {
                Some("shm: cannot encrypt frames; its nodes share the memory of one machine".into())
            }
            Place::Ofi(_) => Some("ofi: cannot encrypt frames; udp: can".into()),
        }
    }

    /// What the kernel needs to carry frames past the daemon, where the address does not forbid that: on the port that it gives, or
    /// on one of the `usual` ones. `directory` is that of its queues ([`Transport::directory`]).
    ///
    /// # Errors
    /// As [`Address::open`].
    pub fn fast_path(&self, directory: &Arc<Live>, join: &Join, usual: &[u16]) -> Result<Option<FastPath>> {
        match &self.place {
            Place::Udp(place) => place.fast_path(&self.text, directory, join, usual),
            Place::Shm(_) | Place::Ofi(_) => Ok(None),
        }
    }

    /// Joins the fabric as one of its nodes and opens the node's queues, first to last. The node's place is given back
    /// when the last of them is dropped.
    ///
    /// # Errors
    /// A number is out of range, the place is taken, what is there does not fit, or the system refuses; each in words.
    pub fn open(&self, join: &Join) -> Result<Vec<Box<dyn Transport>>> {
        join.check(&self.text)?;
        match &self.place {
            Place::Shm(place) => place.open(&self.text, join),
            Place::Udp(place) => place.open(&self.text, join),
            Place::Ofi(_) => Err(Error::new(
                &self.text,
                "cannot join",
                "a program of its own, linkbraid-ofi, opens libfabric",
            )),
        }
    }
}

impl Join {
    /// Refuses numbers that no fabric has; `address` names it.
    ///
    /// # Errors
    /// Which number is outside of its range.
    pub fn check(&self, address: &str) -> Result<()> {
        let refuse = |cause: String| Err(Error::new(address, "cannot join", cause));
        let Self { node, nodes, queues } = *self;
        if !(2..=NODES_MAX).contains(&nodes) {
            return refuse(format!("node count {nodes} is outside the allowed range 2 to {NODES_MAX}"));
        }
        if node >= nodes {
            return refuse(format!("node {node} is outside the range 0 to {} of {nodes} nodes", nodes - 1));
        }
        if !(1..=QUEUES_MAX).contains(&queues) {
            return refuse(format!("queue count {queues} is outside the allowed range 1 to {QUEUES_MAX}"));
        }
        Ok(())
    }
}
