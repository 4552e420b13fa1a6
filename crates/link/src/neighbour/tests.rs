use nix::libc;

use super::{Entry, NeighbourState};
use crate::rtnl::{Builder, NEIGHBOUR_HEADER, Raw};

const MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 7];

fn message(family: libc::c_int, state: u16, ip: &[u8], mac: &[u8]) -> Raw {
    let mut header = [0; NEIGHBOUR_HEADER];
    header[0] = family as u8;
    header[4..8].copy_from_slice(&3u32.to_ne_bytes());
    header[8..10].copy_from_slice(&state.to_ne_bytes());
    let payload = Builder::new(&header).bytes(libc::NDA_DST, ip).bytes(libc::NDA_LLADDR, mac).finish();
    Raw { kind: libc::RTM_NEWNEIGH, payload }
}

#[test]
fn a_host_is_read_with_its_state() {
    let entry = Entry::parse(&message(libc::AF_INET, libc::NUD_STALE, &[198, 18, 0, 7], &MAC)).unwrap();
    assert_eq!((entry.index, entry.ip.to_string()), (3, "198.18.0.7".into()));
    assert_eq!((entry.mac.unwrap().0, entry.state), (MAC, Some(NeighbourState::Stale)));
}

#[test]
fn a_removed_host_has_no_hardware_address() {
    let mut raw = message(libc::AF_INET, libc::NUD_STALE, &[198, 18, 0, 7], &MAC);
    raw.kind = libc::RTM_DELNEIGH;
    assert_eq!(Entry::parse(&raw).unwrap().mac, None);
}

#[test]
fn groups_and_other_families_are_no_hosts() {
    let v4 = [198, 18, 0, 7];
    let bridge = message(libc::AF_BRIDGE, libc::NUD_REACHABLE, &v4, &MAC);
    let wrong = message(libc::AF_INET6, libc::NUD_REACHABLE, &v4, &MAC);
    let group = message(libc::AF_INET, libc::NUD_NOARP, &[224, 0, 0, 251], &[1, 0, 0x5e, 0, 0, 0xfb]);
    let all = message(libc::AF_INET, libc::NUD_NOARP, &[198, 18, 0, 255], &[0xff; 6]);
    for raw in [bridge, wrong, group, all] {
        assert_eq!(Entry::parse(&raw), None, "{raw:?}");
    }
}

#[test]
fn short_messages_and_odd_addresses_are_survived() {
    let whole = message(libc::AF_INET, libc::NUD_REACHABLE, &[198, 18, 0, 7], &MAC);
    // The two bytes of padding behind the hardware address may be missing.
    for length in 0..whole.payload.len() - 2 {
        let raw = Raw { kind: whole.kind, payload: whole.payload[..length].to_vec() };
        assert!(Entry::parse(&raw).is_none_or(|entry| entry.mac.is_none()), "{length}");
    }
    let long = message(libc::AF_INET, libc::NUD_REACHABLE, &[198, 18, 0, 7], &[1; 20]);
    assert_eq!(Entry::parse(&long).unwrap().mac, None);
    let zeros = message(libc::AF_INET, libc::NUD_REACHABLE, &[198, 18, 0, 7], &[0; 6]);
    assert_eq!(Entry::parse(&zeros).unwrap().mac, None);
}
