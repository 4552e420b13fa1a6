//! What is sent to a client. The library serializes a message anew for each 256 bytes by which its buffer grows: a list of 600
//! hosts with 16 members each, 0.6 MB, held the daemon's loop for up to a second.

use serde::Serialize;
use std::os::fd::AsFd as _;
use tokio::{io::AsyncWriteExt as _, net::UnixStream};

/// A client's connection, for writing.
#[derive(Debug)]
pub(super) struct Writing(UnixStream);

impl Writing {
    /// The same connection once more: the library keeps the one it reads from.
    ///
    /// # Errors
    /// The process has as many files open as it may.
    pub(super) fn beside(stream: &UnixStream) -> std::io::Result<Self> {
        UnixStream::from_std(stream.as_fd().try_clone_to_owned()?.into()).map(Self)
    }

    /// Sends one message of Varlink: its JSON, and a zero byte.
    ///
    /// # Errors
    /// The client has gone.
    pub(super) async fn send(&mut self, message: &impl Serialize) -> zlink::Result<()> {
        let mut bytes = serde_json::to_vec(message)?;
        bytes.push(0);
        Ok(self.0.write_all(&bytes).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::Writing;
    use serde::{Serialize, Serializer};
    use std::cell::Cell;
    use tokio::{io::AsyncReadExt as _, net::UnixStream};

    /// Says how often it was serialized.
    struct Long<'a>(&'a Cell<u32>);

    impl Serialize for Long<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.set(self.0.get() + 1);
            serializer.serialize_str(&"x".repeat(1 << 20))
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_long_message_is_serialized_once() {
        let (here, mut client) = UnixStream::pair().expect("makes a pair");
        let (times, mut heard) = (Cell::new(0), Vec::new());
        let send = async {
            Writing::beside(&here).expect("opens").send(&Long(&times)).await.expect("sends");
            drop(here);
        };
        let ((), read) = tokio::join!(send, client.read_to_end(&mut heard));
        // A quote at each end, and the zero byte.
        assert_eq!((read.expect("reads"), times.get()), ((1 << 20) + 3, 1));
        assert_eq!(heard.last(), Some(&0));
    }
}
