//! What is told of a frame: the same that becomes of it then, and nothing changes by the question.

use crate::class::{PEER_PLAN, row, with_class};
use crate::frames::{ACK, SYN, Tcp, V4, V6, ethernet, neighbour};
use crate::lent::Lent;
use crate::pairs::{FAR, alias, with_guests};
use crate::plain::{hear, two_switches};
use crate::rig::{BROADCAST, GUEST, PLAIN, Rig, own, peer, plan};
use crate::steer::udp;
use libbpf_rs::{MapCore as _, MapFlags, MapType};
use linkbraid_api::Rule;
use linkbraid_dataplane::{Beside, Explained, PLAIN_PLAN_FIRST, PLANS_MAX, Plan, Policy, Verdict, Why};
use std::collections::BTreeMap;

/// Rows of long arrays that are looked at: plans, slots, rules and classes have low numbers, or are plans of segments.
fn is_used(row: u32) -> bool {
    row < 64 || (PLAIN_PLAN_FIRST..PLANS_MAX).contains(&row)
}

/// What the programs keep, by map and key.
fn all(path: &Lent) -> BTreeMap<(String, Vec<u8>), Vec<Vec<u8>>> {
    let mut all = BTreeMap::new();
    for map in path.maps() {
        let name = map.name().to_string_lossy().into_owned();
        let keys: Vec<Vec<u8>> = match map.map_type() {
            MapType::Array | MapType::PercpuArray => (0..map.max_entries())
                .filter(|row| is_used(*row))
                .map(|row| row.to_ne_bytes().to_vec())
                .collect(),
            MapType::RingBuf | MapType::Xskmap => Vec::new(),
            _ => map.keys().collect(),
        };
        for key in keys {
            let row = match map.map_type() {
                MapType::PercpuArray => map.lookup_percpu(&key, MapFlags::ANY).unwrap(),
                _ => map.lookup(&key, MapFlags::ANY).unwrap().map(|row| vec![row]),
            };
            all.insert((name.clone(), key), row.unwrap_or_default());
        }
    }
    all
}

/// Whether the progress of a plan's lanes begins anew, as it does with the first frame after they have changed: its generation differs.
fn is_reset((map, _): &(String, Vec<u8>), old: &[Vec<u8>], new: &[Vec<u8>]) -> bool {
    map == "lb_progresses" && old[0][..4] != new[0][..4]
}

/// What is told of a frame.
fn told(rig: &Rig, frame: &[u8], beside: Beside) -> Explained {
    rig.path.explain(frame, rig.bond.ifindex, beside).unwrap()
}

/// The same, which leaves no trace; and the frame itself then does what was told.
#[track_caller]
fn holds_with(rig: &Rig, frame: &[u8], beside: Beside) -> Explained {
    let before = all(&rig.path);
    let told = told(rig, frame, beside);
    let changed: Vec<_> = all(&rig.path)
        .into_iter()
        .filter(|(at, row)| before.get(at).is_none_or(|old| old != row && !is_reset(at, old, row)))
        .map(|(at, _)| at)
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
    let ran = rig.out_with(frame, beside);
    assert!(ran.reasons.contains(&told.reason.name), "{:?}: {told:?}", ran.reasons);
    assert_eq!(ran.frame[..12], told.frame[..12], "{told:?}");
    let sent = told.reason.verdict == "sent";
    assert_eq!(ran.verdict == Verdict::Redirect, sent, "{told:?}");
    assert_eq!(told.slot.is_some(), sent, "{told:?}");
    told
}

#[track_caller]
fn holds(rig: &Rig, frame: &[u8]) -> Explained {
    holds_with(rig, frame, Beside::default())
}

fn data(seq: u32) -> Vec<u8> {
    Tcp::data(seq, 1000).frame(peer(0), own(0))
}

#[test]
fn tcp_to_a_peer_takes_the_lane_that_is_furthest_behind() {
    let rig = Rig::new(3);
    for turn in 0..7 {
        let told = holds(&rig, &data(1 + 1000 * turn));
        let lane = turn as usize % 3;
        assert_eq!((told.reason.name, told.lane), ("tx_peer", Some((lane, Why::Latest))));
        assert_eq!((told.base, told.plan, told.slot), (Some(1), Some(1), Some(lane as u8)));
        assert_eq!((told.class, told.rule, told.avoided, told.second), (0, None, 0, None));
    }
    let now = rig.path.lanes_now(1).unwrap();
    assert_eq!(now.ahead.iter().filter(|ahead| **ahead == 0).count(), 2, "{now:?}");
    assert_eq!(now.ahead.iter().max().copied(), Some(data(1).len() as u64));
}

#[test]
fn acks_and_connections_stay_on_the_lane_of_their_flow() {
    let rig = Rig::new(3);
    let ack = Tcp { flags: ACK, ..Tcp::data(1, 0) }.frame(peer(0), own(0));
    let lane = holds(&rig, &ack).lane.unwrap();
    assert_eq!(lane.1, Why::Ack);
    // A connection that begins makes what was known of an earlier one be forgotten; the question does not.
    for turn in 0..4 {
        rig.out(&data(1 + 1000 * turn));
    }
    let syn = Tcp { flags: SYN, ..Tcp::data(7, 0) }.frame(peer(0), own(0));
    assert_eq!(holds(&rig, &syn).lane, Some(lane));
}

#[test]
fn a_stripe_that_is_too_short_grows() {
    let rig = Rig::new(2);
    // In flight there are more stripes than are remembered of a flow.
    let grows = (0..1000).any(|turn| {
        rig.sends(&data(1 + 1000 * turn));
        let told = told(&rig, &data(1 + 1000 * (turn + 1)), Beside::default());
        told.lane.is_some_and(|lane| lane.1 == Why::Grows)
    });
    assert!(grows, "no stripe has grown");
}

#[test]
fn policies_say_why() {
    for (policy, why) in [
        (Policy::Flow, Why::Flow),
        (Policy::ActiveBackup, Why::First),
        (Policy::Mirror, Why::Pair),
        (Policy::RoundRobin, Why::Latest),
        (Policy::HashLayer34, Why::Hash),
    ] {
        let mut rig = Rig::new(3);
        rig.set_policy(policy);
        for flow in 0..4 {
            let told = holds(&rig, &udp(peer(0), own(0), flow, 100));
            assert_eq!(told.lane.unwrap().1, why, "{policy:?}");
            assert_eq!(told.second, (policy == Policy::Mirror).then_some(1), "{policy:?}");
        }
    }
    let rig = Rig::new(1);
    assert_eq!(holds(&rig, &data(1)).lane, Some((0, Why::Only)));
}

#[test]
fn failed_members_are_avoided() {
    for policy in Policy::all().iter().copied() {
        let mut rig = Rig::new(3);
        rig.set_policy(policy);
        rig.path.set_failed_slots(0b1).unwrap();
        for turn in 0..4 {
            let told = holds(&rig, &data(1 + 1000 * turn));
            assert_ne!(told.slot, Some(0), "{policy:?}");
            assert_eq!(told.avoided, 1, "{policy:?}");
        }
    }
}

#[test]
fn plain_hosts_groups_and_everybody() {
    let rig = Rig::new(3);
    for (to, reason) in
        [(PLAIN, "tx_plain"), ([1, 0, 0x5e, 0, 0, 9], "tx_multicast"), (BROADCAST, "tx_multicast")]
    {
        let told = holds(&rig, &udp(to, own(0), 0, 100));
        assert_eq!((told.reason.name, told.base, told.plan), (reason, Some(0), Some(0)));
        assert_eq!(&told.frame[..6], to);
    }
    rig.path.set_answer(PLAIN, 2, false).unwrap();
    let solicitation = [vec![1, 1], own(0).to_vec()].concat();
    let told = holds(&rig, &ethernet(PLAIN, own(0), V6, &neighbour(135, &solicitation)));
    assert_eq!((told.reason.name, told.slot, told.plan, told.lane), ("tx_answer", Some(2), None, None));
}

#[test]
fn no_copy_leaves_to_other_segments() {
    let rig = two_switches();
    let told = holds(&rig, &udp(PLAIN, own(0), 0, 100));
    assert_eq!((told.reason.name, told.plan), ("tx_plain_unknown", None));
    assert_eq!(holds(&rig, &udp(BROADCAST, own(0), 0, 100)).reason.name, "tx_multicast");
    assert_eq!(holds(&rig, &udp(BROADCAST, GUEST, 0, 100)).reason.name, "tx_guest");
    hear(&rig, 2, own(0), PLAIN);
    let told = holds(&rig, &udp(PLAIN, own(0), 0, 100));
    assert_eq!(told.reason.name, "tx_plain_segment");
    assert_eq!(told.base, Some(linkbraid_dataplane::plain_plan(2)));
}

#[test]
fn a_class_and_its_rule() {
    let rig = with_class(&[3]);
    let mark = Rule { fwmark: Some((7, u32::MAX)), ..Rule::default() };
    let priority = Rule { priority: Some(6), ..Rule::default() };
    // The second set of rules, too.
    for _ in 0..2 {
        rig.path.set_rules(&[row(1, &mark)]).unwrap();
        rig.path.set_rules(&[row(1, &mark), row(1, &priority)]).unwrap();
        for (beside, rule) in [
            (Beside { priority: 6, ..Beside::default() }, 1),
            (Beside { mark: 7, priority: 6, ..Beside::default() }, 0),
        ] {
            let told = holds_with(&rig, &data(1), beside);
            assert_eq!((told.class, told.rule, told.slot), (1, Some(rule), Some(3)));
            assert_eq!((told.base, told.plan), (Some(1), Some(PEER_PLAN)));
        }
        let told = holds(&rig, &data(1));
        assert_eq!((told.class, told.rule, told.plan), (0, None, Some(1)));
        rig.path.set_rules(&[]).unwrap();
    }
}

#[test]
fn a_class_that_lends_its_members_has_sent_nothing_by_the_question() {
    let rig = with_class(&[3]);
    rig.path.set_rules(&[row(1, &Rule { priority: Some(6), ..Rule::default() })]).unwrap();
    rig.path.set_class(1, 0b1000, true).unwrap();
    assert_eq!(holds_with(&rig, &data(1), Beside { priority: 6, ..Beside::default() }).slot, Some(3));
}

#[test]
fn drops_have_their_reason() {
    let rig = with_class(&[3]);
    rig.path.set_rules(&[row(1, &Rule { priority: Some(6), ..Rule::default() })]).unwrap();
    rig.path.set_plan(PEER_PLAN, &Plan::default()).unwrap();
    let told = holds_with(&rig, &data(1), Beside { priority: 6, ..Beside::default() });
    assert_eq!((told.reason.name, told.slot, told.lane), ("tx_class_blocked", None, None));
    rig.path.set_plan(1, &Plan::default()).unwrap();
    let told = holds(&rig, &data(1));
    assert_eq!((told.reason.name, told.reason.verdict), ("tx_no_lane", "drop"));
}

#[test]
fn guests_keep_their_macs_or_take_lanes() {
    let rig = with_guests(3);
    let told = holds(&rig, &udp(PLAIN, GUEST, 0, 100));
    assert_eq!((told.reason.name, told.plan), ("tx_guest", None));
    assert_eq!(&told.frame[6..12], GUEST);
    let told = holds(&rig, &udp(FAR, GUEST, 0, 100));
    assert_eq!((told.reason.name, told.plan), ("tx_for_guest", Some(1)));
    assert_eq!(told.frame[6..12], alias(own(told.slot.unwrap())));
    assert_eq!(holds(&rig, &udp(peer(0), GUEST, 0, 100)).reason.name, "tx_from_guest");
    // What a guest says of itself is not remembered.
    let says = ethernet(PLAIN, GUEST, 0x0806, &crate::frames::arp(1, (GUEST, 1), (PLAIN, 0)));
    assert_eq!(holds(&rig, &says).reason.name, "tx_guest");
}

#[test]
fn a_mirrored_frame_has_no_copy_and_no_number() {
    let mut rig = Rig::new(3);
    rig.set_policy(Policy::Mirror);
    let told = holds(&rig, &udp(peer(0), own(0), 0, 100));
    assert_eq!((told.reason.name, told.lane, told.second), ("tx_mirror", Some((0, Why::Pair)), Some(1)));
    let once = Beside { gso_size: 500, gso_segs: 3, ..Beside::default() };
    let told = holds_with(&rig, &data(1), once);
    assert_eq!((told.reason.name, told.second), ("tx_mirror_once", None));
}

#[test]
fn lanes_are_those_of_the_plan_in_force() {
    let rig = Rig::new(3);
    rig.out(&data(1));
    rig.path.set_plan(1, &plan(&[(2, 1), (1, 1)], |slot| Some(peer(slot)))).unwrap();
    assert!(rig.path.lanes_now(1).unwrap().ahead.is_empty());
    let told = told(&rig, &data(1001), Beside::default());
    assert_eq!((told.lane, told.slot), (Some((0, Why::Latest)), Some(2)));
    let udp6 = Tcp { protocol: V6, ..Tcp::data(1, 100) }.frame(peer(0), own(0));
    assert_eq!(holds(&rig, &udp6).reason.name, "tx_peer");
    let udp4 = Tcp { protocol: V4, ..Tcp::data(1, 100) }.frame(peer(0), own(0));
    assert_eq!(holds(&rig, &udp4).reason.name, "tx_peer");
}
