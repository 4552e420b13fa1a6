//! PROBE and PROBE-REPLY: what a member says to a member of a peer to prove that the lane between them carries frames.
//!
//! A frame of 81 bytes (no IP address) to 97 (IPv6): the published part with one hardware address, then VERSION, HOST
//! and PROBE. A PROBE may be padded ([`crate::pad_to`]) to find out what length arrives. Probes are read and written apart
//! from the messages that make the table; [`is_probe`] distinguishes them.

use crate::{
    Auth, FRAME_HEADER_LEN, HostId, MESSAGE_LEN_MAX, MacAddr, Refusal, VERSION, auth::is_arp_plus, emit::put,
    frame, message::is_host_address, parse, tlv,
};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

#[cfg(test)]
mod tests;

/// Feature bit: the sender reads PROBEs of any length.
pub const FEATURE_LONG_PROBES: u32 = 4;

/// Room for the longest probe without authentication.
const FRAME_LEN_USUAL: usize = 128;

/// Whether a probe is a request or an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum ProbeKind {
    /// A request: the receiver answers with PROBE-REPLY.
    Probe = 5,
    /// Answers one PROBE at once, over the same lane.
    Reply = 6,
}

impl ProbeKind {
    /// The kind of that number, if there is one.
    pub const fn from_number(number: u8) -> Option<ProbeKind> {
        match number {
            5 => Some(ProbeKind::Probe),
            6 => Some(ProbeKind::Reply),
            _ => None,
        }
    }
}

/// What the sender holds of the lane, as it receives on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum View {
    /// Nothing yet: it has just started, or just met the lane.
    Unjudged = 0,
    /// It was proven and is not any more: what the receiver sends does not arrive, or is not answered.
    Lost = 1,
    /// Proofs arrive, not enough yet.
    Init = 2,
    /// The sender has proof that the lane works.
    Up = 3,
}

impl View {
    /// The view of that number, if there is one.
    pub const fn from_number(number: u8) -> Option<View> {
        match number {
            0 => Some(View::Unjudged),
            1 => Some(View::Lost),
            2 => Some(View::Init),
            3 => Some(View::Up),
            _ => None,
        }
    }
}

/// A PROBE or PROBE-REPLY message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Whether it is a request or an answer.
    pub kind: ProbeKind,
    /// The sender's IP address; none while it has none.
    pub address: Option<IpAddr>,
    /// Version of the sender's extension, at least 1.
    pub version: u8,
    /// The id of the sending host.
    pub host: HostId,
    /// Grows each time the sender starts.
    pub epoch: u64,
    /// A number nobody can know but who gets this frame; not 0. Who sends it back has received it.
    pub nonce: u64,
    /// The last nonce that came from the receiver over this lane, 0 if none; in a reply, that of the PROBE answered.
    pub echo: u64,
    /// Grows with every probe and reply of the sender on this lane; compared as serial numbers (RFC 1982).
    pub number: u32,
    /// What the sender holds of the lane.
    pub view: View,
    /// The shortest time between two PROBEs of the lane that the sender wants to answer, in microseconds; not 0.
    pub interval_us: u32,
    /// The sender holds the lane for lost after this many intervals without proof; not 0.
    pub multiplier: u8,
    /// Authentication, which [`crate::sealed`] looks at.
    pub auth: Option<Auth>,
}

/// An Ethernet frame with a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeFrame {
    /// The member of the receiver.
    pub dst: MacAddr,
    /// The MAC of the sending member.
    pub src: MacAddr,
    /// The message.
    pub probe: Probe,
    /// TLVs that say nothing here and were skipped.
    pub unknown_tlvs: u16,
}

/// Whether a frame is for the inspector: of ARP+, and PROBE or PROBE-REPLY by its type. It may still be a bad one.
pub fn is_probe(bytes: &[u8]) -> bool {
    is_arp_plus(bytes)
        && bytes.get(FRAME_HEADER_LEN + 3).is_some_and(|kind| ProbeKind::from_number(*kind).is_some())
}

impl Probe {
    /// The rules that bytes must keep and so must values.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.address.is_some_and(|address| !is_host_address(address)) {
            return Err(Refusal::AddressNotHost);
        }
        if self.version == 0 {
            return Err(Refusal::VersionZero);
        }
        //= docs/arp-plus.md#10.3
        let answers_nothing = self.kind == ProbeKind::Reply && self.echo == 0;
        if self.nonce == 0 || self.interval_us == 0 || self.multiplier == 0 || answers_nothing {
            return Err(Refusal::TlvValue);
        }
        if self.auth.as_ref().is_some_and(|auth| auth.tag.len() > crate::AUTH_TAG_MAX) {
            return Err(Refusal::TlvLength);
        }
        Ok(())
    }

    fn value(&self) -> [u8; tlv::PROBE_LEN] {
        let mut value = [0; tlv::PROBE_LEN];
        value[..8].copy_from_slice(&self.nonce.to_be_bytes());
        value[8..16].copy_from_slice(&self.echo.to_be_bytes());
        value[16..20].copy_from_slice(&self.number.to_be_bytes());
        value[20] = self.view as u8;
        value[21..25].copy_from_slice(&self.interval_us.to_be_bytes());
        value[25] = self.multiplier;
        value
    }
}

/// What is to be read of what follows the Ethernet header: all of it. A PROBE may be of any length, because the rest is padding.
pub(crate) fn readable(whole: &[u8]) -> Result<&[u8], Refusal> {
    //= docs/arp-plus.md#10.4
    let is_request = whole.get(3) == Some(&(ProbeKind::Probe as u8));
    match whole.get(..MESSAGE_LEN_MAX) {
        Some(head) if head.len() < whole.len() && is_request => Ok(head),
        Some(head) if head.len() < whole.len() => Err(Refusal::TooLong),
        _ => Ok(whole),
    }
}

/// Reads a whole untagged frame with a probe, Ethernet header first, without checksum.
///
/// # Errors
/// Why it was refused; see `docs/arp-plus.md`, section 10.
pub fn parse_probe(bytes: &[u8]) -> Result<ProbeFrame, Refusal> {
    let (dst, src, payload) = frame::split_frame(bytes)?;
    let payload = readable(payload)?;
    //= docs/arp-plus.md#10.1
    if !dst.is_host() {
        return Err(Refusal::ProbeNotUnicast);
    }
    let mut bytes = parse::Bytes(payload);
    let (kind, address, hardware) = parse::published(&mut bytes, ProbeKind::from_number)?;
    //= docs/arp-plus.md#10.2
    if hardware != [src] {
        return Err(Refusal::ProbeHardware);
    }
    let (probe, unknown_tlvs) = tlvs(&mut bytes, kind, address)?;
    probe.check()?;
    Ok(ProbeFrame { dst, src, probe, unknown_tlvs })
}

/// The TLVs after the published part, VERSION first.
fn tlvs(
    bytes: &mut parse::Bytes<'_>,
    kind: ProbeKind,
    address: Option<IpAddr>,
) -> Result<(Probe, u16), Refusal> {
    let (mut version, mut host, mut said, mut auth) = (None, None, None, None);
    let mut unknown = 0u16;
    //= docs/arp-plus.md#10.3
    if bytes.0.first() != Some(&tlv::VERSION) {
        return Err(Refusal::TlvMissing);
    }
    while let Some((number, value)) = parse::next_tlv(bytes, auth.is_some())? {
        match number {
            tlv::VERSION => parse::once(&mut version, parse::exact::<1>(value)?[0])?,
            tlv::HOST => parse::once(&mut host, parse::host(value)?)?,
            tlv::PROBE => parse::once(&mut said, parse::exact::<{ tlv::PROBE_LEN }>(value)?)?,
            tlv::AUTH => parse::once(&mut auth, parse::auth(value)?)?,
            //= docs/arp-plus.md#10.3
            _ => unknown = unknown.saturating_add(1),
        }
    }
    let (Some(version), Some((host, epoch)), Some(said)) = (version, host, said) else {
        return Err(Refusal::TlvMissing);
    };
    let mut said = parse::Bytes(&said);
    let [nonce, echo] = [said.array(), said.array()].map(|bytes| bytes.map(u64::from_be_bytes));
    let number = said.array().map(u32::from_be_bytes);
    let view = said.array().and_then(|[view]| View::from_number(view));
    let interval_us = said.array().map(u32::from_be_bytes);
    let (Some(nonce), Some(echo), Some(number), Some(view), Some(interval_us), Some([multiplier])) =
        (nonce, echo, number, view, interval_us, said.array())
    else {
        return Err(Refusal::TlvValue);
    };
    let probe = Probe {
        kind,
        address,
        version,
        host,
        epoch,
        nonce,
        echo,
        number,
        view,
        interval_us,
        multiplier,
        auth,
    };
    Ok((probe, unknown))
}

/// Writes a whole frame with a probe.
///
/// # Errors
/// The rule of [`Probe::check`] that it breaks, or an address that is not one member's.
pub fn emit_probe(dst: MacAddr, src: MacAddr, probe: &Probe) -> Result<Vec<u8>, Refusal> {
    probe.check()?;
    if !dst.is_host() {
        return Err(Refusal::ProbeNotUnicast);
    }
    if !src.is_host() {
        return Err(Refusal::SourceNotHost);
    }
    let mut out = frame::begin_frame(dst, src, FRAME_LEN_USUAL);
    let address = probe.address.as_ref().map(tlv::address_bytes).unwrap_or_default();
    out.extend([6, address.len() as u8, 1, probe.kind as u8]);
    out.extend(address);
    out.extend(src.0);
    put(&mut out, tlv::VERSION, &[probe.version]);
    let mut host = probe.host.0.to_vec();
    host.extend(probe.epoch.to_be_bytes());
    put(&mut out, tlv::HOST, &host);
    put(&mut out, tlv::PROBE, &probe.value());
    if let Some(auth) = &probe.auth {
        let mut value = auth.key_id.to_be_bytes().to_vec();
        value.extend(&auth.tag);
        put(&mut out, tlv::AUTH, &value);
    }
    frame::pad(&mut out);
    Ok(out)
}

/// A probe of this version, without authentication.
impl Default for Probe {
    fn default() -> Self {
        Probe {
            kind: ProbeKind::Probe,
            address: None,
            version: VERSION,
            host: HostId([0; 16]),
            epoch: 0,
            nonce: 1,
            echo: 0,
            number: 0,
            view: View::Unjudged,
            interval_us: 50_000,
            multiplier: 3,
            auth: None,
        }
    }
}
