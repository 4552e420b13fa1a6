//! Guests here, and plain hosts that are on nobody knows which switch.

use super::*;
use crate::arp_plus::{SeenAddress, SeenGuests, alias_of};

//= docs/arp-plus.md#14.3 type=test
#[test]
fn aliases_of_a_peer_lead_to_it_from_the_first_guest_here_to_the_last() {
    let mut two = Two::met(&[0, 0], &settings());
    let aliases = two.members(1).into_iter().map(|member| alias_of(member.mac)).collect::<Vec<_>>();
    let has_aliases = |two: &Two| {
        let rows = &two.hosts[0].image().peer_macs;
        aliases.iter().map(|mac| rows.contains_key(mac)).collect::<Vec<_>>()
    };
    let sees = |two: &mut Two, number: u8| {
        let (mac, now) = (MacAddr([0x52, 0x54, 0, 0, 0, number]), two.now);
        let named = SeenAddress { vlan: 0, address: [198, 18, 1, number].into(), mac, named: now };
        two.handle(0, Input::Guests(&SeenGuests { last_sent: vec![(mac, now)], addresses: vec![named] }));
    };
    assert_eq!(has_aliases(&two), [false; 2]);
    sees(&mut two, 1);
    assert_eq!(has_aliases(&two), [true; 2]);
    two.handle(0, Input::Guests(&SeenGuests::default()));
    assert_eq!(has_aliases(&two), [false; 2]);
}

#[test]
fn replies_of_a_plain_host_on_an_unknown_switch_are_wanted_and_it_knows_the_bonds_mac() {
    let mut two = Two::met(&[0, 1], &settings());
    two.neighbours = gateway(0);
    two.neighbours.1.clear();
    two.handle(0, Input::NeighboursChanged);
    two.pass(1000);
    for slot in 0..2 {
        let mac = two.members(0)[usize::from(slot)].mac;
        two.handle(0, Input::Own(answers::Own { mac, addresses: Vec::new(), router: false }));
        two.handle(0, Input::NeighboursChanged);
        two.pass(1000);
        assert_eq!(two.hosts[0].answers().table().next(), None);
        let row = two.hosts[0].image().answers[&GATEWAY];
        assert_eq!((row.slot, row.probed), (slot, true));
    }
}
