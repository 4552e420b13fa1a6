//! What is written, in which order, and what is not.

use super::*;
use crate::{
    Time,
    arp_plus::{Config, Input, OwnMember},
    host::{BondRow, Class, GuestPair, MacKind, PeerMac, Policy, Settings},
    inspector::Timing,
    plan::ClassTerms,
};
use linkbraid_wire::{Extension, FEATURE_GUESTS, Guest, HostId, Kind, MacAddr, Message, emit_frame};
use std::net::IpAddr;

mod guests;
mod refused;

/// A member of a peer that has no guests.
const MEMBER: MacKind = MacKind::Member { has_guests: false, takes_guests: true };

/// One row that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Row {
    Member(u8, Option<MemberRow>),
    Bond(BondRow),
    Plan(u32, Option<Plan>),
    ClassPlan(u32, u8, Option<u32>),
    PeerMac(MacAddr, Option<PeerMac>),
    GuestPair(GuestAddress, Option<GuestPair>),
    Other,
}

impl From<Write<'_>> for Row {
    fn from(write: Write<'_>) -> Row {
        match write {
            Write::Member(slot, row) => Row::Member(slot, row.copied()),
            Write::Bond(row) => Row::Bond(row.clone()),
            Write::Plan(number, plan) => Row::Plan(number, plan.cloned()),
            Write::ClassPlan(base, class, number) => Row::ClassPlan(base, class, number),
            Write::PeerMac(mac, row) => Row::PeerMac(mac, row.copied()),
            Write::GuestPair(at, row) => Row::GuestPair(at, row.copied()),
            Write::Class(..) | Write::Answer(..) => Row::Other,
        }
    }
}

/// What is heard decides.
struct Heard;

impl Usable for Heard {
    fn usable(&self, peer: &Peer, slot: u8, index: u8) -> bool {
        peer.heard(slot, index)
    }
}

/// A bond of so many members without a kernel.
struct Bench {
    members: Vec<Member>,
    arp_plus: ArpPlus,
    settings: Settings,
    tables: Tables,
    /// The tables were behind before the last write, and whether anything followed from numbers that were free after it.
    behind: bool,
    follows: bool,
}

/// One that lives.
pub fn member(slot: u8) -> Member {
    Member {
        slot,
        ifindex: 10 + u32::from(slot),
        mac: MacAddr([2, 0, 0, 0, 1, slot]),
        admin_up: true,
        carrier: true,
        speed_mbit: Some(1000),
        full_duplex: Some(true),
        joining: false,
        leaving: false,
        weight_mbit: 1000,
        weight_fixed: false,
        class: 0,
        alive: true,
        sound: true,
    }
}

pub fn settings() -> Settings {
    Settings {
        probes: true,
        timing: Timing::default(),
        mtu: 1500,
        damping: true,
        policy: Policy::Spread,
        published_only: false,
        auth: crate::auth::Settings::default(),
        classes: Vec::new(),
    }
}

pub fn class(number: u8, policy: Policy) -> Class {
    let terms = ClassTerms { number, has_members: true, block: false, lends: false };
    Class { name: format!("class{number}"), terms, policy }
}

const GUEST: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 1]);

fn key(host: u8) -> PeerKey {
    PeerKey::Host(HostId([host; 16]))
}

fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, host, 0])
}

/// What a host with one member says.
pub fn says(kind: Kind, host: u8, sequence: u32) -> Vec<u8> {
    says_guests(kind, host, sequence, Vec::new())
}

/// The same of a host with these guests.
fn says_guests(kind: Kind, host: u8, sequence: u32, guests: Vec<Guest>) -> Vec<u8> {
    let extension = Extension {
        host: HostId([host; 16]),
        epoch: 1,
        sequence,
        members: vec![linkbraid_wire::Member { index: 0, up: true, weight_mbit: 100, class: 0 }],
        features: FEATURE_GUESTS,
        guests,
        ..Extension::default()
    };
    let address = Some(IpAddr::from([198, 18, 0, host]));
    let message = Message { kind, address, hardware: vec![mac(host)], extension: Some(extension) };
    emit_frame(MacAddr::BROADCAST, mac(host), &message).expect("keeps the rules")
}

impl Bench {
    fn new(members: u8, left: TableImage) -> Self {
        let mut bench = Self {
            members: (0..members).map(member).collect(),
            arp_plus: ArpPlus::new(Config::new(HostId([1; 16]), 1), 7),
            settings: settings(),
            tables: Tables::adopt(left),
            behind: false,
            follows: false,
        };
        bench.report_members();
        bench.arp_plus.handle(Time::ZERO, Input::Start);
        bench
    }

    fn report_members(&mut self) {
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
        self.arp_plus
            .handle(Time::from_millis(1), Input::Frame { slot: 0, bytes: &bytes, heard_again: false });
    }

    /// The same from a host with guests that answered a PROBE.
    fn hear_proven(&mut self, host: u8, sequence: u32, guests: Vec<Guest>) {
        let bytes = says_guests(Kind::Change, host, sequence, guests);
        let now = Time::from_millis(1);
        self.arp_plus.handle(now, Input::Frame { slot: 0, bytes: &bytes, heard_again: false });
        self.arp_plus.handle(now, Input::Proven { peer: key(host), mac: mac(host), asked: now });
    }

    /// Makes all again; what there is to write for that.
    fn write(&mut self) -> Vec<Row> {
        self.make();
        self.difference()
    }

    fn make(&mut self) {
        let bond = BondRow { mac: member(0).mac, ..BondRow::default() };
        let own = OwnSide::new(&self.members, &self.settings);
        let sources = Sources { members: &self.members, own: &own, arp_plus: &self.arp_plus, usable: &Heard };
        self.tables.remake(bond, &sources);
    }

    /// Makes these peers again; what there is to write for that.
    fn update(&mut self, hosts: &[u8]) -> Vec<Row> {
        self.remake_peers(hosts);
        self.difference()
    }

    fn remake_peers(&mut self, hosts: &[u8]) {
        let own = OwnSide::new(&self.members, &self.settings);
        let sources = Sources { members: &self.members, own: &own, arp_plus: &self.arp_plus, usable: &Heard };
        self.tables.update(&sources, hosts.iter().map(|host| key(*host)));
    }

    fn difference(&mut self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.behind = self.tables.is_behind();
        let written = self.tables.write(|write| {
            rows.push(Row::from(write));
            Ok::<_, ()>(())
        });
        assert_eq!(written, Ok(()));
        self.follows = self.tables.free_numbers();
        assert!(!self.tables.is_behind());
        rows
    }
}

#[test]
fn what_has_not_changed_is_not_written() {
    let mut bench = Bench::new(2, TableImage::default());
    (2..=60).for_each(|host| bench.hear(Kind::Change, host, 1));
    assert!(bench.write().len() > 2 * 59);
    assert_eq!((bench.write(), bench.behind), (vec![], false));
    assert_eq!((bench.update(&[2, 3, 4]), bench.behind), (vec![], false));
}

#[test]
fn a_peer_that_comes_changes_or_goes_costs_its_own_rows_alone() {
    let mut bench = Bench::new(2, TableImage::default());
    (2..=60).for_each(|host| bench.hear(Kind::Change, host, 1));
    bench.write();
    bench.hear(Kind::Change, 61, 1);
    let written = bench.update(&[61]);
    let lane = Lane { slot: 0, peer_mac: Some(mac(61)), weight: 100_000, class: 0 };
    let plan = Plan { lanes: vec![lane], ..Plan::default() };
    let row = PeerMac { plan: 60, primary: mac(61), broadcast_slot: Some(0), kind: MEMBER };
    let expected = [Row::Plan(60, Some(plan)), Row::PeerMac(mac(61), Some(row))];
    assert_eq!(written, expected, "the MAC after its plan");
    assert_eq!(bench.tables.lanes_of(&key(61)), Some((60, &[(0, Some(0))][..])));
    bench.hear(Kind::Clear, 30, 2);
    let written = bench.update(&[30]);
    assert_eq!(written, [Row::PeerMac(mac(30), None), Row::Plan(29, None)]);
    assert_eq!((bench.tables.plan_of(&key(30)), bench.tables.peer_of(29)), (None, None));
    assert!(!bench.follows, "nobody waits for its number");
    // Its number is the next one's.
    bench.hear(Kind::Change, 62, 1);
    bench.update(&[62]);
    assert_eq!((bench.tables.plan_of(&key(62)), bench.tables.peer_of(29)), (Some(29), Some(key(62))));
}

#[test]
fn a_number_is_not_given_again_while_rows_may_point_at_its_plan() {
    let mut bench = Bench::new(1, TableImage::default());
    bench.hear(Kind::Change, 2, 1);
    bench.write();
    bench.hear(Kind::Clear, 2, 2);
    bench.hear(Kind::Change, 3, 1);
    bench.update(&[2, 3]);
    assert_eq!(bench.tables.plan_of(&key(3)), Some(2));
    // The plan of one that goes cannot be removed.
    bench.hear(Kind::Clear, 3, 2);
    bench.remake_peers(&[3]);
    assert_eq!(bench.tables.write(|_| Err("busy")), Err("busy"));
    bench.tables.free_numbers();
    bench.hear(Kind::Change, 4, 1);
    bench.hear(Kind::Change, 5, 1);
    bench.update(&[4, 5]);
    assert_eq!([4, 5].map(|host| bench.tables.plan_of(&key(host))), [Some(1), Some(3)]);
}

/// Tables of an earlier daemon with these peers, each with a MAC and a number.
fn left(peers: impl IntoIterator<Item = (MacAddr, u32)>) -> TableImage {
    let row = |(mac, plan)| (mac, PeerMac { plan, primary: mac, broadcast_slot: Some(0), kind: MEMBER });
    TableImage { peer_macs: peers.into_iter().map(row).collect(), ..TableImage::default() }
}

#[test]
fn a_peer_of_an_earlier_daemon_keeps_its_number_and_nobody_else_gets_it() {
    let mut bench = Bench::new(1, left([(mac(2), 2), (mac(3), 3)]));
    for host in [40, 41, 42, 3] {
        bench.hear(Kind::Change, host, 1);
    }
    bench.write();
    let plans = [40, 41, 42, 3].map(|host| bench.tables.plan_of(&key(host)));
    assert_eq!(plans, [Some(1), Some(4), Some(5), Some(3)]);
    // The other one has not spoken, and makes room.
    bench.tables.drop_inherited();
    assert_eq!(bench.difference(), [Row::PeerMac(mac(2), None), Row::Plan(2, None)]);
    bench.hear(Kind::Change, 43, 1);
    bench.update(&[43]);
    assert_eq!(bench.tables.plan_of(&key(43)), Some(2));
}

#[test]
fn a_member_goes_last() {
    let mut bench = Bench::new(3, TableImage::default());
    bench.write();
    bench.members.remove(1);
    bench.report_members();
    let written = bench.write();
    assert_eq!(written.last(), Some(&Row::Member(1, None)), "{written:?}");
}

#[test]
fn segments_of_an_earlier_daemon_are_those_of_the_members_that_are_still_there() {
    let row = |slot: u8, elected| {
        let (ifindex, mac) = (10 + u32::from(slot), member(slot).mac);
        (slot, MemberRow { ifindex, mac, live: true, elected })
    };
    let former = [row(0, Some(1)), row(1, Some(1)), row(2, Some(2)), row(3, Some(2)), row(4, None)];
    let left = TableImage { members: former.into_iter().collect(), ..TableImage::default() };
    let mut tables = Tables::adopt(left);
    let mut members: Vec<Member> = (0..5).map(member).collect();
    // Another interface has the slot now.
    members[3].ifindex = 99;
    assert_eq!(tables.take_former_segments(&members), [vec![0, 1], vec![2]]);
    assert_eq!(tables.former_elected().iter().collect::<Vec<_>>(), [&1, &2]);
    assert!(tables.take_former_segments(&members).is_empty(), "asked for once");
    tables.drop_inherited();
    assert!(tables.former_elected().is_empty());
}

#[test]
fn a_slot_whose_member_is_gone_is_dead_while_plans_of_an_earlier_daemon_may_name_it() {
    let row = |slot: u8| MemberRow {
        ifindex: 10 + u32::from(slot),
        mac: member(slot).mac,
        live: true,
        elected: None,
    };
    let members = (0..3).map(|slot| (slot, row(slot))).collect();
    let mut bench = Bench::new(3, TableImage { members, ..left([(mac(2), 1), (mac(3), 2)]) });
    let abandoned = |bench: &Bench| bench.tables.abandoned_slots(&bench.members) & 0b111;
    assert_eq!(abandoned(&bench), 0);
    bench.members[1].ifindex = 99;
    bench.members.remove(2);
    assert_eq!(abandoned(&bench), 0b110);
    bench.hear(Kind::Change, 2, 1);
    bench.write();
    assert_eq!(abandoned(&bench), 0b110, "the other peer has not spoken yet");
    bench.tables.drop_inherited();
    assert!(!bench.tables.free_numbers());
    assert_eq!(abandoned(&bench), 0b110, "its rows are still there");
    bench.difference();
    assert_eq!((abandoned(&bench), bench.follows), (0, true));
    // So may the plan of a class towards plain hosts, though there is no peer.
    let members = (0..3).map(|slot| (slot, row(slot))).collect();
    let class_plans = BTreeMap::from([((PLAIN_PLAN, 1), 1)]);
    let mut bench = Bench::new(3, TableImage { members, class_plans, ..TableImage::default() });
    bench.members.remove(2);
    assert_eq!(abandoned(&bench), 0b100);
    bench.write();
    assert_eq!(abandoned(&bench), 0);
}

#[test]
fn no_mac_of_an_earlier_daemon_leads_to_the_plan_of_a_peer_that_left() {
    let mut bench = Bench::new(1, left([(mac(2), 1), (mac(99), 1)]));
    bench.hear(Kind::Change, 2, 1);
    bench.write();
    bench.hear(Kind::Clear, 2, 2);
    let gone = [Row::PeerMac(mac(2), None), Row::PeerMac(mac(99), None), Row::Plan(1, None)];
    assert_eq!(bench.update(&[2]), gone);
}

#[test]
fn nothing_is_written_before_the_tables_are_whole() {
    let mut tables = Tables::adopt(TableImage::default());
    assert!(!tables.is_behind());
    assert_eq!(tables.write(|_| Err("too early")), Ok(()));
}

/// What the data path finds at each instant of these writes, after those before: no member names a segment without a
/// plan while there are several segments, and no plan a member that is not there.
#[derive(Default)]
struct Instants {
    members: BTreeMap<u8, MemberRow>,
    plans: BTreeMap<u32, Plan>,
    several: bool,
}

impl Instants {
    #[track_caller]
    fn run(&mut self, written: &[Row]) {
        for (at, row) in written.iter().enumerate() {
            match row {
                Row::Member(slot, Some(member)) => _ = self.members.insert(*slot, *member),
                Row::Member(slot, None) => _ = self.members.remove(slot),
                Row::Plan(number, Some(plan)) => _ = self.plans.insert(*number, plan.clone()),
                Row::Plan(number, None) => _ = self.plans.remove(number),
                Row::Bond(bond) => self.several = bond.elected.len() > 1,
                _ => {}
            }
            let elected = self.members.values().filter_map(|member| member.elected);
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
    let mut bench = Bench::new(4, TableImage::default());
    let mut instants = Instants::default();
    bench.arp_plus.handle(Time::ZERO, Input::Segments(vec![vec![0, 1], vec![2, 3]]));
    let step = |bench: &mut Bench, instants: &mut Instants| {
        bench.report_members();
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

/// What was written of classes, but for plain hosts of single segments.
fn of_classes(written: &[Row]) -> Vec<(u32, u8, Option<u32>)> {
    let of = |row: &Row| match row {
        Row::ClassPlan(base, class, number) if *base < plain_plan(0) => Some((*base, *class, *number)),
        _ => None,
    };
    let mut found: Vec<_> = written.iter().filter_map(of).collect();
    found.sort_unstable();
    found
}

#[test]
fn a_class_has_a_plan_beside_each_other_one_and_it_goes_with_the_class() {
    let mut bench = Bench::new(3, TableImage::default());
    bench.hear(Kind::Change, 2, 1);
    bench.write();
    bench.members[2].class = 3;
    bench.settings.classes = vec![class(3, Policy::Flow)];
    let written = bench.write();
    let pointers = of_classes(&written);
    // Beside plain hosts and beside the peer.
    let [(0, 3, Some(plain)), (1, 3, Some(peer))] = pointers[..] else { panic!("{pointers:?}") };
    let plan = |number: u32| bench.tables.image().plans[&number].clone();
    let slots = |number: u32| plan(number).lanes.iter().map(|lane| lane.slot).collect::<Vec<_>>();
    // The peer was heard on the first member alone.
    assert_eq!((slots(0), slots(plain), slots(peer)), (vec![0, 1], vec![2], vec![0]));
    assert_eq!((plan(plain).policy, plan(plain).shares), (Policy::Flow, true));
    let first = |wanted: &dyn Fn(&Row) -> bool| written.iter().position(wanted).expect("written");
    let pointed = first(&|row| *row == Row::ClassPlan(0, 3, Some(plain)));
    let planned = first(&|row| matches!(row, Row::Plan(number, _) if *number == plain));
    assert!(planned < pointed, "the plan comes first");
    assert_eq!(bench.tables.peer_of(peer), Some(key(2)));
    bench.members[2].alive = false;
    bench.settings.classes[0].terms.block = true;
    let blocked = Plan { policy: Policy::Flow, ..Plan::default() };
    assert!(bench.write().contains(&Row::Plan(plain, Some(blocked))), "not blocked");
    bench.settings.classes.clear();
    bench.members[2].class = 0;
    assert_eq!(of_classes(&bench.write()), [(0, 3, None), (1, 3, None)]);
    assert_eq!(bench.tables.peer_of(peer), None);
}

#[test]
fn class_plans_of_an_earlier_daemon_are_taken_over_or_forgotten() {
    let class_plans = [((0, 3), 2), ((1, 3), 3), ((7, 3), 8), ((0, 4), 9)].into_iter().collect();
    let mut bench = Bench::new(3, TableImage { class_plans, ..left([(mac(2), 1)]) });
    bench.members[2].class = 3;
    bench.settings.classes = vec![class(3, Policy::Flow)];
    let written = bench.write();
    assert_eq!(of_classes(&written), [(0, 4, None)], "the other one points there already");
    assert!(written.iter().any(|row| matches!(row, Row::Plan(2, Some(_)))));
    bench.hear(Kind::Change, 2, 1);
    let written = bench.update(&[2]);
    assert!(written.iter().any(|row| matches!(row, Row::Plan(3, Some(_)))), "{written:?}");
    assert_eq!(bench.tables.class_plan(1, 3), 3);
    bench.tables.drop_inherited();
    assert_eq!(of_classes(&bench.difference()), [(7, 3, None)]);
}

#[test]
fn a_peer_takes_the_number_of_a_class_rather_than_none() {
    // Hosts that an earlier daemon knew leave six numbers: three for the class towards plain hosts of each segment.
    let numbers = 7..super::super::PLAIN_PLAN_FIRST;
    let known = numbers.map(|plan| (MacAddr([2, 9, 0, 0, (plan >> 8) as u8, plan as u8]), plan));
    let mut bench = Bench::new(3, left(known));
    bench.members[2].class = 3;
    bench.settings.classes = vec![class(3, Policy::Flow)];
    bench.hear(Kind::Change, 2, 1);
    let pointers = of_classes(&bench.write());
    let [(0, 3, Some(_)), (peer, 3, Some(taken))] = pointers[..] else { panic!("{pointers:?}") };
    assert_eq!(bench.tables.plan_of(&key(2)), Some(peer));
    bench.hear(Kind::Change, 3, 1);
    let written = bench.update(&[3]);
    assert_eq!(bench.tables.plan_of(&key(3)), Some(taken));
    assert_eq!((bench.tables.class_plan(peer, 3), bench.tables.peer_of(taken)), (peer, Some(key(3))));
    let gone = written.iter().position(|row| *row == Row::ClassPlan(peer, 3, None));
    let another = written.iter().position(|row| matches!(row, Row::Plan(number, _) if *number == taken));
    assert!(gone < another, "nothing points at a plan that becomes another's: {written:?}");
    assert!(bench.tables.take_short() && !bench.tables.take_short(), "said once");
    // The next write finds none to give it back.
    assert!(of_classes(&bench.write()).is_empty());
    bench.hear(Kind::Clear, 3, 2);
    bench.update(&[3]);
    assert_eq!(of_classes(&bench.write()), [(peer, 3, Some(taken))]);
}

#[test]
fn a_row_that_is_refused_keeps_no_other_out_but_what_points_at_it_and_is_tried_again() {
    let mut bench = Bench::new(1, TableImage::default());
    bench.write();
    (2..=9).for_each(|host| bench.hear(Kind::Change, host, 1));
    bench.remake_peers(&[2, 3, 4, 5, 6, 7, 8, 9]);
    let mut macs = Vec::new();
    let refused = bench.tables.write(|write| match write {
        Write::Plan(3, _) => Err("no room"),
        Write::PeerMac(mac, _) if mac.0[4] == 6 => Err("full"),
        Write::PeerMac(mac, _) => {
            macs.push(mac.0[4]);
            Ok(())
        }
        _ => Ok(()),
    });
    assert_eq!((refused, macs), (Err("no room"), vec![2, 3, 5, 7, 8, 9]), "host 4 would have plan 3");
    assert!(bench.tables.is_behind());
    let again: Vec<Row> = bench.difference();
    let of = |row: &Row| match row {
        Row::Plan(number, _) => *number,
        Row::PeerMac(mac, _) => u32::from(mac.0[4]),
        _ => 0,
    };
    assert_eq!(again.iter().map(of).collect::<Vec<_>>(), [3, 4, 6]);
}

#[test]
fn what_goes_stays_while_rows_that_point_at_it_cannot_be_removed() {
    type IsBusy = fn(&Row) -> bool;
    let rows: [(IsBusy, bool); 3] = [
        (|row| matches!(row, Row::PeerMac(_, None)), false),
        (|row| matches!(row, Row::GuestPair(_, None)), false),
        (|row| matches!(row, Row::ClassPlan(_, _, None)), true),
    ];
    for (is_busy, points_at_class) in rows {
        // A peer with a class, and a guest.
        let mut bench = Bench::new(2, TableImage::default());
        bench.members[1].class = 3;
        bench.settings.classes = vec![class(3, Policy::Flow)];
        bench.hear_proven(2, 1, vec![Guest { vlan: 0, mac: GUEST, addresses: vec![[198, 18, 1, 1].into()] }]);
        bench.write();
        let peers = bench.tables.plan_of(&key(2)).expect("a plan");
        let number = if points_at_class { bench.tables.class_plan(peers, 3) } else { peers };
        bench.hear(Kind::Clear, 2, 2);
        bench.arp_plus.handle(Time::from_millis(1), Input::NobodyObjects(key(2)));
        bench.remake_peers(&[2]);
        let mut rows = Vec::new();
        let written = bench.tables.write(|write| {
            rows.push(Row::from(write));
            rows.last().is_none_or(|row| !is_busy(row)).then_some(()).ok_or("busy")
        });
        assert_eq!(written, Err("busy"));
        assert!(!rows.contains(&Row::Plan(number, None)), "{rows:?}");
        let rows = bench.difference();
        assert!(is_busy(&rows[0]), "{rows:?}");
        assert!(rows.contains(&Row::Plan(number, None)), "{rows:?}");
    }
}

#[test]
fn a_member_stays_while_a_plan_that_may_name_it_cannot_be_written() {
    let mut bench = Bench::new(2, TableImage::default());
    bench.write();
    bench.members.remove(1);
    bench.report_members();
    bench.make();
    let mut rows = Vec::new();
    let written = bench.tables.write(|write| match write {
        Write::Plan(PLAIN_PLAN, _) => Err("busy"),
        write => {
            rows.push(Row::from(write));
            Ok(())
        }
    });
    assert_eq!(written, Err("busy"));
    assert!(!rows.contains(&Row::Member(1, None)), "{rows:?}");
    assert_eq!(bench.difference().last(), Some(&Row::Member(1, None)));
}

#[test]
fn a_member_that_changes_is_written_once_and_a_new_one_in_its_slot_is_in_no_segment_at_first() {
    let mut bench = Bench::new(2, TableImage::default());
    bench.write();
    let of_member = |written: Vec<Row>| -> Vec<(u32, bool, Option<u8>)> {
        let row = |row: Row| match row {
            Row::Member(1, Some(row)) => Some((row.ifindex, row.live, row.elected)),
            _ => None,
        };
        written.into_iter().filter_map(row).collect()
    };
    bench.members[1].leaving = true;
    assert_eq!(of_member(bench.write()), [(11, false, Some(1))]);
    // One that was another one in between is as it should be.
    bench.members[1].leaving = false;
    bench.make();
    bench.members[1].leaving = true;
    assert_eq!(of_member(bench.write()), []);
    bench.members[1] = Member { ifindex: 99, ..member(1) };
    assert_eq!(of_member(bench.write()), [(99, true, None), (99, true, Some(1))]);
}

#[test]
fn of_the_members_that_plain_hosts_send_to_only_others_are_written() {
    let mut bench = Bench::new(2, TableImage::default());
    bench.write();
    let mut written = |rows: &[(u8, u8)]| {
        let row = |(host, slot): &(u8, u8)| (mac(*host), crate::host::Answer { slot: *slot, probed: false });
        bench.tables.set_answers(rows.iter().map(row).collect());
        bench.difference()
    };
    assert_eq!(written(&[(7, 0), (8, 1)]), [Row::Other, Row::Other]);
    assert_eq!(written(&[(7, 0), (8, 1)]), []);
    assert_eq!(written(&[(7, 1), (8, 1)]), [Row::Other]);
    assert_eq!(written(&[(7, 1)]), [Row::Other]);
    // What was another in between is as it should be.
    bench.tables.set_answers(BTreeMap::new());
    let row = crate::host::Answer { slot: 1, probed: false };
    bench.tables.set_answers([(mac(7), row)].into());
    assert_eq!((bench.difference(), bench.behind), (vec![], true));
}

#[test]
fn a_class_that_goes_where_all_else_goes_has_no_plan_of_its_own() {
    let mut bench = Bench::new(2, TableImage::default());
    // It waits for its own members, as all else does, and it has none.
    let terms = ClassTerms { number: 3, has_members: false, block: true, lends: false };
    bench.settings.classes = vec![Class { terms, ..class(3, Policy::Spread) }];
    bench.hear(Kind::Change, 2, 1);
    assert_eq!(of_classes(&bench.write()), []);
}
