//! The connection: requests that the kernel acknowledges or refuses, and dumps.

use futures_util::StreamExt;
use nix::{errno::Errno, libc};
use rtnetlink::{
    packet_core::{ErrorMessage, NetlinkHeader, NetlinkMessage, NetlinkPayload},
    proto::ConnectionHandle,
    sys::{AsyncSocket, SocketAddr, protocols::NETLINK_ROUTE},
};
use tokio::runtime::Runtime;

use crate::{
    error::{Error, Kind, Result},
    rtnl::{Raw, attributes, text},
};

/// Type of the attribute that holds the kernel's own words (`NLMSGERR_ATTR_MSG`, linux/netlink.h).
const ERROR_TEXT: u16 = 1;
/// The header of the refused request comes before those words.
const ECHOED_HEADER: usize = 16;
/// A dump that a change interrupts is asked for again, at most this often.
const DUMP_TRIES_MAX: usize = 16;

pub(crate) const REQUEST: u16 = libc::NLM_F_REQUEST as u16;
pub(crate) const ACK: u16 = libc::NLM_F_ACK as u16;
pub(crate) const CREATE: u16 = libc::NLM_F_CREATE as u16;
pub(crate) const EXCL: u16 = libc::NLM_F_EXCL as u16;
pub(crate) const APPEND: u16 = libc::NLM_F_APPEND as u16;
pub(crate) const REPLACE: u16 = libc::NLM_F_REPLACE as u16;
const DUMP: u16 = libc::NLM_F_DUMP as u16;
const DUMP_INTERRUPTED: u16 = libc::NLM_F_DUMP_INTR as u16;

/// A refusal before it is known what it is about.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub kind: Kind,
    pub said: Option<String>,
}

impl Refusal {
    fn connection() -> Self {
        Self { kind: Kind::Connection, said: None }
    }

    fn from_kernel(message: &ErrorMessage) -> Self {
        let kind = Kind::of(Errno::from_raw(message.raw_code().saturating_abs()));
        let said = attributes(&message.header, ECHOED_HEADER)
            .find(|(kind, _)| *kind == ERROR_TEXT)
            .map(|(_, words)| text(words));
        Self { kind, said }
    }

    /// The error about `object`.
    pub fn about(self, object: impl Into<String>, what: impl Into<String>) -> Error {
        Error { object: object.into(), what: what.into(), kind: self.kind, said: self.said }
    }
}

/// A connection to the kernel's network configuration, for the network namespace of the thread that made it.
///
/// Clones share the connection. All methods may be called at the same time; the kernel serialises them.
#[derive(Debug, Clone)]
pub struct Netlink {
    handle: ConnectionHandle<Raw>,
}

impl Netlink {
    /// Opens the connection and spawns its task on the current tokio runtime; the task ends with the last clone.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new() -> Result<Self> {
        Self::of(NETLINK_ROUTE)
    }

    /// The same to another part of the kernel.
    pub(crate) fn of(protocol: isize) -> Result<Self> {
        let open = |error: &std::io::Error| Error::io("netlink", "cannot open the connection", error);
        let (mut connection, handle, _) =
            rtnetlink::proto::new_connection::<Raw>(protocol).map_err(|error| open(&error))?;
        let socket = connection.socket_mut().socket_mut();
        // Refusals in words, behind the header of the request and not behind all of it.
        socket.set_ext_ack(true).map_err(|error| open(&error))?;
        socket.set_cap_ack(true).map_err(|error| open(&error))?;
        tokio::spawn(connection);
        Ok(Self { handle })
    }

    /// A connection for a thread that waits for each answer, with the runtime that it needs for that.
    pub(crate) fn blocking() -> std::io::Result<(Runtime, Self)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let netlink = runtime.block_on(async { Self::new() }).map_err(std::io::Error::other)?;
        Ok((runtime, netlink))
    }

    /// Sends one request; what the kernel sends back before its acknowledgement.
    pub(crate) async fn ask(&self, kind: u16, flags: u16, payload: Vec<u8>) -> Result<Vec<Raw>, Refusal> {
        self.exchange(kind, REQUEST | ACK | flags, payload, usize::MAX).await.map(|(answers, _)| answers)
    }

    /// All objects that a dump request gives, consistent: a dump interrupted by a change is asked for again.
    pub(crate) async fn dump(&self, kind: u16, payload: Vec<u8>) -> Result<Vec<Raw>, Refusal> {
        self.dump_some(kind, payload, usize::MAX).await
    }

    /// The same, without what comes after the first `most` objects: for lists that others can make long.
    pub(crate) async fn dump_some(
        &self,
        kind: u16,
        payload: Vec<u8>,
        most: usize,
    ) -> Result<Vec<Raw>, Refusal> {
        for _ in 0..DUMP_TRIES_MAX {
            let (answers, whole) = self.exchange(kind, REQUEST | DUMP, payload.clone(), most).await?;
            if whole {
                return Ok(answers);
            }
        }
        Err(Refusal { kind: Kind::Busy, said: Some("the configuration keeps changing".into()) })
    }

    async fn exchange(
        &self,
        kind: u16,
        flags: u16,
        payload: Vec<u8>,
        most: usize,
    ) -> Result<(Vec<Raw>, bool), Refusal> {
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(Raw { kind, payload }));
        message.finalize();
        let mut replies =
            self.handle.request(message, SocketAddr::new(0, 0)).map_err(|_| Refusal::connection())?;
        let mut answers = Vec::new();
        let mut whole = true;
        while let Some(reply) = replies.next().await {
            whole &= reply.header.flags & DUMP_INTERRUPTED == 0;
            match reply.payload {
                NetlinkPayload::InnerMessage(raw) if answers.len() < most => answers.push(raw),
                NetlinkPayload::Error(error) if error.code.is_some() => {
                    return Err(Refusal::from_kernel(&error));
                }
                NetlinkPayload::Overrun(_) => whole = false,
                _ => {}
            }
        }
        Ok((answers, whole))
    }
}
