//! What is written, in which order, and what is not.

use super::*;
use crate::state::SavedClass;
use linkbraid_api::{Borrow, ClassSettings, Fallback, Policy, Weight};
use linkbraid_proto::{
    Time,
    arp_plus::{Config, Input, OwnMember},
};
use linkbraid_wire::{Extension, HostId, Kind, MacAddr, Message, VERSION, emit_frame};
use std::{cell::RefCell, net::IpAddr};

/// One row that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Written {
    Member(u8, Option<dataplane::Member>),
    Counts(u8),
    NoPlainHosts(u8),
    Bond(dataplane::Bond),
    Plan(u32, Plan),
    ClassPlan(u32, u8, Option<u32>),
    PeerMac([u8; 6], PeerMac),
    NoPeerMac([u8; 6]),
}

/// Takes what is written, in order.
#[derive(Default)]
struct List(RefCell<Vec<Written>>);

impl List {
    fn put(&self, written: Written) -> Result<()> {
        self.0.borrow_mut().push(written);
        Ok(())
    }

    /// What was written since the last look.
    fn take(&self) -> Vec<Written> {
        self.0.take()
    }
}

impl Rows for List {
    fn set_member(&self, slot: u8, member: Option<&dataplane::Member>) -> Result<()> {
        self.put(Written::Member(slot, member.copied()))
    }

    fn clear_member_counts(&self, slot: u8) -> Result<()> {
        self.put(Written::Counts(slot))
    }

    fn forget_plain_hosts(&self, slot: u8) -> Result<()> {
        self.put(Written::NoPlainHosts(slot))
    }

    fn set_bond(&self, bond: &dataplane::Bond) -> Result<()> {
        self.put(Written::Bond(bond.clone()))
    }

    fn set_plan(&self, number: u32, plan: &Plan) -> Result<()> {
        self.put(Written::Plan(number, plan.clone()))
    }

    fn set_class_plan(&self, base: u32, class: u8, number: Option<u32>) -> Result<()> {
        self.put(Written::ClassPlan(base, class, number))
    }

    fn set_peer_mac(&self, mac: [u8; 6], peer: &PeerMac) -> Result<()> {
        self.put(Written::PeerMac(mac, *peer))
    }

    fn delete_peer_mac(&self, mac: [u8; 6]) -> Result<()> {
        self.put(Written::NoPeerMac(mac))
    }
}

/// What is heard decides.
struct Heard;

impl Alive for Heard {
    fn usable(&self, peer: &Peer, slot: u8, index: u8) -> bool {
        peer.heard(slot, index)
    }
}

/// A bond of so many members without a kernel.
struct Bench {
    members: Vec<Member>,
    arp_plus: ArpPlus,
    classes: Vec<SavedClass>,
    tables: Tables,
    path: List,
}

/// One that lives.
pub(crate) fn member(slot: u8) -> Member {
    Member {
        slot,
        ifindex: 10 + u32::from(slot),
        name: format!("eth{slot}"),
        mac: MacAddr([2, 0, 0, 0, 1, slot]),
        admin_up: true,
        carrier: true,
        polled: None,
        ours: true,
        alive: true,
        sound: true,
        joining: false,
        leaving: false,
        speed_mbit: Some(1000),
        full_duplex: Some(true),
        weight: Weight::Auto,
        class: 0,
    }
}

fn key(host: u8) -> PeerKey {
    PeerKey::Host(HostId([host; 16]))
}

fn mac(host: u8) -> [u8; 6] {
    [2, 0, 0, 0, host, 0]
}

/// What a host with one member says.
fn says(kind: Kind, host: u8, sequence: u32) -> Vec<u8> {
    let extension = Extension {
        version: VERSION,
        host: HostId([host; 16]),
        epoch: 1,
        sequence,
        members: vec![linkbraid_wire::Member { index: 0, up: true, weight_mbit: 100, class: 0 }],
        classes: Vec::new(),
        features: 0,
        addresses: Vec::new(),
        digest: None,
        auth: None,
    };
    let address = Some(IpAddr::from([198, 18, 0, host]));
    let hardware = vec![MacAddr(mac(host))];
    let message = Message { kind, address, hardware, extension: Some(extension) };
    emit_frame(MacAddr::BROADCAST, MacAddr(mac(host)), &message).expect("keeps the rules")
}

impl Bench {
    fn new(members: u8, inherited: Vec<([u8; 6], PeerMac)>) -> Self {
        let mut bench = Self {
            members: (0..members).map(member).collect(),
            arp_plus: ArpPlus::new(Config::new(HostId([1; 16]), 1), 7),
            classes: Vec::new(),
            tables: Tables::new(inherited, BTreeMap::new(), ClassPlans::default()),
            path: List::default(),
        };
        bench.tell_members();
        bench.arp_plus.handle(Time::ZERO, Input::Start);
        bench
    }

    fn tell_members(&mut self) {
        let own = self.members.iter().map(|member| OwnMember {
            slot: member.slot,
            mac: member.mac,
            up: member.alive,
            sound: true,
            joining: member.joining,
            weight_mbit: 1000,
            class: 0,
        });
        let own = own.collect();
        self.arp_plus.handle(Time::ZERO, Input::Members(own));
    }

    fn hear(&mut self, kind: Kind, host: u8, sequence: u32) {
        let bytes = says(kind, host, sequence);
        self.arp_plus.handle(Time::from_millis(1), Input::Frame { slot: 0, bytes: &bytes });
    }

    fn own(&self) -> OwnSide {
        OwnSide::new(&self.members, &self.classes, Policy::Spread)
    }

    /// Writes all; what that took.
    fn write(&mut self) -> Vec<Written> {
        let bond = dataplane::Bond {
            ifindex: 9,
            mac: [2, 0, 0, 0, 1, 0],
            epoch: 1,
            damping: None,
            elected: Vec::new(),
            dead_slots: 0,
        };
        let ready = Ready { members: &self.members, own: &self.own(), alive: &Heard };
        self.tables.write(&self.path, bond, &ready, &self.arp_plus).expect("a list takes all");
        self.path.take()
    }

    /// Writes these peers; what that took.
    fn write_peers(&mut self, hosts: &[u8]) -> Vec<Written> {
        let ready = Ready { members: &self.members, own: &self.own(), alive: &Heard };
        let keys = hosts.iter().map(|host| key(*host));
        self.tables.write_peers(&self.path, &ready, &self.arp_plus, keys).expect("a list takes all");
        self.path.take()
    }
}

#[test]
fn what_has_not_changed_is_not_written() {
    let mut bench = Bench::new(2, Vec::new());
    (2..=60).for_each(|host| bench.hear(Kind::Change, host, 1));
    assert!(bench.write().len() > 2 * 59);
    let again = bench.write();
    assert!(matches!(again[..], [Written::Bond(_)]), "{again:?}");
    let again = bench.write_peers(&[2, 3, 4]);
    assert_eq!(again, []);
}

#[test]
fn a_peer_that_comes_changes_or_goes_costs_its_own_rows_alone() {
    let mut bench = Bench::new(2, Vec::new());
    (2..=60).for_each(|host| bench.hear(Kind::Change, host, 1));
    bench.write();
    bench.hear(Kind::Change, 61, 1);
    let written = bench.write_peers(&[61]);
    let lanes = written.iter().find_map(|row| match row {
        Written::Plan(60, plan) => Some(plan.lanes.clone()),
        _ => None,
    });
    let lane = dataplane::Lane { slot: 0, peer_mac: Some(mac(61)), weight: 100_000, class: 0 };
    assert_eq!((written.len(), lanes), (2, Some(vec![lane])), "{written:?}");
    let row = PeerMac { plan: 60, primary: mac(61), broadcast_slot: 0 };
    assert_eq!(written[1], Written::PeerMac(mac(61), row), "after its plan");
    assert_eq!(bench.tables.lanes_of(&key(61)), Some((60, &[(0, Some(0))][..])));
    bench.hear(Kind::Clear, 30, 2);
    let written = bench.write_peers(&[30]);
    assert_eq!(written, [Written::NoPeerMac(mac(30)), Written::Plan(29, Plan::default())]);
    assert_eq!((bench.tables.plan_of(&key(30)), bench.tables.peer_of(29)), (None, None));
    // Its number is the next one's.
    bench.hear(Kind::Change, 62, 1);
    bench.write_peers(&[62]);
    assert_eq!((bench.tables.plan_of(&key(62)), bench.tables.peer_of(29)), (Some(29), Some(key(62))));
}

#[test]
fn a_peer_of_an_earlier_daemon_keeps_its_number_and_nobody_else_gets_it() {
    let row = |host| (mac(host), PeerMac { plan: u32::from(host), primary: mac(host), broadcast_slot: 0 });
    let mut bench = Bench::new(1, vec![row(2), row(3)]);
    for host in [40, 41, 42, 3] {
        bench.hear(Kind::Change, host, 1);
    }
    bench.write();
    let plans = [40, 41, 42, 3].map(|host| bench.tables.plan_of(&key(host)));
    assert_eq!(plans, [Some(1), Some(4), Some(5), Some(3)]);
    // The other one has not spoken, and makes room.
    bench.tables.drop_inherited(&bench.path).expect("a list takes all");
    assert_eq!(bench.path.take(), [Written::NoPeerMac(mac(2))]);
    bench.hear(Kind::Change, 43, 1);
    bench.write_peers(&[43]);
    assert_eq!(bench.tables.plan_of(&key(43)), Some(2));
}

#[test]
fn nothing_is_left_in_a_slot_that_becomes_free() {
    let mut bench = Bench::new(3, Vec::new());
    bench.write();
    bench.members.remove(1);
    bench.tell_members();
    let written = bench.write();
    let rows = [Written::Member(1, None), Written::Counts(1), Written::NoPlainHosts(1)];
    assert_eq!(written[written.len() - 3..], rows, "{written:?}");
}

#[test]
fn segments_of_an_earlier_daemon_are_those_of_the_members_that_are_still_there() {
    let row = |slot: u8, elected| {
        let row =
            dataplane::Member { ifindex: 10 + u32::from(slot), mac: member(slot).mac.0, live: true, elected };
        (slot, row)
    };
    let former = [row(0, 1), row(1, 1), row(2, 2), row(3, 2), row(4, NO_SLOT)].into_iter().collect();
    let mut tables = Tables::new(Vec::new(), former, ClassPlans::default());
    let mut members: Vec<Member> = (0..5).map(member).collect();
    // Another interface has the slot now.
    members[3].ifindex = 99;
    assert_eq!(tables.take_former_segments(&members), [vec![0, 1], vec![2]]);
    assert_eq!(tables.former_elected().iter().collect::<Vec<_>>(), [&1, &2]);
    assert!(tables.take_former_segments(&members).is_empty(), "told once");
    tables.drop_inherited(&List::default()).expect("a list takes all");
    assert!(tables.former_elected().is_empty());
}

/// What the data path finds at each instant of these writes, after those before: no member names a segment without a
/// plan while there are several segments, and no plan a member that is not there.
#[derive(Default)]
struct Instants {
    members: BTreeMap<u8, dataplane::Member>,
    plans: BTreeMap<u32, Plan>,
    several: bool,
}

impl Instants {
    #[track_caller]
    fn run(&mut self, written: &[Written]) {
        for (at, row) in written.iter().enumerate() {
            match row {
                Written::Member(slot, Some(member)) => _ = self.members.insert(*slot, *member),
                Written::Member(slot, None) => _ = self.members.remove(slot),
                Written::Plan(number, plan) => _ = self.plans.insert(*number, plan.clone()),
                Written::Bond(bond) => self.several = bond.elected.len() > 1,
                _ => {}
            }
            let elected = self.members.values().map(|member| member.elected).filter(|slot| *slot != NO_SLOT);
            for slot in elected.filter(|_| self.several) {
                let plan = self.plans.get(&plain_plan(slot));
                assert!(plan.is_some_and(|plan| !plan.lanes.is_empty()), "{slot} after {at}: {written:#?}");
            }
            let lanes = self.plans.values().flat_map(|plan| &plan.lanes);
            for lane in lanes {
                assert!(self.members.contains_key(&lane.slot), "{lane:?} after {at}: {written:#?}");
            }
        }
    }
}

#[test]
fn at_no_instant_does_a_row_name_one_that_is_not_there() {
    let mut bench = Bench::new(4, Vec::new());
    let mut instants = Instants::default();
    bench.arp_plus.handle(Time::ZERO, Input::Segments(vec![vec![0, 1], vec![2, 3]]));
    let step = |bench: &mut Bench, instants: &mut Instants| {
        bench.tell_members();
        let written = bench.write();
        instants.run(&written);
    };
    step(&mut bench, &mut instants);
    assert!(instants.several);
    // The elected ones die, and the others take their places.
    bench.members[2].alive = false;
    step(&mut bench, &mut instants);
    bench.members[0].alive = false;
    step(&mut bench, &mut instants);
    bench.members[0].alive = true;
    bench.members[2].alive = true;
    step(&mut bench, &mut instants);
    // One leaves, and another interface comes in its place.
    let leaver = bench.members.remove(0);
    step(&mut bench, &mut instants);
    bench.members.insert(0, Member { ifindex: 77, mac: MacAddr([2, 0, 0, 0, 1, 77]), ..leaver });
    step(&mut bench, &mut instants);
    // The second switch is unplugged.
    bench.members.truncate(2);
    step(&mut bench, &mut instants);
}

/// The class `urgent`, number 3.
fn urgent(fallback: Fallback) -> SavedClass {
    SavedClass {
        number: 3,
        name: "urgent".into(),
        rules: Vec::new(),
        has_members: true,
        settings: ClassSettings { policy: Policy::Flow, fallback, borrow: Borrow::Never },
        applied: false,
    }
}

/// What was written of classes, but for plain hosts of single segments.
fn of_classes(written: &[Written]) -> Vec<(u32, u8, Option<u32>)> {
    let of = |row: &Written| match row {
        Written::ClassPlan(base, class, number) if *base < plain_plan(0) => Some((*base, *class, *number)),
        _ => None,
    };
    written.iter().filter_map(of).collect()
}

#[test]
fn a_class_has_a_plan_beside_each_other_one_and_it_goes_with_the_class() {
    let mut bench = Bench::new(3, Vec::new());
    bench.hear(Kind::Change, 2, 1);
    bench.write();
    bench.members[2].class = 3;
    bench.classes = vec![urgent(Fallback::Share)];
    let written = bench.write();
    let class = of_classes(&written);
    // Beside plain hosts and beside the peer.
    let [(0, 3, Some(plain)), (1, 3, Some(peer))] = class[..] else { panic!("{class:?}") };
    let plan = |number: u32| {
        let of = |row: &Written| match row {
            Written::Plan(this, plan) if *this == number => Some(plan.clone()),
            _ => None,
        };
        written.iter().rev().find_map(of).expect("written")
    };
    let slots = |number: u32| plan(number).lanes.iter().map(|lane| lane.slot).collect::<Vec<_>>();
    // The peer was heard on the first member alone.
    assert_eq!((slots(0), slots(plain), slots(peer)), (vec![0, 1], vec![2], vec![0]));
    assert_eq!((plan(plain).policy, plan(plain).shares), (dataplane::Policy::Flow, true));
    let first = |wanted: &dyn Fn(&Written) -> bool| written.iter().position(wanted).expect("written");
    let pointed = first(&|row| *row == Written::ClassPlan(0, 3, Some(plain)));
    assert!(
        first(&|row| matches!(row, Written::Plan(number, _) if *number == plain)) < pointed,
        "the plan comes first"
    );
    assert_eq!(bench.tables.peer_of(peer), Some(key(2)));
    bench.members[2].alive = false;
    bench.classes = vec![urgent(Fallback::Block)];
    let blocked = Plan { policy: dataplane::Policy::Flow, ..Plan::default() };
    assert!(bench.write().contains(&Written::Plan(plain, blocked)), "not blocked");
    bench.classes.clear();
    bench.members[2].class = 0;
    assert_eq!(of_classes(&bench.write()), [(0, 3, None), (1, 3, None)]);
    assert_eq!(bench.tables.peer_of(peer), None);
}

#[test]
fn class_plans_of_an_earlier_daemon_are_taken_over_or_forgotten() {
    let peer = PeerMac { plan: 1, primary: mac(2), broadcast_slot: 0 };
    let mut bench = Bench::new(3, vec![(mac(2), peer)]);
    let left = [((0, 3), 2), ((1, 3), 3), ((7, 3), 8), ((0, 4), 9)];
    bench.tables = Tables::new(vec![(mac(2), peer)], BTreeMap::new(), ClassPlans::left(left));
    bench.members[2].class = 3;
    bench.classes = vec![urgent(Fallback::Share)];
    assert_eq!(of_classes(&bench.write()), [(0, 3, Some(2)), (0, 4, None)]);
    bench.hear(Kind::Change, 2, 1);
    assert_eq!(of_classes(&bench.write_peers(&[2])), [(1, 3, Some(3))]);
    bench.tables.drop_inherited(&bench.path).expect("a list takes all");
    assert_eq!(of_classes(&bench.path.take()), [(7, 3, None)]);
}

#[test]
fn a_peer_takes_the_number_of_a_class_rather_than_none() {
    let old = PeerMac { plan: 0, primary: mac(9), broadcast_slot: 0 };
    // Hosts that an earlier daemon knew leave six numbers: three for the class towards plain hosts of each segment.
    let numbers = 7..linkbraid_dataplane::PLAIN_PLAN_FIRST;
    let known = numbers.map(|plan| ([2, 9, 0, 0, (plan >> 8) as u8, plan as u8], PeerMac { plan, ..old }));
    let mut bench = Bench::new(3, known.collect());
    bench.members[2].class = 3;
    bench.classes = vec![urgent(Fallback::Share)];
    bench.hear(Kind::Change, 2, 1);
    assert_eq!(of_classes(&bench.write()), [(0, 3, Some(4)), (5, 3, Some(6))]);
    bench.hear(Kind::Change, 3, 1);
    bench.write_peers(&[3]);
    assert_eq!(bench.tables.plan_of(&key(3)), Some(6));
    assert_eq!((bench.tables.class_plan(5, 3), bench.tables.peer_of(6)), (5, Some(key(3))));
    // The next write finds none to give it back.
    assert!(of_classes(&bench.write()).is_empty());
    bench.hear(Kind::Clear, 3, 2);
    bench.write_peers(&[3]);
    assert_eq!(of_classes(&bench.write()), [(5, 3, Some(6))]);
}
