//! What a node says of its end of the fast path: a way beside the queues, past both daemons.

use super::FabricRefusal;

/// Bytes of it behind a control message.
pub const FAST_PATH_LEN: usize = 8;

/// The bit of an offer's features that says that a [`FastPath`] follows. Offers here never have it: it is written and taken off
/// with what follows.
pub const FAST_PATH_FEATURE: u16 = 0x4000;

/// Set: frames with this tag have come lately.
const HEARD: u8 = 1;

/// What frames to a node must carry to be taken: 16 bits of a group, 24 of a VXLAN network, neither 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    group: u16,
    network: u32,
}

impl Tag {
    /// Of these two numbers; none if one is 0 or the network has more than 24 bits.
    #[must_use]
    pub const fn new(group: u16, network: u32) -> Option<Self> {
        if group == 0 || network == 0 || network >> 24 != 0 { None } else { Some(Self { group, network }) }
    }

    /// The one that 64 random bits make.
    #[must_use]
    pub const fn of_random(bits: u64) -> Self {
        // Of the values that are not 0, each as likely as the others, but for one part in 2^24.
        let group = (bits % 0xffff) as u16 + 1;
        let network = ((bits >> 32) % 0x00ff_ffff) as u32 + 1;
        Self { group, network }
    }

    /// The group of the VXLAN group policy, not 0.
    #[must_use]
    pub const fn group(self) -> u16 {
        self.group
    }

    /// The number of the VXLAN network, not 0, 24 bits.
    #[must_use]
    pub const fn network(self) -> u32 {
        self.network
    }
}

/// One node's end of the fast path, as it announces it to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FastPath {
    /// The UDP port of its VXLAN, not 0.
    pub port: u16,
    /// What the peer's frames must carry.
    pub tag: Tag,
    /// Frames that carry it have come lately.
    pub heard: bool,
}

impl FastPath {
    pub(super) fn emit(self) -> [u8; FAST_PATH_LEN] {
        let [p, q] = self.port.to_be_bytes();
        let [g, h] = self.tag.group.to_be_bytes();
        let [_, a, b, c] = self.tag.network.to_be_bytes();
        [p, q, if self.heard { HEARD } else { 0 }, g, h, a, b, c]
    }

    //= docs/fabric.md#7.2
    pub(super) fn parse(bytes: &[u8; FAST_PATH_LEN]) -> Result<Self, FabricRefusal> {
        let [p, q, flags, g, h, a, b, c] = *bytes;
        let tag = Tag::new(u16::from_be_bytes([g, h]), u32::from_be_bytes([0, a, b, c]));
        let read = Self {
            port: u16::from_be_bytes([p, q]),
            tag: tag.ok_or(FabricRefusal::FastPath)?,
            heard: flags & HEARD != 0,
        };
        read.check()?;
        Ok(read)
    }

    pub(super) fn check(self) -> Result<(), FabricRefusal> {
        if self.port == 0 { Err(FabricRefusal::FastPath) } else { Ok(()) }
    }
}
