//! Why bytes are not a message of the fabric.

use crate::refusal::refusals;

refusals! {
    FabricRefusal;
    /// Shorter than [`super::HEADER_LEN`], or than [`super::CONTROL_LEN`] after it.
    Truncated = "truncated", "the message ends inside a fixed field";
    /// The version is not 1.
    Version = "version", "the version of the message is not 1";
    /// The kind is unknown.
    Kind = "kind", "the kind of the message is neither DATA nor CONTROL";
    /// A node number that no fabric can have.
    Node = "node", "a node number is above 511";
    /// A stream that no sender can have.
    Stream = "stream", "the number of the stream is above 63";
    /// The sender's epoch is 0, or the receiver's where it must be known.
    Epoch = "epoch", "an epoch is 0 where it must not be";
    /// The length is not one that this kind can have.
    Length = "length", "the length is not one that a message of this kind can have";
    /// The length is not that of the bytes that came.
    LengthMismatch = "length_mismatch", "the length is not that of the bytes that came";
    /// A control message where data is looked for, or the other way round.
    OtherKind = "other_kind", "the message is of the other kind";
    /// A type of control message that is none.
    ControlType = "control_type", "the type of the control message is unknown";
    /// REFUSE without a reason, another type with one, or an unknown one.
    Reason = "reason", "the reason is unknown, missing, or stands where none belongs";
    /// A number of nodes that no fabric can have.
    Nodes = "nodes", "the number of nodes is not 2 to 512";
    /// An MTU that no fabric can have.
    Mtu = "mtu", "the MTU is not 68 to 65521";
    /// A number of queues that no node can have.
    Queues = "queues", "the number of queues is not 1 to 64";
    /// An interval or a multiplier of 0.
    Timing = "timing", "the interval or the multiplier is 0";
    /// No cookie, or nothing echoed where something must be.
    Cookie = "cookie", "the cookie is 0, or the echo where it must not be";
    /// A port or a part of the tag of the fast path is 0.
    FastPath = "short_cut", "the port or a part of the tag of the fast path is 0";
}
