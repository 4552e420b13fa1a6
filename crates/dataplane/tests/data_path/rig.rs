//! A bond in a network namespace of its own, whose programs are run on single frames.

use crate::lent::Lent;
use crate::undisturbed;
use linkbraid_dataplane::{
    Beside, Bond, Count, Damping, Lane, Member, PeerMac, PeerMacKind, Plan, Policy, Verdict, Way,
};
use std::{process::Command, time::Duration};

/// The MAC of our member `slot`; the bond's is that of slot 0.
pub const fn own(slot: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, slot]
}

/// The MAC of the peer's member.
pub const fn peer(member: u8) -> [u8; 6] {
    [2, 0, 0, 0, 2, member]
}

/// A host that never heard of linkbraid.
pub const PLAIN: [u8; 6] = [2, 0, 0, 0, 3, 1];
/// A machine behind our bond.
pub const GUEST: [u8; 6] = [2, 0, 0, 0, 4, 1];
/// Everybody.
pub const BROADCAST: [u8; 6] = [0xff; 6];

/// Holes are never old in a test that does not want them to be.
pub const LONG: Duration = Duration::from_secs(60);

/// What one frame did.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub verdict: Verdict,
    pub frame: Vec<u8>,
    pub priority: u32,
    /// The reasons that counted it, one entry a frame.
    pub reasons: Vec<&'static str>,
}

impl Ran {
    pub fn source(&self) -> [u8; 6] {
        self.frame[6..12].try_into().unwrap()
    }

    pub fn destination(&self) -> [u8; 6] {
        self.frame[..6].try_into().unwrap()
    }
}

/// A bond of veth interfaces that lead nowhere; its peer has as many members.
pub struct Rig {
    pub path: Lent,
    pub bond: Bond,
    pub members: Vec<u32>,
    /// Of the plans that are written from now on.
    pub policy: Policy,
}

/// Moves this thread, and what it starts, into a new network namespace.
pub fn new_namespace() {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
        .expect("this test needs root: it makes a network namespace and loads BPF programs");
}

pub fn ip(line: &str) {
    let done = Command::new("ip").args(line.split_whitespace()).output().expect("iproute2 is installed");
    assert!(done.status.success(), "ip {line}: {}", String::from_utf8_lossy(&done.stderr));
}

pub fn index(name: &str) -> u32 {
    nix::net::if_::if_nametoindex(name).expect("the interface is there")
}

/// Lanes over these slots, each with its weight.
pub fn plan(slots: &[(u8, u32)], to: fn(u8) -> Option<[u8; 6]>) -> Plan {
    let lane = |(slot, weight): &(u8, u32)| Lane {
        slot: *slot,
        peer_mac: to(*slot),
        weight: *weight,
        rate: None,
        class: 0,
    };
    Plan { lanes: slots.iter().map(lane).collect(), ..Plan::default() }
}

/// Holes count as losses from such an age on; those that later data of their lane has overtaken at once.
pub fn damping(least: Duration, greatest: Duration) -> Damping {
    Damping { least, greatest, overtaking: Duration::ZERO }
}

impl Rig {
    /// `n` members of equal weight, one segment, damping with holes that never get old.
    pub fn new(n: u8) -> Self {
        new_namespace();
        ip("link add bond type bridge");
        let members: Vec<u32> = (0..n)
            .map(|slot| {
                ip(&format!("link add member{slot} type veth peer name far{slot}"));
                ip(&format!("link set member{slot} up"));
                index(&format!("member{slot}"))
            })
            .collect();
        let path = Lent::take();
        let bond = Bond {
            ifindex: index("bond"),
            mac: own(0),
            damping: Some(damping(LONG, LONG)),
            elected: vec![0],
            failed_slots: 0,
            epoch: 1,
        };
        let rig = Self { path, bond, members, policy: Policy::Spread };
        rig.write_tables();
        undisturbed::begin();
        rig
    }

    /// What a data path that was just loaded has to be given.
    pub fn write_tables(&self) {
        self.path.set_bond(&self.bond).unwrap();
        self.path.set_stripe(0).unwrap();
        for slot in 0..self.members.len() as u8 {
            self.set_member(slot, 0);
            let row = PeerMac { plan: 1, primary: peer(0), broadcast_slot: 0, kind: PeerMacKind::default() };
            self.path.set_peer_mac(peer(slot), &row).unwrap();
        }
        self.weights(&vec![1000; self.members.len()]);
    }

    pub fn set_member(&self, slot: u8, elected: u8) {
        let ifindex = self.members[usize::from(slot)];
        let member = Member { ifindex, mac: own(slot), live: true, elected };
        self.path.set_member(slot, Some(&member)).unwrap();
    }

    /// Lane i joins our member i and the peer's member i; towards plain hosts the lanes weigh the same.
    pub fn weights(&self, weights: &[u32]) {
        let slots: Vec<(u8, u32)> = (0u8..).zip(weights.iter().copied()).collect();
        self.path.set_plan(0, &Plan { policy: self.policy, ..plan(&slots, |_| None) }).unwrap();
        let to_peer = plan(&slots, |slot| Some(peer(slot)));
        self.path.set_plan(1, &Plan { policy: self.policy, ..to_peer }).unwrap();
    }

    /// Equal lanes of this policy over all members.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.weights(&vec![1000; self.members.len()]);
    }

    pub fn change(&mut self, change: impl FnOnce(&mut Bond)) {
        change(&mut self.bond);
        self.path.set_bond(&self.bond).unwrap();
    }

    pub fn counts(&self) -> Vec<(&'static str, Count)> {
        self.path.reasons().unwrap().into_iter().map(|(reason, count)| (reason.name, count)).collect()
    }

    fn run(&self, way: Way, frame: &[u8], ifindex: u32, beside: Beside) -> Ran {
        let before = self.counts();
        let trial = self.path.trial_with(way, frame, ifindex, beside).expect("the kernel runs the program");
        undisturbed::ran();
        let after = self.counts();
        let reasons = before
            .iter()
            .zip(&after)
            .flat_map(|(old, new)| {
                std::iter::repeat_n(new.0, usize::try_from(new.1.frames - old.1.frames).unwrap())
            })
            .collect();
        Ran { verdict: trial.verdict, frame: trial.frame, priority: trial.priority, reasons }
    }

    /// A frame leaves by the bond.
    pub fn out(&self, frame: &[u8]) -> Ran {
        self.out_with(frame, Beside::default())
    }

    /// A frame leaves by the bond, and nobody looks how it is counted: reading all counters, twice, takes half a millisecond, which is
    /// much of the shortest time that the data path tells from none. Its source, as it leaves.
    pub fn sends(&self, frame: &[u8]) -> [u8; 6] {
        let trial = self.path.trial(Way::Out, frame, self.bond.ifindex).expect("the kernel runs the program");
        undisturbed::ran();
        trial.frame[6..12].try_into().expect("six bytes")
    }

    /// A frame leaves by the bond with something beside it.
    pub fn out_with(&self, frame: &[u8], beside: Beside) -> Ran {
        self.run(Way::Out, frame, self.bond.ifindex, beside)
    }

    /// A frame arrives on a member.
    pub fn arrives(&self, slot: u8, frame: &[u8]) -> Ran {
        self.run(Way::In, frame, self.members[usize::from(slot)], Beside::default())
    }

    /// A frame arrives on any interface.
    pub fn arrives_on(&self, ifindex: u32, frame: &[u8]) -> Ran {
        self.run(Way::In, frame, ifindex, Beside::default())
    }
}
