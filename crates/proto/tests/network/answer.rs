//! What a plain host answers to probes.

use linkbraid_wire::{MacAddr, emit_advertisement, emit_plain_probe, probe_address};
use std::{net::IpAddr, rc::Rc};

/// The answer of a host with that address to a probe for it, as RFC 826 and RFC 4861 say; none to any other frame.
pub fn answer(asked: &[u8], ip: IpAddr) -> Option<Rc<[u8]>> {
    let (host, member) = (&asked[..6], &asked[6..12]);
    let [to, from] = [member, host].map(|mac| MacAddr(mac.try_into().expect("six bytes")));
    if emit_plain_probe(from, to, ip).as_deref() != Ok(asked) {
        return None;
    }
    Some(match ip {
        IpAddr::V4(ip) => {
            let head = [member, host, &asked[12..20], &[0, 2]].concat();
            [&head[..], host, &ip.octets(), member, &[0; 22]].concat().into()
        }
        IpAddr::V6(ip) => {
            let mut frame =
                emit_advertisement(to, probe_address(to), from, ip, false).expect("good addresses");
            // It is solicited; what that flag makes of the checksum.
            frame[58] |= 0x40;
            let (sum, borrowed) = u16::from_be_bytes([frame[56], frame[57]]).overflowing_sub(0x4000);
            frame[56..58].copy_from_slice(&(sum - u16::from(borrowed)).to_be_bytes());
            frame.into()
        }
    })
}
