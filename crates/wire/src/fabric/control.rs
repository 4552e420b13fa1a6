//! Control messages: what two nodes say to connect, to stay connected, and to part.

use super::{
    FABRIC_AUTH_FEATURE, FABRIC_AUTH_LEN, FAST_PATH_FEATURE, FAST_PATH_LEN, FabricRefusal, FastPath,
    HEADER_LEN, Header, Kind, MTU_MAX, MTU_MIN, NODES_MAX, NODES_MIN, STREAMS_MAX, header::parse_message,
};
use serde::{Deserialize, Serialize};

/// Bytes of a control message without the header.
pub const CONTROL_LEN: usize = 32;

/// The bit of an offer's features that says that the sender encrypts its frames, and takes no others.
pub const ENCRYPTION_FEATURE: u16 = 0x1000;

/// Bit of the features: the sender uses the link, and wants to know soon if it fails.
pub const IN_USE_FEATURE: u16 = 0x0800;

/// The bits of the features that say that something follows.
const WRITTEN_FEATURES: u16 = FAST_PATH_FEATURE | FABRIC_AUTH_FEATURE;

/// What a control message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ControlKind {
    /// Asks for an ACCEPT; proves nothing.
    Hello = 1,
    /// Answers a HELLO at once.
    Accept = 2,
    /// Says that the sender holds the link as up.
    Alive = 3,
    /// The sender stops; its epoch will never speak again.
    Bye = 4,
    /// Answers a HELLO that cannot be accepted.
    Refuse = 5,
}

impl ControlKind {
    /// The five in the order of their numbers.
    pub const ALL: [ControlKind; 5] =
        [ControlKind::Hello, ControlKind::Accept, ControlKind::Alive, ControlKind::Bye, ControlKind::Refuse];
}

/// Why a HELLO cannot be accepted. What the sender has instead stands in its [`Offer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum RefuseReason {
    /// The two nodes have different numbers of nodes.
    Nodes = 1,
    /// The two nodes have different MTUs.
    Mtu = 2,
    /// Another live node has that number.
    Taken = 3,
    /// The two nodes have different numbers of queues.
    Queues = 4,
    /// One of the two encrypts frames, and the other does not.
    Encryption = 5,
}

impl RefuseReason {
    /// The five in the order of their numbers.
    pub const ALL: [RefuseReason; 5] = [
        RefuseReason::Nodes,
        RefuseReason::Mtu,
        RefuseReason::Taken,
        RefuseReason::Queues,
        RefuseReason::Encryption,
    ];
}

/// What a node says of itself in every control message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Offer {
    /// Number of nodes of its fabric, [`NODES_MIN`] to [`NODES_MAX`].
    pub nodes: u16,
    /// MTU of its interface, [`MTU_MIN`] to [`MTU_MAX`].
    pub mtu: u32,
    /// Longest time between two of its ALIVEs, in microseconds; not 0.
    pub interval_us: u32,
    /// It is presumed failed after this many intervals without an ALIVE; not 0.
    pub multiplier: u8,
    /// Its queues, and so the streams that it sends and hears, 1 to [`STREAMS_MAX`].
    pub queues: u8,
    /// What its data path is capable of, a bit each; unknown bits say nothing. Without those that say that something follows.
    pub features: u16,
}

impl Offer {
    /// Whether the sender encrypts its frames.
    pub const fn encrypts(&self) -> bool {
        self.features & ENCRYPTION_FEATURE != 0
    }

    /// Whether the sender uses the link.
    pub const fn uses_link(&self) -> bool {
        self.features & IN_USE_FEATURE != 0
    }
}

/// A control message between two nodes of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Control {
    /// The type of the message, such as HELLO.
    pub kind: ControlKind,
    /// Why, in a REFUSE; none in others.
    pub reason: Option<RefuseReason>,
    /// The parameters of the sender.
    pub offer: Offer,
    /// A number nobody can know but who gets this message; not 0. Who sends it back has received it.
    pub cookie: u64,
    /// Which of the sender's cookies for the receiver this is: the last one and 1, wrapping. Stands in the header's sequence.
    pub number: u32,
    /// The cookie that came from the receiver's present epoch; 0 if none did, which only HELLO and BYE may say.
    pub echo: u64,
    /// How frames may travel to the sender past the daemons, if they may.
    pub fast_path: Option<FastPath>,
}

/// The longest control message that is written here, with its header.
const MESSAGE_MAX: usize = HEADER_LEN + CONTROL_LEN + FAST_PATH_LEN + FABRIC_AUTH_LEN;

/// A whole control message, header first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControlBytes {
    pub(super) bytes: [u8; MESSAGE_MAX],
    pub(super) len: usize,
}

impl std::ops::Deref for ControlBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Control {
    /// The rules that bytes must keep and so must values.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), FabricRefusal> {
        //= docs/fabric.md#3.3
        if self.reason.is_some() != (self.kind == ControlKind::Refuse) {
            return Err(FabricRefusal::Reason);
        }
        //= docs/fabric.md#3.4
        if !(NODES_MIN..=NODES_MAX).contains(&self.offer.nodes) {
            return Err(FabricRefusal::Nodes);
        }
        if !(MTU_MIN..=MTU_MAX).contains(&self.offer.mtu) {
            return Err(FabricRefusal::Mtu);
        }
        if !(1..=STREAMS_MAX).contains(&u16::from(self.offer.queues)) {
            return Err(FabricRefusal::Queues);
        }
        if self.offer.interval_us == 0 || self.offer.multiplier == 0 {
            return Err(FabricRefusal::Timing);
        }
        //= docs/fabric.md#3.5
        let answers = !matches!(self.kind, ControlKind::Hello | ControlKind::Bye);
        if self.cookie == 0 || (answers && self.echo == 0) {
            return Err(FabricRefusal::Cookie);
        }
        self.fast_path.map_or(Ok(()), FastPath::check)
    }

    fn emit(&self) -> [u8; CONTROL_LEN] {
        let mut bytes = [0; CONTROL_LEN];
        bytes[0] = self.kind as u8;
        bytes[1] = self.reason.map_or(0, |reason| reason as u8);
        bytes[2..4].copy_from_slice(&self.offer.nodes.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.offer.mtu.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.offer.interval_us.to_be_bytes());
        bytes[12] = self.offer.multiplier;
        bytes[13] = self.offer.queues;
        let fast_path = if self.fast_path.is_some() { FAST_PATH_FEATURE } else { 0 };
        let features = self.offer.features & !WRITTEN_FEATURES | fast_path;
        bytes[14..16].copy_from_slice(&features.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.echo.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8; CONTROL_LEN], rest: &[u8], number: u32) -> Result<Control, FabricRefusal> {
        let [kind, reason, n0, n1, m0, m1, m2, m3, second @ ..] = bytes;
        let [i0, i1, i2, i3, multiplier, queues, f0, f1, third @ ..] = second;
        let [c0, c1, c2, c3, c4, c5, c6, c7, e0, e1, e2, e3, e4, e5, e6, e7] = third;
        //= docs/fabric.md#3.2
        let kind = ControlKind::ALL.into_iter().find(|known| *known as u8 == *kind);
        let reason = match reason {
            0 => None,
            reason => {
                let known = RefuseReason::ALL.into_iter().find(|known| *known as u8 == *reason);
                Some(known.ok_or(FabricRefusal::Reason)?)
            }
        };
        let features = u16::from_be_bytes([*f0, *f1]);
        //= docs/fabric.md#7.1
        let fast_path = if features & FAST_PATH_FEATURE == 0 {
            None
        } else {
            let bytes = rest.first_chunk::<FAST_PATH_LEN>().ok_or(FabricRefusal::Truncated)?;
            Some(FastPath::parse(bytes)?)
        };
        let control = Control {
            kind: kind.ok_or(FabricRefusal::ControlType)?,
            reason,
            offer: Offer {
                nodes: u16::from_be_bytes([*n0, *n1]),
                mtu: u32::from_be_bytes([*m0, *m1, *m2, *m3]),
                interval_us: u32::from_be_bytes([*i0, *i1, *i2, *i3]),
                multiplier: *multiplier,
                queues: *queues,
                features: features & !WRITTEN_FEATURES,
            },
            cookie: u64::from_be_bytes([*c0, *c1, *c2, *c3, *c4, *c5, *c6, *c7]),
            number,
            echo: u64::from_be_bytes([*e0, *e1, *e2, *e3, *e4, *e5, *e6, *e7]),
            fast_path,
        };
        control.check()?;
        Ok(control)
    }
}

/// Who sends a control message to whom.
fn header(sender: (u16, u64), receiver: (u16, u64), number: u32, length: usize) -> Header {
    //= docs/fabric.md#3.1
    Header {
        kind: Kind::Control,
        sender: sender.0,
        receiver: receiver.0,
        stream: 0,
        sender_epoch: sender.1,
        receiver_epoch: receiver.1,
        sequence: number,
        length: length as u32,
    }
}

/// A whole control message, header first, from a node to a node, each with its epoch.
///
/// # Errors
/// The rule that it would break.
pub fn emit_control(
    sender: (u16, u64),
    receiver: (u16, u64),
    control: &Control,
) -> Result<ControlBytes, FabricRefusal> {
    let length = CONTROL_LEN + control.fast_path.map_or(0, |_| FAST_PATH_LEN);
    let header = header(sender, receiver, control.number, length);
    header.check()?;
    control.check()?;
    //= docs/fabric.md#3.7
    if control.kind != ControlKind::Hello && header.receiver_epoch == 0 {
        return Err(FabricRefusal::Epoch);
    }
    let mut bytes = [0; MESSAGE_MAX];
    bytes[..HEADER_LEN].copy_from_slice(&header.emit());
    bytes[HEADER_LEN..HEADER_LEN + CONTROL_LEN].copy_from_slice(&control.emit());
    //= docs/fabric.md#7.1
    if let Some(fast_path) = control.fast_path {
        bytes[HEADER_LEN + CONTROL_LEN..HEADER_LEN + length].copy_from_slice(&fast_path.emit());
    }
    Ok(ControlBytes { bytes, len: HEADER_LEN + length })
}

/// Reads a whole control message, header first.
///
/// # Errors
/// Why it was refused; see `docs/fabric.md`, sections 2 and 3.
pub fn parse_control(bytes: &[u8]) -> Result<(Header, Control), FabricRefusal> {
    let (header, rest) = parse_message(bytes)?;
    if header.kind != Kind::Control {
        return Err(FabricRefusal::OtherKind);
    }
    //= docs/fabric.md#3.6
    let (body, appended) = rest.split_first_chunk::<CONTROL_LEN>().ok_or(FabricRefusal::Truncated)?;
    let control = Control::parse(body, appended, header.sequence)?;
    //= docs/fabric.md#3.7
    if control.kind != ControlKind::Hello && header.receiver_epoch == 0 {
        return Err(FabricRefusal::Epoch);
    }
    Ok((header, control))
}
