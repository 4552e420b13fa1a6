//! Where the daemon serves its metrics.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// The longest path of a socket in bytes: `sun_path` of `struct sockaddr_un` less its final zero.
const SOCKET_PATH_MAX: usize = 107;

/// Where the daemon serves its metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsAddress {
    /// A TCP port of an address.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl MetricsAddress {
    /// Reads what a user writes: `ADDRESS:PORT`, or the whole path of a socket.
    ///
    /// # Errors
    /// The cause, with what is allowed.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return match text.len() {
                0..=SOCKET_PATH_MAX => Ok(Self::Unix(Path::new(text).to_owned())),
                long => Err(format!(
                    "'{text}' has {long} bytes; allowed are {SOCKET_PATH_MAX} for the path of a socket"
                )),
            };
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() == 0 => {
                Err(format!("'{text}' has the port 0; allowed are 1 to 65535"))
            }
            Ok(address) => Ok(Self::Tcp(address)),
            Err(_) => Err(format!(
                "'{text}' is no address with a port; allowed are ADDRESS:PORT, such as 127.0.0.1:9919 or [::1]:9919, and the \
                 whole path of a socket, such as /run/linkbraid/metrics.sock"
            )),
        }
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MetricsAddress;

    #[test]
    fn an_address_is_a_port_or_a_path() {
        for text in ["127.0.0.1:9919", "[::1]:9919", "0.0.0.0:80", "/run/linkbraid/metrics.sock"] {
            assert_eq!(MetricsAddress::read(text).unwrap().to_string(), text);
        }
        let long = format!("/{}", "x".repeat(107));
        for (text, cause) in [
            ("localhost:9919", "no address with a port"),
            ("127.0.0.1", "no address with a port"),
            (":9919", "no address with a port"),
            ("metrics.sock", "the whole path of a socket"),
            ("", "no address with a port"),
            ("127.0.0.1:0", "the port 0; allowed are 1 to 65535"),
            (long.as_str(), "has 108 bytes; allowed are 107"),
        ] {
            let error = MetricsAddress::read(text).unwrap_err();
            assert!(error.contains(cause), "{error}");
        }
    }
}
