//! The directory file: who is where, one line `NODE ADDRESS:PORT` a node. Empty lines and what follows `#` are ignored.

use crate::{Error, Join, Result, limits::DIRECTORY_BYTES_MAX};
use std::{collections::HashMap, fs::File, io::Read, net::SocketAddr, path::Path};

/// The address of every node for its first queue, by number. The next queues have the next ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory(pub Vec<SocketAddr>);

impl Directory {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or a line of it makes no sense; which one.
    pub fn read(path: &Path, join: &Join) -> Result<Self> {
        let object = path.display().to_string();
        let failed = |cause: String| Error::new(&object, "cannot read the directory", cause);
        let mut text = String::new();
        let file = File::open(path).map_err(|error| failed(words(&error)))?;
        file.take(DIRECTORY_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(|error| failed(words(&error)))?;
        if text.len() as u64 > DIRECTORY_BYTES_MAX {
            return Err(failed(format!("it is longer than {DIRECTORY_BYTES_MAX} bytes")));
        }
        Self::parse(&text, join).map_err(|cause| {
            failed(cause).hint(format!("printf '0 192.0.2.1:7000\\n1 192.0.2.2:7000\\n' > {object}"))
        })
    }

    /// Reads the text of one. What is wrong otherwise.
    pub(crate) fn parse(text: &str, join: &Join) -> Result<Self, String> {
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
        let of = |node| found.get(&node).copied().ok_or_else(|| format!("there is no line for node {node}"));
        let all = (0..join.nodes).map(of).collect::<Result<Vec<_>, _>>()?;
        Self::check(all, join)
    }

    /// Checks that every node can be reached, and that no two have the same address.
    fn check(all: Vec<SocketAddr>, join: &Join) -> Result<Self, String> {
        let own = all[usize::from(join.node)];
        for (node, address) in all.iter().enumerate() {
            if address.is_ipv4() != own.is_ipv4() {
                return Err(format!(
                    "node {node} has {address}, node {} has {own}: IPv4 and IPv6",
                    join.node
                ));
            }
        }
        let mut sorted: Vec<_> = all.iter().zip(0u16..).collect();
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
        Ok(Self(all))
    }
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

fn words(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => crate::error::words(nix::errno::Errno::from_raw(number)),
        None => error.to_string().to_lowercase(),
    }
}
