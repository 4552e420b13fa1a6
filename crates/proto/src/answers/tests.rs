//! A bond beside plain hosts that cache as Linux does.

use super::*;
use linkbraid_wire::{emit_advertisement, emit_arp_reply};
use std::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

mod corrections;
mod course;
mod dealing;

/// Linux ignores what differs from an entry that changed less than this ago.
const LOCKTIME: Duration = Duration::from_secs(1);

const OWN_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const OWN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

fn mac(slot: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, slot])
}

fn host_mac(host: u16) -> MacAddr {
    let [high, low] = host.to_be_bytes();
    MacAddr([2, 0, 0, 1, high, low])
}

fn v4(host: u16) -> Ipv4Addr {
    Ipv4Addr::from(0xc612_0100 + u32::from(host))
}

fn v6(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 1, host)
}

fn member(slot: u8) -> Member {
    Member { slot, mac: mac(slot), usable: true, weight_mbit: 1000, segment: 0 }
}

fn plain(host: u16) -> PlainHost {
    PlainHost {
        mac: host_mac(host),
        ips: vec![IpAddr::V4(v4(host)), IpAddr::V6(v6(host))],
        heard_slot: Some(0),
    }
}

/// What a host has cached for the bond's IPv4 and IPv6 address, and when the former changed last.
#[derive(Debug, Clone, Copy)]
struct Cache {
    v4: MacAddr,
    changed: Time,
    v6: MacAddr,
}

impl Cache {
    fn hear_v4(&mut self, now: Time, name: MacAddr) {
        if self.v4 != name && now.since(self.changed) > LOCKTIME {
            (self.v4, self.changed) = (name, now);
        }
    }
}

struct Bench {
    now: Time,
    answers: Answers,
    members: Vec<Member>,
    table: BTreeMap<MacAddr, u8>,
    caches: BTreeMap<MacAddr, Cache>,
    sent: Vec<(Time, u8, Vec<u8>)>,
}

impl Bench {
    /// A bond of that many members, whose MAC is that of the first.
    fn new(members: u8) -> Bench {
        let mut bench = Bench {
            now: Time::from_millis(10_000),
            answers: Answers::default(),
            members: Vec::new(),
            table: BTreeMap::new(),
            caches: BTreeMap::new(),
            sent: Vec::new(),
        };
        let addresses = vec![(IpAddr::V4(OWN_V4), 16), (IpAddr::V6(OWN_V6), 64)];
        bench.handle(Input::Own(Own { mac: mac(0), addresses, router: false }));
        bench.members((0..members).map(member).collect());
        bench
    }

    fn handle(&mut self, input: Input) {
        self.answers.handle(self.now, input);
        while let Some(action) = self.answers.poll_action() {
            match action {
                Action::Assign(rows) => {
                    for Assignment { host, slot } in rows {
                        let old = self.table.remove(&host);
                        assert_ne!(old, slot, "only changes are told");
                        self.table.extend(slot.map(|slot| (host, slot)));
                    }
                }
                Action::Send { slot, frame } => self.carry(slot, frame),
            }
        }
        assert!(self.answers.table().eq(self.table.iter().map(|(mac, slot)| (*mac, *slot))));
    }

    /// A correction reaches its host; it is byte for byte what the wire crate writes.
    fn carry(&mut self, slot: u8, frame: Vec<u8>) {
        let to = MacAddr(frame[..6].try_into().expect("a destination"));
        let name = self.members.iter().find(|member| member.slot == slot).expect("a member").mac;
        assert_eq!(self.table.get(&to), Some(&slot), "the table is told first");
        let host = u16::from_be_bytes([to.0[4], to.0[5]]);
        let arp = emit_arp_reply(to, v4(host), name, OWN_V4).expect("good addresses");
        let advertisement = emit_advertisement(to, v6(host), name, OWN_V6, false).expect("good addresses");
        let (is_v4, is_v6) = (frame == arp, frame == advertisement);
        assert!(is_v4 || is_v6, "{frame:?}");
        if let Some(cache) = self.caches.get_mut(&to) {
            if is_v4 {
                cache.hear_v4(self.now, name);
            } else {
                cache.v6 = name;
            }
        }
        self.sent.push((self.now, slot, frame));
    }

    fn members(&mut self, members: Vec<Member>) {
        self.members.clone_from(&members);
        self.handle(Input::Members(members));
    }

    /// Exactly these hosts; new ones have just learned of us by a broadcast.
    fn hosts(&mut self, hosts: Vec<PlainHost>) {
        self.caches.retain(|mac, _| hosts.iter().any(|host| host.mac == *mac));
        for host in &hosts {
            let fresh = Cache { v4: mac(0), changed: self.now, v6: mac(0) };
            self.caches.entry(host.mac).or_insert(fresh);
        }
        self.handle(Input::Hosts(hosts));
    }

    /// The kernel broadcasts in the bond's name.
    fn broadcast(&mut self) {
        for cache in self.caches.values_mut() {
            cache.hear_v4(self.now, mac(0));
            cache.v6 = mac(0);
        }
        self.handle(Input::Broadcast);
    }

    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut last = None;
        while let Some(at) = self.answers.poll_timeout().filter(|at| *at <= end) {
            assert!(at >= self.now, "no deadline lies in the past");
            assert_ne!(last.replace(at), Some(at), "a deadline that never passes");
            self.now = at;
            self.handle(Input::Timeout);
        }
        self.now = end;
    }

    fn loads(&self) -> Vec<usize> {
        let of = |member: &Member| self.table.values().filter(|slot| **slot == member.slot).count();
        self.members.iter().map(of).collect()
    }

    /// Hosts that would send to another member than the one they are to.
    fn wrong(&self) -> Vec<MacAddr> {
        let wrong = |(host, slot): (&MacAddr, &u8)| {
            let name = self.members.iter().find(|member| member.slot == *slot)?.mac;
            let cache = self.caches.get(host)?;
            (cache.v4 != name || cache.v6 != name).then_some(*host)
        };
        self.table.iter().filter_map(wrong).collect()
    }

    /// When frames left, in milliseconds since then.
    fn times(&self, since: Time) -> Vec<u128> {
        self.sent.iter().map(|(at, ..)| at.since(since).as_millis()).collect()
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
