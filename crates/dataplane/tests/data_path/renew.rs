//! What the tests are lent: nothing of one test is left for the next.

use crate::frames::ethernet;
use crate::lent::{Lent, id, is_empty, places, programs};
use crate::rig::{BROADCAST, PLAIN, Rig, ip, own, peer};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType, num_possible_cpus};
use linkbraid_dataplane::{DataPath, HookChoice, Verdict};
use std::{
    collections::BTreeSet,
    ffi::OsString,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

/// Programs on the bond and on all members.
fn attached(n: u8) -> Rig {
    let mut rig = Rig::new(n);
    for ifindex in rig.members.clone() {
        rig.path.attach_member(ifindex).unwrap();
    }
    rig.path.attach_port(rig.bond.ifindex).unwrap();
    rig
}

/// Something in every place of every map, on all CPUs; the rings are for the programs to fill.
fn fill(map: &MapHandle) {
    let ones = |bytes: u32| vec![0xff; bytes as usize];
    match map.map_type() {
        MapType::Array => {
            places(map).for_each(|key| map.update(&key, &ones(map.value_size()), MapFlags::ANY).unwrap());
        }
        MapType::PercpuArray => {
            let row = vec![ones(map.value_size()); num_possible_cpus().unwrap()];
            places(map).for_each(|key| map.update_percpu(&key, &row, MapFlags::ANY).unwrap());
        }
        MapType::Hash | MapType::LruHash => {
            map.keys().collect::<Vec<_>>().iter().for_each(|key| map.delete(key).unwrap());
            for number in 0..map.max_entries() {
                let mut key = ones(map.key_size());
                key[..4].copy_from_slice(&number.to_ne_bytes());
                map.update(&key, &ones(map.value_size()), MapFlags::ANY).unwrap();
            }
        }
        MapType::RingBuf | MapType::Xskmap => {}
        other => panic!("{:?}: nobody knows how to fill a map of type {other:?}", map.name()),
    }
}

fn names(ids: BTreeSet<u32>) -> BTreeSet<OsString> {
    ids.into_iter().map(|id| MapHandle::from_map_id(id).unwrap().name().to_owned()).collect()
}

#[test]
fn a_renewed_data_path_is_as_one_that_was_just_loaded() {
    let mut rig = attached(2);
    ip("link set bond up");
    // Peers and strangers have a ring each.
    let arp_plus = [peer(0), PLAIN].map(|from| ethernet(BROADCAST, from, 0x88b5, &[0; 46]));
    for frame in &arp_plus {
        assert_eq!(rig.arrives(0, frame).reasons, ["rx_arp_plus"]);
    }
    rig.path.maps().for_each(fill);
    let mut types = BTreeSet::new();
    // What the holder's map has is what it was loaded with, and nobody sees it.
    for map in rig.path.maps().filter(|map| map.map_type() != MapType::Xskmap) {
        // This takes the frame out of the ring.
        assert!(!is_empty(map), "{:?} was not filled", map.name());
        types.insert(format!("{:?}", map.map_type()));
    }
    let all = ["Array", "Hash", "LruHash", "PercpuArray", "RingBuf"];
    assert_eq!(types.into_iter().collect::<Vec<_>>(), all);

    rig.path.renew();
    for map in rig.path.maps() {
        assert!(is_empty(map), "something is left in {:?}", map.name());
    }
    // Rings that were left with a frame in each.
    rig.write_tables();
    for frame in &arp_plus {
        assert_eq!(rig.arrives(0, frame).reasons, ["rx_arp_plus"]);
    }
    rig.path.renew();
    assert!(rig.path.maps().all(is_empty));

    // No other map, and no program that is not known, keeps anything.
    let ids: BTreeSet<u32> = rig.path.map_ids().unwrap();
    let all = programs(&ids);
    let mut known: Vec<_> = all.iter().map(|program| program.name.to_string_lossy()).collect();
    known.sort_unstable();
    assert_eq!(known, ["lb_copies", "lb_egress", "lb_ingress", "lb_mark"]);
    assert!(all.iter().all(|program| program.map_ids.iter().all(|id| ids.contains(id))));

    let fresh = DataPath::load(HookChoice::Auto).unwrap();
    assert_eq!(names(rig.path.map_ids().unwrap()), names(fresh.map_ids().unwrap()));
    assert_eq!(rig.path.hook(), fresh.hook());
    fresh.unload().unwrap();
}

/// A neighbour that is not there is sent a frame by the kernel, which the bond's program would count.
fn send_one() {
    std::net::UdpSocket::bind("198.18.9.1:0").unwrap().send_to(b"who counts?", "198.18.9.2:9").unwrap();
}

#[test]
fn a_renewed_data_path_is_attached_nowhere() {
    let mut rig = attached(1);
    ip("link set bond address 02:00:00:00:01:00");
    ip("link set bond up");
    ip("address add 198.18.9.1/24 dev bond");
    ip("neighbour add 198.18.9.2 lladdr 02:00:00:00:03:01 dev bond nud permanent");
    let plain = |rig: &Rig| rig.path.reason("tx_plain").unwrap().frames;
    send_one();
    assert!(plain(&rig) > 0, "it was attached");
    rig.path.renew();
    send_one();
    assert!(rig.counts().iter().all(|(_, count)| count.frames == 0), "{:?}", rig.counts());
    // It works as a new one does, where nothing is known of a bond.
    let sent = ethernet(PLAIN, own(0), 0x0800, &[0x45; 60]);
    let ran = rig.out(&sent);
    assert_ne!(ran.verdict, Verdict::Redirect);
    rig.path.attach_port(rig.bond.ifindex).unwrap();
    rig.write_tables();
    send_one();
    assert!(plain(&rig) > 0, "it can be attached again");
}

#[test]
fn of_a_test_that_fails_nothing_is_left() {
    let mut seen = None;
    let failed = catch_unwind(AssertUnwindSafe(|| {
        let rig = attached(2);
        let ids: BTreeSet<u32> = rig.path.maps().map(id).collect();
        assert_eq!(programs(&ids).len(), 4);
        seen = Some(ids);
        panic!("as a test would");
    }));
    assert!(failed.is_err());
    let ids = seen.expect("it came to its end");
    // The interfaces are still there; the programs go, hence were on none of them.
    let begun = Instant::now();
    while !programs(&ids).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the programs are still loaded");
        std::thread::yield_now();
    }
    let next = Lent::take();
    assert!(next.maps().all(is_empty) && next.maps().all(|map| !ids.contains(&id(map))));
}
