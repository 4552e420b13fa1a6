//! TCP in tunnels is damped like bare TCP, and what only looks like a tunnel is left alone.

use crate::frames::{Tcp, V4, V6, ethernet, ip_packet, pseudo, read_sack, sum, tagged};
use crate::rig::{GUEST, PLAIN, Rig, own, peer};
use crate::undisturbed::undisturbed;
use linkbraid_dataplane::Verdict;

const STRIPE: u32 = 1400;
const UDP: u8 = 17;
const NETWORK: u32 = 0x0102_0300;
/// GRE: the EtherType of Ethernet.
const ETHERNET: u16 = 0x6558;

/// What a frame travels in. Its first part is the protocol behind the outer IP header, the second one the bytes of the tunnel's
/// header, the third one whether a whole frame follows (else its IP packet).
#[derive(Debug, Clone)]
struct Tunnel(u8, Vec<u8>, bool);

fn udp_tunnel(port: u16, first: u8, second: u8, protocol: u16, network: u32, options: &[u8]) -> Vec<u8> {
    let mut header = [50_000u16, port, 0, 0].map(u16::to_be_bytes).concat();
    header.extend([first, second]);
    header.extend(protocol.to_be_bytes());
    header.extend(network.to_be_bytes());
    header.extend(options);
    header
}

fn vxlan(port: u16, network: u32) -> Tunnel {
    Tunnel(UDP, udp_tunnel(port, 8, 0, 0, network, &[]), true)
}

fn geneve(protocol: u16, options: &[u8]) -> Tunnel {
    let words = (options.len() / 4) as u8;
    Tunnel(UDP, udp_tunnel(6081, words, 0, protocol, NETWORK, options), protocol == ETHERNET)
}

fn gre(flags: u16, protocol: u16, words: &[u32]) -> Tunnel {
    let mut header = [flags, protocol].map(u16::to_be_bytes).concat();
    header.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    Tunnel(47, header, protocol == ETHERNET)
}

/// All that are known, for an inner packet of this protocol.
fn all(inner: u16) -> Vec<(&'static str, Tunnel)> {
    vec![
        ("VXLAN", vxlan(4789, NETWORK)),
        ("VXLAN on Linux's port", vxlan(8472, NETWORK)),
        ("Geneve", geneve(ETHERNET, &[])),
        ("Geneve with options, IP", geneve(inner, &[0; 12])),
        ("GRE", gre(0, inner, &[])),
        ("GRE with all fields", gre(0xb000, inner, &[0, 7, 9])),
        ("GRE with a key, Ethernet", gre(0x2000, ETHERNET, &[NETWORK])),
        ("IP in IP", Tunnel(if inner == V4 { 4 } else { 41 }, vec![], false)),
    ]
}

impl Tunnel {
    /// The outer frame, with a UDP checksum.
    fn wrap(&self, outer: u16, inner: &[u8], is_ours: bool) -> Vec<u8> {
        let (from, to) = if is_ours { (1, 2) } else { (2, 1) };
        let mut payload = self.1.clone();
        payload.extend(if self.2 { inner } else { &inner[14..] });
        if self.0 == UDP {
            let length = (payload.len() as u16).to_be_bytes();
            payload[4..6].copy_from_slice(&length);
            let check = !sum(&pseudo(outer, UDP, from, to, &payload));
            payload[6..8].copy_from_slice(&check.to_be_bytes());
        }
        let (destination, source) = if is_ours { (peer(0), own(0)) } else { (own(0), peer(0)) };
        ethernet(destination, source, outer, &ip_packet(outer, self.0, from, to, &payload))
    }

    /// The inner frame as it is now, where it was `before`; and whether the sum of UDP holds.
    fn unwrap(&self, outer: u16, frame: &[u8], before: &[u8]) -> (Vec<u8>, bool) {
        let bytes = before.len() - 14;
        let inner = [&before[..14], &frame[frame.len() - bytes..]].concat();
        let udp = &frame[14 + if outer == V4 { 20 } else { 40 }..];
        (inner, self.0 != UDP || sum(&pseudo(outer, UDP, 2, 1, udp)) == 0xffff)
    }
}

fn data(protocol: u16, i: u32) -> Vec<u8> {
    Tcp { protocol, ..Tcp::data(i * STRIPE, STRIPE as usize) }.frame(PLAIN, GUEST)
}

/// Stripe 1 is missing, stripe 2 has arrived.
fn report(protocol: u16) -> Vec<u8> {
    Tcp { protocol, ..Tcp::ack(STRIPE, &[(2 * STRIPE, 3 * STRIPE)]) }.frame(GUEST, PLAIN)
}

/// A rig of four lanes that sent eight stripes in the tunnel.
fn sent(tunnel: &Tunnel, outer: u16, inner: u16) -> Rig {
    let rig = Rig::new(4);
    for i in 0..8 {
        let ran = rig.out(&tunnel.wrap(outer, &data(inner, i), true));
        assert_eq!(ran.source(), own((i % 4) as u8), "{tunnel:?}: stripe {i}");
    }
    rig
}

/// The members by which 16 segments leave, one frame each, where `before` that were sent already are in flight.
fn members(rig: &Rig, before: u32, wrap: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<[u8; 6]> {
    (0..before + 16).map(|i| rig.sends(&wrap(data(V4, i)))).skip(before as usize).collect()
}

#[test]
fn segments_that_were_cut_before_share_a_lane_up_to_a_stripe() {
    type Wrap = fn(Vec<u8>) -> Vec<u8>;
    let wraps: [(&str, Wrap); 2] = [
        ("VXLAN", |frame| vxlan(4789, NETWORK).wrap(V4, &frame, true)),
        ("bare", |mut frame| {
            frame[..6].copy_from_slice(&peer(0));
            frame[6..12].copy_from_slice(&own(0));
            frame
        }),
    ];
    for (name, wrap) in wraps {
        // Stripes of so many segments; what is told of the bond later leaves them as they are.
        for (bytes, segments) in [(0, 1), (STRIPE, 1), (2 * STRIPE, 2), (4 * STRIPE - 1, 3)] {
            let mut found = Vec::new();
            // A stripe ends when it is a millisecond old, on a busy machine too soon.
            let grows = (0..20).any(|_| {
                let mut rig = Rig::new(4);
                rig.path.set_stripe(bytes).unwrap();
                rig.change(|bond| bond.epoch += 1);
                let members = members(&rig, 36, wrap);
                let lanes = members.chunk_by(|a, b| a == b).map(<[_]>::len);
                // The first one and the last one may have begun before, or go on.
                found = lanes.skip(1).take(16 / segments - 2).collect();
                found.len() > 2 && found.iter().all(|length| *length == segments)
            });
            assert!(grows, "{name}, stripes of {segments} segments: {found:?}");
        }
    }
}

#[test]
fn segments_take_a_lane_each_while_there_are_few() {
    undisturbed(|| {
        let rig = Rig::new(4);
        rig.path.set_stripe(2 * STRIPE).unwrap();
        let want: Vec<[u8; 6]> = (0..16).map(|i| own(i % 4)).collect();
        assert_eq!(members(&rig, 0, |frame| vxlan(4789, NETWORK).wrap(V4, &frame, true)), want);
    });
}

#[test]
fn reports_in_a_tunnel_are_masked_then_damped() {
    for inner in [V4, V6] {
        for (name, tunnel) in all(inner) {
            for outer in [V4, V6] {
                let rig = sent(&tunnel, outer, inner);
                let inside = report(inner);
                let frame = tunnel.wrap(outer, &inside, false);
                let ran = rig.arrives(0, &frame);
                assert_eq!(
                    (ran.verdict, &ran.reasons[..]),
                    (Verdict::Pass, &["rx_ack_masked"][..]),
                    "{name}"
                );
                let (inside, is_right) = tunnel.unwrap(outer, &ran.frame, &inside);
                assert_eq!(read_sack(&inside), (vec![], true), "{name}: blocks, and whether TCP's sum holds");
                assert!(is_right, "{name}: UDP's sum");
                let again = rig.arrives(0, &frame);
                assert_eq!(
                    (again.verdict, &again.reasons[..]),
                    (Verdict::Drop, &["rx_ack_damped"][..]),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn a_tag_in_the_tunnel_is_looked_behind() {
    let tunnel = vxlan(4789, NETWORK);
    let rig = Rig::new(4);
    for i in 0..8 {
        rig.out(&tunnel.wrap(V4, &tagged(&data(V4, i), 5), true));
    }
    assert_eq!(rig.arrives(0, &tunnel.wrap(V4, &tagged(&report(V4), 5), false)).reasons, ["rx_ack_masked"]);
}

#[test]
fn the_same_addresses_in_another_network_are_another_flow() {
    let tunnel = vxlan(4789, NETWORK);
    for inner in [V4, V6] {
        let rig = sent(&tunnel, V4, inner);
        let others = [
            vxlan(4789, NETWORK + 0x100).wrap(V4, &report(inner), false),
            gre(0x2000, ETHERNET, &[NETWORK]).wrap(V4, &report(inner), false),
            Tcp { protocol: inner, ..Tcp::ack(STRIPE, &[(2 * STRIPE, 3 * STRIPE)]) }.frame(own(0), peer(0)),
        ];
        for frame in others {
            let ran = rig.arrives(0, &frame);
            assert_eq!((&ran.frame, &ran.reasons[..]), (&frame, &["rx_peer"][..]));
        }
        assert_eq!(rig.arrives(0, &tunnel.wrap(V4, &report(inner), false)).reasons, ["rx_ack_masked"]);
    }
}

#[test]
fn acks_in_a_tunnel_stay_on_one_lane() {
    let tunnel = geneve(ETHERNET, &[0; 124]);
    let rig = Rig::new(4);
    let lane = |i: u32| {
        let ack = Tcp { is_ours: true, ..Tcp::ack(i, &[(2000, 3000), (5000, 6000)]) };
        rig.out(&tunnel.wrap(V6, &ack.frame(PLAIN, GUEST), true)).source()
    };
    let first = lane(0);
    assert!((1..12).all(|i| lane(i) == first));
}

/// One frame of each length that the kernel runs a program on.
#[test]
fn what_is_cut_off_is_left_alone() {
    for (name, tunnel) in all(V4) {
        let rig = sent(&tunnel, V4, V4);
        let whole = tunnel.wrap(V4, &report(V4), false);
        for bytes in 34..whole.len() {
            let ran = rig.arrives(0, &whole[..bytes]);
            assert_eq!(
                (&ran.frame[..], &ran.reasons[..]),
                (&whole[..bytes], &["rx_peer"][..]),
                "{name}, {bytes}"
            );
            rig.out(&tunnel.wrap(V4, &data(V4, 0), true)[..bytes]);
        }
        assert_eq!(rig.arrives(0, &whole).reasons, ["rx_ack_masked"], "{name}");
    }
}

#[test]
fn what_is_no_tunnel_is_left_alone() {
    let (vxlan, geneve, gre) = (vxlan(4789, NETWORK), geneve(V4, &[]), gre(0, V4, &[]));
    // Of outer headers and of the inner frame in VXLAN: where the bytes begin that are replaced.
    let (ip, outer, inner) = (14, 34, 50);
    let cases: [(&str, &Tunnel, usize, &[u8]); 15] = [
        ("another port", &vxlan, outer + 2, &[0x12, 0xb4]),
        ("no network", &vxlan, outer + 8, &[0]),
        ("an outer fragment", &vxlan, ip + 6, &[0x20, 0]),
        ("a later outer fragment", &vxlan, ip + 6, &[0, 3]),
        ("an inner fragment", &vxlan, inner + 20, &[0x20, 0]),
        ("an inner packet longer than the frame", &vxlan, inner + 16, &[0x7f, 0xff]),
        ("an inner packet shorter than its header", &vxlan, inner + 16, &[0, 19]),
        ("an inner header that is too short", &vxlan, inner + 14, &[0x41]),
        ("no TCP inside", &vxlan, inner + 23, &[UDP]),
        ("a TCP header longer than the packet", &vxlan, inner + 14 + 20 + 12, &[0xf0]),
        ("Geneve's next version", &geneve, outer + 8, &[0x40]),
        ("Geneve's control message", &geneve, outer + 9, &[0x80]),
        ("Geneve's options behind the end", &geneve, outer + 8, &[0x3f]),
        ("GRE's next version", &gre, outer, &[0, 1]),
        ("GRE with routing", &gre, outer, &[0x40, 0]),
    ];
    for (name, tunnel, at, bytes) in cases {
        let rig = sent(tunnel, V4, V4);
        let whole = tunnel.wrap(V4, &report(V4), false);
        let mut frame = whole.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        let ran = rig.arrives(0, &frame);
        assert_eq!((&ran.frame, &ran.reasons[..]), (&frame, &["rx_peer"][..]), "{name}");
        assert_eq!(rig.arrives(0, &whole).reasons, ["rx_ack_masked"], "{name}: without it");
    }
}

#[test]
fn a_tunnel_in_a_tunnel_is_not_looked_into() {
    let tunnel = vxlan(4789, NETWORK);
    let twice = |inner: &[u8], is_ours| tunnel.wrap(V4, &tunnel.wrap(V4, inner, is_ours), is_ours);
    let rig = Rig::new(4);
    for i in 0..8 {
        rig.out(&twice(&data(V4, i), true));
    }
    assert_eq!(rig.arrives(0, &twice(&report(V4), false)).reasons, ["rx_peer"]);
}
