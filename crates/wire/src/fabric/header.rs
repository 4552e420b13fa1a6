//! What stands before every message between two nodes.

use super::{CONTROL_LEN, CONTROL_MAX, DATA_MAX, DATA_MIN, FabricRefusal, NODES_MAX, STREAMS_MAX, VERSION};

/// Bytes of the header; the virtio header and the frame behind it are as aligned as the message is.
pub const HEADER_LEN: usize = 32;

/// The kind of message behind the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A virtio header and an Ethernet frame.
    Data = 1,
    /// A control message of the session.
    Control = 2,
}

/// The header. Big-endian on the wire:
///
/// ```text
///     0                   1                   2                   3
///     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
///    +---------------+---------------+-------------------------------+
///  0 | version = 1   | kind          | sender                        |
///    +---------------+---------------+-------------------------------+
///  4 | receiver                      | stream                        |
///    +-------------------------------+-------------------------------+
///  8 | epoch of the sender                                           |
///    |                                                               |
///    +---------------------------------------------------------------+
/// 16 | epoch of the receiver, as the sender knows it                 |
///    |                                                               |
///    +---------------------------------------------------------------+
/// 24 | sequence                                                      |
///    +---------------------------------------------------------------+
/// 28 | length of what follows                                        |
///    +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Header {
    /// The kind of message that follows.
    pub kind: Kind,
    /// Number of the node that sends.
    pub sender: u16,
    /// Number of the node that is meant.
    pub receiver: u16,
    /// Which of the sender's queues sent it; sequences are per stream. 0 in control messages, where
    /// receivers ignore it.
    pub stream: u16,
    /// Another one each time the sender starts; not 0.
    pub sender_epoch: u64,
    /// The receiver's epoch as the sender knows it; 0 only in a HELLO of who does not know it.
    pub receiver_epoch: u64,
    /// Grows by one with each DATA message of a stream to this receiver, and wraps. In control messages the number of the
    /// cookie.
    pub sequence: u32,
    /// Bytes that follow the header.
    pub length: u32,
}

impl Header {
    /// The bytes, every one of them.
    pub const fn emit(&self) -> [u8; HEADER_LEN] {
        let [s0, s1] = self.sender.to_be_bytes();
        let [r0, r1] = self.receiver.to_be_bytes();
        let [t0, t1] = self.stream.to_be_bytes();
        let [a0, a1, a2, a3, a4, a5, a6, a7] = self.sender_epoch.to_be_bytes();
        let [b0, b1, b2, b3, b4, b5, b6, b7] = self.receiver_epoch.to_be_bytes();
        let [q0, q1, q2, q3] = self.sequence.to_be_bytes();
        let [l0, l1, l2, l3] = self.length.to_be_bytes();
        //= docs/fabric.md#2.1
        [
            VERSION,
            self.kind as u8,
            s0,
            s1,
            r0,
            r1,
            t0,
            t1, //
            a0,
            a1,
            a2,
            a3,
            a4,
            a5,
            a6,
            a7, //
            b0,
            b1,
            b2,
            b3,
            b4,
            b5,
            b6,
            b7, //
            q0,
            q1,
            q2,
            q3,
            l0,
            l1,
            l2,
            l3,
        ]
    }

    /// Reads a header alone; [`parse_message`] reads one with what follows.
    ///
    /// # Errors
    /// Why it was refused; see `docs/fabric.md`, section 2.
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Header, FabricRefusal> {
        let [version, kind, s0, s1, r0, r1, t0, t1, rest @ ..] = bytes;
        let [a0, a1, a2, a3, a4, a5, a6, a7, rest @ ..] = rest;
        let [b0, b1, b2, b3, b4, b5, b6, b7, q0, q1, q2, q3, l0, l1, l2, l3] = rest;
        //= docs/fabric.md#2.2
        if *version != VERSION {
            return Err(FabricRefusal::Version);
        }
        let header = Header {
            kind: match kind {
                1 => Kind::Data,
                2 => Kind::Control,
                _ => return Err(FabricRefusal::Kind),
            },
            sender: u16::from_be_bytes([*s0, *s1]),
            receiver: u16::from_be_bytes([*r0, *r1]),
            stream: u16::from_be_bytes([*t0, *t1]),
            sender_epoch: u64::from_be_bytes([*a0, *a1, *a2, *a3, *a4, *a5, *a6, *a7]),
            receiver_epoch: u64::from_be_bytes([*b0, *b1, *b2, *b3, *b4, *b5, *b6, *b7]),
            sequence: u32::from_be_bytes([*q0, *q1, *q2, *q3]),
            length: u32::from_be_bytes([*l0, *l1, *l2, *l3]),
        };
        header.check()?;
        Ok(header)
    }

    /// The rules that bytes must keep and so must values.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), FabricRefusal> {
        //= docs/fabric.md#2.3
        if self.sender >= NODES_MAX || self.receiver >= NODES_MAX {
            return Err(FabricRefusal::Node);
        }
        //= docs/fabric.md#2.4
        if self.sender_epoch == 0 || (self.receiver_epoch == 0 && self.kind == Kind::Data) {
            return Err(FabricRefusal::Epoch);
        }
        //= docs/fabric.md#2.7
        if self.kind == Kind::Data && self.stream >= STREAMS_MAX {
            return Err(FabricRefusal::Stream);
        }
        //= docs/fabric.md#2.5
        let allowed = match self.kind {
            Kind::Data => DATA_MIN..=DATA_MAX,
            Kind::Control => CONTROL_LEN..=CONTROL_MAX,
        };
        // A `u32` fits into `usize` wherever there is a TAP.
        if !allowed.contains(&(self.length as usize)) {
            return Err(FabricRefusal::Length);
        }
        Ok(())
    }
}

/// Reads one whole message: the header and what follows it.
///
/// # Errors
/// Why it was refused; see `docs/fabric.md`, section 2.
pub fn parse_message(bytes: &[u8]) -> Result<(Header, &[u8]), FabricRefusal> {
    let (head, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(FabricRefusal::Truncated)?;
    let header = Header::parse(head)?;
    //= docs/fabric.md#2.6
    if header.length as usize != rest.len() {
        return Err(FabricRefusal::LengthMismatch);
    }
    Ok((header, rest))
}
