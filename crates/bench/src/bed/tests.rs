use super::*;
use linkbraid_api::PeerMemberRecord;

fn peer(state: PeerState, weights: &[Option<u32>]) -> PeerRecord {
    let member = |weight: &Option<u32>| PeerMemberRecord {
        mac: String::new(),
        live: true,
        weight_mbit: *weight,
        class: None,
    };
    PeerRecord {
        bond: BOND.into(),
        address: None,
        host_id: None,
        epoch: None,
        state,
        mac: String::new(),
        members: weights.iter().map(member).collect(),
        heard_ms: 0,
        proven: true,
        guests: vec![],
    }
}

#[test]
fn a_peer_is_known_when_all_its_members_are_there_with_their_rates() {
    let wanted = vec![vec![Some(100), Some(20)]];
    let have = |state, weights: &[Option<u32>]| known(&[peer(state, weights)], &wanted);
    assert!(have(PeerState::Alive, &[Some(20), Some(100)]));
    assert!(!have(PeerState::Silent, &[Some(20), Some(100)]));
    assert!(!have(PeerState::Alive, &[Some(20)]));
    assert!(!have(PeerState::Alive, &[Some(20), Some(10_000)]), "the weight is still that of the veth");
    assert!(!known(&[], &wanted));
    let mut dead = peer(PeerState::Alive, &[Some(20), Some(100)]);
    dead.members[1].live = false;
    assert!(!known(&[dead], &wanted));
}

#[test]
fn a_link_without_a_rate_may_have_any_weight() {
    assert!(known(&[peer(PeerState::Alive, &[Some(10_000)])], &[vec![None]]));
    assert!(known(&[], &[]), "a lab with one bonded host waits for nobody");
}
