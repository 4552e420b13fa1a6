//! Buffers of several UDP datagrams are sent to be cut.

use crate::frames::{Tcp, V4, V6, ethernet, ip_packet};
use crate::rig::{GUEST, Rig, index, ip, own, peer, plan};
use linkbraid_dataplane::{Beside, Policy, Verdict};

const UDP: u8 = 17;
/// Bytes of a datagram, of which a buffer has ten.
const DATAGRAM: u32 = 120;
const TEN: Beside = Beside { priority: 0, mark: 0, gso_size: DATAGRAM, gso_segs: 10 };

/// UDP to a port, with ten datagrams' worth of payload.
fn udp(protocol: u16, source: [u8; 6], port: u16) -> Vec<u8> {
    let bytes = 10 * DATAGRAM as u16;
    let mut packet = [1000, port, 8 + bytes, 0].map(u16::to_be_bytes).concat();
    packet.resize(usize::from(8 + bytes), 0);
    ethernet(peer(0), source, protocol, &ip_packet(protocol, UDP, 1, 2, &packet))
}

/// A rig of four lanes, and an interface that cuts.
fn rig() -> Rig {
    let rig = Rig::new(4);
    ip("link add link bond name cutter type macvlan mode source");
    rig
}

#[test]
fn buffers_of_udp_are_cut_where_something_cuts() {
    for protocol in [V4, V6] {
        let rig = rig();
        let frame = udp(protocol, own(0), 443);
        assert_eq!(rig.out_with(&frame, TEN).reasons, ["tx_peer"; 10], "nothing is set");
        rig.path.set_cutter(index("cutter")).unwrap();
        let ran = rig.out_with(&frame, TEN);
        assert_eq!((ran.verdict, &ran.reasons[..]), (Verdict::Redirect, &["tx_cut"; 10][..]));
        assert_eq!(ran.frame, frame, "it leaves by a lane later");
        ip("link del cutter");
        assert_eq!(rig.out_with(&frame, TEN).reasons, ["tx_peer"; 10], "it is gone");
    }
}

#[test]
fn what_is_not_spread_is_not_cut() {
    let mut rig = rig();
    rig.path.set_cutter(index("cutter")).unwrap();
    let frame = udp(V4, own(0), 443);
    for policy in [Policy::Flow, Policy::ActiveBackup, Policy::Mirror] {
        rig.set_policy(policy);
        let ran = rig.out_with(&frame, TEN);
        assert!(!ran.reasons.contains(&"tx_cut"), "{policy:?}: {:?}", ran.reasons);
    }
    rig.set_policy(Policy::Spread);
    assert_eq!(rig.out_with(&frame, TEN).reasons, ["tx_cut"; 10]);
    rig.path.set_plan(1, &plan(&[(0, 1000)], |slot| Some(peer(slot)))).unwrap();
    assert_eq!(rig.out_with(&frame, TEN).reasons, ["tx_peer"; 10], "over one lane");
}

#[test]
fn nothing_else_is_cut() {
    let rig = rig();
    rig.path.set_cutter(index("cutter")).unwrap();
    let tcp = Tcp::data(1, 1200).frame(peer(0), own(0));
    let mut later = udp(V6, own(0), 443);
    later[20] = 44; // a fragment header
    let cases = [
        ("one datagram", udp(V4, own(0), 443), Beside::default(), "tx_peer"),
        ("TCP", tcp, TEN, "tx_peer"),
        ("VXLAN", udp(V4, own(0), 4789), TEN, "tx_peer"),
        ("Geneve", udp(V6, own(0), 6081), TEN, "tx_peer"),
        ("IPv6 with another header first", later, TEN, "tx_peer"),
        ("a guest's", udp(V4, GUEST, 443), TEN, "tx_guest"),
    ];
    for (name, frame, beside, reason) in cases {
        let ran = rig.out_with(&frame, beside);
        assert!(ran.reasons.iter().all(|seen| *seen == reason), "{name}: {:?}", ran.reasons);
    }
}
