use super::*;
use crate::ring::Map;
use proptest::prelude::*;
use std::collections::HashMap;

fn table() -> MacTable {
    let map = Map::anonymous(MACS_MAX * size_of::<Entry>()).unwrap();
    MacTable::new(map.row(0, MACS_MAX).unwrap())
}

fn mac(number: u32) -> Mac {
    let [a, b, c, d] = number.to_be_bytes();
    [0x02, 0, a, b, c, d]
}

#[test]
fn derived_addresses_name_their_node_and_fabric() {
    for node in [0, 1, 255, 256, 511] {
        let mac = derive_mac(3, node);
        assert_eq!(derived_node(3, mac), Some(node));
        assert_eq!(derived_node(4, mac), None);
        assert!(!is_group(mac) && mac[0] & 2 == 2, "one interface's, and locally administered");
    }
    assert_eq!(derive_mac(0, 258), [0x02, 0x6c, 0x62, 0, 1, 2]);
    assert_eq!(derived_node(0, [0x02, 0x6c, 0x63, 0, 0, 1]), None);
}

#[test]
fn an_address_is_learned_moves_ages_and_is_forgotten() {
    let table = table();
    assert_eq!(table.node_of(mac(1), 10), None);
    assert_eq!(table.learn(mac(1), 0, 10), Learned::New);
    assert_eq!(table.learn(mac(1), 0, 11), Learned::Known);
    assert_eq!(table.node_of(mac(1), 11 + MAC_AGE_SECONDS - 1), Some(0));
    assert_eq!(table.node_of(mac(1), 11 + MAC_AGE_SECONDS), None);
    assert_eq!(table.learn(mac(1), 0, 400), Learned::New, "it had aged");
    assert_eq!(table.learn(mac(1), 7, 401), Learned::Moved);
    assert_eq!(table.node_of(mac(1), 401), Some(7));
    table.learn(mac(2), 8, 401);
    table.forget(mac(1));
    assert_eq!((table.node_of(mac(1), 401), table.node_of(mac(2), 401)), (None, Some(8)));
    table.learn(mac(3), 7, 401);
    table.forget_node(8);
    assert_eq!(table.iter(401).collect::<Vec<_>>(), [(mac(3), 7)]);
}

#[test]
fn a_flood_of_addresses_stays_bounded_and_leaves_what_is_in_use() {
    let table = table();
    for number in 0..100 {
        table.learn(mac(number), 1, 0);
    }
    let mut full = 0;
    for number in 1_000..100_000 {
        full += usize::from(table.learn(mac(number), 2, 1) == Learned::Full);
    }
    assert!(full > 90_000, "{full}");
    assert!(table.iter(1).count() <= MACS_MAX);
    assert!((0..100).all(|number| table.node_of(mac(number), 1) == Some(1)));
    assert_ne!(
        table.learn(mac(5_000_000), 1, MAC_AGE_SECONDS + 1),
        Learned::Full,
        "what has aged makes room"
    );
}

proptest! {
    #[test]
    fn it_says_what_a_map_says(steps in proptest::collection::vec((0u32..64, 0u16..4, 0u8..4), 0..200)) {
        let (table, mut map) = (table(), HashMap::new());
        for (number, node, what) in steps {
            match what {
                0 => { table.forget(mac(number)); map.remove(&number); }
                1 => { table.forget_node(node); map.retain(|_, at| *at != node); }
                _ => { table.learn(mac(number), node, 0); map.insert(number, node); }
            }
            prop_assert_eq!(table.node_of(mac(number), 0), map.get(&number).copied());
        }
        prop_assert_eq!(table.iter(0).count(), map.len());
    }
}
