use super::*;
use std::collections::BTreeSet;

/// What the stranger knows of two hosts with two members each.
fn known() -> Known {
    let victims = [1_000_001, 1_000_002].map(|number| invented(Kind::Change, number, 7, 2));
    let heard = victims.iter().map(|victim| frame(MacAddr::BROADCAST, victim.hardware[0], victim));
    let heard = heard.collect::<Vec<_>>().into();
    let gateway_address = IpAddr::from([198, 18, 0, 3]);
    Known { own: invented_mac(1_000_003), victims, gateway: invented_mac(1_000_004), gateway_address, heard }
}

#[test]
fn each_attack_sends_frames() {
    let known = known();
    for attack in &ATTACKS {
        for number in 0..64 {
            let frame = (attack.frame)(&known, number);
            assert!(frame.len() >= 60, "{} {number}: {} bytes", attack.name, frame.len());
        }
    }
}

#[test]
fn who_sends_from_a_mac_that_others_have_says_so() {
    let known = known();
    let of_others: Vec<MacAddr> = known.victims.iter().flat_map(|v| v.hardware.clone()).collect();
    for attack in &ATTACKS {
        let sources: BTreeSet<[u8; 6]> =
            (0..64).map(|n| (attack.frame)(&known, n)[6..12].try_into().expect("six bytes")).collect();
        let moves = of_others.iter().any(|mac| sources.contains(&mac.0));
        assert_eq!(moves, attack.moves_macs, "{}", attack.name);
    }
}

#[test]
fn who_forges_arp_says_so() {
    let known = known();
    for attack in &ATTACKS {
        let forges = (0..64).any(|n| (attack.frame)(&known, n)[12..14] == [0x08, 0x06]);
        assert_eq!(forges, attack.forges_arp, "{}", attack.name);
    }
}

#[test]
fn names_are_different_and_found() {
    let names: BTreeSet<&str> = ATTACKS.iter().map(|attack| attack.name).collect();
    assert_eq!(names.len(), ATTACKS.len());
    assert_eq!(ATTACKS.iter().filter(|attack| attack.is_flood()).count(), 1);
    assert!(names.iter().all(|name| Attack::find(name).is_some_and(|found| found.name == *name)));
}

#[test]
fn a_flood_of_joins_has_another_host_in_each_frame() {
    let known = known();
    let joins = Attack::find("joins").expect("is in the list");
    let frames: BTreeSet<Vec<u8>> = (0..10_000).map(|n| (joins.frame)(&known, n)).collect();
    assert_eq!(frames.len(), 10_000);
}
