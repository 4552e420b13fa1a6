//! What a stranger on the switch tries: frames against two hosts with bonds, made from what he has heard of them.

mod attacks;

pub use attacks::{ATTACKS, Attack};

use crate::packet::{self, Tap};
use crate::{Host, wait_until};
use linkbraid_api::Error;
use linkbraid_wire::{
    ETHERTYPE_ARP_PLUS, Extension, HostId, Kind, MacAddr, Member, Message, Probe, emit_frame, emit_probe,
    parse_frame,
};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// How long hosts may take to say who they are; they do so each second.
const HEARD_LIMIT: Duration = Duration::from_secs(20);
/// Frames that are heard before anything is sent: each host says itself anew each second over each link.
const FRAMES_HEARD: usize = 16;
/// Most frames that are kept.
const FRAMES_KEPT: usize = 64;

/// What the stranger knows.
#[derive(Debug, Clone)]
pub struct Known {
    /// His own MAC.
    pub own: MacAddr,
    /// The hosts with bonds that he attacks, as they describe themselves.
    pub victims: [Message; 2],
    /// A gateway that the victims talk to: its MAC.
    pub gateway: MacAddr,
    /// The gateway's address.
    pub gateway_address: IpAddr,
    /// Frames of ARP+ that he has heard.
    pub heard: Arc<[Vec<u8>]>,
}

impl Known {
    /// Listens on the stranger's first link until both victims have said who they are.
    pub fn listen(stranger: Host<'_>, victims: [Host<'_>; 2], gateway: Host<'_>) -> Result<Self, Error> {
        let tap = Tap::try_open(stranger, "eth0", ETHERTYPE_ARP_PLUS)?;
        let mut heard: Vec<Vec<u8>> = Vec::new();
        let said = |heard: &[Vec<u8>], host: Host<'_>| {
            let all = heard.iter().filter_map(|frame| parse_frame(frame).ok());
            let first = MacAddr(packet::mac(&host.mac(0)));
            all.map(|frame| frame.parsed.message).find(|message| message.hardware.contains(&first))
        };
        let listen = || {
            heard.extend(tap.take());
            let both = victims.map(|victim| said(&heard, victim));
            (heard.len(), both)
        };
        let enough = |(frames, both): &(usize, [Option<Message>; 2])| {
            *frames >= FRAMES_HEARD && both.iter().all(Option::is_some)
        };
        let (_, both) = wait_until(HEARD_LIMIT, "both hosts to say who they are", listen, enough)?;
        let [Some(first), Some(second)] = both else {
            return Err(Error::new("lab", "cannot attack", "a host has not said who it is"));
        };
        heard.truncate(FRAMES_KEPT);
        Ok(Self {
            own: MacAddr(packet::mac(&stranger.mac(0))),
            victims: [first, second],
            gateway: MacAddr(packet::mac(&gateway.mac(0))),
            gateway_address: gateway.ipv4().parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            heard: heard.into(),
        })
    }

    /// A member of one of the victims: another one for each number.
    fn member(&self, victim: usize, number: u64) -> MacAddr {
        let all = &self.victims[victim].hardware;
        all[usize::try_from(number % all.len() as u64).unwrap_or(0)]
    }

    /// A frame that was heard: another one for each number.
    fn heard(&self, number: u64) -> Vec<u8> {
        self.heard[usize::try_from(number % self.heard.len() as u64).unwrap_or(0)].clone()
    }

    /// What a victim says of itself, changed.
    fn victim(&self, victim: usize, change: impl FnOnce(&mut Message, &mut Extension)) -> Message {
        let mut message = self.victims[victim].clone();
        if let Some(mut extension) = message.extension.take() {
            extension.auth = None;
            extension.digest = None;
            change(&mut message, &mut extension);
            message.extension = Some(extension);
        }
        message
    }
}

/// A number that looks like chance, the same each time: splitmix64 (Steele, Lea and Flood, 2014).
const fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A MAC that nobody has, locally administered.
const fn invented_mac(number: u64) -> MacAddr {
    let bytes = mix(number).to_be_bytes();
    MacAddr([0x06, bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]])
}

/// What a host that does not exist says of itself; it has so many members.
fn invented(kind: Kind, number: u64, sequence: u32, members: u8) -> Message {
    let mut host = [0x77; 16];
    host[..8].copy_from_slice(&mix(number).to_be_bytes());
    let [.., high, low] = mix(number).to_be_bytes();
    let member = |index| Member { index, up: true, weight_mbit: 1000, class: 0 };
    Message {
        kind,
        address: Some(IpAddr::from([198, 19, high, low.clamp(1, 254)])),
        hardware: (0..members).map(|member| invented_mac(number ^ u64::from(member) << 56)).collect(),
        extension: Some(Extension {
            host: HostId(host),
            epoch: 1,
            sequence,
            members: (0..members).map(member).collect(),
            ..Extension::default()
        }),
    }
}

/// A frame; an empty one where the rules of ARP+ forbid it, which the kernel does not send.
fn frame(dst: MacAddr, src: MacAddr, message: &Message) -> Vec<u8> {
    emit_frame(dst, src, message).unwrap_or_default()
}

/// The same of a probe.
fn probe(dst: MacAddr, src: MacAddr, probe: &Probe) -> Vec<u8> {
    emit_probe(dst, src, probe).unwrap_or_default()
}

#[cfg(test)]
mod tests;
