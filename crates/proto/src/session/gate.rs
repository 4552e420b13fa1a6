//! What the data path needs of a link that is up: whom frames are for, and which frames are taken.

use linkbraid_wire::fabric::{Header, Kind};

macro_rules! reasons {
    ($($variant:ident = $name:literal, $text:literal;)+) => {
        /// Why a frame is not for the link it came over. Names never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum NotAdmitted {
            $(#[doc = $text] $variant,)+
        }

        impl NotAdmitted {
            /// Every reason, in a fixed order.
            pub const ALL: &'static [NotAdmitted] = &[$(NotAdmitted::$variant),+];

            /// Its name in counters: lower case with underscores.
            pub const fn name(self) -> &'static str {
                match self { $(NotAdmitted::$variant => $name),+ }
            }

            /// One sentence for people.
            pub const fn description(self) -> &'static str {
                match self { $(NotAdmitted::$variant => $text),+ }
            }
        }
    };
}

reasons! {
    NotData = "not_data", "a control message where a frame is looked for";
    Receiver = "other_receiver", "the frame is for another node";
    Sender = "other_sender", "the frame is of another node than its queue";
    ReceiverEpoch = "receiver_epoch", "the frame is for an earlier start of this node";
    SenderEpoch = "sender_epoch", "the frame is of another start of the peer than the one that is up";
}

/// A link that is up, as the data path sees it: both ends with their epochs. There is none while a link is not up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gate {
    /// This node.
    pub local: u16,
    /// Its epoch.
    pub local_epoch: u64,
    /// The peer.
    pub peer: u16,
    /// The epoch of it that is up.
    pub peer_epoch: u64,
}

impl Gate {
    /// The header of a frame to the peer: of that stream, sequence, and length of virtio header and frame in bytes.
    pub const fn header(&self, stream: u16, sequence: u32, length: u32) -> Header {
        //= docs/fabric.md#6.1
        Header {
            kind: Kind::Data,
            sender: self.local,
            receiver: self.peer,
            stream,
            sender_epoch: self.local_epoch,
            receiver_epoch: self.peer_epoch,
            sequence,
            length,
        }
    }

    /// Whether a frame that came over the peer's queue is to be delivered. What comes twice is for a [`super::Window`] to see.
    ///
    /// # Errors
    /// Why not; it is to be dropped and counted.
    pub fn admit(&self, header: &Header) -> Result<(), NotAdmitted> {
        if header.kind != Kind::Data {
            return Err(NotAdmitted::NotData);
        }
        //= docs/fabric.md#6.3
        if header.receiver != self.local {
            return Err(NotAdmitted::Receiver);
        }
        if header.sender != self.peer {
            return Err(NotAdmitted::Sender);
        }
        //= docs/fabric.md#6.2
        if header.receiver_epoch != self.local_epoch {
            return Err(NotAdmitted::ReceiverEpoch);
        }
        if header.sender_epoch != self.peer_epoch {
            return Err(NotAdmitted::SenderEpoch);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const HERE: Gate = Gate { local: 3, local_epoch: 30, peer: 5, peer_epoch: 50 };
    const THERE: Gate = Gate { local: 5, local_epoch: 50, peer: 3, peer_epoch: 30 };

    //= docs/fabric.md#6.1 type=test
    //= docs/fabric.md#6.2 type=test
    //= docs/fabric.md#6.3 type=test
    #[test]
    fn only_what_this_very_pair_of_starts_sends_is_taken() {
        let good = THERE.header(2, 9, 100);
        assert_eq!((good.stream, good.sequence, good.length), (2, 9, 100));
        assert_eq!(HERE.admit(&good), Ok(()));
        for (bad, reason) in [
            (Header { kind: Kind::Control, ..good }, NotAdmitted::NotData),
            (Header { receiver: 4, ..good }, NotAdmitted::Receiver),
            (Header { sender: 4, ..good }, NotAdmitted::Sender),
            (Header { receiver_epoch: 29, ..good }, NotAdmitted::ReceiverEpoch),
            (Header { receiver_epoch: 31, ..good }, NotAdmitted::ReceiverEpoch),
            (Header { sender_epoch: 49, ..good }, NotAdmitted::SenderEpoch),
            (Header { sender_epoch: 51, ..good }, NotAdmitted::SenderEpoch),
        ] {
            assert_eq!(HERE.admit(&bad), Err(reason));
        }
        let names: BTreeSet<&str> = NotAdmitted::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), NotAdmitted::ALL.len());
    }
}
