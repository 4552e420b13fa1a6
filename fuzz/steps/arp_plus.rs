//! Any course of frames, time and own changes against the machine: no panic, no endless timer, limits kept.
//!
//! The input is a list of steps: one byte for what, one for how much, then, for a frame, that many bytes.
//! Shared by the fuzz target and the replay of the corpus in `crates/proto/tests/corpus.rs`.

use linkbraid_proto::{Time, arp_plus::*, limits};
use linkbraid_wire::{Class, HostId, MacAddr};
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

fn handle(arp: &mut ArpPlus, now: Time, input: Input<'_>) {
    arp.handle(now, input);
    while arp.poll_action().is_some() {}
    assert!(matches!(arp.state(), State::S0 | State::S1), "S2 and S3 are left before handle returns");
    assert!(arp.peers().len() <= limits::HOSTS_MAX);
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
                handle(&mut arp, now, Input::Frame { slot: what % 3, bytes: frame });
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
