//! This node's own address, where the user has given none: that from which etcd is reached.

use linkbraid_fabric::limits::ETCD_PORT;
use std::net::{SocketAddr, UdpSocket};

/// The address towards a server. Nothing is sent.
///
/// # Errors
/// There is no way to it, or nobody knows its name: in words.
pub fn towards(server: &str) -> Result<SocketAddr, String> {
    let local = |any: &str| {
        let socket = UdpSocket::bind(any)?;
        socket.connect(server)?;
        socket.local_addr()
    };
    let found = local("0.0.0.0:0").or_else(|error| local("[::]:0").map_err(|_| error));
    let found = found.map_err(|error| format!("no address of its own towards {server}: {error}"))?;
    Ok(SocketAddr::new(found.ip(), ETCD_PORT))
}

/// The address of a node in an earlier directory.
pub fn of(directory: &str, node: u16) -> Option<SocketAddr> {
    let lines = directory.lines().filter_map(|line| line.split_once(' '));
    lines.filter(|(number, _)| number.parse() == Ok(node)).find_map(|(_, address)| address.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_address_is_found_towards_a_server_or_in_an_earlier_directory() {
        assert_eq!(towards("127.0.0.1:2379"), Ok(([127, 0, 0, 1], ETCD_PORT).into()));
        assert!(towards("no.such.host.invalid:2379").unwrap_err().starts_with("no address of its own"));
        let directory = "# etcd a:1\n0 198.18.0.1:7000\n12 198.18.0.2:7001\n";
        assert_eq!(of(directory, 12), "198.18.0.2:7001".parse().ok());
        assert_eq!(of(directory, 1), None);
    }
}
