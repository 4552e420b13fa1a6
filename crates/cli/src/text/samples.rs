//! One record of each kind, for the golden tests.

use linkbraid_api::{
    AddressMove, BondRecord, CounterRecord, Health, LaneRecord, MemberRecord, PeerMemberRecord, PeerRecord,
    PeerState, Policy, StatsRecord, Stripe,
};

/// A bond of four members that is well.
pub fn bond() -> BondRecord {
    BondRecord {
        name: "bond0".into(),
        health: Health::Ok,
        reason: String::new(),
        mac: "02:00:00:00:00:01".into(),
        mtu: 1500,
        addresses: vec!["198.18.0.1/24".into(), "2001:db8::1/64".into()],
        policy: Policy::Spread,
        stripe: Stripe::Auto,
        stripe_bytes: 4400,
        damping: true,
        hook: "tcx".into(),
        host_id: "0123456789abcdef0123456789abcdef".into(),
        arp_plus_state: "S2".into(),
        peers: 2,
        members: (1..=4).map(member).collect(),
        moved: [("198.18.0.1/24", "eth1"), ("2001:db8::1/64", "eth1"), ("198.18.1.1/24", "eth2")]
            .map(|(address, member)| AddressMove { address: address.into(), member: member.into() })
            .to_vec(),
        conflicts: vec![],
    }
}

/// Member `eth<number>`; the first one is elected, speeds and counts differ.
pub fn member(number: u32) -> MemberRecord {
    MemberRecord {
        interface: format!("eth{number}"),
        mac: format!("02:00:00:00:00:{number:02x}"),
        live: true,
        reason: String::new(),
        speed_mbit: if number == 4 { None } else { Some(1000 * number) },
        weight_mbit: 250 * number,
        segment: 0,
        elected: number == 1,
        tx_frames: 1000,
        tx_bytes: 10_u64.pow(number * 3) * 15 / 10,
        rx_frames: 10,
        rx_bytes: 999,
    }
}

/// A peer that speaks all of ARP+, and one that speaks the published part only and has fallen silent.
pub fn peers() -> Vec<PeerRecord> {
    let full = PeerRecord {
        bond: "bond0".into(),
        address: Some("198.18.0.2".into()),
        host_id: Some("ffeeddccbbaa99887766554433221100".into()),
        epoch: Some(3),
        state: PeerState::Alive,
        mac: "02:00:00:00:01:01".into(),
        members: vec![
            PeerMemberRecord { mac: "02:00:00:00:01:01".into(), live: true, weight_mbit: Some(1000) },
            PeerMemberRecord { mac: "02:00:00:00:01:02".into(), live: false, weight_mbit: None },
        ],
        heard_ms: 250,
    };
    let silent = PeerRecord {
        address: None,
        host_id: None,
        epoch: None,
        state: PeerState::Silent,
        mac: "02:00:00:00:02:01".into(),
        members: vec![],
        heard_ms: 150_000,
        ..full.clone()
    };
    vec![full, silent]
}

/// A lane to a peer and one to plain hosts.
pub fn lanes() -> Vec<LaneRecord> {
    let lane = LaneRecord {
        bond: "bond0".into(),
        peer: "198.18.0.2".into(),
        member: "eth1".into(),
        peer_mac: Some("02:00:00:00:01:01".into()),
        share_ppm: 833_333,
        tx_frames: 1_234_567,
        tx_bytes: 1_500_000_000,
    };
    let plain = LaneRecord {
        peer: "plain hosts".into(),
        peer_mac: None,
        share_ppm: 1_000_000,
        tx_frames: 0,
        tx_bytes: 0,
        ..lane.clone()
    };
    vec![lane, plain]
}

/// Two counters, one of them at zero.
pub fn stats() -> StatsRecord {
    let counter = |number, name: &str, verdict: &str, frames, bytes| CounterRecord {
        name: name.into(),
        number,
        description: format!("what {name} means"),
        verdict: verdict.into(),
        frames,
        bytes,
    };
    StatsRecord {
        bond: "bond0".into(),
        counters: vec![
            counter(1, "tx_striped", "sent", 123_456, 1_500_000),
            counter(2, "rx_own_source", "drop", 0, 0),
            counter(100, "arp_plus_reply", "protocol", 7, 0),
        ],
    }
}
