//! The directory file: who is where, one line `NODE ADDRESS:PORT` a node. Empty lines and what follows `#` are ignored.

mod live;

pub use live::{Live, Look};

use crate::{Error, Join, Result, limits::DIRECTORY_BYTES_MAX};
use nix::libc;
use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{self, Read},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// The addresses of nodes for their first queues. The next queues have the next ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// This node's own.
    pub own: SocketAddr,
    /// By number, this node's among them; none of those that have no line.
    all: Vec<Option<SocketAddr>>,
}

impl Directory {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, it has no line for this node, or a line of it makes no sense; which one.
    pub fn read(path: &Path, join: &Join) -> Result<Self> {
        let file = open_file(path).map_err(|error| cannot_read(path, words(&error)))?;
        Self::read_file(file, path, join)
    }

    fn read_file(file: File, path: &Path, join: &Join) -> Result<Self> {
        let failed = |cause: String| cannot_read(path, cause);
        let mut text = String::new();
        file.take(DIRECTORY_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(|error| failed(words(&error)))?;
        if text.len() as u64 > DIRECTORY_BYTES_MAX {
            return Err(failed(format!("it is longer than {DIRECTORY_BYTES_MAX} bytes")));
        }
        Self::parse(&text, join).map_err(|cause| failed(cause).hint(example(path)))
    }

    /// The address of a node; none if it has no line, or if there is no such node.
    #[must_use]
    pub fn address(&self, node: u16) -> Option<SocketAddr> {
        self.all.get(usize::from(node)).copied().flatten()
    }

    /// The addresses of all nodes, for a transport that has to know them when it starts.
    ///
    /// # Errors
    /// A node has no line.
    pub fn complete(self, path: &Path) -> Result<Vec<SocketAddr>> {
        let all = (0..).zip(self.all).map(|(node, address)| {
            let missing = || cannot_read(path, no_line(node)).hint(example(path));
            address.ok_or_else(missing)
        });
        all.collect()
    }

    /// Reads the text of one.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str, join: &Join) -> Result<Self, String> {
        let mut found: HashMap<u16, SocketAddr> = HashMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            let (node, address) = entry(text).map_err(|cause| format!("line {line}: {cause}"))?;
            if node >= join.nodes {
                let last = join.nodes - 1;
                let range = format!("0 to {last} of {} nodes", join.nodes);
                return Err(format!("line {line}: node {node} is outside the range {range}"));
            }
            if address.port().checked_add(join.queues - 1).is_none() {
                return Err(format!(
                    "line {line}: {} queues do not fit after port {}",
                    join.queues,
                    address.port()
                ));
            }
            if found.insert(node, address).is_some() {
                return Err(format!("line {line}: node {node} occurs twice"));
            }
        }
        let all = (0..join.nodes).map(|node| found.get(&node).copied()).collect();
        Self::check(all, join)
    }

    /// Checks that every node can be reached, and that no two have the same address.
    fn check(all: Vec<Option<SocketAddr>>, join: &Join) -> Result<Self, String> {
        let own = all.get(usize::from(join.node)).copied().flatten();
        let own = own.ok_or_else(|| no_line(join.node))?;
        let known = || (0u16..).zip(&all).filter_map(|(node, address)| Some((address.as_ref()?, node)));
        for (address, node) in known() {
            if address.is_ipv4() != own.is_ipv4() {
                return Err(format!(
                    "node {node} has {address}, node {} has {own}: IPv4 and IPv6",
                    join.node
                ));
            }
        }
        let mut sorted: Vec<_> = known().collect();
        sorted.sort();
        for pair in sorted.windows(2) {
            let ((one, first), (other, second)) = (pair[0], pair[1]);
            if one.ip() == other.ip() && other.port() - one.port() < join.queues {
                return Err(format!(
                    "nodes {first} and {second} use the same ports of {}; each needs {}, one for each queue",
                    one.ip(),
                    join.queues
                ));
            }
        }
        Ok(Self { own, all })
    }
}

/// Opens it without waiting for anybody, should it be no file.
fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

fn cannot_read(path: &Path, cause: String) -> Error {
    Error::new(path.display().to_string(), "cannot read the directory", cause)
}

fn no_line(node: u16) -> String {
    format!("there is no line for node {node}")
}

fn example(path: &Path) -> String {
    format!("printf '0 192.0.2.1:7000\\n1 192.0.2.2:7000\\n' > {}", path.display())
}

fn entry(text: &str) -> Result<(u16, SocketAddr), String> {
    let wrong = || format!("'{text}' is not NODE ADDRESS:PORT");
    let mut words = text.split_whitespace();
    let (Some(node), Some(address), None) = (words.next(), words.next(), words.next()) else {
        return Err(wrong());
    };
    let address: SocketAddr = address.parse().map_err(|_| wrong())?;
    if address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast() {
        return Err(format!("'{address}' is not the address and port of one node"));
    }
    Ok((node.parse().map_err(|_| wrong())?, address))
}

fn words(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => crate::error::words(nix::errno::Errno::from_raw(number)),
        None => error.to_string().to_lowercase(),
    }
}
