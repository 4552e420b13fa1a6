//! A client's connection whose messages have a limit. The library would take 100 MB of each client.

use linkbraid_api::LINE_BYTES_MAX;
use zlink::{
    connection::socket::{ReadHalf, ReadResult, Socket},
    tokio::unix::Stream,
};

/// A connection to a client.
#[derive(Debug)]
pub(super) struct Bounded(pub Stream);

/// What comes from a client.
#[derive(Debug)]
pub(super) struct BoundedRead {
    read: <Stream as Socket>::ReadHalf,
    /// Bytes of the message that is not whole yet.
    begun: usize,
}

impl Socket for Bounded {
    type ReadHalf = BoundedRead;
    type WriteHalf = <Stream as Socket>::WriteHalf;

    fn split(self) -> (Self::ReadHalf, Self::WriteHalf) {
        let (read, write) = self.0.split();
        (BoundedRead { read, begun: 0 }, write)
    }
}

impl ReadHalf for BoundedRead {
    async fn read(&mut self, buffer: &mut [u8]) -> zlink::Result<ReadResult> {
        let read = self.read.read(buffer).await?;
        let bytes = buffer.get(..read.bytes_read()).unwrap_or_default();
        self.begun = match bytes.iter().rposition(|byte| *byte == 0) {
            Some(end) => bytes.len() - end - 1,
            None => self.begun + bytes.len(),
        };
        if self.begun > LINE_BYTES_MAX {
            return Err(zlink::Error::BufferOverflow);
        }
        Ok(read)
    }
}
