//! Whole Ethernet frames that hold one ARP+ message.

use crate::{ETHERTYPE_ARP_PLUS, MacAddr, Message, Parsed, Refusal};

/// Bytes of an Ethernet header: destination, source, EtherType.
pub const FRAME_HEADER_LEN: usize = 14;

/// Shortest frame on the wire, without its checksum; shorter ones are padded with zeros.
pub const FRAME_LEN_MIN: usize = 60;

/// An Ethernet frame with an ARP+ message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The destination.
    pub dst: MacAddr,
    /// The source.
    pub src: MacAddr,
    /// The message and what was skipped.
    pub parsed: Parsed,
}

/// Reads a whole untagged frame, Ethernet header first, without checksum.
///
/// # Errors
/// Why it was refused.
pub fn parse_frame(bytes: &[u8]) -> Result<Frame, Refusal> {
    let (dst, src, payload) = split_frame(bytes)?;
    Ok(Frame { dst, src, parsed: Message::parse(payload)? })
}

/// Destination, source and what follows the Ethernet header.
pub(crate) fn split_frame(bytes: &[u8]) -> Result<(MacAddr, MacAddr, &[u8]), Refusal> {
    let (dst, rest) = bytes.split_first_chunk().ok_or(Refusal::Truncated)?;
    let (src, rest) = rest.split_first_chunk().ok_or(Refusal::Truncated)?;
    let (ethertype, payload) = rest.split_first_chunk().ok_or(Refusal::Truncated)?;
    //= docs/arp-plus.md#1.1
    if u16::from_be_bytes(*ethertype) != ETHERTYPE_ARP_PLUS {
        return Err(Refusal::NotArpPlus);
    }
    let (dst, src) = (MacAddr(*dst), MacAddr(*src));
    //= docs/arp-plus.md#1.2
    if !src.is_host() {
        return Err(Refusal::SourceNotHost);
    }
    Ok((dst, src, payload))
}

/// Writes a whole frame, padded to [`FRAME_LEN_MIN`].
///
/// # Errors
/// The rule of [`Message::check`] that the message breaks.
pub fn emit_frame(dst: MacAddr, src: MacAddr, message: &Message) -> Result<Vec<u8>, Refusal> {
    let mut frame = begin_frame(dst, src, 256);
    message.emit(&mut frame)?;
    pad(&mut frame);
    Ok(frame)
}

/// An ARP+ frame that has its Ethernet header and room for `capacity` bytes in all.
pub(crate) fn begin_frame(dst: MacAddr, src: MacAddr, capacity: usize) -> Vec<u8> {
    begin_frame_of(ETHERTYPE_ARP_PLUS, dst, src, capacity)
}

/// The same for another EtherType.
pub(crate) fn begin_frame_of(ethertype: u16, dst: MacAddr, src: MacAddr, capacity: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(capacity);
    frame.extend(dst.0);
    frame.extend(src.0);
    frame.extend(ethertype.to_be_bytes());
    frame
}

/// Zeros up to [`FRAME_LEN_MIN`].
pub(crate) fn pad(frame: &mut Vec<u8>) {
    //= docs/arp-plus.md#1.3
    pad_to(frame, FRAME_LEN_MIN);
}

/// Zeros up to so many bytes: the first one is END, and what follows it says nothing.
pub fn pad_to(frame: &mut Vec<u8>, bytes: usize) {
    if frame.len() < bytes {
        frame.resize(bytes, 0);
    }
}
