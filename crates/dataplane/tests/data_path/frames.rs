//! Frames, byte by byte, with right checksums.

/// Ethernet, with tags in the payload if wanted.
pub fn ethernet(to: [u8; 6], from: [u8; 6], protocol: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.extend(protocol.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The same frame with an 802.1Q tag.
pub fn tagged(frame: &[u8], vlan: u16) -> Vec<u8> {
    let mut with_tag = frame[..12].to_vec();
    with_tag.extend(0x8100u16.to_be_bytes());
    with_tag.extend(vlan.to_be_bytes());
    with_tag.extend(&frame[12..]);
    with_tag
}

/// The sum of RFC 1071, folded, not inverted.
pub fn sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

pub const V4: u16 = 0x0800;
pub const V6: u16 = 0x86dd;

/// 198.18.0.`host`, or 2001:db8::`host`.
pub fn address(protocol: u16, host: u8) -> Vec<u8> {
    match protocol {
        V4 => vec![198, 18, 0, host],
        _ => [&[0x20, 1, 0xd, 0xb8], &[0u8; 11][..], &[host]].concat(),
    }
}

/// An IP packet between 198.18.0.`from` and `to`, or the same of 2001:db8::/64.
pub fn ip_packet(protocol: u16, next: u8, from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = (address(protocol, from), address(protocol, to));
    let mut packet;
    if protocol == V4 {
        packet = vec![0x45, 0];
        packet.extend((20 + payload.len() as u16).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, next, 0, 0]);
        packet.extend(source);
        packet.extend(destination);
        let check = !sum(&packet);
        packet[10..12].copy_from_slice(&check.to_be_bytes());
    } else {
        packet = vec![0x60, 0, 0, 0];
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([next, 64]);
        packet.extend(source);
        packet.extend(destination);
    }
    packet.extend(payload);
    packet
}

/// What `frame` is as a fragment at this offset, in units of eight bytes.
pub fn fragment(frame: &[u8], offset: u16) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if frame[12..14] == V4.to_be_bytes() {
        frame[20..22].copy_from_slice(&(0x2000 | offset).to_be_bytes());
    } else {
        let next = std::mem::replace(&mut frame[20], 44);
        let offset = (offset << 3 | 1).to_be_bytes();
        frame.splice(54..54, [next, 0, offset[0], offset[1], 0, 0, 0, 9]);
    }
    frame
}

/// ARP over Ethernet and IPv4: operation, then the sender's and the target's MAC and host number (0: no address).
pub fn arp(operation: u16, sender: ([u8; 6], u8), target: ([u8; 6], u8)) -> Vec<u8> {
    let mut message = vec![0, 1, 8, 0, 6, 4];
    message.extend(operation.to_be_bytes());
    for (mac, host) in [sender, target] {
        message.extend(mac);
        message.extend(if host == 0 { vec![0; 4] } else { address(V4, host) });
    }
    message
}

/// A neighbour solicitation (135) or advertisement (136) about 2001:db8::9 with these options, from host 1 to host 2.
pub fn neighbour(kind: u8, options: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, 0x60, 0, 0, 0];
    message.extend(address(V6, 9));
    message.extend(options);
    let check = !sum(&pseudo(V6, 58, 1, 2, &message));
    message[2..4].copy_from_slice(&check.to_be_bytes());
    let mut packet = ip_packet(V6, 58, 1, 2, &message);
    packet[7] = 255;
    packet
}

/// Whether the ICMPv6 checksum of such a packet is right.
pub fn is_neighbour_right(packet: &[u8]) -> bool {
    sum(&pseudo(V6, 58, 1, 2, &packet[40..])) == 0xffff
}

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 0x10;
pub const ECE: u8 = 0x40;

/// A TCP segment between host 1, port 1000, and host `far`, port 2000.
#[derive(Debug, Clone)]
pub struct Tcp {
    pub protocol: u16,
    pub far: u8,
    /// From host 1 (else from the other one).
    pub is_ours: bool,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub options: Vec<u8>,
    pub payload: usize,
}

impl Tcp {
    /// `payload` bytes that our host sends.
    pub fn data(seq: u32, payload: usize) -> Self {
        let options = timestamps();
        Self { protocol: V4, far: 2, is_ours: true, seq, ack: 1, flags: ACK, window: 500, options, payload }
    }

    /// The other host's ACK with these SACK blocks.
    pub fn ack(ack: u32, blocks: &[(u32, u32)]) -> Self {
        let options = [timestamps(), sack(blocks)].concat();
        Self {
            protocol: V4,
            far: 2,
            is_ours: false,
            seq: 1,
            ack,
            flags: ACK,
            window: 500,
            options,
            payload: 0,
        }
    }

    /// From and to the MACs, with a right checksum.
    pub fn frame(&self, to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
        let (source, destination) = if self.is_ours { (1, self.far) } else { (self.far, 1) };
        let mut tcp = Vec::new();
        let (near, far) = if self.is_ours { (1000u16, 2000u16) } else { (2000, 1000) };
        tcp.extend(near.to_be_bytes());
        tcp.extend(far.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        assert!(self.options.len().is_multiple_of(4) && self.options.len() <= 40);
        tcp.push(((20 + self.options.len()) << 2) as u8);
        tcp.push(self.flags);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&self.options);
        tcp.extend(std::iter::repeat_n(0x5a, self.payload));
        let check = !sum(&pseudo(self.protocol, 6, source, destination, &tcp));
        tcp[16..18].copy_from_slice(&check.to_be_bytes());
        ethernet(to, from, self.protocol, &ip_packet(self.protocol, 6, source, destination, &tcp))
    }
}

/// The pseudo header (RFC 9293, RFC 8200) and what is behind it.
pub fn pseudo(protocol: u16, next: u8, from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [address(protocol, from), address(protocol, to)].concat();
    bytes.extend([0, next]);
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Two NOPs and time stamps: what Linux sends.
pub fn timestamps() -> Vec<u8> {
    vec![1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9]
}

/// Two NOPs and a SACK option.
pub fn sack(blocks: &[(u32, u32)]) -> Vec<u8> {
    [vec![1, 1], bare_sack(blocks)].concat()
}

/// A SACK option alone.
pub fn bare_sack(blocks: &[(u32, u32)]) -> Vec<u8> {
    if blocks.is_empty() {
        return vec![1, 1];
    }
    let mut option = vec![5, 2 + 8 * blocks.len() as u8];
    for (left, right) in blocks {
        option.extend(left.to_be_bytes());
        option.extend(right.to_be_bytes());
    }
    option
}

/// The SACK blocks of a frame of ours, and whether its TCP checksum is right.
pub fn read_sack(frame: &[u8]) -> (Vec<(u32, u32)>, bool) {
    let tagged = frame[12..14] == [0x81, 0];
    let at = if tagged { 18 } else { 14 };
    let protocol = u16::from_be_bytes([frame[at - 2], frame[at - 1]]);
    let header = if protocol == V4 { 20 } else { 40 };
    let tcp = &frame[at + header..];
    // The last bytes of both addresses.
    let length = if protocol == V4 { 4 } else { 16 };
    let (from, to) = (frame[at + header - length - 1], frame[at + header - 1]);
    let right = sum(&pseudo(protocol, 6, from, to, tcp)) == 0xffff;
    let mut options = &tcp[20..usize::from(tcp[12] >> 4) * 4];
    while let [kind, rest @ ..] = options {
        match (*kind, rest.first()) {
            (0, _) | (_, None) => break,
            (1, _) => options = rest,
            (5, Some(length)) => {
                let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
                let blocks = options[2..usize::from(*length)].chunks_exact(8);
                return (blocks.map(|b| (word(&b[..4]), word(&b[4..]))).collect(), right);
            }
            (_, Some(length)) => options = &options[usize::from(*length)..],
        }
    }
    (Vec::new(), right)
}
