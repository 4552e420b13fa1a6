//! Any course of frames, time and own changes against the machine: no panic, no endless timer, limits kept.
//!
//! The input is a list of steps: one byte for what, one for how much, then, for a frame, that many bytes.
//! Shared by the fuzz target and the replay of the corpus in `crates/proto/tests/corpus.rs`.

use linkbraid_proto::{Time, arp_plus::*, limits};
use linkbraid_wire::{Class, GUESTS_MAX, HostId, MacAddr};
use std::{net::IpAddr, time::Duration};

/// Timer steps at one moment before something is wrong.
const STEPS_MAX: usize = 100;

fn member(slot: u8, up: bool) -> OwnMember {
    OwnMember {
        slot,
        mac: MacAddr([2, 0, 0, 0, 1, slot]),
        up,
        sound: slot != 1,
        joining: slot == 2,
        weight_mbit: 100,
        class: slot % 4,
    }
}

fn guest_mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 4, number])
}

fn guest_address(number: u8) -> IpAddr {
    IpAddr::from([198, 18, 7, number])
}

/// The low bits of `amount` are the first guest's number, the others how many there are. Bits of `how`: their VLAN (2), whether
/// they spoke a second ago and not now, and whether each has the address of the next one.
fn seen_guests(now: Time, amount: u8, how: u8) -> SeenGuests {
    let numbers = || (0..amount >> 3).map(|number| (amount & 7) + number);
    let named = if how & 4 == 0 { now } else { now.minus(Duration::from_secs(1)) };
    let seen = |number| SeenAddress {
        vlan: u16::from(how & 3),
        address: guest_address(number + (how >> 3 & 1)),
        mac: guest_mac(number),
        named,
    };
    SeenGuests {
        last_sent: numbers().map(|number| (guest_mac(number), named)).collect(),
        addresses: numbers().map(seen).collect(),
    }
}

/// A guest is in one place, behind a host that is known; no member is one.
fn check_guests(arp: &ArpPlus) {
    let (located, here) = (arp.located_guests(), arp.guests_here());
    assert!(arp.announced_guests().len() <= GUESTS_MAX);
    assert!(located.addresses.len() <= limits::GUEST_ADDRESSES_MAX);
    for (mac, key) in &located.macs {
        assert!(arp.peer(key).is_some(), "behind nobody");
        assert!(arp.peer_by_mac(*mac).is_none(), "a member's MAC");
        assert!(here.iter().all(|guest| guest.mac != *mac), "here and elsewhere");
    }
    for (mac, key) in located.addresses.values() {
        assert_eq!(located.macs.get(mac), Some(key), "an address leads where its guest is");
    }
}

fn handle(arp: &mut ArpPlus, now: Time, input: Input<'_>) {
    arp.handle(now, input);
    while arp.poll_action().is_some() {}
    assert!(matches!(arp.state(), State::S0 | State::S1), "S2 and S3 are left before handle returns");
    assert!(arp.peers().len() <= limits::HOSTS_MAX);
    check_guests(arp);
}

/// Panics where a rule is broken.
pub fn run(bytes: &[u8]) {
    let mut arp = ArpPlus::new(Config::new(HostId([1; 16]), 1), 7);
    let mut now = Time::ZERO;
    handle(&mut arp, now, Input::Members(vec![member(0, true), member(1, true)]));
    handle(&mut arp, now, Input::Addresses(vec![IpAddr::from([198, 18, 0, 1])]));
    handle(&mut arp, now, Input::Start);
    let mut rest = bytes;
    while let [what, amount, tail @ ..] = rest {
        rest = tail;
        match what % 8 {
            0 if what & 8 != 0 => {
                let macs = (0..8).filter(|bit| amount >> bit & 1 == 1).map(guest_mac);
                match what >> 4 & 1 {
                    0 => handle(&mut arp, now, Input::Gateways(macs.collect())),
                    _ => {
                        let former = macs.map(|mac| ((0, guest_address(mac.0[5])), mac)).collect();
                        handle(&mut arp, now, Input::FormerGuests(former));
                    }
                }
            }
            1 if what & 8 != 0 => {
                handle(&mut arp, now, Input::Guests(&seen_guests(now, *amount, what >> 4)));
            }
            0 => handle(&mut arp, now, Input::Stop),
            1 => handle(&mut arp, now, Input::Start),
            2 if what & 8 != 0 => {
                // Bits of `amount` choose classes; from 128 on they have other names, some of them bad.
                let name = |number: u8| match amount & 128 {
                    0 => format!("class{number}"),
                    _ => format!("{}", number % 3),
                };
                let class = |number| Class { number, may_borrow: number & 1 == 0, name: name(number) };
                let classes =
                    (0..9).filter(|bit| u16::from(*amount) << 1 >> bit & 1 == 1).map(class).collect();
                handle(&mut arp, now, Input::Classes(classes));
                handle(&mut arp, now, Input::Features(u32::from(what >> 4)));
            }
            2 => {
                let members = (0..amount % 20).map(|slot| member(slot, slot != amount % 3)).collect();
                handle(&mut arp, now, Input::Members(members));
            }
            3 => {
                now = now + Duration::from_millis(u64::from(*amount) * 50);
                for step in 0.. {
                    assert!(step < STEPS_MAX, "a deadline that never passes");
                    if arp.poll_timeout().is_none_or(|at| at > now) {
                        break;
                    }
                    handle(&mut arp, now, Input::Timeout);
                }
            }
            _ => {
                let (frame, tail) = rest.split_at(rest.len().min(usize::from(*amount)));
                rest = tail;
                handle(
                    &mut arp,
                    now,
                    Input::Frame { slot: what % 3, bytes: frame, heard_again: what & 0x40 != 0 },
                );
            }
        }
    }
    let snapshot = arp.snapshot(now);
    for peer in &snapshot.peers {
        assert!(!peer.members.is_empty());
        for member in &peer.members {
            let owner = arp.peer_by_mac(member.mac);
            if member.spoke {
                assert_eq!(owner.map(|owner| owner.key), Some(peer.key), "one owner a MAC");
            }
            // A MAC that nothing was heard from leads to nobody, or to a host whose primary one it is.
            let leads = |owner: &Peer| {
                let its = owner.members.iter().find(|its| its.mac == member.mac);
                its.is_none_or(|its| its.spoke || its.mac == owner.mac())
            };
            assert!(owner.is_none_or(leads), "a MAC that is only claimed leads nowhere");
        }
        for alias in &peer.aliases {
            assert_eq!(
                arp.peer_by_mac(alias.mac).map(|owner| owner.key),
                Some(peer.key),
                "aliases lead home"
            );
        }
    }
}
